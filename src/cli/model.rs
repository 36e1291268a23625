//! `pluralis model pull | list`.

use super::{Failure, out};
use crate::endpoint::model_file;

/// Subcommands of `model`.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Fetch a known model, check its digest, keep it in the cache folder
    Pull {
        /// Name of the model, as in `pluralis model list`
        name: String,
    },
    /// List the known models and where they lie
    List,
}

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Pull { name } => {
            let path =
                model_file::pull(name, &out::note).map_err(|e| Failure::machine(e.to_string()))?;
            out::line(&path.display().to_string())?;
        }
        Command::List => {
            for model in model_file::KNOWN {
                let place = model_file::find(model.name)
                    .map_or_else(|_| "not fetched".into(), |p| p.display().to_string());
                out::line(&format!("{:<16} {}", model.name, place))?;
            }
        }
    }
    Ok(())
}

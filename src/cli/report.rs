//! `pluralis report`.

use std::path::PathBuf;

use super::Failure;
use crate::report;

/// Arguments of `report`.
#[derive(clap::Args)]
pub struct Args {
    /// Folder of a finished run
    run: PathBuf,
}

/// Writes the page of a run anew and says where it lies.
pub fn run(args: &Args) -> Result<(), Failure> {
    println!("{}", report::write_html(&args.run)?.display());
    Ok(())
}

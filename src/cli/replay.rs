//! `pluralis replay`.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use super::Failure;
use super::cache::CacheArgs;
use crate::experiment::{self, Replay, ReplayError, ReplayOptions};

/// Characters of a value that are shown.
const SHOWN: usize = 100;

/// Arguments of `replay`.
#[derive(clap::Args)]
pub struct Args {
    /// The run folder
    run: PathBuf,
    /// Folder of the experiment file, where the run cannot find its task and items any more
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Rebuilds a run and prints where it differs.
pub fn run(args: &Args) -> Result<(), Failure> {
    let options = ReplayOptions {
        base: args.base.clone(),
        cache: args.cache.file(None),
    };
    let found = super::block_on(experiment::replay(&args.run, &options))?.map_err(failure)?;
    let text = if args.json {
        serde_json::to_string_pretty(&found).map_err(|e| Failure::machine(e.to_string()))? + "\n"
    } else {
        told(&found)
    };
    super::shell::print(text.as_bytes())?;
    match found.is_equal() {
        true => Ok(()),
        false => Err(Failure::differs(format!(
            "{} values of {} are not what its ledger gives",
            found.different,
            args.run.display()
        ))),
    }
}

fn failure(e: ReplayError) -> Failure {
    match e {
        ReplayError::Plan(e) => e.into(),
        ReplayError::Run(e) => e.into(),
        other => Failure::input(other.to_string()),
    }
}

fn told(found: &Replay) -> String {
    let mut out = String::new();
    for d in &found.differences {
        let _ = writeln!(
            out,
            "{}: {}\n  recorded: {}\n  rebuilt:  {}",
            d.file,
            if d.key.is_empty() {
                "all of it"
            } else {
                &d.key
            },
            shown(d.recorded.as_ref()),
            shown(d.rebuilt.as_ref())
        );
    }
    if found.different > found.differences.len() {
        let more = found.different - found.differences.len();
        let _ = writeln!(out, "and {more} more");
    }
    if let Some(why) = &found.missing {
        let _ = writeln!(out, "rebuilt up to event {}: {why}", found.events);
    }
    if found.is_equal() {
        let state = match (found.finished, &found.missing) {
            (true, _) => "a finished run",
            (false, Some(_)) => "an unfinished run, as far as it went",
            (false, None) => "a run that was left before its last files were written",
        };
        let _ = writeln!(
            out,
            "equal: {} values, {} events of {state}, rebuilt from its ledger without a call",
            found.compared, found.events
        );
    }
    out
}

/// A value on one line, without anything that a terminal would obey.
fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "nothing".into();
    };
    let text: String = value
        .to_string()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text,
    }
}

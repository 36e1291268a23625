//! `pluralis tune`.

use std::path::PathBuf;

use super::progress::Display;
use super::{Failure, out};
use crate::experiment::{self, Plan, RunOptions};
use crate::report;

/// Arguments of `tune`.
#[derive(clap::Args)]
pub struct Args {
    /// The experiment file
    config: PathBuf,
    /// Folder of the run [default: runs/<name>-<digest of the config>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with an unfinished run
    #[arg(long)]
    resume: bool,
    /// Override a key of the file, as in --set budget.calls=300 (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print what would be done and what it costs at most, and make no call
    #[arg(long)]
    dry_run: bool,
}

/// Runs the loop and prints the closing table.
pub fn run(args: &Args) -> Result<(), Failure> {
    let plan = Plan::load(&args.config, &args.set)?;
    if args.dry_run {
        return out::text(&dry_run(&plan));
    }
    let cache = plan
        .config
        .cache
        .clone()
        .map(|c| {
            args.config
                .parent()
                .unwrap_or(std::path::Path::new("."))
                .join(c)
        })
        .or_else(default_cache);
    let options = RunOptions {
        out: args.out.clone(),
        resume: args.resume,
        cache,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::machine(format!("cannot start the runtime: {e}")))?;
    let display = Display::new(plan.config.budget.calls);
    let done = runtime.block_on(experiment::tune(&plan, &options, &|update| {
        display.show(update)
    }));
    display.finish();
    let (dir, summary, was_there) = done?;
    if was_there {
        out::line("This run is finished already; nothing was called.")?;
    }
    out::text(&report::summary_table(&summary, &dir))
}

fn default_cache() -> Option<PathBuf> {
    let base = std::env::var_os("PLURALIS_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(dirs::cache_dir()?.join("pluralis")))?;
    std::fs::create_dir_all(&base).ok()?;
    Some(base.join("answers.sqlite"))
}

fn dry_run(plan: &Plan) -> String {
    let (tune, validation, test) = (plan.tune.len(), plan.validation.len(), plan.test.len());
    let of = |split: &[usize]| plan.calls_for(split, &plan.start);
    let reserved = 2 * of(&plan.test);
    let mut out = format!(
        "{}: {} items in {} locales ({tune} tune, {validation} validation, {test} test), seed version {}\n  scoring the seed on tune   {:>7} calls\n  one look at validation     {:>7} calls\n  reading test, both versions{:>7} calls, held back from the start\n",
        plan.config.name,
        tune + validation + test,
        plan.tune
            .iter()
            .map(|&i| &plan.items[i].locale)
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        plan.start.short(),
        of(&plan.tune),
        of(&plan.validation),
        reserved,
    );
    match plan.config.budget.calls {
        Some(cap) => {
            let left = cap.saturating_sub(reserved);
            out += &format!(
                "  cap                        {cap:>7} calls, of which {left} are for the search\n"
            );
            if left < of(&plan.tune) {
                out += "  this cap is too small to score the seed version on tune: raise budget.calls\n";
            }
        }
        None => out += "  no cap on calls: the loop ends by threshold or patience\n",
    }
    out
}

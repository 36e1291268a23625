//! `pluralis reproduce`.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::cache::CacheArgs;
use super::progress::Display;
use super::prompt::{RegistryArgs, percent};
use super::{Failure, out};
use crate::experiment::{self, Plan, ReproduceOptions, Reproduced, RunRecord};
use crate::registry::Found;

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub struct Args {
    /// The version
    version: String,
    /// Folder of the experiment file, where the version does not say or it is elsewhere now
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Make the calls whose answers are in no cache, up to the caps of the run
    #[arg(long)]
    calls: bool,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    cache: CacheArgs,
}

/// Repeats a run and compares.
pub fn run(args: &Args) -> Result<(), Failure> {
    let found = args.registry.find(&args.version)?;
    let record = match &found.dir {
        Some(dir) => RunRecord::read(dir)?,
        None => None,
    };
    let Some(record) = record else {
        return Err(Failure::input_help(
            format!(
                "no run made version {}, so there is nothing to repeat",
                found.version.short()
            ),
            Some(
                "versions that `tune --register` or `prompt import RUN` put here have a run.toml"
                    .into(),
            ),
        ));
    };
    let plan = plan(args, &found, &record)?;
    out::note(&format!("run {}, data {}", record.run, short(&record.data)));
    let mut options = ReproduceOptions {
        cache: args.cache.file(None),
        calls: args.calls,
        charge: true,
    };
    let wanted = found.version.digest();
    let first = repeat(&plan, &record, &options)?;
    // Where the first run found answers of others in its cache, it did not pay for them.
    options.charge = false;
    let done = match first.gives(&wanted) {
        true => first,
        false if plan.config.budget == Default::default() => first,
        false => Some(repeat(&plan, &record, &options)?)
            .filter(|second| second.gives(&wanted))
            .unwrap_or(first),
    };
    told(&found, &done, args.calls)
}

fn repeat(
    plan: &Plan,
    record: &RunRecord,
    options: &ReproduceOptions,
) -> Result<Reproduced, Failure> {
    let display = Display::new(plan.config.budget.calls);
    let done = super::block_on(experiment::reproduce(plan, record, options, &|update| {
        display.show(update)
    }));
    display.finish();
    let again = "run the same command again: what was answered is in the cache";
    done?.map_err(|e| Failure::of_run(&e, again))
}

/// The plan of the run, with the very items that it had.
fn plan(args: &Args, found: &Found, record: &RunRecord) -> Result<Plan, Failure> {
    let Some(base) = args
        .base
        .clone()
        .or_else(|| experiment::base_of(found, record))
    else {
        return Err(Failure::input_help(
            "the version does not say where its experiment file was",
            Some("name that folder with --base".into()),
        ));
    };
    let file = found.dir.clone().unwrap_or_default().join("run.toml");
    let mut plan = Plan::of(record.config.clone(), &file, &base)?;
    if plan.data_digest != record.data {
        return Err(Failure::differs(format!(
            "the items in {} are not those of the run: their digest is {}, and run.toml says {}",
            base.display(),
            plan.data_digest,
            record.data
        )));
    }
    super::prompt::same_task(found, &plan)?;
    if let Some(start) = experiment::start_of(found, record)? {
        plan.start = start;
    }
    Ok(plan)
}

fn told(found: &Found, done: &Reproduced, calls: bool) -> Result<(), Failure> {
    let answers = done.spent.calls + done.spent.cached;
    let made = match calls {
        true => "from the cache or by calls",
        false => "from the cache; no call was made",
    };
    let mut text = format!(
        "{} decisions repeated with {answers} answers {made}\n",
        done.events
    );
    if let Some(missing) = &done.missing {
        let _ = writeln!(text, "stopped: {missing}");
        if let Some(needed) = &done.needed {
            text += "What the run would ask at least, with this cache:\n";
            for step in &needed.steps {
                let _ = writeln!(
                    text,
                    "  {:<28} {:>6} calls, {:>6} answered, about {} prompt tokens",
                    step.what, step.most.calls, step.most.cached, step.likely_prompt_tokens
                );
            }
            if let Some(calls) = needed.caps.calls {
                let _ = writeln!(text, "  its cap is {calls} calls");
            }
        }
        out::text(&text)?;
        return Err(Failure::unanswered(
            "the cache does not hold the whole run",
            "import its answers (`pluralis cache import FILE`), or let the calls be made with --calls",
        ));
    }
    let best = done.best.as_deref().unwrap_or_default();
    let wanted = found.version.digest();
    let mut wrong = 0;
    if best == wanted {
        let _ = writeln!(
            text,
            "the run gives version {} again",
            found.version.short()
        );
    } else if done.gives(&wanted) {
        let _ = writeln!(
            text,
            "the run gives {}, which was made of version {}",
            short(best),
            found.version.short()
        );
    } else {
        wrong += 1;
        let _ = writeln!(
            text,
            "the run gives {}, and not {}",
            short(best),
            found.version.short()
        );
    }
    if best == wanted {
        for first in found.evidence.measured.iter().filter(|m| m.by == "tune") {
            let same = done.confirms(first);
            wrong += usize::from(!same);
            let word = if same {
                "the same figures"
            } else {
                "other figures than recorded"
            };
            let test = first.splits.get("test").map_or(String::new(), |s| {
                format!(", test {}", percent(s.disagreement))
            });
            let _ = writeln!(text, "{word}: {}{test}", first.experiment);
        }
    }
    out::text(&text)?;
    match wrong {
        0 => Ok(()),
        _ => Err(Failure::differs("what came out is not what is recorded")),
    }
}

/// The digits that people see.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

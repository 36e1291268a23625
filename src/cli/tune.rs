//! `pluralis tune`.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::asking::PaceArgs;
use super::progress::Display;
use super::{Failure, out};
use crate::experiment::{self, BYTES_PER_TOKEN, DryRun, Plan, RunOptions};
use crate::ledger::{Amount, Caps, Money};
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
    /// Make no call: answer from this run's ledger and the cache alone, and stop where both are silent
    #[arg(long)]
    offline: bool,
    /// Put the chosen version, what it was made of and the figures into the task's folder, as
    /// `pluralis prompt import RUN` does
    #[arg(long, conflicts_with = "dry_run")]
    register: bool,
    #[command(flatten)]
    pace: PaceArgs,
}

/// Runs the loop and prints the closing table.
pub fn run(args: &Args) -> Result<(), Failure> {
    let plan = Plan::load(&args.config, &args.set)?;
    let base = args.config.parent().unwrap_or(std::path::Path::new("."));
    let configured = plan.config.cache.as_ref().map(|c| base.join(c));
    let cache = args.pace.cache.file(configured);
    if args.dry_run {
        let priced = experiment::dry_run(&plan, cache)?;
        return out::text(&dry_run(&plan, &priced));
    }
    let options = RunOptions {
        out: args.out.clone(),
        resume: args.resume,
        cache,
        base: base.to_owned(),
        offline: args.offline,
        concurrency: args.pace.concurrency(),
        patience: args.pace.patience(),
    };
    let display = Display::new(plan.config.budget.calls);
    let done = super::block_on(experiment::tune(&plan, &options, &|update| {
        display.show(update)
    }));
    display.finish();
    let (dir, summary, was_there) = done??;
    let mut shown = String::new();
    if was_there {
        shown += "This run is finished already; nothing was called.\n";
    }
    shown += &report::summary_table(&summary, &dir);
    let _ = writeln!(shown, "  page      {}", report::write_html(&dir)?.display());
    if args.register {
        let folder = base.join(&plan.config.task.folder);
        let put = experiment::register(&dir, &folder)?;
        shown += &super::prompt::registered(&put);
    }
    out::text(&shown)
}

fn dry_run(plan: &Plan, priced: &DryRun) -> String {
    let (tune, validation, test) = (plan.tune.len(), plan.validation.len(), plan.test.len());
    let locales: std::collections::BTreeSet<_> =
        plan.tune.iter().map(|&i| &plan.items[i].locale).collect();
    let mut out = format!(
        "{}: {} items in {} locales ({tune} tune, {validation} validation, {test} test), seed version {}\n",
        plan.config.name,
        tune + validation + test,
        locales.len(),
        plan.start.short(),
    );
    let _ = writeln!(
        out,
        "  {:<28}{:>8}{:>10}{:>16}{:>11}{:>18}{:>12}",
        "", "calls", "answered", "prompt tokens", "at most", "cost", "at most"
    );
    for step in &priced.steps {
        let _ = writeln!(
            out,
            "  {:<28}{:>8}{:>10}{:>16}{:>11}{:>18}{:>12}",
            step.what,
            step.most.calls,
            step.most.cached,
            format!("about {}", step.likely_prompt_tokens),
            step.most.prompt_tokens,
            format!("about {}", step.likely_money),
            step.most.money.to_string(),
        );
    }
    let _ = writeln!(
        out,
        "  A token is at least one byte, and probably {BYTES_PER_TOKEN}; what the endpoint says is charged. Retries and demos come on top; `answered` is in the cache and costs nothing."
    );
    if !priced.priced {
        out += "  The judge has no price: add it to [budget.prices], or the cost above stays 0.\n";
    }
    let first = &priced.steps[0].most;
    let first = Amount {
        calls: first.calls,
        prompt_tokens: first.prompt_tokens,
        completion_tokens: first.completion_tokens,
        money: first.money,
    };
    out + &caps(&priced.caps, &priced.held_back, &first)
}

/// One line for each cap: what is held back for test, what is left for the search.
fn caps(caps: &Caps, held: &Amount, first: &Amount) -> String {
    let mut out = String::new();
    let all = [
        ("calls", caps.calls, held.calls, first.calls),
        (
            "prompt_tokens",
            caps.prompt_tokens,
            held.prompt_tokens,
            first.prompt_tokens,
        ),
        (
            "completion_tokens",
            caps.completion_tokens,
            held.completion_tokens,
            first.completion_tokens,
        ),
        (
            "money",
            caps.money.map(|m| m.0),
            held.money.0,
            first.money.0,
        ),
    ];
    for (name, cap, held, first) in all {
        let Some(cap) = cap else { continue };
        let left = cap.saturating_sub(held);
        let shown = |n: u64| match name {
            "money" => Money(n).to_string(),
            _ => n.to_string(),
        };
        let _ = writeln!(
            out,
            "  cap on {name}: {}, of which {} are held back for reading test and {} are for the search",
            shown(cap),
            shown(held.min(cap)),
            shown(left)
        );
        if left < first {
            let _ = writeln!(
                out,
                "  this cap may be too small to score the seed version on tune, which takes up to {}: raise budget.{name}",
                shown(first)
            );
        }
    }
    if out.is_empty() {
        out += "  no cap: the loop ends by threshold or patience\n";
    }
    out
}

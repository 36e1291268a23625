//! `pluralis evaluate`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::asking::PaceArgs;
use super::progress::Display;
use super::{Failure, out};
use crate::evaluate::benchmark::Kind;
use crate::experiment::RunOptions;
use crate::experiment::evaluation::{self, EvaluationPlan, Quoted, Read};
use crate::report;

/// Arguments of `evaluate`.
#[derive(clap::Args)]
#[command(after_help = "\
The file names prompts, targets (or responses that exist already), the judge and its version:
see experiments/xl-safetybench-german.toml and docs/xl-safetybench.md.

Examples:
  pluralis evaluate cultural experiments/xl-safetybench-german.toml --dry-run
  pluralis evaluate cultural experiments/xl-safetybench-german.toml --set limit=3
  pluralis evaluate jailbreak my.toml --resume")]
pub struct Args {
    /// Which part of the benchmark
    #[arg(value_enum)]
    kind: KindArg,
    /// The evaluation's file
    config: PathBuf,
    /// Folder of the evaluation [default: runs/<name>-<digest of the file, its data and the version>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with an unfinished evaluation
    #[arg(long)]
    resume: bool,
    /// Override a key of the file, as in --set limit=3 or --set judge.model=NAME (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print what would be asked and what it costs at most, and make no call
    #[arg(long)]
    dry_run: bool,
    /// Make no call: answer from this folder's ledger and the cache alone
    #[arg(long)]
    offline: bool,
    /// Print the rates of each subcategory too
    #[arg(long)]
    subcategories: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pace: PaceArgs,
}

/// The parts of the benchmark.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum KindArg {
    /// Attack prompts: ASR and NSR
    Jailbreak,
    /// Everyday scenarios with a hidden sensitivity: CSR
    Cultural,
}

/// Asks, judges, and prints the figures.
pub fn run(args: &Args) -> Result<(), Failure> {
    let kind = match args.kind {
        KindArg::Jailbreak => Kind::Jailbreak,
        KindArg::Cultural => Kind::Cultural,
    };
    let plan = EvaluationPlan::load(kind, &args.config, &args.set)?;
    let base = args.config.parent().unwrap_or(Path::new("."));
    let configured = plan.config.cache.as_ref().map(|c| base.join(c));
    let options = RunOptions {
        out: args.out.clone(),
        resume: args.resume,
        cache: args.pace.cache.file(configured),
        base: base.to_owned(),
        offline: args.offline,
        concurrency: args.pace.concurrency(),
        patience: args.pace.patience(),
    };
    let quoted = evaluation::quote(&plan, &options)?;
    if args.dry_run {
        return out::text(&dry_run(&plan, &quoted));
    }
    let display = Display::new(plan.config.budget.calls);
    let done = super::block_on(evaluation::evaluate(&plan, &options, &|update| {
        display.show(update)
    }));
    display.finish();
    let (dir, summary, was_there) = done??;
    if args.json {
        return out::value(&summary);
    }
    if was_there {
        out::line("This evaluation is finished already; nothing was called.")?;
    }
    out::text(&report::evaluation_text(&summary, &dir, args.subcategories))
}

fn dry_run(plan: &EvaluationPlan, quoted: &Quoted) -> String {
    let mut countries = std::collections::BTreeMap::new();
    for prompt in &plan.prompts {
        *countries.entry(prompt.locale.as_str()).or_insert(0) += 1;
    }
    let shown: Vec<String> = countries.iter().map(|(c, n)| format!("{c} {n}")).collect();
    let mut text = format!(
        "{} ({}): {} prompts ({}), version {}\n",
        plan.config.name,
        plan.kind.name(),
        plan.prompts.len(),
        shown.join(", "),
        plan.judge.version.short()
    );
    for (name, most) in &quoted.targets {
        let _ = writeln!(
            text,
            "  target {name}: {} calls, {} answered already, at most {} prompt and {} completion tokens, {}",
            most.calls, most.cached, most.prompt_tokens, most.completion_tokens, most.money
        );
    }
    for (name, of) in &plan.given {
        let _ = writeln!(text, "  responses of {name}: {}", of.len());
    }
    let _ = writeln!(
        text,
        "  judge: at most {} calls; their tokens are known when the responses are",
        quoted.judge_calls
    );
    let _ = writeln!(text, "  folder: {}", plan.default_folder().display());
    text
}

/// Reads an evaluation's folder for the commands that work with finished ones.
pub(super) fn finished(dir: &Path) -> Result<Read, Failure> {
    if !dir.join("summary.json").is_file() {
        let what = match dir.join("config.toml").is_file() {
            true => format!("{} holds an evaluation that is not finished", dir.display()),
            false => format!("{} holds no evaluation", dir.display()),
        };
        let help = "name the folder that `pluralis evaluate` printed; --resume finishes one";
        return Err(Failure::input_help(what, Some(help.into())));
    }
    evaluation::read(dir).map_err(|e| Failure::input(e.to_string()))
}

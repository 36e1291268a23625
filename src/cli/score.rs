//! `pluralis score`.

use std::fmt::Write as _;
use std::path::PathBuf;

use jiff::Timestamp;

use super::asking::PaceArgs;
use super::progress::Display;
use super::prompt::{RegistryArgs, figure, same_task, tidy};
use super::{Failure, out};
use crate::data::Split;
use crate::experiment::{self, Plan, RunRecord, ScoreOptions, Scored};
use crate::registry::{add_evidence, find};

/// Arguments of `score`.
#[derive(clap::Args)]
pub struct Args {
    /// The experiment file: task, items, judge
    config: PathBuf,
    /// The version: a digest, a tag, a folder or a seed file
    #[arg(long)]
    version: String,
    /// What is judged (repeatable)
    #[arg(long, value_enum, default_value = "test")]
    split: Vec<SplitArg>,
    /// Another judge: a TOML file with an endpoint's keys, or an experiment file whose [judge] is meant
    #[arg(long, value_name = "FILE")]
    endpoint: Option<PathBuf>,
    /// Override a key of the file, as in --set judge.model=NAME (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Make no call: answer from the cache alone
    #[arg(long)]
    offline: bool,
    /// Print the figures and keep no evidence
    #[arg(long)]
    no_evidence: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    pace: PaceArgs,
}

/// `--split`.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
pub enum SplitArg {
    /// Demos, minibatches and clusters.
    Tune,
    /// Selection and the stop rule.
    Validation,
    /// Read once, at the end.
    Test,
}

/// Scores a version and keeps the figures.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut set = args.set.clone();
    set.extend(args.endpoint.as_ref().map(other_judge).transpose()?);
    let plan = Plan::load(&args.config, &set)?;
    let base = args.config.parent().unwrap_or(std::path::Path::new("."));
    // The experiment says where its task is, and the versions are there.
    let root = match args.registry.given() {
        Some(_) => args.registry.root()?,
        None => base.join(&plan.config.task.folder),
    };
    let reading = args.registry.reading().or(plan.task.reading.as_deref());
    let found = find(&root, &args.version, reading)?;
    same_task(&found, &plan)?;
    let mut splits: Vec<Split> = Vec::new();
    for split in &args.split {
        let split = match split {
            SplitArg::Tune => Split::Tune,
            SplitArg::Validation => Split::Validation,
            SplitArg::Test => Split::Test,
        };
        if !splits.contains(&split) {
            splits.push(split);
        }
    }
    let options = ScoreOptions {
        splits,
        cache: args
            .pace
            .cache
            .file(plan.config.cache.as_ref().map(|c| base.join(c))),
        offline: args.offline,
        concurrency: args.pace.concurrency(),
        patience: args.pace.patience(),
        record: found
            .dir
            .as_ref()
            .map_or(Ok(None), |d| RunRecord::read(d))?,
    };
    let display = Display::new(plan.config.budget.calls);
    let done = super::block_on(experiment::score(
        &plan,
        &found.version,
        &options,
        &|update| display.show(update),
    ));
    display.finish();
    let again = "run the same command again: what was answered is in the cache";
    let mut scored = done?.map_err(|e| Failure::of_run(&e, again))?;
    scored.measured.date = Some(Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let told = match args.json {
        true => {
            let json = serde_json::to_string_pretty(&scored.measured);
            json.map_err(|e| Failure::machine(e.to_string()))? + "\n"
        }
        false => table(&found.version.short(), &scored),
    };
    out::text(&told)?;
    let seen = found
        .evidence
        .measured
        .iter()
        .any(|m| m.by == "tune" && m.data == plan.data_digest);
    let tuned = found.evidence.measured.iter().any(|m| m.by == "tune");
    if tuned && !seen {
        out::note(
            "note: these are not the items (or not the splits) that the version was tuned on; that none of them was seen in tuning is not known",
        );
    }
    match &found.dir {
        _ if args.no_evidence => Ok(()),
        _ if scored.unpaid > 0 => Err(Failure::input_help(
            format!(
                "the caps left {} items unjudged, so the figures are no evidence",
                scored.unpaid
            ),
            Some("raise [budget], or leave it away: --set budget.calls=N".into()),
        )),
        None => {
            out::note(
                "note: a seed file is in no registry, so the figures are not kept; `pluralis prompt import` takes it in",
            );
            Ok(())
        }
        Some(dir) => {
            let new = add_evidence(dir, vec![scored.measured])?;
            let what = if new {
                "figures kept in"
            } else {
                "the same figures were in"
            };
            out::note(&format!(
                "{what} {}",
                tidy(&dir.join("evidence.toml")).display()
            ));
            Ok(())
        }
    }
}

/// `judge = {…}` of another file, as an override: what it says is checked like the rest.
fn other_judge(path: &PathBuf) -> Result<String, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::input(format!("cannot read {}: {e}", path.display())))?;
    let text = crate::text::decode(path, bytes).map_err(|f| Failure::from(Box::new(f)))?;
    let mut table: toml::Table = toml::from_str(&text)
        .map_err(|e| Failure::from(Box::new(crate::text::Fault::toml(path, &text, &e))))?;
    let judge = match table.remove("judge") {
        Some(judge) => judge,
        None if table.contains_key("endpoint") => toml::Value::Table(table),
        None => {
            let what = format!("{} says neither `endpoint = …` nor [judge]", path.display());
            let help = "write endpoint = \"openai\", base_url and model into it";
            return Err(Failure::input_help(what, Some(help.into())));
        }
    };
    Ok(format!("judge={judge}"))
}

fn table(short: &str, scored: &Scored) -> String {
    let m = &scored.measured;
    let mut text = format!(
        "version {short}, judge {} {} {}\n",
        m.judge.kind, m.judge.model, m.fingerprint
    );
    for (name, s) in &m.splits {
        let people = s.people.as_ref();
        let people = people.map_or(String::new(), |p| {
            format!(
                "   a held-out rater {}",
                figure(p.disagreement, p.low.zip(p.high))
            )
        });
        let overall = figure(s.disagreement, s.low.zip(s.high));
        let _ = writeln!(text, "\n  {name:<12} {:>6}   {overall}{people}", s.n);
        for (locale, f) in &s.locales {
            let own = figure(f.disagreement, f.low.zip(f.high));
            let _ = writeln!(text, "  {locale:<12} {:>6}   {own}", f.n);
        }
        for (kind, n) in &s.failures {
            let _ = writeln!(
                text,
                "  {n} failed verdicts ({kind}) count as full disagreement"
            );
        }
    }
    let s = &scored.spent;
    let _ = writeln!(
        text,
        "\n  spent     {} calls, {} answers from the cache",
        s.calls, s.cached
    );
    if scored.shown > 0 {
        let _ = writeln!(
            text,
            "  left out  {} items that the prompt shows as demos",
            scored.shown
        );
    }
    text
}

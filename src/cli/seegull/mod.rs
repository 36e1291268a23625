//! `pluralis seegull tables | questions | endorse`.

mod endorse;

use std::path::{Path, PathBuf};

use super::{Failure, lines, out};
use crate::data::import::seegull::{Kind, import};
use crate::evaluate::seegull::questions::{Sampling, sample};
use crate::evaluate::seegull::tables::{Options, tables};
use crate::evaluate::seegull::wording::Wording;
use crate::report;
use crate::text::decode;

/// Subcommands of `seegull`.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Recompute the paper's tables from the released files
    Tables(TablesArgs),
    /// Sample multiple-choice questions, each in the locale's language and in English
    Questions(QuestionsArgs),
    /// Ask models the questions, or read answers that exist, and say how often they endorse
    Endorse(endorse::Args),
}

/// Arguments of `tables`.
#[derive(clap::Args)]
pub struct TablesArgs {
    /// The data set's folder, or the folder of one part
    dir: PathBuf,
    /// Only the pairs of identity and attribute
    #[arg(long, conflicts_with = "offensiveness")]
    stereotypes: bool,
    /// Only the attributes with their degrees of offence
    #[arg(long)]
    offensiveness: bool,
    /// Identities shown at the top of each list
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Pairs that an identity needs to be ranked
    #[arg(long, value_name = "N", default_value_t = 10)]
    min_pairs: usize,
    /// Confidence level of the intervals
    #[arg(long, default_value_t = 0.95, value_parser = level)]
    level: f64,
    /// Print everything as JSON (docs/seegull.md describes it)
    #[arg(long)]
    json: bool,
}

/// Arguments of `questions`.
#[derive(clap::Args)]
pub struct QuestionsArgs {
    /// The data set's folder, or its folder `stereotypes`
    dir: PathBuf,
    /// Where to write the questions, as JSON lines; `-` is standard output
    #[arg(long, short)]
    out: PathBuf,
    /// Questions of each locale and kind of identity
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    per_cell: u32,
    /// Raters, of three, who must call the pair a stereotype
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3))]
    at_least: u32,
    /// Only these locales (repeatable)
    #[arg(long, value_name = "TAG")]
    locale: Vec<crate::locale::Locale>,
    /// Wordings of the questions in place of the shipped ones, as TOML
    #[arg(long, value_name = "FILE")]
    wording: Option<PathBuf>,
    /// Keep what there is where a cell has too few questions; the set is then not balanced
    #[arg(long)]
    uneven: bool,
    /// Seed; every value counts
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// A level between 0 and 1.
fn level(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(level) if level > 0.0 && level < 1.0 => Ok(level),
        _ => Err("a level lies between 0 and 1, as in 0.95".into()),
    }
}

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Tables(args) => print_tables(args),
        Command::Questions(args) => questions(args),
        Command::Endorse(args) => endorse::run(args),
    }
}

/// The parts that are asked for: those that are there, where none is named.
fn parts(args: &TablesArgs) -> Vec<Kind> {
    let there = |folder: &str| args.dir.join(folder).is_dir();
    match (args.stereotypes, args.offensiveness) {
        (true, _) => vec![Kind::Stereotypes],
        (_, true) => vec![Kind::Offensiveness],
        _ if there("stereotypes") && there("offensiveness") => {
            vec![Kind::Stereotypes, Kind::Offensiveness]
        }
        _ if there("offensiveness") || is_part(&args.dir, "offensiveness") => {
            vec![Kind::Offensiveness]
        }
        _ => vec![Kind::Stereotypes],
    }
}

fn is_part(dir: &Path, name: &str) -> bool {
    dir.file_name()
        .is_some_and(|n| n.eq_ignore_ascii_case(name))
}

fn print_tables(args: &TablesArgs) -> Result<(), Failure> {
    let options = Options {
        level: args.level,
        min_rows: args.min_pairs,
    };
    let mut made = Vec::new();
    for kind in parts(args) {
        made.push(tables(&import(&args.dir, kind)?, kind, &options));
    }
    if args.json {
        return out::value(&made);
    }
    let texts: Vec<String> = made
        .iter()
        .map(|t| report::seegull_tables_text(t, args.top))
        .collect();
    out::text(&texts.join("\n"))
}

fn wording(path: Option<&Path>) -> Result<Wording, Failure> {
    let Some(path) = path else {
        return Ok(Wording::shipped()?);
    };
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::input(format!("cannot read {}: {e}", path.display())))?;
    let text = decode(path, bytes).map_err(|f| Failure::from(Box::new(f)))?;
    Ok(Wording::parse(path, &text)?)
}

fn questions(args: &QuestionsArgs) -> Result<(), Failure> {
    let wording = wording(args.wording.as_deref())?;
    let mut records = import(&args.dir, Kind::Stereotypes)?.records;
    let wanted: Vec<String> = args.locale.iter().map(ToString::to_string).collect();
    if let Some(none) = wanted
        .iter()
        .find(|w| !records.iter().any(|r| r.locale == **w))
    {
        return Err(Failure::input(format!(
            "--locale {none}: {} has no file of it",
            args.dir.display()
        )));
    }
    records.retain(|r| wanted.is_empty() || wanted.contains(&r.locale));
    let per_cell = args.per_cell as usize;
    let sampling = Sampling {
        per_cell,
        at_least: args.at_least,
        seed: args.seed,
    };
    let sampled = sample(&records, &wording, &sampling);
    for language in &sampled.unworded {
        out::note(&format!(
            "note: there is no wording in `{language}`; its locales are left out"
        ));
    }
    let short: Vec<String> = sampled
        .cells
        .iter()
        .filter(|(_, n)| **n < per_cell)
        .map(|((locale, kind), n)| format!("{locale} {} {n}", kind.as_str()))
        .collect();
    if !short.is_empty() && !args.uneven {
        return Err(Failure::input_help(
            format!(
                "these cells have fewer than {per_cell} questions: {}",
                short.join(", ")
            ),
            Some(format!(
                "--per-cell {} is balanced; --at-least 1 gives more pairs, --locale leaves locales out, --uneven keeps what there is",
                sampled.smallest()
            )),
        ));
    }
    lines::write(&args.out, &sampled.questions)?;
    let pairs = sampled.questions.len() / 2;
    out::note(&format!(
        "{pairs} questions in {} cells, each in the locale's language and in English{}",
        sampled.cells.len(),
        if short.is_empty() {
            String::new()
        } else {
            format!("; not balanced: {}", short.join(", "))
        }
    ));
    if sampled.untranslated > 0 {
        out::note(&format!(
            "note: {} rows have no English name of the identity or the attribute and are not asked for",
            sampled.untranslated
        ));
    }
    Ok(())
}

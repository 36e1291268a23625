//! `pluralis agree`.

use std::path::PathBuf;

use super::Failure;
use super::out;
use crate::agreement::Measure;
use crate::data::Format;
use crate::evaluate::agree::{Plan, Scale, Spec, Votes, agree, read};
use crate::report;

/// Arguments of `agree`.
#[derive(clap::Args)]
#[command(after_help = "\
A comma separates columns; write \\, for a comma that belongs to a name.
@file (a file's name without its ending) and @folder (its folder's name) may stand for a column of
raters, items, locales or groups.

Examples:
  pluralis agree votes.csv --raters ann_1,ann_2,ann_3 --judge gpt --locale lang
  pluralis agree votes.tsv --rater who --item text --label vote --abstain unsure
  pluralis agree first/*.csv second/*.csv --rater @folder --item id --label truth --locale @file
  zcat votes.jsonl.gz | pluralis agree - --raters a,b --scale ordinal --values low=1,mid=2,high=3 --json")]
pub struct Args {
    /// CSV, TSV, JSONL, JSON or spreadsheet files; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Columns of labels, one per rater
    #[arg(long, value_name = "COL,…", conflicts_with_all = ["rater", "label", "counts"])]
    raters: Option<String>,
    /// The same column of --raters may hold different people in different rows
    #[arg(long, requires = "raters")]
    exchangeable: bool,
    /// Column of the rater, where each row is one vote (with --item and --label)
    #[arg(long, value_name = "COL", requires = "label", requires = "item")]
    rater: Option<String>,
    /// Column of the label, where each row is one vote
    #[arg(long, value_name = "COL", requires = "rater")]
    label: Option<String>,
    /// Columns that say how many people chose a label
    #[arg(long, value_name = "LABEL=COL,…", conflicts_with_all = ["rater", "label"])]
    counts: Option<String>,
    /// Columns that together name an item; rows with the same ones, in any file, are one item
    #[arg(long, value_name = "COL,…")]
    item: Option<String>,
    /// Columns of judges; where each row is one vote, also names of raters that are judges
    #[arg(long, value_name = "COL,…")]
    judge: Option<String>,
    /// Column of the locale (or of any other part that figures are wanted for)
    #[arg(long, value_name = "COL")]
    locale: Option<String>,
    /// Column of the group: items that depend on each other and are resampled together
    #[arg(long, value_name = "COL")]
    group: Option<String>,
    /// What may be done with labels besides telling them apart
    #[arg(long, value_enum, default_value = "nominal")]
    scale: ScaleArg,
    /// Every label with its value; any other label is then an error
    #[arg(long, value_name = "LABEL=NUMBER,…")]
    values: Option<String>,
    /// Spellings that mean another label
    #[arg(long, value_name = "SPELLING=LABEL,…")]
    alias: Option<String>,
    /// Labels of raters who would not decide
    #[arg(long, value_name = "LABEL,…")]
    abstain: Option<String>,
    /// Texts that stand for no label, beside blank cells
    #[arg(long, value_name = "TEXT,…")]
    missing: Option<String>,
    /// Distance of a label from the votes [default: majority; ordinal on an ordered scale]
    #[arg(long, value_enum)]
    measure: Option<MeasureArg>,
    /// How much worse than a rater a judge may be in the alternative annotator test: 0.2 for
    /// experts, 0.15 for trained raters, 0.1 for crowd workers
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    epsilon: f64,
    /// How the files are written [default: by their first bytes and ending]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// Confidence level of the intervals
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// Resamples of each bootstrap [default: 2000; fewer for more than 20,000 items]
    #[arg(long)]
    resamples: Option<usize>,
    /// Seed of the bootstraps; every value counts
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print everything as JSON (docs/agree.md describes it)
    #[arg(long)]
    json: bool,
}

/// `--scale`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum ScaleArg {
    /// Labels are equal or not
    Nominal,
    /// Labels have an order
    Ordinal,
    /// Differences of values mean something
    Interval,
    /// Ratios of values mean something
    Ratio,
}

/// `--measure`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum MeasureArg {
    /// 0 for the label that most people chose, 1 for another
    Majority,
    /// Share of votes that differ
    MeanVotes,
    /// Mean distance in units of the scale's range
    Ordinal,
    /// Mean squared distance
    Quadratic,
}

/// `--format`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum FormatArg {
    /// Comma-separated values
    Csv,
    /// Tab-separated values
    Tsv,
    /// One JSON object a line
    Jsonl,
    /// A JSON array of objects
    Json,
    /// XLSX, XLS, XLSB or ODS
    Xlsx,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let spec = args.spec()?;
    let format = args.format.map(|f| match f {
        FormatArg::Csv => Format::Csv,
        FormatArg::Tsv => Format::Tsv,
        FormatArg::Jsonl => Format::JsonLines,
        FormatArg::Json => Format::JsonArray,
        FormatArg::Xlsx => Format::Spreadsheet,
    });
    let data = read(&args.files, format, &spec)?;
    let result = agree(&data, &args.plan(spec.scale, data.items.len())?)
        .map_err(|e| Failure::input(e.to_string()))?;
    if args.json {
        out::value(&result)
    } else {
        out::text(&report::agreement_text(&result))
    }
}

impl Args {
    fn spec(&self) -> Result<Spec, Failure> {
        let votes = match (&self.raters, &self.rater, &self.label, &self.counts) {
            (Some(raters), ..) => Votes::Wide {
                raters: list("--raters", raters)?,
                exchangeable: self.exchangeable,
            },
            (_, Some(rater), Some(label), _) => Votes::Long {
                rater: rater.clone(),
                label: label.clone(),
            },
            (.., Some(counts)) => Votes::Counts(pairs("--counts", counts)?),
            _ => {
                return Err(Failure::input_help(
                    "no column of people's labels is named",
                    Some(
                        "name --raters COL,COL (one column per rater), --rater COL --item COL --label COL (one row per vote), or --counts LABEL=COL,LABEL=COL"
                            .into(),
                    ),
                ));
            }
        };
        let value = |(label, number): (String, String)| match number.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => Ok((label, value)),
            _ => Err(Failure::input(format!(
                "--values: `{number}`, the value of `{label}`, is no number"
            ))),
        };
        let optional = |name: &str, text: &Option<String>| {
            text.as_ref().map_or(Ok(Vec::new()), |t| list(name, t))
        };
        let optional_pairs = |name: &str, text: &Option<String>| {
            text.as_ref().map_or(Ok(Vec::new()), |t| pairs(name, t))
        };
        Ok(Spec {
            votes,
            item: optional("--item", &self.item)?,
            judges: optional("--judge", &self.judge)?,
            locale: self.locale.clone(),
            group: self.group.clone(),
            scale: match self.scale {
                ScaleArg::Nominal => Scale::Nominal,
                ScaleArg::Ordinal => Scale::Ordinal,
                ScaleArg::Interval => Scale::Interval,
                ScaleArg::Ratio => Scale::Ratio,
            },
            values: optional_pairs("--values", &self.values)?
                .into_iter()
                .map(value)
                .collect::<Result<_, _>>()?,
            aliases: optional_pairs("--alias", &self.alias)?
                .into_iter()
                .collect(),
            abstain: optional("--abstain", &self.abstain)?,
            missing: optional("--missing", &self.missing)?,
        })
    }

    fn plan(&self, scale: Scale, items: usize) -> Result<Plan, Failure> {
        let usual = Plan::new(scale, items);
        let measure = match self.measure {
            None => usual.measure,
            Some(MeasureArg::Majority) => Measure::Majority,
            Some(MeasureArg::MeanVotes) => Measure::MeanVotes,
            Some(MeasureArg::Ordinal) => Measure::Ordinal,
            Some(MeasureArg::Quadratic) => Measure::Quadratic,
        };
        if !scale.is_ordered() && matches!(measure, Measure::Ordinal | Measure::Quadratic) {
            return Err(Failure::input_help(
                "labels of a nominal scale have no distance",
                Some("say --scale ordinal, interval or ratio, or use --measure majority or mean-votes".into()),
            ));
        }
        Ok(Plan {
            measure,
            level: self.level,
            resamples: self.resamples.unwrap_or(usual.resamples),
            seed: self.seed,
            epsilon: self.epsilon,
            ..usual
        })
    }
}

/// The parts of a comma-separated text; `\,` is a comma inside a part.
fn list(flag: &str, text: &str) -> Result<Vec<String>, Failure> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = parts.len() - 1;
        match c {
            '\\' if chars.peek() == Some(&',') => parts[last].extend(chars.next()),
            ',' => parts.push(String::new()),
            c => parts[last].push(c),
        }
    }
    let parts: Vec<String> = parts.into_iter().map(|p| p.trim().to_owned()).collect();
    if parts.iter().any(String::is_empty) {
        return Err(Failure::input(format!(
            "{flag}: a name is blank in `{text}`"
        )));
    }
    Ok(parts)
}

/// The parts as `NAME=TEXT`; the last `=` separates, so that names may hold one.
fn pairs(flag: &str, text: &str) -> Result<Vec<(String, String)>, Failure> {
    let pair = |part: String| match part.rsplit_once('=') {
        Some((a, b)) if !a.trim().is_empty() && !b.trim().is_empty() => {
            Ok((a.trim().to_owned(), b.trim().to_owned()))
        }
        _ => Err(Failure::input(format!(
            "{flag}: `{part}` is not of the form NAME=TEXT"
        ))),
    };
    list(flag, text)?.into_iter().map(pair).collect()
}

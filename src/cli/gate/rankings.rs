//! `pluralis gate rankings`.

use std::path::PathBuf;

use super::super::{Failure, out};
use crate::data::{DataError, read_table};
use crate::evaluate::gate::rankings::{Options, Ranked, rankings};
use crate::report;
use crate::text::quoted;

/// Arguments of `gate rankings`.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  pluralis gate rankings ranks.csv --item scenario --raters ann_1,ann_2,ann_3 --group subcategory")]
pub struct Args {
    /// CSV, TSV, JSONL, JSON or spreadsheet; `-` reads standard input
    file: PathBuf,
    /// Columns of ranks, one per annotator; 1 is best, blank is not ranked
    #[arg(long, value_name = "COL,…", value_delimiter = ',', required = true)]
    raters: Vec<String>,
    /// Column that names what was ranked
    #[arg(long, value_name = "COL")]
    item: String,
    /// Column of the group within which things were ranked
    #[arg(long, value_name = "COL")]
    group: Option<String>,
    /// The columns hold scores, higher is better; ranks are made of them
    #[arg(long)]
    scores: bool,
    /// Confidence level of the intervals
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// Resamples of each bootstrap
    #[arg(long, default_value_t = 2000)]
    resamples: usize,
    /// Seed of the bootstraps; every value counts
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut wanted: Vec<&str> = args.raters.iter().map(String::as_str).collect();
    wanted.push(&args.item);
    wanted.extend(args.group.as_deref());
    let table = read_table(&args.file, &wanted)?;
    let raters = args
        .raters
        .iter()
        .map(|r| table.column(r))
        .collect::<Result<Vec<_>, _>>()?;
    let item = table.column(&args.item)?;
    let group = args.group.as_ref().map(|g| table.column(g)).transpose()?;
    let mut items: Vec<Ranked> = Vec::with_capacity(table.rows.len());
    let mut seen = std::collections::BTreeSet::new();
    for row in &table.rows {
        let refuse = |column: usize, what: String, advice: &str| {
            DataError::new(what, advice)
                .in_file(&table.file)
                .at_row(row.number)
                .at_column(table.header[column].clone())
        };
        let mut values = Vec::with_capacity(raters.len());
        for &column in &raters {
            let cell = row.cells[column].trim();
            let value = match cell.parse::<f64>() {
                _ if cell.is_empty() => None,
                Ok(v) if v.is_finite() && (args.scores || v >= 1.0) => Some(v),
                _ if args.scores => {
                    return Err(refuse(
                        column,
                        format!("{} is no score", quoted(cell)),
                        "write a number, or leave the cell blank",
                    )
                    .into());
                }
                _ => {
                    return Err(refuse(
                        column,
                        format!("{} is no rank", quoted(cell)),
                        "ranks are numbers from 1 (the best); --scores takes scores",
                    )
                    .into());
                }
            };
            values.push(value);
        }
        let name = row.cells[item].trim().to_owned();
        let group = group.map_or(String::new(), |g| row.cells[g].trim().to_owned());
        if !seen.insert((group.clone(), name.clone())) {
            return Err(refuse(
                item,
                format!("{} occurs twice", quoted(&name)),
                "each item is one row; --group names a column that tells them apart",
            )
            .into());
        }
        items.push(Ranked {
            item: name,
            group,
            values,
        });
    }
    let options = Options {
        scores: args.scores,
        level: args.level,
        resamples: args.resamples,
        seed: args.seed,
    };
    let result =
        rankings(&items, &args.raters, &options).map_err(|e| Failure::input(e.to_string()))?;
    match args.json {
        true => out::value(&result),
        false => out::text(&report::rankings_text(&result)),
    }
}

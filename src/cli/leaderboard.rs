//! `pluralis leaderboard`.

use std::collections::HashSet;
use std::path::PathBuf;

use super::evaluate::finished;
use super::{Failure, out};
use crate::evaluate::benchmark::{Better, Line, correlations};
use crate::evaluate::leaderboard::{Board, board};
use crate::evaluate::target::Reply;
use crate::experiment::evaluation::Read;
use crate::locale::Locale;
use crate::report;

/// Arguments of `leaderboard`.
#[derive(clap::Args)]
pub struct Args {
    /// Folders of finished evaluations; models with the same name in several are one model
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Confidence of intervals and ranks
    #[arg(long, default_value_t = 0.95)]
    level: f64,
    /// Seed of the tests; every value counts
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// Ranks the models.
pub fn run(args: &Args) -> Result<(), Failure> {
    if !(args.level > 0.5 && args.level < 1.0) {
        return Err(Failure::input("--level is a share such as 0.95"));
    }
    let mut reads: Vec<Read> = Vec::new();
    for dir in &args.runs {
        let read = finished(dir)?;
        check(&reads, &read)?;
        reads.push(read);
    }
    let mut rates: Vec<(String, Vec<Line>)> = Vec::new();
    for read in reads {
        // Texts are not ranked, and a benchmark has many.
        let light = |line: Line| Line {
            reply: Reply::Text {
                text: String::new(),
                cut: false,
            },
            ..line
        };
        let own: Vec<Line> = read.lines.into_iter().map(light).collect();
        for rate in &read.summary.rates {
            match rates.iter_mut().find(|(name, _)| name == rate) {
                Some((_, lines)) => lines.extend(own.iter().cloned()),
                None => rates.push((rate.clone(), own.clone())),
            }
        }
    }
    let mut boards: Vec<Board> = Vec::new();
    for (rate, lines) in &rates {
        // A rate of one's own task is taken as a share of good answers.
        let better = Better::of(rate).unwrap_or(Better::High);
        let made = board(rate, better, lines, args.level, args.seed);
        boards.push(made.map_err(|e| Failure::input(e.to_string()))?);
    }
    let mut pairs = Vec::new();
    for (i, (x, of_x)) in rates.iter().enumerate() {
        for (y, of_y) in &rates[i + 1..] {
            pairs.extend(correlations((x, of_x), (y, of_y), args.level));
        }
    }
    if args.json {
        return out::value(&serde_json::json!({
            "schema": "pluralis-leaderboard/1",
            "level": args.level,
            "boards": boards,
            "correlations": pairs,
        }));
    }
    out::text(&report::leaderboard_text(&boards, &pairs, args.level))
}

/// Responses of one model to one prompt must not come twice, and labels of two judges are no one rate.
fn check(reads: &[Read], new: &Read) -> Result<(), Failure> {
    let own: HashSet<(&str, &Locale, &str)> = new.lines.iter().map(place).collect();
    for old in reads.iter().filter(|o| o.summary.kind == new.summary.kind) {
        if let Some(twice) = old.lines.iter().find(|l| own.contains(&place(l))) {
            return Err(Failure::input_help(
                format!(
                    "{} and {} both have the response of {} to {} ({})",
                    old.dir.display(),
                    new.dir.display(),
                    twice.model,
                    twice.prompt,
                    twice.locale
                ),
                Some("leave one of the folders away".into()),
            ));
        }
        if old.summary.version != new.summary.version || old.summary.judge != new.summary.judge {
            out::note(&format!(
                "note: {} and {} were judged by different judges or versions; differences between their models may be the judges'",
                old.dir.display(),
                new.dir.display()
            ));
        }
    }
    Ok(())
}

/// Whose response to what a line is.
fn place(line: &Line) -> (&str, &Locale, &str) {
    (&line.model, &line.locale, &line.prompt)
}

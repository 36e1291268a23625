//! `pluralis power`.

use super::{Failure, out};
use crate::evaluate::power::{Claim, Question, Scope, items_needed};
use crate::report;

/// Arguments of `power`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  pluralis power --threshold 0.1 --true 0.05 --locales 12
  pluralis power --threshold 0.1 --true 0.05 --locales 12 --scope worst-locale --looks 5
  pluralis power --before 0.3 --gain 0.1 --worse 0.03")]
pub struct Args {
    /// Certify that disagreement is below this (0 to 1)
    #[arg(
        long,
        requires = "expected",
        conflicts_with = "gain",
        required_unless_present = "gain"
    )]
    threshold: Option<f64>,
    /// Disagreement that the judge truly has, below the threshold
    #[arg(long = "true", value_name = "TRUE", requires = "threshold")]
    expected: Option<f64>,
    /// Detect that disagreement went down by this (0 to 1)
    #[arg(long, requires = "before")]
    gain: Option<f64>,
    /// Disagreement before the gain
    #[arg(long, requires = "gain")]
    before: Option<f64>,
    /// Share of items that only the old judge gets right [default: as if misses were unrelated]
    #[arg(long, requires = "gain")]
    worse: Option<f64>,
    /// Chance of claiming what is not so, at most
    #[arg(long, default_value_t = 0.05)]
    alpha: f64,
    /// Chance of being able to claim what is so, at least
    #[arg(long, default_value_t = 0.8)]
    power: f64,
    /// Looks of the stop rule at the same items until which they are to be enough [default: one
    /// test that was planned beforehand]
    #[arg(long, conflicts_with = "gain")]
    looks: Option<u32>,
    /// Locales
    #[arg(long, default_value_t = 1)]
    locales: usize,
    /// What the claim is about
    #[arg(long, value_enum, default_value = "mean")]
    scope: ScopeArg,
    /// Print the answer as JSON (docs/agree.md describes it)
    #[arg(long)]
    json: bool,
}

/// `--scope`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum ScopeArg {
    /// All locales together
    Mean,
    /// Every single locale
    WorstLocale,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let what = match (args.threshold, args.expected, args.gain, args.before) {
        (Some(threshold), Some(expected), ..) => Claim::Certify {
            threshold,
            expected,
        },
        (.., Some(gain), Some(before)) => Claim::Gain {
            before,
            gain,
            worse: args.worse,
        },
        _ => {
            return Err(Failure::input(
                "say --threshold with --true, or --gain with --before",
            ));
        }
    };
    if let Claim::Certify {
        threshold,
        expected,
    } = what
        && expected >= threshold
    {
        return Err(Failure::input(format!(
            "--true {expected} is not below --threshold {threshold}: no number of items can show what is not so"
        )));
    }
    if let Claim::Gain { gain, before, .. } = what
        && !(gain > 0.0 && gain <= before)
    {
        return Err(Failure::input(format!(
            "--gain {gain} does not lie between 0 and --before {before}"
        )));
    }
    let answer = items_needed(&Question {
        what,
        scope: match args.scope {
            ScopeArg::Mean => Scope::Mean,
            ScopeArg::WorstLocale => Scope::WorstLocale,
        },
        alpha: args.alpha,
        power: args.power,
        looks: args.looks,
        locales: args.locales,
    })
    .map_err(|e| Failure::input(e.to_string()))?;
    if args.json {
        out::value(&answer)
    } else {
        out::text(&report::power_text(&answer))
    }
}

//! The closing table of a run, as plain text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::experiment::{Arm, Figure, Summary};
use crate::optimize::StopReason;

/// A share as `31.2 %`.
pub fn percent(x: f64) -> String {
    format!("{:.1} %", 100.0 * x)
}

fn cell(figure: Option<&Figure>) -> String {
    match figure {
        None => "-".into(),
        Some(f) => match &f.interval {
            Some(i) => format!(
                "{} [{:.0}, {:.0}]",
                percent(f.disagreement),
                100.0 * i.low,
                100.0 * i.high
            ),
            None => percent(f.disagreement),
        },
    }
}

/// Per locale and overall: disagreement before and after on `test`, n, interval; then the gain,
/// why the loop stopped, what was spent and where the run lies.
pub fn summary_table(summary: &Summary, dir: &Path) -> String {
    let mut out = String::new();
    let test = summary.splits.get("test").cloned().unwrap_or_default();
    let (seed, best) = (test.seed.as_ref(), test.best.as_ref());
    let locales: BTreeSet<&String> = [seed, best]
        .into_iter()
        .flatten()
        .flat_map(|a| a.by_locale.keys())
        .collect();
    let row = |out: &mut String, name: &str, n: usize, a: String, b: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "  {name:<16} {n:>5}   {a:<20} {b:<20}");
    };
    let _ = writeln!(
        out,
        "\nDisagreement with people on the untouched test split ({}, 95 % intervals)\n",
        summary.task
    );
    let _ = writeln!(
        out,
        "  {:<16} {:>5}   {:<20} {:<20}",
        "locale", "n", "before", "after"
    );
    for locale in locales {
        let of = |arm: Option<&Arm>| arm.and_then(|a| a.by_locale.get(locale)).cloned();
        let (a, b) = (of(seed), of(best));
        row(
            &mut out,
            locale,
            b.as_ref().or(a.as_ref()).map_or(0, |f| f.n),
            cell(a.as_ref()),
            cell(b.as_ref()),
        );
    }
    row(
        &mut out,
        "overall",
        best.or(seed).map_or(0, |a| a.overall.n),
        cell(seed.map(|a| &a.overall)),
        cell(best.map(|a| &a.overall)),
    );
    let worst = |arm: Option<&Arm>| {
        arm.and_then(|a| {
            Some(format!(
                "{} {}",
                percent(a.by_locale.get(a.worst_locale.as_ref()?)?.disagreement),
                a.worst_locale.as_ref()?
            ))
        })
        .unwrap_or_else(|| "-".into())
    };
    let _ = writeln!(
        out,
        "  {:<16} {:>5}   {:<20} {:<20}\n",
        "worst locale",
        "",
        worst(seed),
        worst(best)
    );
    for (name, arm) in [("before", seed), ("after", best)] {
        let Some(arm) = arm else { continue };
        let failed: usize = arm.failures.values().sum();
        if failed > 0 {
            let _ = writeln!(
                out,
                "  {name}: {failed} verdicts failed and count as disagreement"
            );
        }
        if arm.unpaid > 0 {
            let _ = writeln!(
                out,
                "  {name}: {} items were not judged: the budget ended",
                arm.unpaid
            );
        }
    }
    if let Some(gain) = &summary.gain {
        let interval = gain.interval.as_ref().map_or_else(
            || "no interval".into(),
            |i| format!("[{:+.1}, {:+.1}]", 100.0 * i.low, 100.0 * i.high),
        );
        let claim = if gain.certified {
            "certified: the interval excludes 0"
        } else {
            "not certified: the interval includes 0"
        };
        let _ = writeln!(
            out,
            "  gain      {:+.1} points {interval} over {} items, {claim}",
            100.0 * gain.value,
            gain.n
        );
    }
    let why = match summary.stop {
        StopReason::Threshold => "validation disagreement is below the threshold, with confidence",
        StopReason::Budget => "the budget for the search is spent",
        StopReason::Patience => "too many proposals in a row did not help",
    };
    let _ = writeln!(
        out,
        "  stopped   {why}, after {} steps and {} looks at validation",
        summary.steps,
        summary.looks.len()
    );
    let s = &summary.spent;
    let _ = writeln!(
        out,
        "  spent     {} calls, {} prompt and {} completion tokens, {} answers from the cache",
        s.calls, s.prompt_tokens, s.completion_tokens, s.cached
    );
    let _ = writeln!(
        out,
        "  versions  {} -> {}",
        &summary.versions.seed[..12.min(summary.versions.seed.len())],
        &summary.versions.best[..12.min(summary.versions.best.len())]
    );
    let _ = writeln!(out, "  run       {}", dir.display());
    for note in &summary.notes {
        let _ = writeln!(out, "  note      {note}");
    }
    out
}

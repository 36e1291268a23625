//! The closing table of a run, as plain text.

use std::collections::BTreeSet;
use std::path::Path;

use crate::experiment::{Arm, Figure, Gain, Summary};
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

/// Per locale and overall: disagreement before and after on `test` beside that of a held-out
/// rater, n, intervals; then the gain, why the loop stopped, what was spent, where the run lies.
pub fn summary_table(summary: &Summary, dir: &Path) -> String {
    let mut lines = figures(summary);
    lines.extend(failures(summary));
    lines.extend(summary.gain.as_ref().map(gain));
    lines.push(format!("  stopped   {}", stopped(summary)));
    lines.extend(too_small(summary).map(|why| format!("  note      {why}")));
    let s = &summary.spent;
    lines.push(format!(
        "  spent     {} calls, {} prompt and {} completion tokens, {} answers from the cache",
        s.calls, s.prompt_tokens, s.completion_tokens, s.cached
    ));
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    lines.push(format!(
        "  versions  {} -> {}",
        short(&summary.versions.seed),
        short(&summary.versions.best)
    ));
    lines.push(format!("  run       {}", dir.display()));
    lines.extend(
        summary
            .notes
            .iter()
            .map(|note| format!("  note      {note}")),
    );
    lines.join("\n") + "\n"
}

/// The rows of figures, with their head.
fn figures(summary: &Summary) -> Vec<String> {
    let test = summary.splits.get("test").cloned().unwrap_or_default();
    let (seed, best, people) = (test.seed.as_ref(), test.best.as_ref(), test.people.as_ref());
    let row = |name: &str, n: String, before: String, after: String, people: String| {
        format!("  {name:<14} {n:>5}   {before:<18} {after:<18} {people}")
            .trim_end()
            .to_owned()
    };
    let mut lines = vec![
        format!(
            "\nDisagreement with people on the untouched test split ({}, 95 % intervals)\n",
            summary.task
        ),
        row(
            "locale",
            "n".into(),
            "before".into(),
            "after".into(),
            people.map_or(String::new(), |_| "a held-out rater".into()),
        ),
    ];
    let locales: BTreeSet<&String> = [seed, best]
        .into_iter()
        .flatten()
        .flat_map(|a| a.by_locale.keys())
        .collect();
    for locale in locales {
        let of = |arm: Option<&Arm>| arm.and_then(|a| a.by_locale.get(locale)).cloned();
        let (a, b) = (of(seed), of(best));
        lines.push(row(
            locale,
            b.as_ref().or(a.as_ref()).map_or(0, |f| f.n).to_string(),
            cell(a.as_ref()),
            cell(b.as_ref()),
            people.map_or(String::new(), |p| cell(p.by_locale.get(locale))),
        ));
    }
    lines.push(row(
        "overall",
        best.or(seed).map_or(0, |a| a.overall.n).to_string(),
        cell(seed.map(|a| &a.overall)),
        cell(best.map(|a| &a.overall)),
        people.map_or(String::new(), |p| cell(Some(&p.overall))),
    ));
    let worst = |arm: Option<&Arm>| {
        let named = arm.and_then(|a| {
            let locale = a.worst_locale.as_ref()?;
            Some(format!(
                "{} {locale}",
                percent(a.by_locale.get(locale)?.disagreement)
            ))
        });
        named.unwrap_or_else(|| "-".into())
    };
    lines.push(row(
        "worst locale",
        String::new(),
        worst(seed),
        worst(best),
        String::new(),
    ));
    lines.push(String::new());
    lines
}

/// What failed or was not judged: it counts, so it is said.
fn failures(summary: &Summary) -> Vec<String> {
    let test = summary.splits.get("test").cloned().unwrap_or_default();
    let mut lines = Vec::new();
    for (name, arm) in [("before", test.seed), ("after", test.best)] {
        let Some(arm) = arm else { continue };
        let failed: usize = arm.failures.values().sum();
        if failed > 0 {
            lines.push(format!(
                "  {name}: {failed} verdicts failed and count as disagreement"
            ));
        }
        if arm.unpaid > 0 {
            lines.push(format!(
                "  {name}: {} items were not judged: the budget ended",
                arm.unpaid
            ));
        }
    }
    lines
}

fn gain(gain: &Gain) -> String {
    let interval = gain.interval.as_ref().map_or_else(
        || "no interval".into(),
        |i| format!("[{:+.1}, {:+.1}]", 100.0 * i.low, 100.0 * i.high),
    );
    let claim = if gain.certified {
        "certified: the interval excludes 0"
    } else {
        "not certified: the interval includes 0"
    };
    format!(
        "  gain      {:+.1} points {interval} over {} items, {claim}",
        100.0 * gain.value,
        gain.n
    )
}

/// Why the loop stopped, with the last look where there was one.
pub fn stopped(summary: &Summary) -> String {
    let why = match summary.stop {
        StopReason::Threshold => "validation disagreement is below the threshold, with confidence",
        StopReason::Budget => "the budget for the search is spent",
        StopReason::Patience => "too many proposals in a row did not help",
    };
    let bound = summary.looks.last().map_or(String::new(), |look| {
        // The seed version was handed over in place of what was looked at.
        let what = match summary.versions.best.starts_with(&look.version) {
            true => "the last bounds it at".to_owned(),
            false => format!("the last bounds {}, the leader, at", look.version),
        };
        let than = if look.human.is_some() {
            " more than a held-out rater"
        } else {
            ""
        };
        format!(
            "; {what} {:.1} points{than}, to be below {:.1}",
            100.0 * look.upper,
            100.0 * look.bar
        )
    });
    format!(
        "{why}, after {} steps and {} looks at validation{bound}",
        summary.steps,
        summary.looks.len()
    )
}

/// Which locales have too few items to pass, and how many would do.
pub fn too_small(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    let last = summary
        .looks
        .last()
        .map_or(&[][..], |look| &look.insufficient);
    last.iter().map(|i| {
        let needed = i.needed.map_or("no number of items would do".into(), |n| {
            format!("{n} would do if the judge made no mistake")
        });
        format!(
            "insufficient data: {} has {} validation items; {needed}",
            i.locale.as_deref().unwrap_or("the mean over locales"),
            i.n
        )
    })
}

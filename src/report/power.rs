//! Owns the plain words in which `pluralis power` answers. Must not compute a number of items.

use std::fmt::Write as _;

use super::grid::grid;
use super::percent;
use crate::evaluate::power::{Answer, Claim, Question, Scope};

/// The answer as text.
pub fn power_text(a: &Answer) -> String {
    let mut out = String::new();
    let q = &a.question;
    let items = if a.per_locale == 1 { "item" } else { "items" };
    // Writing to a String cannot fail.
    let _ = match q.locales {
        1 => writeln!(out, "{} labelled {items}", a.per_locale),
        n => writeln!(
            out,
            "{} labelled {items} per locale, {} in {n} locales",
            a.per_locale, a.total
        ),
    };
    out.push('\n');
    for line in claim(a, q) {
        let _ = writeln!(out, "{line}");
    }
    out.push_str("\nWith other numbers of items:\n\n");
    let mut rows = vec![vec![
        if q.locales == 1 {
            "items".into()
        } else {
            "items per locale".into()
        },
        "chance of success".into(),
    ]];
    rows.extend(
        a.nearby
            .iter()
            .map(|n| vec![n.per_locale.to_string(), percent(n.power)]),
    );
    out.push_str(&grid(&rows));
    out
}

fn claim(a: &Answer, q: &Question) -> Vec<String> {
    let whom = match (q.scope, q.locales) {
        (_, 1) => "the locale",
        (Scope::Mean, _) => "all locales together",
        (Scope::WorstLocale, _) => "every single locale",
    };
    let mut lines = Vec::new();
    match q.what {
        Claim::Certify {
            threshold,
            expected,
        } => {
            lines.push(format!(
                "If the judge truly disagrees with people on {} of the items, this many show with a",
                percent(expected)
            ));
            lines.push(format!(
                "chance of {} that the disagreement of {whom} is below {}.",
                percent(a.power),
                percent(threshold)
            ));
            lines.push(format!(
                "A judge that is not below it passes with a chance of at most {}.",
                percent(q.alpha)
            ));
            let of = if q.scope == Scope::WorstLocale {
                a.per_locale
            } else {
                a.total
            };
            let each = if q.scope == Scope::WorstLocale && q.locales > 1 {
                " of each locale"
            } else {
                ""
            };
            if let Some(misses) = a.misses_allowed {
                lines.push(format!(
                    "To pass, at most {misses} of {of} items{each} may be disagreements."
                ));
            }
            if let Some(least) = a.least_per_locale {
                let each = if q.locales > 1 { " per locale" } else { "" };
                lines.push(format!(
                    "With fewer than {least} items{each} nothing can be shown, even by a judge without a miss."
                ));
            }
            if let Some(look) = q.looks {
                lines.push(format!(
                    "This holds up to look {look} of the stop rule at the same items; each look spends a part of the error rate."
                ));
            }
            lines.push(
                "Counted for disagreements of 0 or 1 and independent items; graded votes may need more or fewer."
                    .into(),
            );
        }
        Claim::Gain {
            before,
            gain,
            worse,
        } => {
            lines.push(format!(
                "If disagreement truly falls from {} to {}, this many show with a chance of {} that",
                percent(before),
                percent(before - gain),
                percent(a.power)
            ));
            lines.push(format!(
                "it fell in {whom}. Without any difference a gain or a loss is claimed with a chance of at most {}.",
                percent(q.alpha)
            ));
            let (better, now_worse) = (a.better.unwrap_or(0.0), a.worse.unwrap_or(0.0));
            let how = if worse.is_some() {
                "as given"
            } else {
                "as if the misses of both were unrelated; fewer items do when the new judge seldom loses what the old one had (--worse)"
            };
            lines.push(format!(
                "Counted with {} of the items getting better and {} getting worse ({how}).",
                percent(better),
                percent(now_worse)
            ));
        }
    }
    if q.scope == Scope::WorstLocale && q.locales > 1 {
        lines.push(format!(
            "Each locale is tested at an error rate of {:.5} and passes with a chance of {}.",
            a.alpha_each,
            percent(a.power_each)
        ));
    }
    lines
}

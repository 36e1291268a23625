//! The tables of an evaluation, as plain text. Must not know how figures are made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::grid::{cell_text, grid};
use super::percent;
use crate::evaluate::benchmark::{By, Cell, Coefficient, Correlated, RateFigure};
use crate::experiment::evaluation::EvaluationSummary;

/// A rate with its interval, as `31.2 % [27, 36]`; `-` where there is none. A `+` says that failed
/// verdicts could make it larger.
pub(super) fn rate_cell(figure: Option<&RateFigure>) -> String {
    let Some(figure) = figure else {
        return "-".into();
    };
    let open = if figure.at_most.is_some() { "+" } else { "" };
    match (figure.value, &figure.interval) {
        (Some(value), Some(i)) => format!(
            "{}{open} [{:.0}, {:.0}]",
            percent(value),
            100.0 * i.low,
            100.0 * i.high
        ),
        (Some(value), None) => format!("{}{open}", percent(value)),
        (None, _) => "-".into(),
    }
}

/// What an evaluation found: outcomes, rates by country, category and sharing (and by subcategory where
/// that is wanted), correlations, what failed, what was spent.
pub fn evaluation_text(summary: &EvaluationSummary, dir: &Path, subcategories: bool) -> String {
    let prompts: usize = summary.prompts.values().sum();
    let countries: Vec<String> = summary
        .prompts
        .iter()
        .map(|(locale, n)| format!("{locale} {n}"))
        .collect();
    let mut out = format!(
        "\n{} ({}): {prompts} prompts ({}), {:.0} % intervals\n\n",
        summary.name,
        summary.kind.name(),
        countries.join(", "),
        100.0 * summary.level
    );
    out += &overall(summary);
    out += &legend(summary);
    for (by, title) in [
        (By::Country, "by country"),
        (By::Category, "by category"),
        (By::Sharing, "by shared and flexible subcategories"),
        (By::Subcategory, "by subcategory"),
    ] {
        if by == By::Subcategory && !subcategories {
            continue;
        }
        for rate in &summary.rates {
            out += &slices(summary, by, rate, title);
        }
    }
    for c in &summary.correlations {
        out += &correlation_text(c);
    }
    if !summary.correlations.is_empty() {
        out.push('\n');
    }
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    let s = &summary.spent;
    let judge = match &summary.judge {
        Some(judge) => format!("{}, version {}", judge.model, short(&summary.version)),
        None => "none: the labels came with the responses".into(),
    };
    let _ = writeln!(out, "  judge     {judge}");
    let _ = writeln!(
        out,
        "  spent     {} calls, {} prompt and {} completion tokens, {} answers from the cache",
        s.calls, s.prompt_tokens, s.completion_tokens, s.cached
    );
    for note in &summary.notes {
        let _ = writeln!(out, "  note      {note}");
    }
    let _ = writeln!(out, "  run       {}", dir.display());
    out
}

fn of(summary: &EvaluationSummary, by: By) -> BTreeMap<(&str, &str), &Cell> {
    let own = summary.figures.iter().filter(|r| r.slice.by == by);
    own.map(|r| ((r.slice.of.as_str(), r.slice.model.as_str()), &r.cell))
        .collect()
}

fn overall(summary: &EvaluationSummary) -> String {
    let cells = of(summary, By::All);
    let outcomes: BTreeSet<&String> = cells.values().flat_map(|c| c.outcomes.keys()).collect();
    let failed = |c: &Cell| c.failures.values().sum::<usize>();
    let (contradicting, failing) = (
        cells.values().any(|c| c.contradictions > 0),
        cells.values().any(|c| failed(c) > 0),
    );
    let mut head = vec!["model".to_owned(), "n".to_owned()];
    head.extend(summary.rates.iter().cloned());
    head.extend(outcomes.iter().map(|o| (*o).clone()));
    head.extend(contradicting.then(|| "contradictions".to_owned()));
    head.extend(failing.then(|| "failed".to_owned()));
    let mut rows = vec![head];
    for model in &summary.models {
        let Some(cell) = cells.get(&("all", model.name.as_str())) else {
            continue;
        };
        let mut row = vec![cell_text(&model.name, 40), cell.n.to_string()];
        row.extend(summary.rates.iter().map(|r| rate_cell(cell.rates.get(r))));
        let count = |o: &&String| cell.outcomes.get(*o).copied().unwrap_or(0).to_string();
        row.extend(outcomes.iter().map(count));
        row.extend(contradicting.then(|| cell.contradictions.to_string()));
        row.extend(failing.then(|| failed(cell).to_string()));
        rows.push(row);
    }
    grid(&rows) + "\n"
}

fn legend(summary: &EvaluationSummary) -> String {
    let cells = of(summary, By::All);
    let mut out = String::new();
    for ((_, model), cell) in &cells {
        for (rate, figure) in &cell.rates {
            if figure.n < cell.n {
                let _ = writeln!(
                    out,
                    "  {rate} of {model} is over the {} of {} responses that are eligible",
                    figure.n, cell.n
                );
            }
            if let Some(most) = figure.at_most {
                let _ = writeln!(
                    out,
                    "  {rate} of {model}: {} responses without a label count as no hit; it is {} if all of them were",
                    figure.open,
                    percent(most)
                );
            }
        }
        if !cell.failures.is_empty() {
            let kinds: Vec<String> = cell
                .failures
                .iter()
                .map(|(k, n)| format!("{n} {k}"))
                .collect();
            let _ = writeln!(out, "  {model}: failed are {}", kinds.join(", "));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// One rate: a row per slice, a column per model. A single slice says what `overall` says.
fn slices(summary: &EvaluationSummary, by: By, rate: &str, title: &str) -> String {
    let cells = of(summary, by);
    let names: BTreeSet<&str> = cells.keys().map(|(of, _)| *of).collect();
    if names.len() < 2 {
        return String::new();
    }
    let mut head = vec![format!("{rate} {title}")];
    head.extend(summary.models.iter().map(|m| cell_text(&m.name, 30)));
    let mut rows = vec![head];
    for name in names {
        let mut row = vec![cell_text(name, 44)];
        row.extend(summary.models.iter().map(|m| {
            let figure = cells
                .get(&(name, m.name.as_str()))
                .and_then(|c| c.rates.get(rate));
            let n = figure.map_or(String::new(), |f| format!(" n={}", f.n));
            rate_cell(figure) + &n
        }));
        rows.push(row);
    }
    grid(&rows) + "\n"
}

/// One line per correlation.
pub(super) fn correlation_text(c: &Correlated) -> String {
    let one = |name: &str, of: &Option<Coefficient>| {
        of.as_ref().map(|f| {
            format!(
                "{name} {:+.2} [{:+.2}, {:+.2}]",
                f.value, f.interval.low, f.interval.high
            )
        })
    };
    let found: Vec<String> = [one("Pearson", &c.pearson), one("Spearman", &c.spearman)]
        .into_iter()
        .flatten()
        .collect();
    let told = match found.is_empty() {
        true => c.undefined.clone().unwrap_or_else(|| "undefined".into()),
        false => format!("{} (n={})", found.join(", "), c.points.len()),
    };
    format!("  {} with {} over {}: {told}\n", c.x, c.y, c.over)
}

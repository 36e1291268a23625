//! What human validation says, as plain text. Must not know how figures are made.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::evaluation::rate_cell;
use super::grid::{cell_text, grid};
use super::percent;
use crate::evaluate::agree::{Agreement, Figure, Section};
use crate::evaluate::benchmark::By;
use crate::evaluate::validate::{CorrectedRate, CriterionAgreement, MAJORITY};

/// Agreement per criterion (people against judges overall and per country, every pair, the matrix of
/// judges), then the rates with their corrections.
pub fn validation_text(agreements: &[CriterionAgreement], rates: &[CorrectedRate]) -> String {
    let mut out = String::from("\n");
    for a in agreements {
        out += &criterion(&a.criterion, &a.agreement);
    }
    out += &corrections(rates);
    out
}

/// kappa or a share with its interval, two decimals.
fn figure(figure: Option<&Figure>) -> String {
    let Some(f) = figure else {
        return "-".into();
    };
    match (f.value, f.interval) {
        (Some(v), Some(i)) => format!("{v:.2} [{:.2}, {:.2}]", i.low, i.high),
        (Some(v), None) => format!("{v:.2}"),
        (None, _) => "-".into(),
    }
}

fn criterion(name: &str, a: &Agreement) -> String {
    let mut out = String::new();
    let several = a.locales.len() > 1;
    let sections = a.locales.iter().filter(|_| several);
    let mut rows = vec![
        [
            format!("{name}: people and judges"),
            "n".into(),
            "agreement".into(),
            "Cohen's kappa".into(),
        ]
        .to_vec(),
    ];
    let mut push = |section: &Section, of: &str| {
        // What most people said agrees with them by its making.
        for pair in section.pairs.iter().filter(|p| p.b != MAJORITY) {
            rows.push(vec![
                cell_text(&format!("{of}{}, {}", pair.a, pair.b), 70),
                pair.agreement.n.to_string(),
                figure(Some(&pair.agreement)),
                figure(pair.kappas.get("cohen_kappa")),
            ]);
        }
    };
    push(&a.overall, "");
    for (locale, section) in sections {
        push(section, &format!("{locale}: "));
    }
    out += &grid(&rows);
    for (judge, s) in a.overall.judges.iter().filter(|(j, _)| *j != MAJORITY) {
        let mut rows = vec![vec![format!("people's majority \\ {judge}")]];
        rows[0].extend(s.confusion.labels.iter().cloned());
        for (label, counts) in s.confusion.labels.iter().zip(&s.confusion.counts) {
            if label == "(none)" {
                continue;
            }
            let mut row = vec![cell_text(label, 40)];
            row.extend(counts.iter().map(u64::to_string));
            rows.push(row);
        }
        out += "\n";
        out += &grid(&rows);
    }
    out + "\n"
}

fn corrections(rates: &[CorrectedRate]) -> String {
    if rates.is_empty() {
        return String::new();
    }
    let models = rates.iter().map(|r| r.slice.model.as_str());
    let models: BTreeSet<&str> = models.filter(|m| *m != "all").collect();
    let countries: BTreeSet<&str> = rates
        .iter()
        .filter(|r| r.slice.by == By::Country)
        .map(|r| r.slice.of.as_str())
        .collect();
    let mut rows = vec![
        ["rate", "labelled", "raw", "corrected", "judge trusted"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut left_out = 0;
    for r in rates {
        // The slices of an only country or an only model say what those of everything say.
        let only_country = r.slice.by == By::Country && countries.len() < 2;
        let only_model = r.slice.model != "all" && models.len() < 2;
        if only_country || only_model {
            continue;
        }
        left_out = left_out.max(r.left_out);
        let of = match (r.slice.model.as_str(), r.slice.of.as_str()) {
            ("all", "all") => "everything".to_owned(),
            ("all", of) => of.to_owned(),
            (model, "all") => model.to_owned(),
            (model, of) => format!("{model}, {of}"),
        };
        let (n, corrected, lambda) = match &r.corrected {
            Some(c) => (
                c.labelled.to_string(),
                format!(
                    "{} [{:.0}, {:.0}]",
                    percent(c.value),
                    100.0 * c.low,
                    100.0 * c.high
                ),
                format!("{:.2}", c.lambda),
            ),
            None => (
                String::new(),
                format!(
                    "insufficient data: {}",
                    r.undefined.as_deref().unwrap_or_default()
                ),
                String::new(),
            ),
        };
        rows.push(vec![
            cell_text(&format!("{} of {of}", r.rate), 50),
            n,
            rate_cell(Some(&r.raw)),
            corrected,
            lambda,
        ]);
    }
    let mut out = grid(&rows);
    if left_out > 0 {
        let _ = writeln!(
            out,
            "  up to {left_out} responses without text are in the raw rates and not in the corrected ones"
        );
    }
    out
}

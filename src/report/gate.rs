//! Owns the texts that `pluralis gate` prints. Must not compute a figure.

use std::fmt::Write as _;

use super::grid::{cell_text, grid};
use crate::evaluate::gate::Outcome;
use crate::evaluate::gate::rankings::Rankings;

/// What became of each slot.
pub fn gate_text(outcome: &Outcome, keep: usize) -> String {
    let number = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.2}"));
    let head = [
        "slot", "judged", "failed", "refused", "kept", "mean", "lowest",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for s in &outcome.slots {
        rows.push(vec![
            cell_text(&s.slot, 44),
            s.judged.to_string(),
            s.failed.to_string(),
            s.refused.values().sum::<usize>().to_string(),
            format!("{} of {keep}", s.kept),
            number(s.mean),
            number(s.lowest),
        ]);
    }
    let mut out = grid(&rows);
    for s in outcome.slots.iter().filter(|s| !s.refused.is_empty()) {
        let why: Vec<String> = s
            .refused
            .iter()
            .map(|(r, n)| format!("{n} {}", r.as_str()))
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "  refused in {}: {}",
            cell_text(&s.slot, 44),
            why.join(", ")
        );
    }
    let open = outcome.slots.iter().filter(|s| s.kept < keep).count();
    let _ = match open {
        0 => writeln!(
            out,
            "\n  every slot is full after {} rounds",
            outcome.rounds
        ),
        n => writeln!(
            out,
            "\n  {n} of {} slots are not full after {} rounds",
            outcome.slots.len(),
            outcome.rounds
        ),
    };
    out
}

/// Averaged ranks and the agreement of annotators.
pub fn rankings_text(r: &Rankings) -> String {
    let grouped = r.items.iter().any(|p| p.group != r.items[0].group);
    let mut rows = vec![
        ["item", "annotators", "mean rank", "place"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for p in &r.items {
        let name = if grouped {
            format!("{} / {}", p.group, p.item)
        } else {
            p.item.clone()
        };
        rows.push(vec![
            cell_text(&name, 50),
            p.n.to_string(),
            p.rank.map_or("-".into(), |x| format!("{x:.2}")),
            p.place.map_or("-".into(), |x| x.to_string()),
        ]);
    }
    let mut out = format!("Averaged ranks (1 is best)\n\n{}", grid(&rows));
    let _ = writeln!(
        out,
        "\nQuadratic-weighted kappa of each two annotators ({} % intervals)\n",
        100.0 * r.level
    );
    let mut rows = vec![["", "n", "kappa"].map(str::to_owned).to_vec()];
    let mut reasons = Vec::new();
    for p in &r.pairs {
        let name = format!("{} – {}", p.annotators[0], p.annotators[1]);
        let figure = match (p.kappa, p.low.zip(p.high)) {
            (None, _) => "undefined".to_owned(),
            (Some(k), None) => format!("{k:.3}"),
            (Some(k), Some((low, high))) => format!("{k:.3} [{low:.3}, {high:.3}]"),
        };
        if let Some(why) = &p.why {
            reasons.push(format!("  {}: {why}\n", cell_text(&name, 50)));
        }
        rows.push(vec![cell_text(&name, 50), p.n.to_string(), figure]);
    }
    if let Some(mean) = r.mean_kappa {
        rows.push(vec![
            "mean of the pairs".into(),
            String::new(),
            format!("{mean:.3}"),
        ]);
    }
    out += &grid(&rows);
    if !reasons.is_empty() {
        out.push('\n');
        out += &reasons.concat();
    }
    out
}

//! Leaderboards as plain text: one table per rate, and no figure made of several rates.
//! Must not know how models were compared.

use std::fmt::Write as _;

use super::evaluation::{correlation_text, rate_cell};
use super::grid::{cell_text, grid};
use super::percent;
use crate::evaluate::benchmark::{Better, Correlated};
use crate::evaluate::leaderboard::{Board, Ranked};

/// Every board, side by side first, then each with its countries and the pairs that cannot be told
/// apart.
pub fn leaderboard_text(boards: &[Board], correlations: &[Correlated], level: f64) -> String {
    let mut out = String::from("\n");
    out += &side_by_side(boards);
    for board in boards {
        out += &one(board, level);
    }
    for c in correlations {
        out += &correlation_text(c);
    }
    out
}

fn mean(model: &Ranked) -> String {
    match (model.value, &model.interval) {
        (Some(v), Some(i)) => format!(
            "{} [{:.0}, {:.0}]",
            percent(v),
            100.0 * i.low,
            100.0 * i.high
        ),
        _ => "-".into(),
    }
}

fn rank(model: &Ranked) -> String {
    match model.rank {
        None => "-".into(),
        Some((a, b)) if a == b => a.to_string(),
        Some((a, b)) => format!("{a} to {b}"),
    }
}

fn side_by_side(boards: &[Board]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for model in boards.iter().flat_map(|b| &b.models) {
        if !names.contains(&model.model.as_str()) {
            names.push(&model.model);
        }
    }
    names.sort_unstable();
    let mut head = vec!["model".to_owned()];
    for board in boards {
        head.extend([board.rate.clone(), "rank".to_owned()]);
    }
    let mut rows = vec![head];
    for name in names {
        let mut row = vec![cell_text(name, 40)];
        for board in boards {
            let found = board.models.iter().find(|m| m.model == name);
            row.push(found.map_or("-".into(), mean));
            row.push(found.map_or("-".into(), rank));
        }
        rows.push(row);
    }
    grid(&rows) + "\n"
}

fn one(board: &Board, level: f64) -> String {
    let end = match board.better {
        Better::High => "more is better",
        Better::Low => "less is better",
    };
    let mut head = vec![
        format!("{} ({end})", board.rate),
        "rank".into(),
        "mean of countries".into(),
    ];
    head.extend(board.countries.iter().cloned());
    let mut rows = vec![head];
    for model in &board.models {
        let mut row = vec![cell_text(&model.model, 40), rank(model), mean(model)];
        let cells = board
            .countries
            .iter()
            .map(|c| rate_cell(model.countries.get(c)));
        row.extend(cells);
        rows.push(row);
    }
    let mut out = grid(&rows);
    let (apart, alike): (Vec<_>, Vec<_>) = board.pairs.iter().partition(|p| p.apart);
    if board.pairs.is_empty() {
        let _ = writeln!(out, "  no two models answered the same prompts");
    }
    for pair in apart {
        let _ = writeln!(
            out,
            "  {} and {}: {:+.1} points, told apart (p {}, n={})",
            pair.a,
            pair.b,
            100.0 * pair.difference,
            p_value(pair.adjusted),
            pair.n
        );
    }
    for pair in alike {
        let _ = writeln!(
            out,
            "  {} and {}: {:+.1} points, cannot be told apart with {:.0} % confidence (p {}, n={})",
            pair.a,
            pair.b,
            100.0 * pair.difference,
            100.0 * level,
            p_value(pair.adjusted),
            pair.n
        );
    }
    out + "\n"
}

fn p_value(p: f64) -> String {
    match p < 0.001 {
        true => "< 0.001".into(),
        false => format!("{p:.3}"),
    }
}

//! The tables of `docs/statistics.md`: `cargo bench --bench claims`. Takes minutes;
//! a number after `--` sets the samples of each case.
//!
//! Simulates data whose truth is known and prints how often intervals hold it, and how often a judge
//! that did not change is taken for a better one. Ends with an error where an interval that is meant
//! to cover 95 % covers less than 93 %, apart from those that the page names.

#[path = "../tests/it/agreement/cases.rs"]
mod cases;

use cases::{FIGURES, WORLDS};

/// Samples of each case.
const RUNS: u64 = 2000;
const SIZES: [usize; 3] = [20, 50, 200];

/// What an interval must cover. A figure without an interval claims nothing.
const LEAST: f64 = 0.93;
/// Where more of the samples than this have no interval, the rest are too few to say.
const RARELY: f64 = 0.8;

fn main() -> std::process::ExitCode {
    // `cargo test --benches` only asks whether it runs.
    let short = std::env::args().any(|a| a == "--test");
    let asked = std::env::args().find_map(|a| a.parse::<u64>().ok());
    let runs = asked.unwrap_or(if short { 8 } else { RUNS });
    println!("| values | items | mean interval | percentile | BCa | one-sided upper bound |");
    println!("|---|---|---|---|---|---|");
    let means = cases::means(2 * runs, &SIZES);
    for c in &means {
        println!(
            "| {} | {} | {:.3} | {:.3} | {:.3} | {:.3} |",
            c.values, c.n, c.mean, c.percentile, c.bca, c.upper
        );
    }
    println!("\n| world | items | {} |", FIGURES.join(" | "));
    println!("|---|---|{}", "---|".repeat(FIGURES.len()));
    let figures = cases::figures(runs, &SIZES, &WORLDS);
    for row in figures.chunks(FIGURES.len()) {
        let cell = |c: &cases::FigureCase| {
            if c.without > RARELY {
                return "none".to_owned();
            }
            let without = if c.without > 0.005 {
                format!(" ({:.0} % without)", 100.0 * c.without)
            } else {
                String::new()
            };
            format!("{:.3}{without}", c.covered)
        };
        let cells: Vec<String> = row.iter().map(cell).collect();
        println!(
            "| {} | {} | {} |",
            row[0].world,
            row[0].n,
            cells.join(" | ")
        );
    }
    let claims = cases::claims(runs);
    println!(
        "\nclaims of a gain without one: bootstrap {:.4}, permutation {:.4}, betting {:.4}",
        claims.bootstrap, claims.permutation, claims.betting
    );
    let low: Vec<String> = figures
        .iter()
        .filter(|c| c.without <= RARELY && c.covered < LEAST)
        .map(|c| format!("{}, {} items, {}: {:.3}", c.world, c.n, c.figure, c.covered))
        .collect();
    low.iter().for_each(|l| println!("covers too little: {l}"));
    let bad = means.iter().any(|c| c.mean < 0.93 || c.upper < 0.95)
        || claims.bootstrap > 0.05
        || claims.permutation > 0.065
        || claims.betting > 0.05
        || !low.is_empty();
    std::process::ExitCode::from(u8::from(bad && !short))
}

//! A/A honesty of the whole loop: a judge that flips its answers at random, and edits that change
//! nothing but the text of the prompt, so that every apparent gain is noise. The loop keeps the
//! luckiest version it saw; what it claims of it on `test` must be wrong in at most 5 % of runs.

use std::fmt::Write as _;
use std::path::Path;

use pluralis::experiment::{Plan, RunOptions, tune};

/// Seeds by default; PLURALIS_SEEDS sets another number, 200 for the figures in the docs.
const SEEDS: u64 = 60;

/// Two locales, half of the items each of two labels, votes unanimous.
fn items() -> String {
    let mut out = String::new();
    for i in 0..120 {
        let (locale, label) = (["es-MX", "th-TH"][i % 2], i / 2 % 2);
        let (text, votes) = [("kind", "NO"), ("cruel", "O3")][label];
        writeln!(
            out,
            r#"{{"id": "{locale}/{i}", "locale": "{locale}", "fields": {{"attribute": "{text} number {i}"}}, "group": "{i}", "votes": {{"offensiveness": {{"{votes}": 3}}}}}}"#
        )
        .unwrap();
    }
    out
}

fn config(seed: u64) -> String {
    let task = super::harness::root().join("judge-prompts/offensiveness");
    format!(
        r#"name = "aa"
seed = {seed}
[task]
folder = {task:?}
reading = "binary"
[data]
items = ["items.jsonl"]
[data.split]
shares = [0.3, 0.2, 0.5]
[judge]
endpoint = "simulated"
seed = {seed}
default = "harmless"
lexicon = {{ offensive = ["cruel"] }}
flip = 0.2
[search]
demos = 4
[stop]
threshold = 0.0
patience = 8
[budget]
calls = 400
"#
    )
}

struct Run {
    gain: f64,
    claimed: bool,
    admitted: bool,
}

fn run(dir: &Path, seed: u64) -> Run {
    let path = dir.join(format!("{seed}.toml"));
    std::fs::write(&path, config(seed)).unwrap();
    let plan = Plan::load(&path, &[]).unwrap();
    let options = RunOptions {
        out: Some(dir.join(format!("run-{seed}"))),
        ..RunOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (_, summary, _) = runtime.block_on(tune(&plan, &options, &|_| {})).unwrap();
    let gain = summary.gain.unwrap();
    assert_eq!(gain.n, 60);
    Run {
        gain: gain.value,
        claimed: gain.certified,
        admitted: summary.versions.best != summary.versions.seed,
    }
}

#[test]
fn noise_is_claimed_as_a_gain_in_at_most_one_run_of_twenty() {
    use rayon::prelude::*;
    let seeds = std::env::var("PLURALIS_SEEDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(SEEDS);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("items.jsonl"), items()).unwrap();
    let runs: Vec<Run> = (0..seeds)
        .into_par_iter()
        .map(|seed| run(dir.path(), seed))
        .collect();
    let claimed = runs.iter().filter(|r| r.claimed).count();
    let admitted = runs.iter().filter(|r| r.admitted).count();
    let mean = runs.iter().map(|r| r.gain).sum::<f64>() / runs.len() as f64;
    println!(
        "A/A over {seeds} seeds: a gain was claimed in {claimed}, another version was chosen in {admitted}, mean gain on test {:+.2} points",
        100.0 * mean
    );
    // Without edits that pass by luck the test would say nothing about claims.
    assert!(admitted * 4 > runs.len(), "{admitted}");
    assert!(claimed * 20 <= runs.len(), "{claimed} of {}", runs.len());
    // The flips are independent of the version, so that no version is better on test.
    assert!(mean.abs() < 0.03, "{mean}");
}

//! The same bytes whatever the concurrency, on the simulator and over HTTP.

use super::server::{Server, config, tune_server};
use super::*;

const SEEDS: [&str; 3] = ["0", "1", "18446744073709551615"];

/// The order in which answers arrived.
fn arrivals(run: &Path) -> Vec<String> {
    let digest = |line: Value| line["digest"].as_str().unwrap().to_owned();
    attempts(run).into_iter().map(digest).collect()
}

/// Runs at 1, 4 and 16 in flight; the artefacts are the same, and the arrivals are not.
fn the_same_bytes(
    dir: &Path,
    run: impl Fn(&str, &str) -> Output,
) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for n in ["1", "4", "16"] {
        let out = format!("run-{n}");
        succeed(&run(&out, n));
        all.push((artefacts(&dir.join(&out)), arrivals(&dir.join(&out))));
    }
    assert!(all[0].0 == all[1].0 && all[0].0 == all[2].0);
    assert_ne!(all[0].1, all[2].1, "nothing overtook anything");
    all.remove(0).0
}

#[test]
fn simulated_runs_are_the_same_at_every_concurrency_and_differ_by_seed() {
    let simulated = experiment("simulated.toml");
    let mut by_seed = Vec::new();
    for seed in SEEDS {
        let dir = tempfile::tempdir().unwrap();
        let set = format!("seed={seed}");
        by_seed.push(the_same_bytes(dir.path(), |out, n| {
            let set = ["--set", &set, "--set", "budget.calls=300"];
            let more = [
                "--set",
                "judge.latency_ms=4",
                "--no-cache",
                "--concurrency",
                n,
            ];
            tune(dir.path(), &simulated, out, &[&set[..], &more[..]].concat())
        }));
        let s = summary(&dir.path().join("run-1"));
        assert_eq!(s["seed"].as_u64().unwrap().to_string(), seed);
    }
    let events = |n: usize| {
        let all: &Vec<(std::path::PathBuf, Vec<u8>)> = &by_seed[n];
        let events = all.iter().find(|(name, _)| name.ends_with("events.jsonl"));
        // Without the first line, which names the config.
        text(&events.unwrap().1)
            .split_once('\n')
            .unwrap()
            .1
            .to_owned()
    };
    assert_ne!(events(0), events(1));
    assert_ne!(events(1), events(2));
}

#[test]
fn the_largest_seed_is_text_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let server = config(dir.path(), "http://127.0.0.1:9/v1");
    let written = std::fs::read_to_string(&server).unwrap();
    let written = written.replace("seed = 1\n", "seed = \"18446744073709551615\"\n");
    std::fs::write(&server, written).unwrap();
    succeed(&tune(dir.path(), &server, "run", &["--dry-run"]));
    let refused = tune(
        dir.path(),
        &server,
        "run",
        &["--dry-run", "--set", "seed=18446744073709551616"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("18446744073709551615"));
}

#[test]
fn http_runs_are_the_same_at_every_concurrency() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &server.url());
    the_same_bytes(dir.path(), |out, n| {
        let more = [
            "--set",
            "budget.calls=300",
            "--no-cache",
            "--concurrency",
            n,
        ];
        tune_server(dir.path(), &config, out, &more)
    });
}

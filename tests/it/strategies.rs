//! Every strategy on the simulated judge: it spends no more than its cap, repeats to the byte, and
//! does what its paper says where that can be seen from outside.

use super::harness::{artefacts, experiment, log, pluralis, summary, text};

const ALL: [&str; 7] = [
    "gepa",
    "mipro",
    "capo",
    "opro",
    "protegi",
    "random",
    "hill-climb",
];

fn run(dir: &std::path::Path, name: &str, out: &str, calls: u64) -> serde_json::Value {
    let (strategy, budget) = (
        format!("search.strategy={name}"),
        format!("budget.calls={calls}"),
    );
    let config = experiment("simulated.toml");
    let run = pluralis(
        dir,
        &[
            "tune", &config, "--out", out, "--set", &strategy, "--set", &budget,
        ],
    );
    assert!(run.status.success(), "{name}: {}", text(&run.stderr));
    summary(&dir.join(out))
}

#[test]
fn every_strategy_keeps_its_cap_and_hands_over_a_version() {
    let dir = tempfile::tempdir().unwrap();
    for name in ALL {
        // 120 of the calls are held back for reading test with both versions.
        let s = run(dir.path(), name, name, 500);
        let calls = s["spent"]["calls"].as_u64().unwrap();
        assert!(calls <= 500, "{name} made {calls} calls");
        let test = &s["splits"]["test"];
        for arm in ["seed", "best"] {
            assert_eq!(test[arm]["overall"]["n"], 60, "{name} {arm}");
        }
        // The judge has no noise: what scores better on its own split is no accident.
        let of = |arm: &str| test[arm]["overall"]["disagreement"].as_f64().unwrap();
        assert!(
            of("best") <= of("seed") + 0.1,
            "{name}: {} -> {}",
            of("seed"),
            of("best")
        );
    }
}

#[test]
fn strategies_repeat_to_the_byte_with_and_without_a_cache() {
    for name in ["gepa", "mipro", "protegi"] {
        let runs: Vec<_> = (0..2)
            .map(|_| {
                let dir = tempfile::tempdir().unwrap();
                run(dir.path(), name, "run", 400);
                artefacts(&dir.path().join("run"))
            })
            .collect();
        assert_eq!(runs[0], runs[1], "{name}");
    }
}

#[test]
fn gepa_gates_on_three_items_and_scores_what_passes_on_all_of_validation() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "gepa", "run", 900);
    let events = log(&dir.path().join("run"), "events.jsonl");
    let raced: Vec<_> = events.iter().filter(|e| e["event"] == "raced").collect();
    assert!(!raced.is_empty());
    let mut passed = 0;
    for e in &raced {
        assert_eq!(e["n"], 3);
        assert_eq!(e["outcome"] == "passed", e["gain"].as_f64().unwrap() > 0.0);
        passed += usize::from(e["outcome"] == "passed");
    }
    // The seed and every child that passed, each on the 60 items of validation.
    let scored: Vec<_> = events.iter().filter(|e| e["event"] == "scored").collect();
    assert_eq!(scored.len(), passed + 1);
    assert!(scored.iter().all(|e| e["n"] == 60));
}

#[test]
fn random_search_scores_every_demo_set_on_all_of_validation() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "random", "run", 600);
    let events = log(&dir.path().join("run"), "events.jsonl");
    let scored: Vec<_> = events.iter().filter(|e| e["event"] == "scored").collect();
    // 480 calls for the search pay 8 readings of 60 items.
    assert_eq!(scored.len(), 8);
    assert!(scored.iter().all(|e| e["n"] == 60));
}

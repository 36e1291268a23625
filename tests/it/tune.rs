//! `pluralis tune` from outside, on the simulated judge.

mod levers;

use std::path::Path;

use super::harness::{artefacts, experiment, log, pluralis, summary, text};

fn tune(dir: &Path, out: &str, more: &[&str]) -> std::process::Output {
    let config = experiment("simulated.toml");
    let mut args = vec!["tune", &config, "--out", out];
    args.extend(more);
    pluralis(dir, &args)
}

#[test]
fn the_loop_removes_the_planted_failures_and_stops_for_the_right_reason() {
    let dir = tempfile::tempdir().unwrap();
    let run = tune(dir.path(), "run", &[]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let s = summary(&dir.path().join("run"));
    let test = &s["splits"]["test"];
    // Four planted modes of 12 items each in 240 items: a fifth is wrong before.
    let before = test["seed"]["overall"]["disagreement"].as_f64().unwrap();
    let after = test["best"]["overall"]["disagreement"].as_f64().unwrap();
    assert!(before > 0.1 && after < 0.04, "{before} -> {after}");
    assert_eq!(s["stop"], "threshold");
    assert_eq!(s["gain"]["certified"], true);
    let table = text(&run.stdout);
    for part in ["es-MX", "overall", "gain", "stopped", "spent", "run "] {
        assert!(table.contains(part), "no `{part}` in:\n{table}");
    }
}

#[test]
fn a_finished_run_is_reported_and_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let first = tune(dir.path(), "run", &[]);
    let calls = std::fs::read(dir.path().join("run/attempts.jsonl")).unwrap();
    let second = tune(dir.path(), "run", &[]);
    assert!(first.status.success() && second.status.success());
    assert!(text(&second.stdout).contains("finished already"));
    assert_eq!(
        calls,
        std::fs::read(dir.path().join("run/attempts.jsonl")).unwrap()
    );
}

#[test]
fn seeds_0_1_and_the_largest_give_distinct_repeatable_runs() {
    let mut events = Vec::new();
    for seed in ["0", "1", "18446744073709551615"] {
        let set = format!("seed={seed}");
        let runs: Vec<_> = (0..2)
            .map(|_| {
                let dir = tempfile::tempdir().unwrap();
                let run = tune(dir.path(), "run", &["--set", &set]);
                assert!(run.status.success(), "{}", text(&run.stderr));
                artefacts(&dir.path().join("run"))
            })
            .collect();
        assert_eq!(runs[0], runs[1], "seed {seed} is not repeatable");
        events.push(runs[0].clone());
    }
    assert_ne!(events[0], events[1]);
    assert_ne!(events[1], events[2]);
}

#[test]
fn a_run_killed_anywhere_resumes_to_the_same_bytes() {
    let whole = tempfile::tempdir().unwrap();
    assert!(tune(whole.path(), "run", &[]).status.success());
    let want = artefacts(&whole.path().join("run"));
    let attempts = std::fs::read(whole.path().join("run/attempts.jsonl")).unwrap();
    let events = std::fs::read(whole.path().join("run/events.jsonl")).unwrap();
    let config = std::fs::read(whole.path().join("run/config.toml")).unwrap();
    // What a kill leaves is a prefix of both logs; cut them at places that are no line ends.
    for part in [0.0, 0.13, 0.37, 0.61, 0.98] {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        std::fs::create_dir(&run).unwrap();
        let cut = |bytes: &[u8]| bytes[..(bytes.len() as f64 * part) as usize].to_vec();
        std::fs::write(run.join("config.toml"), &config).unwrap();
        std::fs::write(run.join("attempts.jsonl"), cut(&attempts)).unwrap();
        std::fs::write(run.join("events.jsonl"), cut(&events)).unwrap();
        let refused = tune(dir.path(), "run", &[]);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "without --resume it is refused"
        );
        assert!(text(&refused.stderr).contains("--resume"));
        let resumed = tune(dir.path(), "run", &["--resume"]);
        assert!(resumed.status.success(), "{}", text(&resumed.stderr));
        assert_eq!(artefacts(&run), want, "cut at {part}");
        let lines = |bytes: &[u8]| bytes.iter().filter(|b| **b == b'\n').count();
        let again = std::fs::read(run.join("attempts.jsonl")).unwrap();
        assert_eq!(
            lines(&again),
            lines(&attempts),
            "an answered call was made again"
        );
    }
}

#[test]
fn a_wrong_key_names_the_nearest_one_and_spends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let run = tune(dir.path(), "run", &["--set", "budget.cals=5"]);
    assert_eq!(run.status.code(), Some(2));
    let said = text(&run.stderr);
    assert!(said.contains("cals") && said.contains("`calls`"), "{said}");
    assert!(!dir.path().join("run").exists(), "something was written");
}

#[test]
fn a_dead_endpoint_says_where_and_how_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let config = std::fs::read_to_string(experiment("simulated.toml")).unwrap();
    let (head, rest) = config.split_once("[judge]").unwrap();
    let (_, tail) = rest.split_once("[search]").unwrap();
    let root = super::harness::root().display().to_string();
    let head = head
        .replace("\"../", &format!("\"{root}/"))
        .replace("\"simulated/", &format!("\"{root}/experiments/simulated/"));
    let judge = "[judge]\nendpoint = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"x\"\nkey_env = \"PLURALIS_TEST_NO_SUCH_KEY\"\n\n[search]";
    std::fs::write(dir.path().join("dead.toml"), format!("{head}{judge}{tail}")).unwrap();
    let run = pluralis(dir.path(), &["tune", "dead.toml", "--out", "run"]);
    assert_eq!(run.status.code(), Some(3));
    assert!(
        text(&run.stderr).contains("PLURALIS_TEST_NO_SUCH_KEY"),
        "{}",
        text(&run.stderr)
    );
}

#[test]
fn dry_run_tells_the_plan_and_makes_no_call() {
    let dir = tempfile::tempdir().unwrap();
    let run = tune(dir.path(), "run", &["--dry-run"]);
    assert!(run.status.success());
    assert!(text(&run.stdout).contains("held back"));
    assert!(!dir.path().join("run").exists());
}

#[test]
fn completions_and_the_man_page_come_from_the_command_tree() {
    let dir = tempfile::tempdir().unwrap();
    let bash = pluralis(dir.path(), &["completions", "bash"]);
    assert!(text(&bash.stdout).contains("_pluralis"));
    let man = pluralis(dir.path(), &["man"]);
    assert!(text(&man.stdout).contains(".TH pluralis"));
    let help = pluralis(dir.path(), &["--help"]);
    assert!(text(&help.stdout).contains("Exit codes"));
}

#[test]
fn where_the_endpoint_has_no_embeddings_n_grams_stand_in_and_the_log_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let set = [
        "--set",
        "search.features=embeddings",
        "--set",
        "budget.calls=300",
    ];
    let run = tune(dir.path(), "run", &set);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let events = std::fs::read_to_string(dir.path().join("run/events.jsonl")).unwrap();
    let embedded = events.lines().find(|l| l.contains("\"embedded\"")).unwrap();
    assert!(embedded.contains("\"n\":0") && embedded.contains("no embeddings"));
    assert!(events.contains("\"clustered\""));
}

#[test]
fn the_stop_rule_can_ask_for_a_judge_no_worse_than_a_held_out_rater() {
    let dir = tempfile::tempdir().unwrap();
    let set = [
        "--set",
        "stop.threshold=human",
        "--set",
        "stop.margin=0.1",
        "--set",
        "budget.calls=1500",
    ];
    let run = tune(dir.path(), "run", &set);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let s = summary(&dir.path().join("run"));
    let look = s["looks"].as_array().unwrap().last().unwrap();
    // The bar is the margin, and the bound is of a difference: it lies above the judge's own
    // figure less the rater's.
    assert_eq!(look["bar"], 0.1);
    let (judge, human) = (
        look["disagreement"].as_f64().unwrap(),
        look["human"].as_f64().unwrap(),
    );
    assert!(look["upper"].as_f64().unwrap() > judge - human);
    assert_eq!(s["stop"], "threshold");
    let bad = tune(dir.path(), "bad", &["--set", "stop.threshold=humans"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("human"));
}

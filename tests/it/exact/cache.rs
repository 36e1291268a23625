//! The cache from outside: shared by processes, looked into, exported, imported, left out.

use super::super::harness::pluralis;
use super::*;

fn stats(dir: &Path, more: &[&str]) -> Value {
    let run = pluralis(dir, &[&["cache", "stats", "--json"], more].concat());
    succeed(&run);
    serde_json::from_slice(&run.stdout).unwrap()
}

#[test]
fn two_processes_write_one_cache_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    let more = [&EASY[..], &["--set", "judge.latency_ms=6"]].concat();
    let mut children: Vec<_> = ["a", "b"]
        .map(|out| command(dir.path(), &config, out, &more).spawn().unwrap())
        .into();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let verdicts = |run: &Path| std::fs::read(run.join("verdicts.jsonl")).unwrap();
    assert_eq!(verdicts(&a), verdicts(&b));
    let mut asked = answers(&a);
    asked.extend(answers(&b));
    assert_eq!(stats(dir.path(), &[])["answers"], asked.len());
    let calls = |run: &Path| summary(run)["spent"]["calls"].as_u64().unwrap();
    assert!(calls(&a) + calls(&b) >= asked.len() as u64);
}

#[test]
fn answers_go_from_one_cache_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    succeed(&tune(dir.path(), &config, "one", &EASY));
    succeed(&tune(
        dir.path(),
        &config,
        "other",
        &[&EASY[..], &["--set", "seed=9"]].concat(),
    ));
    let one = answers(&dir.path().join("one")).len();
    let all = stats(dir.path(), &[])["answers"].as_u64().unwrap() as usize;
    assert!(all > one);

    let written = pluralis(
        dir.path(),
        &["cache", "export", "--run", "one", "--out", "one.jsonl"],
    );
    assert!(text(&written.stdout).contains(&format!("{one} answers")));
    let piped = pluralis(
        dir.path(),
        &["cache", "export", "--model", "none", "--out", "-"],
    );
    assert!(piped.status.success() && piped.stdout.is_empty());

    let import = |file: &str| {
        pluralis(
            dir.path(),
            &["cache", "import", file, "--file", "two.sqlite"],
        )
    };
    succeed(&import("one.jsonl"));
    let again = import("one.jsonl");
    assert!(text(&again.stdout).contains(&format!("0 answers added, {one} were here")));
    // A run on the imported answers makes no call at all.
    let more = ["--cache", "two.sqlite", "--offline"];
    succeed(&tune(
        dir.path(),
        &config,
        "third",
        &[&EASY[..], &more].concat(),
    ));
    let third = summary(&dir.path().join("third"));
    assert_eq!(third["spent"]["calls"], 0);
    assert_eq!(third["splits"], summary(&dir.path().join("one"))["splits"]);

    // An edited line is refused by its number, and nothing is imported.
    let exported = std::fs::read_to_string(dir.path().join("one.jsonl")).unwrap();
    let lines: Vec<String> = exported.lines().map(str::to_owned).collect();
    let mut edited = lines.clone();
    edited[4] = edited[4].replacen("\"finish\":\"stop\"", "\"finish\":\"length\"", 1);
    assert_ne!(edited[4], lines[4]);
    std::fs::write(dir.path().join("edited.jsonl"), edited.join("\n")).unwrap();
    let bad = |file: &str| pluralis(dir.path(), &["cache", "import", file, "--file", "3.sqlite"]);
    let refused = bad("edited.jsonl");
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("line 5"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(stats(dir.path(), &["--file", "3.sqlite"])["answers"], 0);
    assert_eq!(bad("missing.jsonl").status.code(), Some(2));
}

#[test]
fn a_cache_is_pruned_by_what_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let none = pluralis(dir.path(), &["cache", "stats"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(!dir.path().join("cache").exists(), "looking makes no cache");
    succeed(&tune(
        dir.path(),
        &experiment("simulated.toml"),
        "run",
        &EASY,
    ));
    let shown = pluralis(dir.path(), &["cache", "stats"]);
    let shown = text(&shown.stdout);
    for part in ["answers", "oldest", "newest", "simulated"] {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
    let prune = |more: &[&str]| pluralis(dir.path(), &[&["cache", "prune"], more].concat());
    assert_eq!(
        prune(&[]).status.code(),
        Some(2),
        "without a word nothing is dropped"
    );
    assert_eq!(prune(&["--older-than", "soon"]).status.code(), Some(2));
    let all = stats(dir.path(), &[]);
    succeed(&prune(&["--older-than", "1d"]));
    succeed(&prune(&["--model", "another"]));
    assert_eq!(stats(dir.path(), &[]), all);
    succeed(&prune(&["--max-size", "5KB"]));
    let left = stats(dir.path(), &[]);
    assert!(
        (1..=5_000).contains(&left["bytes"].as_u64().unwrap()),
        "{left}"
    );
    succeed(&prune(&["--all"]));
    assert_eq!(stats(dir.path(), &[])["answers"], 0);
}

#[test]
fn offline_a_run_stops_at_the_first_question_without_an_answer_and_goes_on_later() {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    succeed(&tune(
        dir.path(),
        &config,
        "whole",
        &[&EASY[..], &["--no-cache"]].concat(),
    ));
    assert!(!dir.path().join("cache").exists(), "--no-cache makes none");
    let offline = tune(
        dir.path(),
        &config,
        "run",
        &[&EASY[..], &["--offline"]].concat(),
    );
    assert_eq!(offline.status.code(), Some(3));
    let said = text(&offline.stderr);
    assert!(
        said.contains("offline") && said.contains("--resume"),
        "{said}"
    );
    let run = dir.path().join("run");
    assert_eq!(attempts(&run).len(), 0);
    succeed(&tune(
        dir.path(),
        &config,
        "run",
        &[&EASY[..], &["--resume"]].concat(),
    ));
    assert!(artefacts(&run) == artefacts(&dir.path().join("whole")));
}

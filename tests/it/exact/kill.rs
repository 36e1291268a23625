//! SIGKILL at every event, in the middle of every kind of write, and between the last files; SIGTERM;
//! two processes on one run. The program kills itself at a place that `PLURALIS_FAULT` names
//! (`src/ledger/fault.rs`), so each test dies where it says.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;

const CAP: &str = "budget.calls=480";

/// An uninterrupted run: its artefacts, and how many events and attempts it has.
struct Whole {
    artefacts: Vec<(PathBuf, Vec<u8>)>,
    events: usize,
    attempts: usize,
}

fn whole() -> Whole {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    succeed(&tune(dir.path(), &config, "run", &["--set", CAP]));
    let run = dir.path().join("run");
    let events = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    Whole {
        events: events.lines().count(),
        attempts: attempts(&run).len(),
        artefacts: artefacts(&run),
    }
}

/// Kills a run at a point, resumes it, and compares; with a cache at every other point.
fn survives(point: &str, number: usize, want: &Whole) {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    let fault = format!("{point}:{number}");
    let mut more = vec!["--set", CAP];
    if number % 2 == 1 {
        more.push("--no-cache");
    }
    let killed = command(dir.path(), &config, "run", &more)
        .env("PLURALIS_FAULT", &fault)
        .output()
        .unwrap();
    assert_eq!(killed.status.signal(), Some(9), "{fault} was not reached");
    let run = dir.path().join("run");
    assert!(!run.join("summary.json").exists(), "{fault}");
    let before = answers_before(&run);
    // Killed before `config.toml` had its name, there is no run to resume yet.
    if run.join("config.toml").exists() {
        more.push("--resume");
    }
    let resumed = tune(dir.path(), &config, "run", &more);
    succeed(&resumed);
    let said = text(&resumed.stderr).contains("was cut short");
    assert_eq!(
        said,
        fault.starts_with("events-torn") || fault.starts_with("attempts-torn")
    );
    for (had, want) in artefacts(&run).iter().zip(&want.artefacts) {
        assert_eq!(had.0, want.0, "{fault}");
        assert!(had.1 == want.1, "{fault}: {} differs", had.0.display());
    }
    assert_eq!(artefacts(&run).len(), want.artefacts.len(), "{fault}");
    asked_once(&run);
    let after = answers(&run);
    assert!(before.iter().all(|digest| after[digest] == 1));
    assert_eq!(attempts(&run).len(), want.attempts, "{fault}");
}

/// The requests that had a whole answer when the process died; a torn line has none.
fn answers_before(run: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(run.join("attempts.jsonl")).unwrap_or_default();
    text.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| line["digest"].as_str().unwrap().to_owned())
        .collect()
}

fn debug_build() -> bool {
    if !cfg!(debug_assertions) {
        eprintln!("skipped: a release build cannot be told where to die");
    }
    cfg!(debug_assertions)
}

#[test]
fn killed_after_any_event() {
    if !debug_build() {
        return;
    }
    let want = whole();
    assert!(want.events >= 11, "{} events", want.events);
    (1..=want.events).for_each(|n| survives("events", n, &want));
}

#[test]
fn killed_in_the_middle_of_any_event() {
    if !debug_build() {
        return;
    }
    let want = whole();
    (1..=want.events).for_each(|n| survives("events-torn", n, &want));
}

#[test]
fn killed_after_an_answer_or_in_the_middle_of_one() {
    if !debug_build() {
        return;
    }
    let want = whole();
    assert!(want.attempts > 320);
    // The first and the last, and some between: while the seed is scored, in races, in test. With
    // the other tests here the run dies at more than 50 places.
    for n in [
        1,
        2,
        40,
        120,
        121,
        199,
        310,
        want.attempts - 1,
        want.attempts,
    ] {
        survives("attempts", n, &want);
        survives("attempts-torn", n, &want);
    }
}

#[test]
fn killed_between_the_files_of_a_run() {
    if !debug_build() {
        return;
    }
    let want = whole();
    // config.toml, origin.toml, verdicts.jsonl, best/, summary.json; best/ is a folder.
    (1..=5).for_each(|n| survives("file", n, &want));
    (1..=4).for_each(|n| survives("file-torn", n, &want));
}

#[test]
fn killed_again_and_again() {
    if !debug_build() {
        return;
    }
    let want = whole();
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    let mut deaths = 0;
    loop {
        let more: &[&str] = match deaths {
            0 => &["--set", CAP],
            _ => &["--set", CAP, "--resume"],
        };
        let fault = ["attempts:25", "attempts-torn:21", "events:2", "attempts:31"][deaths % 4];
        let run = command(dir.path(), &config, "run", more)
            .env("PLURALIS_FAULT", fault)
            .output()
            .unwrap();
        if run.status.success() {
            break;
        }
        assert_eq!(run.status.signal(), Some(9), "{}", text(&run.stderr));
        deaths += 1;
        assert!(deaths < 100, "the run gets nowhere");
    }
    assert!(deaths >= 8, "{deaths}");
    let run = dir.path().join("run");
    assert!(artefacts(&run) == want.artefacts);
    assert_eq!(attempts(&run).len(), want.attempts);
    asked_once(&run);
}

#[test]
fn a_fault_that_is_none_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    for value in ["1", "events", "events:0", "everything:1"] {
        let run = command(dir.path(), &config, value, &["--set", "budget.calls=125"])
            .env("PLURALIS_FAULT", value)
            .output()
            .unwrap();
        succeed(&run);
    }
}

/// Waits until a run has some answers.
fn under_way(run: &Path) {
    let start = Instant::now();
    let lines =
        || std::fs::read_to_string(run.join("attempts.jsonl")).map_or(0, |t| t.lines().count());
    while lines() < 8 {
        assert!(start.elapsed() < Duration::from_secs(60), "no answers");
        std::thread::sleep(Duration::from_millis(10));
    }
}

const SLOW: [&str; 4] = ["--set", "budget.calls=200", "--set", "judge.latency_ms=40"];

#[test]
fn a_second_process_is_refused_with_the_pid_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    let mut first = command(dir.path(), &config, "run", &SLOW).spawn().unwrap();
    under_way(&dir.path().join("run"));
    for more in [&SLOW[..], &[&SLOW[..], &["--resume"]].concat()] {
        let second = tune(dir.path(), &config, "run", more);
        assert_eq!(second.status.code(), Some(1), "{}", text(&second.stderr));
        let said = text(&second.stderr);
        assert!(said.contains(&format!("process {}", first.id())), "{said}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // The lock died with its owner.
    let resumed = tune(
        dir.path(),
        &config,
        "run",
        &[&SLOW[..], &["--resume"]].concat(),
    );
    succeed(&resumed);
    asked_once(&dir.path().join("run"));
}

#[test]
fn a_scheduler_that_ends_the_run_gets_a_clean_end() {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    succeed(&tune(
        dir.path(),
        &config,
        "whole",
        &[&SLOW[..], &["--no-cache"]].concat(),
    ));
    let mut first = command(dir.path(), &config, "run", &SLOW).spawn().unwrap();
    under_way(&dir.path().join("run"));
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -TERM {}", first.id())])
        .status()
        .unwrap();
    assert!(sent.success());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    let run = dir.path().join("run");
    assert!(!run.join("summary.json").exists());
    succeed(&tune(
        dir.path(),
        &config,
        "run",
        &[&SLOW[..], &["--resume"]].concat(),
    ));
    assert!(artefacts(&run) == artefacts(&dir.path().join("whole")));
    asked_once(&run);
}

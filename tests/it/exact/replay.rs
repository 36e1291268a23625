//! `pluralis replay`: every figure from the ledger, with no endpoint, and where it differs.

use super::server::{Server, config, tune_server};
use super::*;

const CAP: [&str; 2] = ["--set", "budget.calls=420"];

fn replay(dir: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pluralis"))
        .arg("replay")
        .args(more)
        .current_dir(dir)
        .env("PLURALIS_CACHE", dir.join("no-cache-here"))
        .output()
        .unwrap()
}

fn equal(dir: &Path, more: &[&str]) -> String {
    let run = replay(dir, more);
    let said = text(&run.stdout);
    assert!(run.status.success(), "{said}{}", text(&run.stderr));
    assert!(said.contains("equal: "), "{said}");
    said
}

fn finished(dir: &Path) {
    succeed(&tune(dir, &experiment("simulated.toml"), "run", &CAP));
}

#[test]
fn a_run_is_rebuilt_without_its_server_key_and_cache() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start();
    let config = config(dir.path(), &server.url());
    succeed(&tune_server(dir.path(), &config, "run", &CAP));
    drop(server);
    let before = artefacts(&dir.path().join("run"));
    let said = equal(dir.path(), &["run"]);
    assert!(said.contains("a finished run"), "{said}");
    assert!(
        artefacts(&dir.path().join("run")) == before,
        "a replay writes nothing"
    );
    assert!(!dir.path().join("no-cache-here").exists());
}

#[test]
fn a_changed_figure_is_named_with_both_values() {
    let dir = tempfile::tempdir().unwrap();
    finished(dir.path());
    let run = dir.path().join("run");
    let change = |name: &str, from: &str, to: &str| {
        let path = run.join(name);
        let was = std::fs::read_to_string(&path).unwrap();
        let is = was.replacen(from, to, 1);
        assert_ne!(was, is, "no `{from}` in {name}");
        std::fs::write(&path, is).unwrap();
        let found = replay(dir.path(), &["run"]);
        assert_eq!(found.status.code(), Some(4), "{name}");
        std::fs::write(&path, was).unwrap();
        text(&found.stdout)
    };
    let is = crate::harness::summary(&run)["gain"]["certified"] == true;
    let said = change(
        "summary.json",
        &format!("\"certified\": {is}"),
        &format!("\"certified\": {}", !is),
    );
    let recorded = format!("recorded: {}", !is);
    let rebuilt = format!("rebuilt:  {is}");
    for part in ["summary.json: gain.certified", &recorded, &rebuilt] {
        assert!(said.contains(part), "no `{part}` in:\n{said}");
    }
    let said = change(
        "verdicts.jsonl",
        "\"label\":\"harmless\"",
        "\"label\":\"offensive\"",
    );
    assert!(
        said.contains("verdicts.jsonl: line ") && said.contains(".label"),
        "{said}"
    );
    let said = change(
        "events.jsonl",
        "\"event\":\"scored\"",
        "\"event\":\"skored\"",
    );
    assert!(said.contains("events.jsonl: line 2.event"), "{said}");
    let said = change("best/version.toml", "role = \"", "role = \"Not ");
    assert!(said.contains("best/"), "{said}");
    equal(dir.path(), &["run"]);

    let json = replay(dir.path(), &["run", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&json["different"], &json["finished"]),
        (&0.into(), &true.into())
    );
    assert!(json["compared"].as_u64().unwrap() > 1_000);
}

#[test]
fn a_lost_answer_is_named_and_the_cache_can_give_it_back() {
    let dir = tempfile::tempdir().unwrap();
    finished(dir.path());
    let path = dir.path().join("run/attempts.jsonl");
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    std::fs::write(&path, lines[..lines.len() - 1].join("\n") + "\n").unwrap();
    let found = replay(dir.path(), &["run"]);
    assert_eq!(found.status.code(), Some(4));
    let said = text(&found.stdout);
    let digest = serde_json::from_str::<Value>(lines[lines.len() - 1]).unwrap();
    assert!(said.contains(digest["digest"].as_str().unwrap()), "{said}");
    // The answer is in the cache, but the call is not in the ledger: the spending differs.
    let found = replay(dir.path(), &["run", "--cache", "cache/answers.sqlite"]);
    assert_eq!(found.status.code(), Some(4));
    let said = text(&found.stdout);
    assert!(
        said.contains("spent.calls") && !said.contains("splits"),
        "{said}"
    );
}

#[test]
fn an_unfinished_run_is_rebuilt_as_far_as_it_went() {
    if !cfg!(debug_assertions) {
        eprintln!("skipped: a release build cannot be told where to die");
        return;
    }
    for fault in ["events:6", "attempts-torn:200", "file:4"] {
        let dir = tempfile::tempdir().unwrap();
        let config = experiment("simulated.toml");
        let killed = command(dir.path(), &config, "run", &CAP)
            .env("PLURALIS_FAULT", fault)
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None);
        let said = equal(dir.path(), &["run"]);
        assert!(!said.contains("a finished run"), "{said}");
    }
}

#[test]
fn a_run_that_was_moved_finds_its_data() {
    let dir = tempfile::tempdir().unwrap();
    finished(dir.path());
    let moved = dir.path().join("far/away/moved");
    std::fs::create_dir_all(moved.parent().unwrap()).unwrap();
    std::fs::rename(dir.path().join("run"), &moved).unwrap();
    equal(dir.path(), &["far/away/moved"]);
    // Without the record it asks, and takes the answer.
    std::fs::remove_file(moved.join("origin.toml")).unwrap();
    let lost = replay(dir.path(), &["far/away/moved"]);
    assert_eq!(lost.status.code(), Some(2));
    assert!(
        text(&lost.stderr).contains("--base"),
        "{}",
        text(&lost.stderr)
    );
    let base = root().join("experiments").display().to_string();
    equal(dir.path(), &["far/away/moved", "--base", &base]);
    let none = replay(dir.path(), &["far"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no run"));
}

#[test]
fn moved_with_its_project_a_run_finds_its_data_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    for name in ["experiments/simulated", "judge-prompts/offensiveness"] {
        std::fs::create_dir_all(project.join(name)).unwrap();
        for entry in std::fs::read_dir(root().join(name)).unwrap().flatten() {
            if entry.path().is_file() {
                std::fs::copy(entry.path(), project.join(name).join(entry.file_name())).unwrap();
            }
        }
    }
    let config = project.join("experiments/simulated.toml");
    std::fs::copy(experiment("simulated.toml"), &config).unwrap();
    let out = project.join("runs/one").display().to_string();
    succeed(&tune(dir.path(), &config.display().to_string(), &out, &CAP));
    std::fs::rename(&project, dir.path().join("elsewhere")).unwrap();
    equal(dir.path(), &["elsewhere/runs/one"]);
}

#[test]
fn a_run_from_the_cache_is_rebuilt_when_the_cache_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    // Under a cap that binds, answers that cost nothing would let the search go further.
    let config = experiment("simulated.toml");
    for out in ["run", "again"] {
        succeed(&tune(dir.path(), &config, out, &EASY));
    }
    let spent = &summary(&dir.path().join("again"))["spent"];
    assert_eq!(spent["calls"], 0);
    std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
    equal(dir.path(), &["again"]);
}

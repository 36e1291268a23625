//! A version on its way: through git alone to another clone, and under the hands of several
//! processes at once.

use std::process::{Child, Command, Stdio};

use super::*;
use crate::harness::root;

fn git(dir: &Path, args: &[&str]) -> bool {
    let run = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output();
    match run {
        Ok(run) => {
            assert!(run.status.success(), "git {args:?}: {}", text(&run.stderr));
            true
        }
        Err(_) => false,
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
}

#[test]
fn a_stranger_gets_the_same_figures_through_git_alone() {
    let all = tempfile::tempdir().unwrap();
    let (mine, theirs) = (all.path().join("mine"), all.path().join("theirs"));
    for part in ["judge-prompts", "experiments"] {
        copy(&root().join(part), &mine.join(part));
    }
    if !git(&mine, &["init", "-q"]) {
        println!("skipped: there is no git");
        return;
    }
    let config = "experiments/simulated.toml";
    ok(&pluralis(
        &mine,
        &["tune", config, "--out", "run", "--register"],
    ));
    let best = best(&mine);
    ok(&pluralis(
        &mine,
        &["prompt", "tag", "es-MX/production", &best[..12]],
    ));
    ok(&pluralis(
        &mine,
        &["cache", "export", "--run", "run", "--out", "answers.jsonl"],
    ));
    git(
        &mine,
        &["add", "judge-prompts", "experiments", "answers.jsonl"],
    );
    git(&mine, &["commit", "-qm", "A tuned judge"]);
    // Their git would change line ends, as it does on Windows.
    git(
        all.path(),
        &["clone", "-q", "-c", "core.autocrlf=true", "mine", "theirs"],
    );

    ok(&pluralis(&theirs, &["cache", "import", "answers.jsonl"]));
    let render = [
        "prompt",
        "render",
        "es-MX/production",
        "--config",
        config,
        "--item",
        "th-TH/121",
    ];
    assert_eq!(
        ok(&pluralis(&theirs, &render)),
        ok(&pluralis(&mine, &render))
    );
    let verify = ["prompt", "verify", "--config", config, "--rescore"];
    let verified = ok(&pluralis(&theirs, &verify));
    assert!(!verified.contains(" 0 figures"), "{verified}");
    let score = [
        "score",
        config,
        "--version",
        "es-MX/production",
        "--offline",
        "--json",
    ];
    let theirs_say: serde_json::Value =
        serde_json::from_str(&ok(&pluralis(&theirs, &score))).unwrap();
    let s = crate::harness::summary(&mine.join("run"));
    assert_eq!(
        theirs_say["splits"]["test"]["disagreement"],
        s["splits"]["test"]["best"]["overall"]["disagreement"]
    );
    assert_eq!(theirs_say["splits"]["test"]["n"], 60);
    let again = ok(&pluralis(&theirs, &["reproduce", "es-MX/production"]));
    assert!(
        again.contains("no call was made") && again.contains("the same figures"),
        "{again}"
    );
    let folder = theirs
        .join("judge-prompts/offensiveness/versions")
        .join(&best[..12]);
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        assert!(
            !text.contains(all.path().to_str().unwrap()),
            "{} names a folder of a machine",
            entry.path().display()
        );
    }
}

#[test]
fn git_changes_no_line_end_of_a_version() {
    let all = tempfile::tempdir().unwrap();
    let mine = all.path().join("mine");
    copy(
        &root().join("judge-prompts/offensiveness"),
        &mine.join("task"),
    );
    let path = mine.join("task/chat.item.tera");
    let template = std::fs::read_to_string(&path)
        .unwrap()
        .replace('\n', "\r\n");
    std::fs::write(&path, template).unwrap();
    if !git(&mine, &["init", "-q"]) {
        println!("skipped: there is no git");
        return;
    }
    ok(&prompt(&mine, &["import", "task/seed-chat.toml"]));
    git(
        &mine,
        &[
            "-c",
            "core.autocrlf=true",
            "add",
            "task/versions",
            "task/task.toml",
        ],
    );
    git(&mine, &["commit", "-qm", "x"]);
    for change in ["true", "input", "false"] {
        let to = format!("with-{change}");
        let autocrlf = format!("core.autocrlf={change}");
        git(all.path(), &["clone", "-q", "-c", &autocrlf, "mine", &to]);
        ok(&prompt(&all.path().join(&to), &["verify"]));
    }
}

/// Starts a command and does not wait for it.
fn start(dir: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_pluralis"))
        .args(args)
        .current_dir(dir)
        .env("PLURALIS_CACHE", dir.join("cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn all_end_well(children: Vec<Child>) -> Vec<String> {
    children
        .into_iter()
        .map(|c| ok(&c.wait_with_output().unwrap()))
        .collect()
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let dir = experiment_folder();
    let dir = dir.path();
    ok(&pluralis(dir, &["tune", "exp.toml", "--out", "run"]));
    let import = ["prompt", "import", "run", "--registry", "task"];
    let said = all_end_well((0..8).map(|_| start(dir, &import)).collect());
    let folders = versions(&dir.join("task"));
    let new: usize = said.iter().map(|s| s.matches("(new)").count()).sum();
    assert_eq!(new, folders.len(), "each version is written by one of them");
    let best = best(dir);

    // Evidence of eight judges, tags of eight names, and eight moves of one name.
    let digests: Vec<&str> = folders
        .iter()
        .map(|f| f.file_name().unwrap().to_str().unwrap())
        .collect();
    let mut children = Vec::new();
    for n in 0..8 {
        let seed = format!("judge.seed={n}");
        let score = [
            "score",
            "exp.toml",
            "--version",
            &best,
            "--set",
            &seed,
            "--set",
            "judge.flip=0.3",
        ];
        children.push(start(dir, &score));
        let name = format!("es-MX/{n}");
        let tag = |name: &str, digest: &str| {
            start(dir, &["prompt", "tag", name, digest, "--registry", "task"])
        };
        children.push(tag(&name, digests[0]));
        children.push(tag("moves", digests[n % digests.len()]));
    }
    all_end_well(children);
    let shown = ok(&prompt(dir, &["show", &best[..12], "--json"]));
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["evidence"].as_array().unwrap().len(), 9);
    let tags = ok(&prompt(dir, &["tag"]));
    assert_eq!(tags.lines().count(), 9, "{tags}");
    // A move to where the tag is already is none; all others are in the history.
    let history = ok(&prompt(dir, &["tag", "moves"]));
    let moved = history.lines().count();
    assert!(moved >= digests.len().min(8) && moved <= 8, "{history}");
    ok(&prompt(dir, &["verify"]));
    let left = std::fs::read_dir(dir.join("task/versions"))
        .unwrap()
        .flatten();
    let left = left.filter(|e| e.file_name().to_string_lossy().contains(".part"));
    assert_eq!(left.count(), 0);
}

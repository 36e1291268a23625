//! Prompt versions: their files, the commands that keep them, and their way to other people.

mod commands;
mod exports;
mod form;
mod share;

use std::path::{Path, PathBuf};
use std::process::Output;

use super::harness::{experiment_folder, pluralis, text};

/// What a command printed, which must have succeeded.
fn ok(run: &Output) -> String {
    assert!(
        run.status.success(),
        "{}{}",
        text(&run.stdout),
        text(&run.stderr)
    );
    text(&run.stdout)
}

/// A folder with the simulated experiment, its finished run `run`, and the registry in `task`.
fn tuned() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = experiment_folder();
    let args = ["tune", "exp.toml", "--out", "run", "--register"];
    ok(&pluralis(dir.path(), &args));
    let versions = versions(&dir.path().join("task"));
    (dir, versions)
}

/// The folders of versions in a task's folder.
fn versions(task: &Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = std::fs::read_dir(task.join("versions"))
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.is_dir())
        .collect();
    out.sort();
    out
}

/// Runs `pluralis prompt … --registry task`.
fn prompt(dir: &Path, args: &[&str]) -> Output {
    let all: Vec<&str> = ["prompt"]
        .iter()
        .chain(args)
        .chain(&["--registry", "task"])
        .copied()
        .collect();
    pluralis(dir, &all)
}

/// The digest of the version that the run chose.
fn best(dir: &Path) -> String {
    let s = super::harness::summary(&dir.join("run"));
    s["versions"]["best"].as_str().unwrap().to_owned()
}

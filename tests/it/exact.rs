//! What a researcher pays for is never lost, never paid twice, never wrong: the real program,
//! killed, starved, replayed, and set against servers that fail.

mod budget;
mod cache;
mod concurrency;
mod faults;
mod kill;
mod replay;
mod server;
mod words;

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::harness::{artefacts, experiment, log, root, summary, text};

/// A run that ends at its first look at validation, long before its cap.
const EASY: [&str; 2] = ["--set", "stop.threshold=0.45"];

/// `pluralis tune` in a folder, with a cache of its own there, and variables of the environment.
fn command(dir: &Path, config: &str, out: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pluralis"));
    command
        .args(["tune", config, "--out", out])
        .args(more)
        .current_dir(dir)
        .env_remove("PLURALIS_FAULT")
        .env("PLURALIS_CACHE", dir.join("cache"));
    command
}

fn tune(dir: &Path, config: &str, out: &str, more: &[&str]) -> Output {
    command(dir, config, out, more).output().unwrap()
}

fn succeed(output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The lines of `attempts.jsonl`.
fn attempts(run: &Path) -> Vec<Value> {
    log(run, "attempts.jsonl")
}

/// Whole answers by request.
fn answers(run: &Path) -> HashMap<String, usize> {
    let mut by_digest = HashMap::new();
    for line in attempts(run) {
        if line["outcome"].get("answer").is_some() {
            *by_digest
                .entry(line["digest"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    by_digest
}

fn asked_once(run: &Path) {
    let twice: Vec<_> = answers(run).into_iter().filter(|(_, n)| *n > 1).collect();
    assert!(twice.is_empty(), "answered twice: {twice:?}");
}

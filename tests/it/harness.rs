//! What the tests of whole commands share.

use std::path::{Path, PathBuf};
use std::process::Output;

/// The checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs the binary in a folder, with a cache folder of its own there.
pub fn pluralis(dir: &Path, args: &[&str]) -> Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_pluralis"))
        .args(args)
        .current_dir(dir)
        .env("PLURALIS_CACHE", dir.join("cache"))
        .output()
        .unwrap()
}

/// Path of an experiment in the checkout, as text.
pub fn experiment(name: &str) -> String {
    root().join("experiments").join(name).display().to_string()
}

/// stdout or stderr as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The summary of a run folder.
pub fn summary(run: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(run.join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every file of a run but the two that may differ, with its bytes.
pub fn artefacts(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    let mut folders = vec![run.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !["attempts.jsonl", "lock"].contains(&entry.file_name().to_str().unwrap()) {
                out.push((
                    path.strip_prefix(run).unwrap().to_owned(),
                    std::fs::read(&path).unwrap(),
                ));
            }
        }
    }
    out.sort();
    out
}

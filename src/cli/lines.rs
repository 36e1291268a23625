//! Writing JSON lines to a file, whole or not at all, or to standard output.

use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::{Failure, out};

/// Writes values as JSON lines; `-` is standard output.
///
/// # Errors
/// What cannot be written; a file that was there is then as it was.
pub fn write(path: &Path, values: &[impl Serialize]) -> Result<(), Failure> {
    let mut text = String::new();
    for value in values {
        text += &serde_json::to_string(value).map_err(|e| Failure::machine(e.to_string()))?;
        text.push('\n');
    }
    if path.as_os_str() == "-" {
        return out::exactly(&text);
    }
    let failed =
        |e: std::io::Error| Failure::machine(format!("cannot write {}: {e}", path.display()));
    let Some(name) = path.file_name() else {
        return Err(Failure::input(format!(
            "{} is no file name",
            path.display()
        )));
    };
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.partial", std::process::id()));
    let beside = path.with_file_name(beside);
    let write = || {
        let mut file = std::fs::File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|e| {
        // The part that was written is worth nothing; a failure to remove it changes nothing.
        let _ = std::fs::remove_file(&beside);
        failed(e)
    })
}

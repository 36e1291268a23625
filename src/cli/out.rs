//! Printing. What is printed may quote files, servers and models, so everything that could steer a
//! terminal is written out here, once.

use std::io::{IsTerminal as _, Write as _};

use super::Failure;
use crate::text::{visible_json, visible_lines};

/// Prints a text of lines to stdout; a reader that went away early (`| head`) is no error.
///
/// # Errors
/// stdout cannot be written (a full disk).
pub fn text(text: &str) -> Result<(), Failure> {
    write(&visible_lines(text))
}

/// Prints a JSON text to stdout, harmless and still the same JSON.
///
/// # Errors
/// As [`text`].
pub fn json(json: &str) -> Result<(), Failure> {
    write(&(visible_json(json) + "\n"))
}

/// Prints a value to stdout as indented JSON.
///
/// # Errors
/// As [`text`].
pub fn value(value: &impl serde::Serialize) -> Result<(), Failure> {
    json(&serde_json::to_string_pretty(value).map_err(|e| Failure::machine(e.to_string()))?)
}

fn write(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::machine(format!("cannot write to stdout: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints the very bytes of a text to a pipe or a file; on a terminal nothing in it steers.
///
/// # Errors
/// As [`text`].
pub fn exactly(exact: &str) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() {
        return text(exact);
    }
    match std::io::stdout().write_all(exact.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::machine(format!("cannot write to stdout: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints one line to stdout.
///
/// # Errors
/// As [`text`].
pub fn line(line: &str) -> Result<(), Failure> {
    text(&format!("{line}\n"))
}

/// Prints one line to stderr. Nothing can be said where that fails.
pub fn note(line: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", visible_lines(line)).as_bytes());
}

//! What goes to standard output. A reader that went away early (`| head`) is no error.

use std::io::Write as _;

use serde::Serialize;

use super::Failure;

/// Writes bytes.
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::machine(format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes a text.
pub fn text(text: &str) -> Result<(), Failure> {
    bytes(text.as_bytes())
}

/// Writes a value as indented JSON.
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::machine(e.to_string()))?;
    bytes((text + "\n").as_bytes())
}

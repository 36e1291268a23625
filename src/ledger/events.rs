//! The file of a run's decisions: written once, checked when a resumed or replayed run derives
//! them again, so that it ends byte-identical to that of an uninterrupted run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;
use serde::de::IgnoredAny;

use super::error::LedgerError;
use super::jsonl::{Access, JsonlLog, Torn};

/// Bytes shown of two lines that differ.
const SHOWN: usize = 160;

/// An append-only event file with a reading position.
#[derive(Debug)]
pub struct EventLog {
    log: JsonlLog,
    /// What earlier processes wrote, up to the position.
    written: Option<BufReader<File>>,
    found: u64,
    position: u64,
    torn: Option<Torn>,
}

impl EventLog {
    /// Opens or creates the file at its start; a torn last line is dropped (see [`torn`](Self::torn)).
    /// Under [`Access::ReadOnly`] nothing is written: events past the end are differences.
    ///
    /// # Errors
    /// A file that cannot be read, or a whole line that is no JSON object.
    pub fn open(path: &Path, access: Access) -> Result<Self, LedgerError> {
        let (log, torn) = JsonlLog::open(path, access, |_, line| {
            // An object is whole only with its brace; a cut number would still be a number.
            serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(line)
                .map(|_| ())
                .map_err(|e| format!("not an event ({e})"))
        })?;
        let found = log.lines();
        let written = match found {
            0 => None,
            _ => Some(BufReader::new(
                File::open(path).map_err(LedgerError::io(path, "open"))?,
            )),
        };
        Ok(Self {
            log,
            written,
            found,
            position: 0,
            torn,
        })
    }

    /// Events that are gone with the process.
    pub fn memory() -> Self {
        let log = JsonlLog::memory("events");
        Self {
            log,
            written: None,
            found: 0,
            position: 0,
            torn: None,
        }
    }

    /// The next event, an object: compared with what is written at this position, or else appended.
    ///
    /// # Errors
    /// [`LedgerError::Diverged`] when another event stands there; a file that cannot be written.
    pub fn emit(&mut self, event: &impl Serialize) -> Result<(), LedgerError> {
        let now = serde_json::to_vec(event)
            .map_err(|e| LedgerError::io(self.log.path(), "write")(e.into()))?;
        let written = self.next_written()?;
        match written {
            Some(written) if written == now => {}
            Some(written) => return Err(self.diverged(&written, &now)),
            None => {
                self.log.append_line(now)?;
            }
        }
        self.position += 1;
        Ok(())
    }

    fn next_written(&mut self) -> Result<Option<Vec<u8>>, LedgerError> {
        if self.position >= self.found {
            return Ok(None);
        }
        let mut line = Vec::new();
        if let Some(reader) = &mut self.written {
            reader
                .read_until(b'\n', &mut line)
                .map_err(LedgerError::io(self.log.path(), "read"))?;
        }
        line.pop_if(|last| *last == b'\n');
        Ok(Some(line))
    }

    fn diverged(&self, written: &[u8], now: &[u8]) -> LedgerError {
        let same = written.iter().zip(now).take_while(|(a, b)| a == b).count();
        let from = same.saturating_sub(SHOWN / 4);
        LedgerError::Diverged {
            path: self.log.path().to_owned(),
            line: self.position + 1,
            written: window(written, from),
            now: window(now, from),
        }
    }

    /// Events written by earlier processes that were not derived again; 0 once resuming is over.
    pub fn unconfirmed(&self) -> u64 {
        self.found.saturating_sub(self.position)
    }

    /// Events so far in this process.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The last line that was dropped at opening.
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }
}

/// Part of a line, for people; control characters are escaped.
fn window(line: &[u8], from: usize) -> String {
    let to = line.len().min(from.saturating_add(SHOWN));
    let text = String::from_utf8_lossy(line.get(from..to).unwrap_or_default());
    let shown: String = text
        .chars()
        .flat_map(|c| {
            let escaped: Vec<char> = if c.is_control() {
                c.escape_default().collect()
            } else {
                vec![c]
            };
            escaped
        })
        .collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if to < line.len() { "…" } else { "" };
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_resumed_file_equals_an_uninterrupted_one_wherever_it_was_cut() {
        let dir = tempfile::tempdir().unwrap();
        let events: Vec<_> = (0..6)
            .map(|step| json!({"step": step, "text": "ไม่\n"}))
            .collect();
        let whole = dir.path().join("whole.jsonl");
        let mut log = EventLog::open(&whole, Access::Append).unwrap();
        events.iter().for_each(|event| log.emit(event).unwrap());
        let whole = std::fs::read(&whole).unwrap();
        for cut in 0..=whole.len() {
            let path = dir.path().join("cut.jsonl");
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut log = EventLog::open(&path, Access::Append).unwrap();
            let lines = whole[..cut].iter().filter(|b| **b == b'\n').count() as u64;
            // A line that lacks only its end is kept.
            assert!(log.unconfirmed() == lines || log.unconfirmed() == lines + 1);
            events.iter().for_each(|event| log.emit(event).unwrap());
            assert_eq!(log.unconfirmed(), 0);
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn another_event_is_refused_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut log = EventLog::open(&path, Access::Append).unwrap();
        log.emit(&json!({"seed": 0})).unwrap();
        log.emit(&json!({"seed": 1})).unwrap();
        let before = std::fs::read(&path).unwrap();
        let mut log = EventLog::open(&path, Access::Append).unwrap();
        log.emit(&json!({"seed": 0})).unwrap();
        let error = log.emit(&json!({"seed": 2})).unwrap_err();
        assert!(
            matches!(error, LedgerError::Diverged { line: 2, .. }),
            "{error}"
        );
        assert_eq!(
            std::fs::read(&path).unwrap(),
            before,
            "nothing is written over it"
        );
    }

    #[test]
    fn read_only_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "{\"a\":1}\n{\"a\"").unwrap();
        let mut log = EventLog::open(&path, Access::ReadOnly).unwrap();
        assert!(log.torn().is_some());
        log.emit(&json!({"a": 1})).unwrap();
        assert!(log.emit(&json!({"a": 2})).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"a\"");
        let missing = dir.path().join("none.jsonl");
        assert!(
            EventLog::open(&missing, Access::ReadOnly)
                .unwrap()
                .emit(&1)
                .is_err()
        );
        assert!(!missing.exists());
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "{\"a\":1}\n{\"a\"\n{\"a\":3}\n").unwrap();
        let error = EventLog::open(&path, Access::Append).unwrap_err();
        assert!(
            matches!(error, LedgerError::BadLine { line: 2, .. }),
            "{error}"
        );
    }
}

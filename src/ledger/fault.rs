//! Ends this process at a chosen write, so that the tests can kill a run at every place where a kill
//! may hit it. Owns the variable `PLURALIS_FAULT`; must not know what is written.
//!
//! Only debug builds have it: in a release build every function here is empty. The variable is
//! read once and is `POINT:N` with N from 1, counted by process:
//!
//! | point | the process is killed |
//! |---|---|
//! | `attempts`, `events` | after line N that it adds to that log |
//! | `attempts-torn`, `events-torn` | when half of line N is written |
//! | `file` | before file N of the run folder gets its name |
//! | `file-torn` | when half of file N is written under its temporary name |
//!
//! Anything else is no fault, and nothing happens.

use std::path::Path;

/// Before a line (with its end) goes to a log; `write` takes bytes of it.
pub(super) fn before_line(log: &Path, line: &[u8], write: impl FnOnce(&[u8])) {
    if armed::hit(log.file_stem(), "-torn") {
        write(&line[..line.len() / 2]);
        armed::kill();
    }
}

/// After a line was written.
pub(super) fn after_line(log: &Path) {
    if armed::hit(log.file_stem(), "") {
        armed::kill();
    }
}

/// Before a file of a run folder is written under its temporary name; `write` takes bytes of it.
pub fn before_file(bytes: &[u8], write: impl FnOnce(&[u8])) {
    if armed::hit(Some("file".as_ref()), "-torn") {
        write(&bytes[..bytes.len() / 2]);
        armed::kill();
    }
}

/// Before a file of a run folder gets its name.
pub fn before_rename() {
    if armed::hit(Some("file".as_ref()), "") {
        armed::kill();
    }
}

#[cfg(not(debug_assertions))]
mod armed {
    use std::ffi::OsStr;

    pub(super) fn hit(_: Option<&OsStr>, _: &str) -> bool {
        false
    }

    pub(super) fn kill() {}
}

#[cfg(debug_assertions)]
mod armed {
    use std::ffi::OsStr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static FAULT: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    /// Counts a passage of the armed point; true at the one that it names.
    pub(super) fn hit(log: Option<&OsStr>, how: &str) -> bool {
        let fault = FAULT.get_or_init(|| parse(&std::env::var("PLURALIS_FAULT").ok()?));
        let Some((point, at)) = fault else {
            return false;
        };
        let here = log
            .and_then(OsStr::to_str)
            .is_some_and(|log| point.strip_prefix(log).is_some_and(|rest| rest == how));
        here && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *at
    }

    pub(super) fn parse(text: &str) -> Option<(String, u64)> {
        let (point, at) = text.split_once(':')?;
        let log = point.strip_suffix("-torn").unwrap_or(point);
        let known = ["attempts", "events", "file"].contains(&log);
        let at = at.parse().ok().filter(|at| *at > 0)?;
        known.then(|| (point.to_owned(), at))
    }

    /// The kill that nothing can catch; where there is no shell to send it, the nearest thing.
    pub(super) fn kill() {
        let command = format!("kill -9 {}", std::process::id());
        let _ = std::process::Command::new("sh")
            .args(["-c", &command])
            .status();
        std::process::abort();
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::armed::parse;

    #[test]
    fn only_a_known_point_with_a_number_is_a_fault() {
        assert_eq!(parse("events:3"), Some(("events".into(), 3)));
        assert_eq!(parse("file-torn:1"), Some(("file-torn".into(), 1)));
        for none in [
            "",
            "1",
            "events",
            "events:",
            "events:0",
            "events:-1",
            "event:1",
            "on",
            "-torn:1",
        ] {
            assert_eq!(parse(none), None, "{none}");
        }
    }
}

//! What can go wrong with the files of a run or with the cache.

use std::io;
use std::path::{Path, PathBuf};

/// A ledger that cannot be read or written, or that must not be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file system said no.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried: `open`, `read`, `write`, `lock`.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A line that is not what was written there.
    #[error(
        "{}, line {line}: {what}; the file was changed or damaged after it was written: restore \
         it, or start a new run (answers in the cache are not lost)",
        path.display()
    )]
    BadLine {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A line of an import that no export wrote, or that changed since.
    #[error("{}, line {line}: {what}; nothing was imported: export the answers again", path.display())]
    BadImport {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// SQLite said no.
    #[error("cannot {doing} the cache {}: {source}", path.display())]
    Cache {
        /// The database file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The database was made by another version of the program.
    #[error(
        "the cache {} has format {found}, and this version reads format {wanted}: use another \
         cache file, or export it with the version that made it and import it with this one",
        path.display()
    )]
    CacheFormat {
        /// The database file.
        path: PathBuf,
        /// `user_version` of the file.
        found: i64,
        /// The one understood here.
        wanted: i64,
    },
    /// A cached answer that cannot be read.
    #[error("the cache {} holds a damaged answer for {digest}: {what}", path.display())]
    BadRow {
        /// The database file.
        path: PathBuf,
        /// Of the request, in hexadecimal.
        digest: String,
        /// Why it cannot be read.
        what: String,
    },
    /// Another process works on the run.
    #[error(
        "{} is in use by {}: wait for it or end it; one run is one process",
        dir.display(),
        pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The run folder.
        dir: PathBuf,
        /// The process that holds it, where it could be read.
        pid: Option<u32>,
    },
    /// A resumed or replayed run does not do what the first one did.
    #[error(
        "{}, line {line} differs from what this run does now.\n  written: {written}\n  now:     \
         {now}\nThe config, the data, the prompts or the program changed since; start a new run",
        path.display()
    )]
    Diverged {
        /// The event file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What stands there, near the first difference.
        written: String,
        /// What would stand there now.
        now: String,
    },
    /// Money is capped, and a model has no price.
    #[error(
        "money is capped, but model `{model}` has no price: add it to the price table, with 0 if \
         it is free"
    )]
    NoPrice {
        /// As the endpoint calls it.
        model: String,
    },
}

impl LedgerError {
    pub(super) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            doing,
            source,
        }
    }
}

//! Why a version, a tag or evidence cannot be written or read.

use std::path::{Path, PathBuf};

/// Why a version cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file that does not parse.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A file was changed after the version was written.
    #[error("{}: the files have the digest {found}, and version.toml says {expected}; the version is damaged and is not used", path.display())]
    Damaged {
        /// The folder.
        path: PathBuf,
        /// Digest of what lies there.
        found: String,
        /// Digest in the header.
        expected: String,
    },
    /// A version that no folder can hold: a NUL character, a number that is none.
    #[error("the version cannot be written: {what}")]
    Unwritable {
        /// What is wrong, and where.
        what: String,
    },
    /// No version has the name that was given, or several have.
    #[error("{what}")]
    Unknown {
        /// What was asked for.
        what: String,
        /// What to write instead; may be empty.
        advice: String,
    },
    /// A name that a tag cannot have.
    #[error("`{name}` is no name for a tag: {why}")]
    TagName {
        /// As given.
        name: String,
        /// Why not.
        why: String,
    },
}

impl RegistryError {
    /// For `map_err` of a file operation.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// A file that does not parse.
    pub(crate) fn malformed(path: &Path, what: impl Into<String>) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// Nothing of that name.
    pub(crate) fn unknown(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Unknown {
            what: what.into(),
            advice: advice.into(),
        }
    }
}

//! Reads a starting version from a task's folder: `seed.toml` and the skeleton's templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::version::task_digest;
use super::{AnswerFormat, Calibration, Skeleton, Style, Version, Words};
use crate::task::Task;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSeed {
    format: u32,
    skeleton: String,
    #[serde(default)]
    style: Option<Style>,
    answer: AnswerFormat,
    #[serde(default)]
    may_abstain: bool,
    #[serde(default)]
    sections: BTreeMap<String, String>,
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    words: Words,
}

/// Why a starting version cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// A file is missing or unreadable.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Not TOML, or an unknown key.
    #[error("{}: {what}", path.display())]
    Toml {
        /// The file.
        path: PathBuf,
        /// The place and the reason.
        what: Box<toml::de::Error>,
    },
    /// A format from a later program.
    #[error("{}: format {found} is not known to this program, which reads format 1", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The number in it.
        found: u32,
    },
}

/// Loads `seed` (a path to a seed file) with the templates that lie beside it.
///
/// # Errors
/// [`SeedError`] naming the file.
pub fn load_seed(task: &Task, seed: &Path) -> Result<Version, SeedError> {
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|source| SeedError::Io { path, source })
    };
    let text = read(seed.to_owned())?;
    let raw: RawSeed = toml::from_str(&text).map_err(|e| SeedError::Toml {
        path: seed.to_owned(),
        what: Box::new(e),
    })?;
    if raw.format != 1 {
        return Err(SeedError::Format {
            path: seed.to_owned(),
            found: raw.format,
        });
    }
    let folder = seed.parent().unwrap_or(Path::new("."));
    let skeleton = Skeleton {
        style: raw.style.unwrap_or(if raw.skeleton.starts_with("chat") {
            Style::Chat
        } else {
            Style::Completion
        }),
        prefix: read(folder.join(format!("{}.prefix.tera", raw.skeleton)))?,
        item: read(folder.join(format!("{}.item.tera", raw.skeleton)))?,
        name: raw.skeleton,
    };
    Ok(Version {
        format: 1,
        task: task.name.clone(),
        reading: task.reading.clone(),
        task_digest: task_digest(task),
        skeleton,
        sections: raw.sections,
        rules: raw.rules,
        demos: Vec::new(),
        words: raw.words,
        answer: raw.answer,
        may_abstain: raw.may_abstain,
        calibration: Calibration::default(),
    })
}

//! Reads a starting version from a task's folder: `seed.toml` and the skeleton's templates.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::version::task_digest;
use super::{AnswerFormat, Calibration, Skeleton, Style, Version, Words};
use crate::task::Task;
use crate::text::{Fault, decode, not_a_file_name};

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
    /// No text, not TOML, an unknown key, a later format, or a name that leads elsewhere.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}

/// Loads `seed` (a path to a seed file) with the templates that lie beside it.
///
/// # Errors
/// [`SeedError`] naming the file.
pub fn load_seed(task: &Task, seed: &Path) -> Result<Version, SeedError> {
    let read = |path: PathBuf| -> Result<String, SeedError> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(SeedError::Io { path, source }),
        };
        Ok(decode(&path, bytes).map_err(Box::new)?)
    };
    let text = read(seed.to_owned())?;
    let raw: RawSeed = toml::from_str(&text).map_err(|e| Box::new(Fault::toml(seed, &text, &e)))?;
    if raw.format != 1 {
        let what = format!("format {} is not known to this program", raw.format);
        let at = text.find("format").map(|at| at..at + "format".len());
        let fault = Fault::new(
            seed,
            &text,
            at,
            what,
            "it reads format 1: is a newer one needed?",
        );
        return Err(Box::new(fault).into());
    }
    if let Some(why) = not_a_file_name(&raw.skeleton) {
        let what = format!(
            "the skeleton `{}` names template files, and {why}",
            raw.skeleton
        );
        let advice = "name templates that lie beside this file, as in skeleton = \"chat\"";
        return Err(Box::new(Fault::naming(seed, &text, what, advice)).into());
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
        nearest: None,
        first: None,
        words: raw.words,
        answer: raw.answer,
        may_abstain: raw.may_abstain,
        calibration: Calibration::default(),
    })
}

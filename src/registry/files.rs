//! The folder of a version: `version.toml`, the templates, `demos.jsonl`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::prompt::{AnswerFormat, Calibration, Demo, Edit, Skeleton, Version, Words};
use crate::task::Task;

/// Where a version comes from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lineage {
    /// Digests of the versions that it was made of.
    #[serde(default)]
    pub parents: Vec<String>,
    /// The run that made it.
    #[serde(default)]
    pub run: String,
    /// The card that the edit answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// The edit that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
}

/// `version.toml`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    digest: String,
    task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
    task_digest: String,
    skeleton: String,
    style: crate::endpoint::Style,
    answer: AnswerFormat,
    #[serde(default)]
    may_abstain: bool,
    rules: Vec<String>,
    sections: std::collections::BTreeMap<String, String>,
    words: Words,
    calibration: Calibration,
    lineage: Lineage,
}

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
}

/// Writes a version into a folder, which is made.
///
/// # Errors
/// [`RegistryError`] naming the file.
pub fn write_version(
    dir: &Path,
    task: &Task,
    version: &Version,
    lineage: &Lineage,
) -> Result<(), RegistryError> {
    std::fs::create_dir_all(dir).map_err(|source| RegistryError::Io {
        path: dir.to_owned(),
        source,
    })?;
    let header = Header {
        format: version.format,
        digest: version.digest(),
        task: task.name.clone(),
        reading: version.reading.clone(),
        task_digest: version.task_digest.clone(),
        skeleton: version.skeleton.name.clone(),
        style: version.skeleton.style,
        answer: version.answer,
        may_abstain: version.may_abstain,
        rules: version.rules.clone(),
        sections: version.sections.clone(),
        words: version.words.clone(),
        calibration: version.calibration.clone(),
        lineage: lineage.clone(),
    };
    let malformed = |name: &str, what: String| RegistryError::Malformed {
        path: dir.join(name),
        what,
    };
    let mut demos = String::new();
    for demo in &version.demos {
        demos +=
            &serde_json::to_string(demo).map_err(|e| malformed("demos.jsonl", e.to_string()))?;
        demos.push('\n');
    }
    let toml =
        toml::to_string_pretty(&header).map_err(|e| malformed("version.toml", e.to_string()))?;
    // The header goes last: a folder without it is no version.
    for (name, text) in [
        ("prefix.tera", &version.skeleton.prefix),
        ("item.tera", &version.skeleton.item),
        ("demos.jsonl", &demos),
        ("version.toml", &toml),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(|source| RegistryError::Io { path, source })?;
    }
    Ok(())
}

/// Reads a version and checks its digest.
///
/// # Errors
/// [`RegistryError`]; a changed file is named and not used.
pub fn read_version(dir: &Path) -> Result<(Version, Lineage), RegistryError> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).map_err(|source| RegistryError::Io { path, source })
    };
    let malformed = |name: &str, what: String| RegistryError::Malformed {
        path: dir.join(name),
        what,
    };
    let header: Header = toml::from_str(&read("version.toml")?)
        .map_err(|e| malformed("version.toml", e.to_string()))?;
    if header.format != 1 {
        return Err(malformed(
            "version.toml",
            format!(
                "format {} is not known to this program, which reads format 1",
                header.format
            ),
        ));
    }
    let mut demos: Vec<Demo> = Vec::new();
    for (n, line) in read("demos.jsonl")?
        .split('\n')
        .enumerate()
        .filter(|(_, l)| !l.is_empty())
    {
        demos.push(
            serde_json::from_str(line)
                .map_err(|e| malformed("demos.jsonl", format!("line {}: {e}", n + 1)))?,
        );
    }
    let version = Version {
        format: header.format,
        task: header.task,
        reading: header.reading,
        task_digest: header.task_digest,
        skeleton: Skeleton {
            name: header.skeleton,
            style: header.style,
            prefix: read("prefix.tera")?,
            item: read("item.tera")?,
        },
        sections: header.sections,
        rules: header.rules,
        demos,
        words: header.words,
        answer: header.answer,
        may_abstain: header.may_abstain,
        calibration: header.calibration,
    };
    let found = version.digest();
    if found != header.digest {
        return Err(RegistryError::Damaged {
            path: dir.to_owned(),
            found,
            expected: header.digest,
        });
    }
    Ok((version, header.lineage))
}

//! The folder of a version: `version.toml`, the templates, `demos.jsonl`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::RegistryError;
use crate::prompt::{AnswerFormat, Calibration, Demo, Edit, Skeleton, Version, Words};
use crate::text::quoted;

/// Where a version comes from. Not part of its digest: the same prompt found twice is one version.
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
    /// What the card says, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_says: Option<String>,
    /// The race that the edit won.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<Race>,
    /// The edit that made it; the calibration is fitted anew after every edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
}

/// What a race said of an edit: parent against child on the same tuning items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Race {
    /// What was compared: `log loss` in nats, out of fold, or `disagreement` from 0 to 1.
    pub of: String,
    /// Items compared.
    pub n: usize,
    /// Mean of the parent less the child's; positive is better.
    pub gain: f64,
    /// One-sided p-value of the gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nearest: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    rules: Vec<String>,
    sections: std::collections::BTreeMap<String, String>,
    words: Words,
    calibration: Calibration,
    lineage: Lineage,
}

/// The files of a version, in the order in which they are written: the header goes last, because a
/// folder without it is no version.
pub(super) fn contents(
    version: &Version,
    lineage: &Lineage,
) -> Result<[(&'static str, String); 4], RegistryError> {
    writable(version, lineage)?;
    let failed = |what: String| RegistryError::Unwritable { what };
    let header = Header {
        format: version.format,
        digest: version.digest(),
        task: version.task.clone(),
        reading: version.reading.clone(),
        task_digest: version.task_digest.clone(),
        skeleton: version.skeleton.name.clone(),
        style: version.skeleton.style,
        answer: version.answer,
        may_abstain: version.may_abstain,
        nearest: version.nearest,
        first: version.first.clone(),
        rules: version.rules.clone(),
        sections: version.sections.clone(),
        words: version.words.clone(),
        calibration: version.calibration.clone(),
        lineage: lineage.clone(),
    };
    let mut demos = String::new();
    for demo in &version.demos {
        demos += &serde_json::to_string(demo).map_err(|e| failed(e.to_string()))?;
        demos.push('\n');
    }
    let toml = toml::to_string_pretty(&header).map_err(|e| failed(e.to_string()))?;
    Ok([
        ("prefix.tera", version.skeleton.prefix.clone()),
        ("item.tera", version.skeleton.item.clone()),
        ("demos.jsonl", demos),
        ("version.toml", toml),
    ])
}

/// Writes a version into a folder, which is made.
///
/// # Errors
/// [`RegistryError`] naming the file, or what of the version no file can hold.
pub fn write_version(
    dir: &Path,
    version: &Version,
    lineage: &Lineage,
) -> Result<(), RegistryError> {
    let files = contents(version, lineage)?;
    std::fs::create_dir_all(dir).map_err(RegistryError::io(dir))?;
    for (name, text) in files {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(RegistryError::io(&path))?;
    }
    Ok(())
}

/// What a folder could not give back: NUL characters, numbers that are none.
fn writable(version: &Version, lineage: &Lineage) -> Result<(), RegistryError> {
    let refused = |what: String| Err(RegistryError::Unwritable { what });
    for c in version.calibration.criteria.values() {
        let all = c.bias.iter().chain(c.locales.values().flatten());
        if !all.chain([&c.temperature]).all(|x| x.is_finite()) {
            return refused("its calibration holds a number that is not finite".into());
        }
    }
    let json = |e: serde_json::Error| RegistryError::Unwritable {
        what: e.to_string(),
    };
    let version = serde_json::to_value(version).map_err(json)?;
    let lineage = serde_json::to_value(lineage).map_err(json)?;
    match nul(&version, "").or_else(|| nul(&lineage, "lineage")) {
        Some(place) => refused(format!("{} holds a NUL character", quoted(&place))),
        None => Ok(()),
    }
}

/// The place of the first NUL character.
fn nul(value: &serde_json::Value, place: &str) -> Option<String> {
    let inner = |name: &str| match place {
        "" => name.to_owned(),
        _ => format!("{place}.{name}"),
    };
    match value {
        serde_json::Value::String(text) if text.contains('\0') => Some(place.to_owned()),
        serde_json::Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(n, v)| nul(v, &inner(&n.to_string()))),
        serde_json::Value::Object(map) => map.iter().find_map(|(k, v)| {
            let own = k.contains('\0').then(|| inner(k));
            own.or_else(|| nul(v, &inner(k)))
        }),
        _ => None,
    }
}

/// The text of a file of a version's folder.
pub(super) fn text(path: &Path) -> Result<String, RegistryError> {
    let bytes = std::fs::read(path).map_err(RegistryError::io(path))?;
    // A byte order mark stays: it is a byte of the prompt.
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        RegistryError::malformed(path, format!("byte {at} is not UTF-8"))
    })
}

/// The header's complaint with its place.
fn toml_fault(path: &Path, text: &str, e: &toml::de::Error) -> RegistryError {
    let place = e.span().map(|span| crate::text::position(text, span.start));
    let place = place.map_or(String::new(), |(row, column)| {
        format!("row {row}, column {column}: ")
    });
    RegistryError::malformed(path, format!("{place}{}", e.message()))
}

/// A TOML file of the registry, whose format is looked at before anything else in it.
pub(super) fn toml_file<T: serde::de::DeserializeOwned>(
    path: &Path,
    text: &str,
) -> Result<T, RegistryError> {
    let any: toml::Table = toml::from_str(text).map_err(|e| toml_fault(path, text, &e))?;
    match any.get("format").and_then(toml::Value::as_integer) {
        Some(1) => toml::from_str(text).map_err(|e| toml_fault(path, text, &e)),
        Some(other) => Err(RegistryError::malformed(
            path,
            format!("format {other} is not known to this program, which reads format 1"),
        )),
        None => Err(RegistryError::malformed(
            path,
            "there is no `format`, which every file of a version begins with",
        )),
    }
}

/// Reads a version and checks its digest.
///
/// # Errors
/// [`RegistryError`]; a changed file is named and not used.
pub fn read_version(dir: &Path) -> Result<(Version, Lineage), RegistryError> {
    let path = dir.join("version.toml");
    let header: Header = toml_file(&path, &text(&path)?)?;
    let mut demos: Vec<Demo> = Vec::new();
    let path = dir.join("demos.jsonl");
    for (n, line) in text(&path)?
        .split('\n')
        .enumerate()
        .filter(|(_, l)| !l.is_empty())
    {
        let demo = serde_json::from_str(line)
            .map_err(|e| RegistryError::malformed(&path, format!("line {}: {e}", n + 1)))?;
        demos.push(demo);
    }
    let version = Version {
        format: header.format,
        task: header.task,
        reading: header.reading,
        task_digest: header.task_digest,
        skeleton: Skeleton {
            name: header.skeleton,
            style: header.style,
            prefix: text(&dir.join("prefix.tera"))?,
            item: text(&dir.join("item.tera"))?,
        },
        sections: header.sections,
        rules: header.rules,
        demos,
        nearest: header.nearest,
        first: header.first,
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
    writable(&version, &header.lineage)
        .map_err(|e| RegistryError::malformed(&dir.join("version.toml"), e.to_string()))?;
    Ok((version, header.lineage))
}

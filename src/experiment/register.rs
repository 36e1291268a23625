//! From a finished run to the registry: the chosen version, what it was made of, the evidence, and
//! what is needed to repeat the run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::folder::{self, Origin, Recorded};
use super::run::RunError;
use super::settings::Settings as _;
use crate::ledger::{Access, attempts::AttemptLog};
use crate::registry::{Found, Parcel, Put, Registry, RegistryError, read_evidence, read_version};

/// `run.toml` of a version: how to repeat the run that made it. Names no folder of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Format of this file; 1.
    pub format: u32,
    /// Name of the experiment and digest of its config.
    pub run: String,
    /// Version of the program that ran it.
    #[serde(default)]
    pub program: String,
    /// From the task's folder to the folder that the config's paths are relative to; absent where
    /// they are in no common checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<PathBuf>,
    /// Digest of the items with their votes and splits.
    pub data: String,
    /// The config with every default written out.
    pub config: Config,
    /// The judge that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) judge: Option<Recorded>,
    /// The writer that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) writer: Option<Recorded>,
}

impl RunRecord {
    /// The record that lies beside a version; none where no run made it.
    ///
    /// # Errors
    /// A file that does not parse, or of a later format.
    pub fn read(dir: &Path) -> Result<Option<Self>, RegistryError> {
        let path = dir.join("run.toml");
        let malformed = |what: String| RegistryError::Malformed {
            path: path.clone(),
            what,
        };
        let text = match std::fs::read_to_string(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|source| RegistryError::Io {
                path: path.clone(),
                source,
            })?,
        };
        let any: toml::Table = toml::from_str(&text).map_err(|e| malformed(e.to_string()))?;
        let format = any.get("format").and_then(toml::Value::as_integer);
        if format != Some(1) {
            let what = "its format is not known to this program, which reads format 1";
            return Err(malformed(what.into()));
        }
        let mut record: Self =
            toml::from_str(&text).map_err(|e| malformed(e.message().to_owned()))?;
        if let Some((what, _)) = record.config.dangerous() {
            return Err(malformed(what));
        }
        // A registry from elsewhere does not choose where this machine keeps answers.
        record.config.cache = None;
        Ok(Some(record))
    }

    pub(super) fn origin(&self) -> Option<Origin> {
        Some(Origin {
            program: self.program.clone(),
            base: PathBuf::new(),
            base_from_run: PathBuf::new(),
            judge: self.judge.clone()?,
            writer: self.writer.clone(),
        })
    }
}

/// What was put into the registry: ancestors first, the chosen version last.
pub type Registered = Vec<Put>;

/// Puts the chosen version of a finished run into the registry of its task, after what it was made
/// of, each with its evidence.
///
/// # Errors
/// [`RunError`]: the folder holds no finished run, a file is damaged, the task is another one.
pub fn register(run: &Path, task_folder: &Path) -> Result<Registered, RunError> {
    if !run.join("summary.json").is_file() {
        return Err(RunError::Nothing(run.to_owned()));
    }
    let date = last_answer(run)?;
    let path = task_folder.join("task.toml");
    let task = std::fs::read_to_string(&path).map_err(|source| RunError::Io { path, source })?;
    let record = record(run, task_folder)?;
    let registry = Registry::of(task_folder);
    let mut made = Vec::new();
    for dir in folders(run)? {
        let (version, lineage) = read_version(&dir)?;
        let mut evidence = read_evidence(&dir)?.measured;
        for one in &mut evidence {
            one.date = date.clone();
        }
        made.push(Parcel {
            version,
            lineage,
            task: task.clone(),
            run: Some(record.clone()),
            evidence,
        });
    }
    // A version follows those that it was made of, so that a kill leaves no child without parents.
    let parents = made_by(&made);
    made.sort_by_cached_key(|p| depth(&parents, &p.version.digest()));
    let mut out = Vec::new();
    for parcel in &made {
        out.push(registry.put(parcel)?);
    }
    Ok(out)
}

type Parents = std::collections::BTreeMap<String, Vec<String>>;

fn made_by(made: &[Parcel]) -> Parents {
    made.iter()
        .map(|p| (p.version.digest(), p.lineage.parents.clone()))
        .collect()
}

/// Versions on the longest way from a version to its first ancestor.
fn depth(parents: &Parents, digest: &str) -> usize {
    fn down(parents: &Parents, digest: &str, left: usize) -> usize {
        let own = parents.get(digest).map_or(&[][..], |p| p);
        if left == 0 {
            return 0;
        }
        let deepest = own.iter().map(|p| down(parents, p, left - 1)).max();
        deepest.map_or(0, |d| d + 1)
    }
    down(parents, digest, parents.len())
}

/// `versions/*` and `best`.
fn folders(run: &Path) -> Result<Vec<PathBuf>, RunError> {
    let versions = run.join("versions");
    let mut out = Vec::new();
    if versions.is_dir() {
        let entries = std::fs::read_dir(&versions).map_err(|source| RunError::Io {
            path: versions.clone(),
            source,
        })?;
        out.extend(entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()));
    }
    out.sort();
    out.push(run.join("best"));
    Ok(out)
}

/// When the last answer of a run was asked for: the clock of `attempts.jsonl`, which alone has one.
fn last_answer(run: &Path) -> Result<Option<String>, RunError> {
    let path = run.join("attempts.jsonl");
    if !path.is_file() {
        return Ok(None);
    }
    let mut last: Option<String> = None;
    AttemptLog::open(&path, Access::ReadOnly, |attempt| {
        if last.as_ref().is_none_or(|l| *l < attempt.started) {
            last = Some(attempt.started.clone());
        }
    })?;
    Ok(last)
}

fn record(run: &Path, task_folder: &Path) -> Result<String, RunError> {
    let config_path = run.join("config.toml");
    let failed = |path: &Path, what: String| {
        RunError::Registry(RegistryError::Malformed {
            path: path.to_owned(),
            what,
        })
    };
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|source| RunError::Io {
            path: path.to_owned(),
            source,
        })
    };
    let mut config: Config = toml::from_str(&read(&config_path)?)
        .map_err(|e| failed(&config_path, e.message().to_owned()))?;
    let run_name = format!("{}-{}", config.name, config.digest());
    // Where this machine keeps its answers decides nothing and is nobody's business.
    config.cache = None;
    let summary = run.join("summary.json");
    let figures: super::Summary =
        serde_json::from_str(&read(&summary)?).map_err(|e| failed(&summary, e.to_string()))?;
    let origin = Origin::read(run)?;
    let record = RunRecord {
        format: 1,
        run: run_name,
        program: origin.as_ref().map_or(String::new(), |o| o.program.clone()),
        base: origin.as_ref().and_then(|o| base(run, o, task_folder)),
        data: figures.data_digest,
        judge: origin.as_ref().map(|o| o.judge.clone()),
        writer: origin.and_then(|o| o.writer),
        config,
    };
    toml::to_string(&record).map_err(|e| failed(&config_path, e.to_string()))
}

/// The way from the task's folder to the experiment's, where both are in one checkout: else it would
/// say more of this machine than of the run.
fn base(run: &Path, origin: &Origin, task_folder: &Path) -> Option<PathBuf> {
    let task = task_folder.canonicalize().ok()?;
    let base = [run.join(&origin.base_from_run), origin.base.clone()]
        .into_iter()
        .find_map(|b| b.canonicalize().ok())?;
    let common = task.ancestors().find(|a| base.starts_with(a))?;
    let checkout = common.ancestors().any(|a| a.join(".git").exists());
    checkout.then(|| {
        let way = folder::from(&task, &base);
        // `/` on every system, since git carries it from one to another.
        let parts: Vec<_> = way.iter().map(|p| p.to_string_lossy()).collect();
        parts.join("/").into()
    })
}

/// The folder that the paths of a version's run are relative to.
pub fn base_of(found: &Found, record: &RunRecord) -> Option<PathBuf> {
    Some(found.task_folder.join(record.base.as_ref()?))
}

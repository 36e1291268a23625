//! The run folder: what lies in it, who may write it, and files that are whole or not there.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::config::Config;
use super::finish::Made;
use super::run::{RunError, RunOptions};
use crate::endpoint::{Capabilities, Endpoint, Identity};
use crate::ledger::{RunLock, fault};
use crate::registry;

/// The folder that a config runs in by default.
pub(super) fn default_folder(config: &Config) -> PathBuf {
    PathBuf::from("runs").join(format!("{}-{}", config.name, config.digest()))
}

/// A folder that a run may begin or go on in; `S` is its summary.
pub(super) enum Ready<S> {
    /// It holds the finished run already.
    Finished(S),
    /// It belongs to this process.
    Mine(RunLock),
}

/// The summary of a finished run of the resolved config, or why the folder cannot be used; makes and
/// writes nothing. The owner of the lock comes before anything else that is said of a run that is not
/// finished: it may be going on right now.
pub(super) fn finished<S: DeserializeOwned>(
    resolved: &str,
    options: &RunOptions,
    dir: &Path,
) -> Result<Option<S>, RunError> {
    match look(dir, resolved)? {
        State::Finished(summary) => Ok(Some(summary)),
        State::Absent if options.resume => Err(RunError::Nothing(dir.to_owned())),
        State::Absent => Ok(None),
        State::Unfinished => {
            let _lock = RunLock::acquire(dir)?;
            match options.resume {
                true => Ok(None),
                false => Err(RunError::Unfinished(dir.to_owned())),
            }
        }
    }
}

/// Makes the folder and takes it for this process. A new one gets the files `beside` the config, and
/// then the config, whose presence says that a run began.
pub(super) fn claim<S: DeserializeOwned>(
    resolved: &str,
    beside: &[(&str, &str)],
    options: &RunOptions,
    dir: &Path,
) -> Result<Ready<S>, RunError> {
    std::fs::create_dir_all(dir).map_err(|source| RunError::Io {
        path: dir.to_owned(),
        source,
    })?;
    let lock = RunLock::acquire(dir)?;
    // Another process may have had it until now.
    match look(dir, resolved)? {
        State::Finished(summary) => return Ok(Ready::Finished(summary)),
        State::Unfinished if !options.resume => {
            return Err(RunError::Unfinished(dir.to_owned()));
        }
        State::Unfinished => {}
        State::Absent => {
            for (name, text) in beside {
                write(&dir.join(name), text.as_bytes())?;
            }
            write(&dir.join("config.toml"), resolved.as_bytes())?;
        }
    }
    Ok(Ready::Mine(lock))
}

enum State<S> {
    Absent,
    Unfinished,
    Finished(S),
}

fn look<S: DeserializeOwned>(dir: &Path, resolved: &str) -> Result<State<S>, RunError> {
    let Ok(found) = std::fs::read_to_string(dir.join("config.toml")) else {
        return Ok(State::Absent);
    };
    if found != resolved {
        return Err(RunError::Other(dir.to_owned()));
    }
    let path = dir.join("summary.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(State::Unfinished);
    };
    let summary = serde_json::from_str(&text).map_err(|e| RunError::Io {
        path,
        source: e.into(),
    })?;
    Ok(State::Finished(summary))
}

/// `origin.toml`: where a run was started and what answered it. Not a result: it is what a replay
/// needs besides the ledger, and the only file that names folders of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    /// Version of the program that started the run.
    pub program: String,
    /// Folder that the config's relative paths are relative to.
    pub base: PathBuf,
    /// The same, from the run folder: still right where both were moved together.
    pub base_from_run: PathBuf,
    /// The judge.
    pub judge: Recorded,
    /// The writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Recorded>,
}

/// An endpoint as a replay stands in for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recorded {
    /// What decides its answers.
    pub identity: Identity,
    /// Whether it gives probabilities of continuations.
    pub scores: bool,
    /// Whether it gives embeddings.
    pub embeddings: bool,
}

impl Recorded {
    fn of(endpoint: &dyn Endpoint) -> Self {
        let Capabilities {
            scores, embeddings, ..
        } = endpoint.capabilities();
        Self {
            identity: endpoint.identity().clone(),
            scores,
            embeddings,
        }
    }
}

impl Origin {
    /// Writes the file where it is not there yet.
    pub(super) fn keep(
        dir: &Path,
        base: &Path,
        judge: &dyn Endpoint,
        writer: Option<&dyn Endpoint>,
    ) -> Result<(), RunError> {
        let path = dir.join("origin.toml");
        if path.exists() {
            return Ok(());
        }
        let base = if base.as_os_str().is_empty() {
            Path::new(".")
        } else {
            base
        };
        let error = |source| RunError::Io {
            path: path.clone(),
            source,
        };
        let base = base.canonicalize().map_err(error)?;
        let origin = Self {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            base_from_run: from(&dir.canonicalize().map_err(error)?, &base),
            base,
            judge: Recorded::of(judge),
            writer: writer.map(Recorded::of),
        };
        let text = toml::to_string(&origin).map_err(|e| error(std::io::Error::other(e)))?;
        write(&path, text.as_bytes())
    }

    /// Reads the file; `None` where a run has none.
    pub(super) fn read(dir: &Path) -> Result<Option<Self>, RunError> {
        let path = dir.join("origin.toml");
        let error = |source| RunError::Io {
            path: path.clone(),
            source,
        };
        let text = match std::fs::read_to_string(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(error)?,
        };
        toml::from_str(&text)
            .map(Some)
            .map_err(|e| error(std::io::Error::other(e.message().to_owned())))
    }
}

/// The way from one absolute folder to another.
pub(super) fn from(start: &Path, end: &Path) -> PathBuf {
    let (mut a, mut b) = (start.components().peekable(), end.components().peekable());
    while a.peek().is_some() && a.peek() == b.peek() {
        a.next();
        b.next();
    }
    let up = a.map(|_| std::path::Component::ParentDir);
    up.chain(b).collect()
}

/// One value as one line of JSON.
pub(super) fn json(path: &Path, value: &impl Serialize) -> Result<String, RunError> {
    serde_json::to_string(value).map_err(|e| RunError::Io {
        path: path.to_owned(),
        source: e.into(),
    })
}

/// Writes a file whole or not at all.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let error = |source| RunError::Io {
        path: path.to_owned(),
        source,
    };
    let part = path.with_extension("part");
    fault::before_file(bytes, |half| drop(std::fs::write(&part, half)));
    let mut file = std::fs::File::create(&part).map_err(error)?;
    // Else a power cut could leave the name with nothing behind it.
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(error)?;
    fault::before_rename();
    std::fs::rename(&part, path).map_err(error)
}

/// Writes `best/` (its one version) or `versions/` (one folder for each), whole or not at all.
pub(super) fn write_made(dir: &Path, name: &str, made: &[&Made]) -> Result<(), RunError> {
    let (part, whole) = (dir.join(format!("{name}.part")), dir.join(name));
    let error = |path: &Path| {
        let path = path.to_owned();
        move |source| RunError::Io { path, source }
    };
    // What a kill may have left of either.
    for old in [&part, &whole] {
        if old.exists() {
            std::fs::remove_dir_all(old).map_err(error(old))?;
        }
    }
    std::fs::create_dir_all(&part).map_err(error(&part))?;
    for one in made {
        let folder = match name {
            "best" => part.clone(),
            _ => part.join(one.version.short()),
        };
        registry::write_version(&folder, &one.version, &one.lineage)?;
        let path = folder.join("evidence.toml");
        std::fs::write(&path, one.evidence.to_toml()).map_err(error(&path))?;
    }
    fault::before_rename();
    std::fs::rename(&part, &whole).map_err(error(&whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_between_two_folders() {
        let way = |a: &str, b: &str| from(Path::new(a), Path::new(b));
        assert_eq!(
            way("/p/runs/x", "/p/experiments"),
            Path::new("../../experiments")
        );
        assert_eq!(way("/p", "/p/a/b"), Path::new("a/b"));
        assert_eq!(way("/p/a", "/p"), Path::new(".."));
        assert_eq!(way("/p", "/p"), Path::new(""));
    }
}

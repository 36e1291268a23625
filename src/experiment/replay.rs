//! Replay: the figures of a run, rebuilt from its ledger and the cache, and compared with what the
//! run folder holds. Asks no endpoint and writes nothing.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;

use super::endpoints;
use super::execute::execute;
use super::finish::{Done, Made};
use super::folder::{self, Origin};
use super::plan::{Plan, PlanError};
use super::run::RunError;
use super::score::missing;
use super::spending;
use crate::ledger::{Halt, Ledger, LedgerError, LedgerOptions, RetryPolicy};
use crate::optimize::Event;
use crate::registry;

/// Differences that are kept; the rest is counted.
const KEPT: usize = 100;

/// How a run is replayed.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// The folder that the config's relative paths are relative to; absent: as the run recorded.
    pub base: Option<PathBuf>,
    /// A cache to look into besides the run's own ledger.
    pub cache: Option<PathBuf>,
}

/// A figure that is not what the ledger says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The file of the run folder.
    pub file: String,
    /// The place in it: `splits.test.best.overall.n`, `line 12, label`.
    pub key: String,
    /// What stands there; absent where nothing does.
    pub recorded: Option<Value>,
    /// What the ledger gives; absent where it gives nothing.
    pub rebuilt: Option<Value>,
}

/// What a replay found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replay {
    /// Whether the run is finished.
    pub finished: bool,
    /// Values compared.
    pub compared: usize,
    /// Events rebuilt.
    pub events: usize,
    /// Why it could not go on to the end: an answer that neither ledger nor cache has.
    pub missing: Option<String>,
    /// The first differences.
    pub differences: Vec<Difference>,
    /// All of them.
    pub different: usize,
}

impl Replay {
    /// Whether all that is recorded is what the ledger gives.
    pub fn is_equal(&self) -> bool {
        self.different == 0
    }

    fn differ(&mut self, file: &str, key: String, recorded: Option<Value>, rebuilt: Option<Value>) {
        self.different += 1;
        if self.differences.len() < KEPT {
            self.differences.push(Difference {
                file: file.to_owned(),
                key,
                recorded,
                rebuilt,
            });
        }
    }

    /// Compares two values leaf by leaf.
    fn compare(&mut self, file: &str, key: &str, recorded: &Value, rebuilt: &Value) {
        let inner = |name: &str| match key {
            "" => name.to_owned(),
            _ => format!("{key}.{name}"),
        };
        match (recorded, rebuilt) {
            (Value::Object(a), Value::Object(b)) => {
                for (name, one) in a {
                    match b.get(name) {
                        Some(other) => self.compare(file, &inner(name), one, other),
                        None => self.differ(file, inner(name), Some(one.clone()), None),
                    }
                }
                for (name, other) in b.iter().filter(|(name, _)| !a.contains_key(*name)) {
                    self.differ(file, inner(name), None, Some(other.clone()));
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (n, (one, other)) in a.iter().zip(b).enumerate() {
                    self.compare(file, &inner(&n.to_string()), one, other);
                }
            }
            _ => {
                self.compared += 1;
                if recorded != rebuilt {
                    let (a, b) = (recorded.clone(), rebuilt.clone());
                    self.differ(file, key.to_owned(), Some(a), Some(b));
                }
            }
        }
    }

    /// Compares lines of JSON; `open` says that either side may simply end before the other.
    fn compare_lines(&mut self, file: &str, recorded: &str, rebuilt: &[String], open: bool) {
        let recorded: Vec<&str> = recorded.split_terminator('\n').collect();
        for n in 0..recorded.len().max(rebuilt.len()) {
            let line = format!("line {}", n + 1);
            match (recorded.get(n), rebuilt.get(n)) {
                (Some(a), Some(b)) => match (parse(a), parse(b)) {
                    (Some(a), Some(b)) => self.compare(file, &line, &a, &b),
                    // A torn last line of an unfinished run is nothing that was recorded.
                    _ if open && n + 1 == recorded.len() => {}
                    _ => self.differ(file, line, Some((*a).into()), Some(b.clone().into())),
                },
                (Some(_), None) | (None, Some(_)) if open => {}
                (a, b) => {
                    let recorded = a.and_then(|a| parse(a));
                    let rebuilt = b.and_then(|b| parse(b));
                    self.differ(file, line, recorded, rebuilt);
                }
            }
        }
    }
}

fn parse(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok()
}

/// Why a replay cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The folder holds no run.
    #[error("{} holds no run: there is no config.toml in it", .0.display())]
    NoRun(PathBuf),
    /// Where the task and the items are is not known.
    #[error("{}", .0)]
    NoBase(String),
    /// The config, the task or the items.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The run folder or the run.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Replays a run.
///
/// # Errors
/// [`ReplayError`] where nothing can be rebuilt at all; what differs is in the [`Replay`].
pub async fn replay(dir: &Path, options: &ReplayOptions) -> Result<Replay, ReplayError> {
    let config = dir.join("config.toml");
    if !config.is_file() {
        return Err(ReplayError::NoRun(dir.to_owned()));
    }
    let origin = Origin::read(dir)?;
    let plan = load(dir, &config, origin.as_ref(), options)?;
    let (judge, writer) = endpoints::unasked(
        &plan.config.judge,
        plan.config.writer.as_ref(),
        origin.as_ref(),
    )
    .map_err(RunError::from)?;
    let ledger = Ledger::open(LedgerOptions {
        dir: Some(dir.to_owned()),
        cache: options.cache.clone(),
        caps: spending::caps(&plan.config.budget),
        prices: spending::prices(&plan.config.budget),
        retries: RetryPolicy::default(),
        offline: true,
        charge_cached: false,
        read_only: true,
    })
    .map_err(RunError::from)?;
    let lines = Mutex::new(Vec::new());
    let journal = |event: &Event| -> Result<(), Halt> {
        let line = serde_json::to_string(event).map_err(|e| {
            Halt::Io(LedgerError::Io {
                path: "events".into(),
                doing: "rebuild",
                source: e.into(),
            })
        })?;
        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(line);
        Ok(())
    };
    let done = execute(&plan, &ledger, &*judge, writer.as_deref(), &journal, &|| ()).await;
    let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut found = Replay {
        finished: dir.join("summary.json").exists(),
        events: lines.len(),
        ..Replay::default()
    };
    let done = match done {
        Ok(done) => Some(done),
        Err(e) => {
            found.missing = Some(missing(e)?);
            None
        }
    };
    let recorded = read(&dir.join("events.jsonl"))?.unwrap_or_default();
    found.compare_lines("events.jsonl", &recorded, &lines, !found.finished);
    match done {
        Some(done) if found.finished => compare_end(&mut found, dir, &done)?,
        // The events that it would have led to differ already, and so does every figure.
        None if found.finished => {
            let text = read(&dir.join("summary.json"))?.unwrap_or_default();
            found.differ("summary.json", String::new(), parse(&text), None);
        }
        _ => {}
    }
    Ok(found)
}

/// The plan of a run, with its data where the run recorded it, or where `--base` says.
fn load(
    dir: &Path,
    config: &Path,
    origin: Option<&Origin>,
    options: &ReplayOptions,
) -> Result<Plan, ReplayError> {
    let bases: Vec<PathBuf> = match (&options.base, origin) {
        (Some(base), _) => vec![base.clone()],
        (None, Some(origin)) => vec![dir.join(&origin.base_from_run), origin.base.clone()],
        (None, None) => Vec::new(),
    };
    let mut last = None;
    for base in &bases {
        match Plan::load_from(config, base, &[]) {
            Ok(plan) => return Ok(plan),
            // The place that was found first says best what is wrong there.
            Err(e) => last = last.or(Some(e)),
        }
    }
    match last {
        Some(e) if options.base.is_some() => Err(e.into()),
        Some(e) => Err(ReplayError::NoBase(format!(
            "the task or the items of this run are not where they were ({e}); name the folder of \
             the experiment file with --base"
        ))),
        None => Err(ReplayError::NoBase(
            "this run did not record where its experiment file was; name its folder with --base"
                .into(),
        )),
    }
}

fn compare_end(found: &mut Replay, dir: &Path, done: &Done) -> Result<(), RunError> {
    let name = "verdicts.jsonl";
    let recorded = read(&dir.join(name))?.unwrap_or_default();
    let mut lines = Vec::with_capacity(done.verdicts.len());
    for line in &done.verdicts {
        lines.push(folder::json(&dir.join(name), line)?);
    }
    found.compare_lines(name, &recorded, &lines, false);

    let path = dir.join("summary.json");
    let text = read(&path)?.unwrap_or_default();
    match (parse(&text), serde_json::to_value(&done.summary)) {
        (Some(recorded), Ok(rebuilt)) => found.compare("summary.json", "", &recorded, &rebuilt),
        (_, rebuilt) => found.differ("summary.json", String::new(), None, rebuilt.ok()),
    }

    compare_made(found, &dir.join("best"), "best/", &done.best);
    // A run of an older program kept the chosen version alone.
    if dir.join("versions").is_dir() {
        for made in &done.ancestors {
            let name = format!("versions/{}/", made.version.short());
            compare_made(found, &dir.join(&name), &name, made);
        }
    }
    Ok(())
}

fn compare_made(found: &mut Replay, dir: &Path, name: &str, made: &Made) {
    match registry::read_version(dir) {
        Ok((version, lineage)) => {
            found.compare(name, "", &value(&version), &value(&made.version));
            found.compare(name, "lineage", &value(&lineage), &value(&made.lineage));
        }
        Err(e) => found.differ(
            name,
            e.to_string(),
            None,
            Some(made.version.digest().into()),
        ),
    }
    match registry::read_evidence(dir) {
        Ok(evidence) if evidence.measured.is_empty() => {}
        Ok(evidence) => {
            found.compare(name, "evidence", &value(&evidence), &value(&made.evidence));
        }
        Err(e) => found.differ(name, e.to_string(), None, Some(value(&made.evidence))),
    }
}

/// What cannot be written as JSON compares as nothing.
fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

fn read(path: &Path) -> Result<Option<String>, RunError> {
    match std::fs::read(path) {
        // What is no text differs from every rebuilt line, and is then shown.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RunError::Io {
            path: path.to_owned(),
            source,
        }),
    }
}

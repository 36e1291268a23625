//! A run: one plan executed in one folder. Writes `config.toml`, `events.jsonl`, `attempts.jsonl`
//! while it goes, and `verdicts.jsonl`, `best/` and `summary.json` at its end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Serialize;

use super::config::{BudgetConfig, Config};
use super::plan::Plan;
use super::summary::{self, Summary, Versions};
use crate::data::{Item, Split};
use crate::endpoint::{Endpoint, EndpointError};
use crate::judge::{Judge, Reading, Verdict};
use crate::ledger::{
    Access, Caps, EventLog, Halt, Ledger, LedgerError, LedgerOptions, Money, PriceTable, Prices,
    RetryPolicy, RunLock, Spent,
};
use crate::optimize::{self, Bench, Event, Pool, StopReason, Streams, TuneError};
use crate::prompt::Version;
use crate::registry;

/// How a plan is executed.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The run folder; absent: `runs/<name>-<digest>`.
    pub out: Option<PathBuf>,
    /// Go on with an unfinished run.
    pub resume: bool,
    /// The response cache; `None` keeps no answers between runs.
    pub cache: Option<PathBuf>,
}

/// What the user is shown while a run goes on.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The run begins in this folder.
    Folder(&'a Path),
    /// The loop decided something.
    Event(&'a Event),
    /// A call was paid.
    Spent(&'a Spent),
    /// Test is being read.
    Test,
    /// Something that the user should know.
    Note(&'a str),
}

/// Why a run did not finish.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The folder holds an unfinished run of the same config.
    #[error("{} holds an unfinished run of this config; add --resume to go on with it, or --out to start another", .0.display())]
    Unfinished(PathBuf),
    /// The folder holds a run of another config.
    #[error("{} holds a run of another config (its config.toml differs); choose another folder with --out", .0.display())]
    Other(PathBuf),
    /// Nothing to resume.
    #[error("{} holds no run to resume; leave --resume away to start one", .0.display())]
    Nothing(PathBuf),
    /// A file of the run.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The lock, the cache or a log.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// An endpoint cannot be opened.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The loop stopped in the middle.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The best version cannot be written.
    #[error(transparent)]
    Registry(#[from] registry::RegistryError),
}

/// Executes a plan, or reports it where the folder holds it finished. Returns the folder, the
/// summary, and whether the run was already there.
///
/// # Errors
/// [`RunError`]; what was paid for is in the folder, and `resume` goes on from there.
pub async fn tune(
    plan: &Plan,
    options: &RunOptions,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(PathBuf, Summary, bool), RunError> {
    let dir = options
        .out
        .clone()
        .unwrap_or_else(|| default_folder(&plan.config));
    if let Some(summary) = prepare(plan, options, &dir)? {
        return Ok((dir, summary, true));
    }
    let judge = super::open_endpoint(&plan.config.judge)?;
    let writer = plan
        .config
        .writer
        .as_ref()
        .map(super::open_endpoint)
        .transpose()?;
    let _lock = RunLock::acquire(&dir)?;
    show(Progress::Folder(&dir));
    let retries = RetryPolicy::default();
    let ledger = Ledger::open(LedgerOptions {
        dir: Some(dir.clone()),
        cache: options.cache.clone(),
        caps: caps(&plan.config.budget),
        prices: prices(&plan.config.budget),
        retries,
        offline: false,
    })?;
    let events = EventLog::open(&dir.join("events.jsonl"), Access::Append)?;
    for note in ledger.notes() {
        show(Progress::Note(&note));
    }
    let work = execute(
        plan,
        &ledger,
        judge.as_ref(),
        writer.as_deref(),
        events,
        show,
    );
    tokio::pin!(work);
    let mut spent = ledger.progress();
    let summary = loop {
        tokio::select! {
            done = &mut work => break done?,
            changed = spent.changed() => if changed.is_ok() { show(Progress::Spent(&spent.borrow_and_update().clone())) },
            _ = tokio::signal::ctrl_c() => {
                show(Progress::Note("interrupted: waiting for the calls in flight"));
                ledger.interrupt();
            }
        }
    };
    finish(&dir, plan, &summary)?;
    Ok((dir, summary.summary, false))
}

/// Looks at what the folder holds and makes it ready; a finished run's summary is returned.
fn prepare(plan: &Plan, options: &RunOptions, dir: &Path) -> Result<Option<Summary>, RunError> {
    let config = dir.join("config.toml");
    let resolved = plan.config.resolved();
    match std::fs::read_to_string(&config) {
        Ok(found) if found != resolved => return Err(RunError::Other(dir.to_owned())),
        Ok(_) => {
            let path = dir.join("summary.json");
            if let Ok(text) = std::fs::read_to_string(&path) {
                let read = serde_json::from_str(&text).map_err(|e| RunError::Io {
                    path,
                    source: e.into(),
                })?;
                return Ok(Some(read));
            }
            if !options.resume {
                return Err(RunError::Unfinished(dir.to_owned()));
            }
        }
        Err(_) if options.resume => return Err(RunError::Nothing(dir.to_owned())),
        Err(_) => {
            std::fs::create_dir_all(dir).map_err(|source| RunError::Io {
                path: dir.to_owned(),
                source,
            })?;
            write(&config, resolved.as_bytes())?;
        }
    }
    Ok(None)
}

/// What a run leaves to be written at its end.
struct Done {
    summary: Summary,
    best: Version,
    lineage: registry::Lineage,
    verdicts: Vec<VerdictLine>,
}

/// One line of `verdicts.jsonl`.
#[derive(Serialize)]
struct VerdictLine {
    version: String,
    split: Split,
    item: String,
    locale: String,
    criterion: String,
    /// Label name after calibration; absent when the verdict failed.
    label: Option<String>,
    /// Label probabilities after calibration, where the endpoint gives any.
    #[serde(skip_serializing_if = "Option::is_none")]
    probs: Option<Vec<f64>>,
    /// Votes by label, in the order of the task's labels.
    votes: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

async fn execute(
    plan: &Plan,
    ledger: &Ledger,
    endpoint: &dyn Endpoint,
    writer: Option<&dyn Endpoint>,
    events: EventLog,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Done, TuneError> {
    let events = Mutex::new(events);
    let journal = |event: &Event| -> Result<(), Halt> {
        // A poisoned lock means that another emit panicked; the log itself is still whole.
        events
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .emit(event)
            .map_err(Halt::from)?;
        show(Progress::Event(event));
        Ok(())
    };
    let seed = plan.start.clone();
    journal(&Event::Started {
        config: plan.config.digest(),
        data: plan.data_digest.clone(),
        items: [plan.tune.len(), plan.validation.len(), plan.test.len()],
        seed: seed.short(),
    })?;
    // The chosen version is read on test beside the seed; the calls for both are held back.
    let hold = 2 * plan.calls_for(&plan.test, &seed);
    let judge = Judge {
        task: &plan.task,
        endpoint,
        ledger,
        fence: &plan.fence,
        seed: Some(plan.config.seed),
        hold_back: hold,
    };
    let bench = Bench {
        judge,
        writer,
        items: &plan.items,
        tune: &plan.tune,
        validation: &plan.validation,
        search: &plan.config.search,
        stop: &plan.config.stop,
        streams: Streams::new(plan.config.seed),
        journal: &journal,
    };
    let (pool, reason) = optimize::tune(&bench, seed).await?;
    show(Progress::Test);
    let judge = Judge {
        hold_back: 0,
        ..bench.judge
    };
    let best = pool.best().clone();
    let test: Vec<&Item> = plan.test.iter().map(|&i| &plan.items[i]).collect();
    let mut arms: Vec<(Version, BTreeMap<usize, Verdict>)> = Vec::new();
    for candidate in [&pool.candidates[0], &best] {
        let verdicts = judge
            .verdicts(&candidate.version, &test)
            .await
            .map_err(TuneError::from)?;
        let mut all = candidate.verdicts.clone();
        all.extend(
            plan.test
                .iter()
                .copied()
                .zip(verdicts)
                .filter(|(_, v)| !v.readings.contains(&Reading::Unpaid)),
        );
        arms.push((candidate.version.clone(), all));
    }
    // The seed is read as its author wrote it: without a calibration that the run fitted.
    arms[0].0 = plan.start.clone();
    let done = summarise(plan, ledger, endpoint, &pool, reason, &arms);
    if let Some((a, b)) = done
        .summary
        .splits
        .get("test")
        .and_then(|t| Some((t.seed.as_ref()?, t.best.as_ref()?)))
    {
        journal(&Event::TestRead {
            n: b.overall.n,
            seed: a.overall.disagreement,
            best: b.overall.disagreement,
        })?;
    }
    Ok(done)
}

fn summarise(
    plan: &Plan,
    ledger: &Ledger,
    endpoint: &dyn Endpoint,
    pool: &Pool,
    stop: StopReason,
    arms: &[(Version, BTreeMap<usize, Verdict>)],
) -> Done {
    let measure = plan.config.search.measure;
    let mut splits = BTreeMap::new();
    let mut verdicts = Vec::new();
    let mut on_test = Vec::new();
    for (split, indices) in [
        (Split::Tune, &plan.tune),
        (Split::Validation, &plan.validation),
        (Split::Test, &plan.test),
    ] {
        let mut both = Vec::new();
        for (version, of) in arms {
            let distances =
                summary::distances(&plan.task, version, &plan.items, indices, of, measure);
            both.push(summary::arm(&plan.items, indices, of, &distances));
            if split == Split::Test {
                on_test.push(distances);
            }
        }
        let best = both.pop().flatten();
        splits.insert(
            split.as_str().to_owned(),
            summary::SplitFigures {
                seed: both.pop().flatten(),
                best,
                people: summary::ceiling(&plan.task, &plan.items, indices, measure),
            },
        );
        let mut written = std::collections::BTreeSet::new();
        for (version, of) in arms {
            if written.insert(version.digest()) {
                verdicts.extend(lines(plan, split, indices, version, of));
            }
        }
    }
    let gain = summary::gain(&plan.items, &on_test[0], &on_test[1], plan.config.seed);
    let mut notes = Vec::new();
    if pool.exhausted && pool.candidates.len() == 1 {
        notes.push("the budget ended before any edit could be tested".to_owned());
    }
    if let Some(e) = ledger.exhausted() {
        notes.push(format!("a cap ended the spending: {e}"));
    }
    let best = pool.best();
    let summary = Summary {
        format: 1,
        name: plan.config.name.clone(),
        config_digest: plan.config.digest(),
        data_digest: plan.data_digest.clone(),
        seed: plan.config.seed,
        task: plan
            .task
            .reading
            .as_ref()
            .map_or(plan.task.name.clone(), |r| {
                format!("{} ({r})", plan.task.name)
            }),
        measure,
        judge: endpoint.identity().clone(),
        versions: Versions {
            seed: plan.start.digest(),
            best: best.version.digest(),
        },
        splits,
        gain,
        stop,
        looks: pool.looks.clone(),
        steps: pool.step,
        spent: ledger.spent(),
        notes,
    };
    let lineage = registry::Lineage {
        parents: best
            .parent
            .map(|p| pool.candidates[p].version.digest())
            .into_iter()
            .collect(),
        edit: best.edit.clone(),
        card: best.card.clone(),
        run: format!("{}-{}", plan.config.name, plan.config.digest()),
    };
    Done {
        summary,
        best: best.version.clone(),
        lineage,
        verdicts,
    }
}

fn lines(
    plan: &Plan,
    split: Split,
    indices: &[usize],
    version: &Version,
    of: &BTreeMap<usize, Verdict>,
) -> Vec<VerdictLine> {
    let mut out = Vec::new();
    for &i in indices {
        let (item, Some(verdict)) = (&plan.items[i], of.get(&i)) else {
            continue;
        };
        for (c, criterion) in plan.task.criteria.iter().enumerate() {
            let Some(decision) = verdict.readings[c].decide(&plan.task, version, c, &item.locale)
            else {
                continue;
            };
            let failure = match &verdict.readings[c] {
                Reading::Failed(f) => Some(f.message.clone()),
                _ => None,
            };
            out.push(VerdictLine {
                version: version.short(),
                split,
                item: item.id.clone(),
                locale: item.locale.to_string(),
                criterion: criterion.name.clone(),
                label: decision.label.map(|l| criterion.labels[l].name.clone()),
                probs: decision
                    .probs
                    .map(|p| p.iter().map(|x| (x * 1e6).round() / 1e6).collect()),
                votes: item.votes[c].counts.clone(),
                failure,
            });
        }
    }
    out
}

/// Writes what stands at the end; `summary.json` last, because it says that the run is finished.
fn finish(dir: &Path, plan: &Plan, done: &Done) -> Result<(), RunError> {
    let mut text = String::new();
    for line in &done.verdicts {
        text += &serde_json::to_string(line).map_err(|e| RunError::Io {
            path: dir.join("verdicts.jsonl"),
            source: e.into(),
        })?;
        text.push('\n');
    }
    write(&dir.join("verdicts.jsonl"), text.as_bytes())?;
    registry::write_version(&dir.join("best"), &plan.task, &done.best, &done.lineage)?;
    let path = dir.join("summary.json");
    let json = serde_json::to_string_pretty(&done.summary).map_err(|e| RunError::Io {
        path: path.clone(),
        source: e.into(),
    })?;
    write(&path, (json + "\n").as_bytes())
}

/// Writes a file whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let error = |source| RunError::Io {
        path: path.to_owned(),
        source,
    };
    let part = path.with_extension("part");
    std::fs::write(&part, bytes).map_err(error)?;
    std::fs::rename(&part, path).map_err(error)
}

fn caps(budget: &BudgetConfig) -> Caps {
    Caps {
        calls: budget.calls,
        prompt_tokens: budget.prompt_tokens,
        completion_tokens: budget.completion_tokens,
        money: budget.money.map(micro),
    }
}

fn prices(budget: &BudgetConfig) -> PriceTable {
    let models = budget.prices.iter().map(|(model, [prompt, completion])| {
        (
            model.clone(),
            Prices {
                prompt_per_million: micro(*prompt),
                completion_per_million: micro(*completion),
            },
        )
    });
    PriceTable {
        models: models.collect(),
        otherwise: None,
    }
}

/// Money in millionths, so that sums are exact. A cap is rounded down: it may never be passed.
fn micro(amount: f64) -> Money {
    Money((amount.max(0.0) * 1e6).floor() as u64)
}

/// The folder that a config runs in by default.
fn default_folder(config: &Config) -> PathBuf {
    PathBuf::from("runs").join(format!("{}-{}", config.name, config.digest()))
}

//! A run: one plan executed in one folder. Writes `config.toml`, `origin.toml`, `events.jsonl` and
//! `attempts.jsonl` while it goes, and `verdicts.jsonl`, `best/` and `summary.json` at its end.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::config::BudgetConfig;
use super::endpoints::Opened;
use super::execute::execute;
use super::finish;
use super::folder::{self, Origin, Ready};
use super::plan::Plan;
use super::spending;
use super::summary::Summary;
use crate::endpoint::EndpointError;
use crate::ledger::{
    Access, EventLog, Halt, Ledger, LedgerError, LedgerOptions, RetryPolicy, Spent,
};
use crate::optimize::{Event, TuneError};
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
    /// The folder that the config's relative paths are relative to; kept for a replay.
    pub base: PathBuf,
    /// Make no call: answer from the run's own ledger and the cache alone.
    pub offline: bool,
    /// Requests in flight at most, in place of what the config says. Changes no result.
    pub concurrency: Option<usize>,
    /// How long an endpoint may be unreachable; absent: [`RetryPolicy::default`]'s.
    pub patience: Option<Duration>,
}

impl RunOptions {
    /// The ledger of a run in a folder, or of a question about one without it.
    pub(super) fn ledger(
        &self,
        dir: Option<PathBuf>,
        budget: &BudgetConfig,
    ) -> Result<Ledger, LedgerError> {
        Ledger::open(LedgerOptions {
            dir,
            cache: self.cache.clone(),
            caps: spending::caps(budget),
            prices: spending::prices(budget),
            retries: RetryPolicy::patient(self.patience),
            offline: self.offline,
            charge_cached: false,
            read_only: false,
        })
    }
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
        .unwrap_or_else(|| folder::default_folder(&plan.config));
    let resolved = plan.config.resolved();
    if let Some(summary) = folder::finished(&resolved, options, &dir)? {
        return Ok((dir, summary, true));
    }
    // Before the folder is made: a missing key leaves none behind.
    let (judge, writer) = endpoints(plan, options, &dir)?;
    let lock = match folder::claim(&resolved, &[], options, &dir)? {
        Ready::Finished(summary) => return Ok((dir, summary, true)),
        Ready::Mine(lock) => lock,
    };
    Origin::keep(&dir, &options.base, judge.as_ref(), writer.as_deref())?;
    show(Progress::Folder(&dir));
    let ledger = options.ledger(Some(dir.clone()), &plan.config.budget)?;
    let events = EventLog::open(&dir.join("events.jsonl"), Access::Append)?;
    if let Some(torn) = events.torn() {
        show(Progress::Note(&torn.to_string()));
    }
    let events = Mutex::new(events);
    let journal = |event: &Event| -> Result<(), Halt> {
        // A poisoned lock means that another emit panicked; the log itself is still whole.
        let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
        events.emit(event).map_err(Halt::from)?;
        show(Progress::Event(event));
        Ok(())
    };
    let reading_test = || show(Progress::Test);
    let work = execute(
        plan,
        &ledger,
        judge.as_ref(),
        writer.as_deref(),
        &journal,
        &reading_test,
    );
    let done = watch(work, &ledger, show).await?;
    finish::write(&dir, &done)?;
    drop(lock);
    Ok((dir, done.summary, false))
}

/// The judge and the writer; stand-ins that are never asked where the run is offline.
fn endpoints(plan: &Plan, options: &RunOptions, dir: &Path) -> Result<Opened, RunError> {
    let (judge, writer) = (&plan.config.judge, plan.config.writer.as_ref());
    if options.offline {
        let origin = Origin::read(dir)?;
        return Ok(super::endpoints::unasked(judge, writer, origin.as_ref())?);
    }
    let open = |config| super::endpoints::open_with(config, options.concurrency);
    Ok((open(judge)?, writer.map(open).transpose()?))
}

/// Waits for a run, shows what it spends and what the ledger has to say, and ends it cleanly when
/// the user or the machine asks for that.
pub(super) async fn watch<T>(
    work: impl Future<Output = Result<T, TuneError>>,
    ledger: &Ledger,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<T, TuneError> {
    let mut told = 0;
    let mut tell = || {
        let notes = ledger.notes();
        for note in notes.iter().skip(told) {
            show(Progress::Note(note));
        }
        told = notes.len();
    };
    tell();
    let ended = asked_to_end();
    tokio::pin!(work, ended);
    let mut spent = ledger.progress();
    let mut interrupted = false;
    loop {
        tokio::select! {
            done = &mut work => {
                tell();
                return done;
            }
            changed = spent.changed() => if changed.is_ok() {
                tell();
                let spent = *spent.borrow_and_update();
                show(Progress::Spent(&spent));
            },
            () = &mut ended, if !interrupted => {
                interrupted = true;
                show(Progress::Note("interrupted: waiting for the calls in flight"));
                ledger.interrupt();
            }
        }
    }
}

/// Ctrl-C, or the SIGTERM that schedulers send before they kill.
async fn asked_to_end() {
    #[cfg(unix)]
    if let Ok(mut term) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
    {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = term.recv() => {}
        }
        return;
    }
    if tokio::signal::ctrl_c().await.is_err() {
        // No signal can be heard, so none ends the run.
        std::future::pending::<()>().await;
    }
}

//! Repeats the run that made a version, from the config and the data that it recorded and a cache,
//! and compares what comes out. Writes no run folder.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::dry_run::{DryRun, dry_run};
use super::endpoints;
use super::execute::execute;
use super::plan::Plan;
use super::register::RunRecord;
use super::run::{Progress, RunError, watch};
use super::score::missing;
use super::spending;
use crate::endpoint::Endpoint;
use crate::ledger::{Halt, Ledger, LedgerOptions, RetryPolicy};
use crate::optimize::Event;
use crate::prompt::Version;
use crate::registry::{Evidence, Found, Measured, RegistryError, read_version};

/// How a run is repeated.
#[derive(Clone, Debug, Default)]
pub struct ReproduceOptions {
    /// Where answers are.
    pub cache: Option<PathBuf>,
    /// Make the calls whose answers are in no cache; else none is made.
    pub calls: bool,
    /// Count answers of the cache as the calls that they were, as the first run did unless it found
    /// them there. Decides where a run ends that its caps end.
    pub charge: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Reproduced {
    /// Digest of the version that came out; absent where answers are missing.
    pub best: Option<String>,
    /// Digests of the versions that it was made of.
    pub ancestors: Vec<String>,
    /// What was measured with it this time.
    pub evidence: Evidence,
    /// Decisions that were repeated.
    pub events: usize,
    /// Calls that were made, and answers from the cache.
    pub spent: crate::ledger::Spent,
    /// What stopped it: an answer that the cache lacks.
    pub missing: Option<String>,
    /// What the run would take with this cache, where answers are missing.
    pub needed: Option<DryRun>,
}

impl Reproduced {
    /// Whether the run came to a version, or through it.
    pub fn gives(&self, digest: &str) -> bool {
        let best = self.best.as_deref();
        best == Some(digest) || self.ancestors.iter().any(|a| a == digest)
    }

    /// Whether a measuring of the first time was found again: the same figures on every split.
    pub fn confirms(&self, first: &Measured) -> bool {
        self.evidence
            .measured
            .iter()
            .any(|m| m.is_of(first) && m.splits == first.splits)
    }
}

/// The starting version of the run that made a version, as the registry has it: a seed file may have
/// changed since. `None` where it is not there, and the seed file has to do.
///
/// # Errors
/// A damaged version on the way.
pub fn start_of(found: &Found, record: &RunRecord) -> Result<Option<Version>, RegistryError> {
    let Some(versions) = found.dir.as_ref().and_then(|d| d.parent()) else {
        return Ok(None);
    };
    let (mut version, mut lineage) = (found.version.clone(), found.lineage.clone());
    let mut seen = BTreeSet::from([version.digest()]);
    while let Some(parent) = lineage.parents.first() {
        let dir = versions.join(parent.get(..12).unwrap_or(parent));
        if !seen.insert(parent.clone()) || !dir.join("version.toml").is_file() {
            return Ok(None);
        }
        (version, lineage) = read_version(&dir)?;
    }
    Ok((lineage.run == record.run).then_some(version))
}

/// Repeats a run.
///
/// # Errors
/// [`RunError`]: the endpoint, the cache, or a prompt that does not render.
pub async fn reproduce(
    plan: &Plan,
    record: &RunRecord,
    options: &ReproduceOptions,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Reproduced, RunError> {
    let (judge, writer) = opened(plan, record, options)?;
    let ledger = Ledger::open(LedgerOptions {
        dir: None,
        cache: options.cache.clone(),
        caps: spending::caps(&plan.config.budget),
        prices: spending::prices(&plan.config.budget),
        retries: RetryPolicy::default(),
        offline: !options.calls,
        charge_cached: options.charge,
        read_only: !options.calls,
    })?;
    let events = Mutex::new(0);
    let journal = |event: &Event| -> Result<(), Halt> {
        // A counter is whole whatever happened to another thread.
        *events.lock().unwrap_or_else(PoisonError::into_inner) += 1;
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
    let done = watch(work, &ledger, show).await;
    let events = *events.lock().unwrap_or_else(PoisonError::into_inner);
    let spent = ledger.spent();
    let mut ancestors = Vec::new();
    let (best, evidence, missing) = match done {
        Ok(done) => {
            ancestors.extend(done.ancestors.iter().map(|a| a.version.digest()));
            (Some(done.best.version.digest()), done.best.evidence, None)
        }
        Err(e) => (None, Evidence::of(Vec::new()), Some(missing(e)?)),
    };
    let needed = match missing {
        Some(_) => Some(dry_run(plan, options.cache.clone())?),
        None => None,
    };
    Ok(Reproduced {
        best,
        ancestors,
        evidence,
        events,
        spent,
        missing,
        needed,
    })
}

type Opened = (Box<dyn Endpoint>, Option<Box<dyn Endpoint>>);

fn opened(plan: &Plan, record: &RunRecord, options: &ReproduceOptions) -> Result<Opened, RunError> {
    let (judge, writer) = (&plan.config.judge, plan.config.writer.as_ref());
    if options.calls {
        let writer = writer.map(endpoints::open).transpose()?;
        return Ok((endpoints::open(judge)?, writer));
    }
    let origin = record.origin();
    Ok(endpoints::unasked(judge, writer, origin.as_ref())?)
}

//! Judges splits with a version from the registry: also with another model than the one that it was
//! tuned for, and from the cache alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::endpoints;
use super::folder::Origin;
use super::plan::Plan;
use super::register::RunRecord;
use super::run::{Progress, RunError, watch};
use super::{evidence, spending, summary};
use crate::data::{Item, Split};
use crate::endpoint::{Endpoint, EndpointError, ErrorClass, Usage};
use crate::judge::{Judge, JudgeError, Reading, Verdict};
use crate::ledger::{Halt, Ledger, LedgerOptions, NOT_IN_CACHE, RetryPolicy, Spent};
use crate::optimize::TuneError;
use crate::prompt::Version;
use crate::registry::Measured;

/// How a version is scored.
#[derive(Clone, Debug, Default)]
pub struct ScoreOptions {
    /// What is judged.
    pub splits: Vec<Split>,
    /// The response cache; `None` keeps no answers.
    pub cache: Option<PathBuf>,
    /// Make no call: answer from the cache alone.
    pub offline: bool,
    /// Requests in flight at most, in place of what the config says.
    pub concurrency: Option<usize>,
    /// How long an endpoint may be unreachable; absent: the default.
    pub patience: Option<Duration>,
    /// What the run that made the version recorded: with it an embedded model is known offline.
    pub record: Option<RunRecord>,
}

/// What scoring found.
#[derive(Clone, Debug)]
pub struct Scored {
    /// The figures, without a date.
    pub measured: Measured,
    /// What was used.
    pub spent: Spent,
    /// Items that the version shows as demos, which are never scored.
    pub shown: usize,
    /// Items that the caps did not reach; with any, the figures are no evidence.
    pub unpaid: usize,
}

/// What asking would take: requests, and how many of them are answered in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// Answered already.
    pub cached: u64,
    /// Calls.
    pub calls: u64,
}

/// Scores a version on splits of a plan whose task it was made for.
///
/// # Errors
/// [`RunError`]; answers that were paid for are in the cache.
pub async fn score(
    plan: &Plan,
    version: &Version,
    options: &ScoreOptions,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Scored, RunError> {
    let origin = options.record.as_ref().and_then(RunRecord::origin);
    let endpoint = open(plan, options, origin.as_ref())?;
    let ledger = Ledger::open(LedgerOptions {
        dir: None,
        cache: options.cache.clone(),
        caps: spending::caps(&plan.config.budget),
        prices: spending::prices(&plan.config.budget),
        retries: RetryPolicy::patient(options.patience),
        offline: options.offline,
        charge_cached: false,
        read_only: options.offline,
    })?;
    let judge = plan.judge(endpoint.as_ref(), &ledger);
    if options.offline {
        complete(plan, version, &judge, &options.splits)?;
    }
    let work = judged(plan, version, &judge, &options.splits);
    let (splits, shown, unpaid) = watch(work, &ledger, show).await?;
    Ok(Scored {
        measured: evidence::measured(plan, endpoint.identity(), "score", splits),
        spent: ledger.spent(),
        shown,
        unpaid,
    })
}

fn open(
    plan: &Plan,
    options: &ScoreOptions,
    origin: Option<&Origin>,
) -> Result<Box<dyn Endpoint>, EndpointError> {
    if !options.offline {
        return endpoints::open_with(&plan.config.judge, options.concurrency);
    }
    Ok(endpoints::unasked(&plan.config.judge, None, origin)?.0)
}

type Arms = (
    Vec<(String, summary::Arm, Option<summary::People>)>,
    usize,
    usize,
);

async fn judged(
    plan: &Plan,
    version: &Version,
    judge: &Judge<'_>,
    splits: &[Split],
) -> Result<Arms, TuneError> {
    let measure = plan.config.search.measure;
    let (mut arms, mut shown, mut unpaid) = (Vec::new(), 0, 0);
    for &split in splits {
        let indices = usable(plan, version, split);
        shown += of_split(plan, split).len() - indices.len();
        let items: Vec<&Item> = indices.iter().map(|&i| &plan.items[i]).collect();
        let verdicts = judge.verdicts(version, &items).await?;
        let paid: BTreeMap<usize, Verdict> = indices
            .iter()
            .copied()
            .zip(verdicts)
            .filter(|(_, v)| !v.readings.contains(&Reading::Unpaid))
            .collect();
        let distances =
            summary::distances(&plan.task, version, &plan.items, &indices, &paid, measure);
        if let Some(arm) = summary::arm(&plan.items, &indices, &paid, &distances) {
            unpaid += arm.unpaid;
            let people = summary::ceiling(&plan.task, &plan.items, of_split(plan, split), measure);
            arms.push((split.as_str().to_owned(), arm, people));
        } else {
            unpaid += indices.len() - paid.len();
        }
    }
    Ok((arms, shown, unpaid))
}

fn of_split(plan: &Plan, split: Split) -> &[usize] {
    match split {
        Split::Tune => &plan.tune,
        Split::Validation => &plan.validation,
        Split::Test => &plan.test,
    }
}

/// The items of a split that are not shown as demos.
fn usable(plan: &Plan, version: &Version, split: Split) -> Vec<usize> {
    let all = of_split(plan, split).iter().copied();
    all.filter(|&i| !version.shows(&plan.items[i].id)).collect()
}

/// Offline nothing is begun that cannot be ended: how many answers are missing is said at once.
fn complete(
    plan: &Plan,
    version: &Version,
    judge: &Judge<'_>,
    splits: &[Split],
) -> Result<(), RunError> {
    let needed = needed(plan, version, judge, splits)?;
    if needed.calls == 0 {
        return Ok(());
    }
    let all = needed.calls + needed.cached;
    let message = format!(
        "{} of {all} answers of {} are not in the cache, and no call may be made: import them \
         (`pluralis cache import FILE`), or leave --offline away",
        needed.calls,
        judge.endpoint.identity().model
    );
    Err(EndpointError {
        class: ErrorClass::Stop,
        cause: NOT_IN_CACHE.into(),
        message,
        retry_after_ms: None,
        usage: Usage::default(),
    }
    .into())
}

fn needed(
    plan: &Plan,
    version: &Version,
    judge: &Judge<'_>,
    splits: &[Split],
) -> Result<Needed, RunError> {
    let mut out = Needed {
        cached: 0,
        calls: 0,
    };
    for &split in splits {
        let indices = usable(plan, version, split);
        let items: Vec<&Item> = indices.iter().map(|&i| &plan.items[i]).collect();
        let requests = judge
            .requests(version, &items)
            .map_err(|e| TuneError::from(JudgeError::from(e)))?;
        let quote = judge.ledger.quote(judge.endpoint, &requests);
        out.calls += quote.calls;
        out.cached += quote.cached;
    }
    Ok(out)
}

/// Whether a run ended only because an answer is missing, and what is said of it.
pub(super) fn missing(e: TuneError) -> Result<String, RunError> {
    match e {
        TuneError::Halt(Halt::Stop(e)) | TuneError::Judge(JudgeError::Halt(Halt::Stop(e)))
            if e.cause == NOT_IN_CACHE =>
        {
            Ok(e.message)
        }
        other => Err(other.into()),
    }
}

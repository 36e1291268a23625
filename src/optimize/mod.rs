//! Owns the search: the loop below, the pool with its frontier, the race and the stop rule.
//! Must not know HTTP, files, or the test split.

mod bandit;
mod bench;
mod candidate;
mod cards;
mod choice;
mod embed;
mod event;
mod frontier;
mod losses;
mod measure;
mod objective;
mod pool;
mod race;
mod stop;
mod strategy;
mod streams;

pub use bench::{Bench, Features, Frontier, Gate, SearchOptions, TuneError};
pub use candidate::Candidate;
pub use choice::Choice;
pub use event::Event;
pub use measure::{Scored, people, score};
pub use objective::Objective;
pub use pool::Pool;
pub use stop::{Insufficient, Look, Scope, StopOptions, StopReason, Threshold};
pub use strategy::StrategyName;
pub use streams::{Stream, Streams};

use crate::prompt::Version;

/// The main job: tunes a version until its disagreement with people on `validation` is below the
/// threshold, or the budget, the patience or the ideas run out.
///
/// # Errors
/// [`TuneError`] when the run has to stop in the middle; everything paid for is in the ledger, and
/// the same call made again goes on from there.
pub async fn tune(bench: &Bench<'_>, seed: Version) -> Result<(Pool, StopReason), TuneError> {
    if bench.search.strategy != StrategyName::Pluralis {
        return strategy::run(bench, seed, bench.search.strategy).await;
    }
    let mut pool = Pool::start(bench, seed).await?;
    let reason = loop {
        if let Some(reason) = stop::reached(bench, &mut pool).await? {
            break reason;
        }
        let parent = pool.choose_parent(bench);
        let cards = cards::of(bench, &pool, parent)?;
        let Some(proposal) = bandit::next(bench, &mut pool, parent, &cards).await? else {
            continue; // refused before a call was spent on it; patience counts it
        };
        let raced = race::run(bench, &mut pool, parent, proposal, &cards).await?;
        pool.learn(bench, raced)?;
    };
    pool.settle(bench);
    bench.emit(&Event::Stopped {
        reason: reason.clone(),
        best: pool.best().version.short(),
    })?;
    Ok((pool, reason))
}

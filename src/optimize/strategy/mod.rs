//! Other searches on the same engine, cache and budget, so that an ablation compares ideas and not
//! implementations. Must not know the test split; each strategy is one small file.
//!
//! All of them search on agreement with the people's majority (1 less the disagreement of the
//! configured measure), fit no calibration, and hand over the version with the best score of
//! their own rule. They stop when the budget or the patience is spent.

mod capo;
mod gepa;
mod hill_climb;
mod mipro;
mod opro;
mod protegi;
mod random;
mod shared;

use std::collections::BTreeMap;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::bench::{Bench, TuneError};
use super::event::Event;
use super::pool::Pool;
use super::stop::StopReason;
use crate::prompt::Version;

/// Which search is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StrategyName {
    /// This program's own loop.
    #[default]
    Pluralis,
    /// Reflection on 3 items, a strict gate on them, a Pareto pool by validation item (Agrawal et al.
    /// 2025).
    Gepa,
    /// Demo sets and instructions proposed at first, then a tree-structured Parzen estimator over
    /// the pair (Opsahl-Ong et al. 2024, MIPROv2).
    Mipro,
    /// Evolution of instructions and demos with racing and a price on length (Zehle et al. 2025).
    Capo,
    /// The writer sees the best instructions so far with their scores (Yang et al. 2023).
    Opro,
    /// Criticism of errors as a gradient, a beam, a bandit (Pryzant et al. 2023).
    Protegi,
    /// Random demo sets, each scored on validation.
    Random,
    /// Random edits, kept when disagreement on all of `tune` falls.
    HillClimb,
}

/// A search as a sequence of steps. A step that cannot be paid sets `pool.exhausted`.
pub(super) trait Strategy: Send {
    /// One proposal, or one round of them, with its evaluation.
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>>;
}

/// Runs another strategy than this program's own.
///
/// # Errors
/// As [`tune`](super::tune).
pub(super) async fn run(
    bench: &Bench<'_>,
    seed: Version,
    name: StrategyName,
) -> Result<(Pool, StopReason), TuneError> {
    let mut pool = Pool::empty(BTreeMap::new());
    let mut strategy: Box<dyn Strategy> = match name {
        StrategyName::Gepa => Box::new(gepa::Gepa::new(seed)),
        StrategyName::Mipro => Box::new(mipro::Mipro::new(seed)),
        StrategyName::Capo => Box::new(capo::Capo::new(seed)),
        StrategyName::Opro => Box::new(opro::Opro::new(seed)),
        StrategyName::Protegi => Box::new(protegi::Protegi::new(seed)),
        StrategyName::HillClimb => Box::new(hill_climb::HillClimb::new(seed)),
        StrategyName::Random | StrategyName::Pluralis => Box::new(random::Random::new(seed)),
    };
    let reason = loop {
        pool.step += 1;
        strategy.step(bench, &mut pool).await?;
        if pool.exhausted {
            break StopReason::Budget;
        }
        if pool.fruitless >= bench.stop.patience {
            break StopReason::Patience;
        }
    };
    bench.emit(&Event::Stopped {
        reason: reason.clone(),
        best: pool.best().version.short(),
    })?;
    Ok((pool, reason))
}

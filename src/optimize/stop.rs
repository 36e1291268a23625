//! The stop rule: an upper confidence bound on validation, corrected for the number of looks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bench::{Bench, TuneError};
use super::event::Event;
use super::measure::score;
use super::pool::Pool;
use crate::agreement;

/// What must be below the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Mean disagreement over all items of the split.
    #[default]
    Mean,
    /// Every locale's own mean.
    WorstLocale,
}

/// When to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StopOptions {
    /// Disagreement to fall below.
    pub threshold: f64,
    /// What must fall below it.
    pub scope: Scope,
    /// Error rate of the claim, over all looks together.
    pub alpha: f64,
    /// Proposals in a row without a passed gate after which the loop ends.
    pub patience: usize,
}

impl Default for StopOptions {
    fn default() -> Self {
        Self {
            threshold: 0.1,
            scope: Scope::Mean,
            alpha: 0.05,
            patience: 12,
        }
    }
}

/// Why the loop ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Validation disagreement is below the threshold, with confidence.
    Threshold,
    /// The calls, tokens or money that the loop may spend are spent.
    Budget,
    /// Too many proposals in a row did not help.
    Patience,
}

/// One look at validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Number of the look, from 1.
    pub look: usize,
    /// The version looked at.
    pub version: String,
    /// Items with a verdict.
    pub n: usize,
    /// Mean disagreement.
    pub disagreement: f64,
    /// Mean log loss.
    pub loss: f64,
    /// One-sided upper bound of what the scope asks for, at the alpha spent on this look.
    pub upper: f64,
    /// Error rate spent on this look.
    pub alpha: f64,
    /// Locales too small to pass at this alpha even without a single disagreement.
    pub insufficient: Vec<String>,
    /// Whether the bound is below the threshold.
    pub passed: bool,
}

/// Looks at validation if the best candidate has not been looked at, and says whether to stop.
pub(super) async fn reached(
    bench: &Bench<'_>,
    pool: &mut Pool,
) -> Result<Option<StopReason>, TuneError> {
    if let Some(candidate) = pool.unseen()
        && pool.look(bench, candidate).await?
    {
        let look = judge_look(bench, pool, candidate);
        bench.emit(&Event::Looked(look.clone()))?;
        let passed = look.passed;
        pool.looks.push(look);
        if passed {
            return Ok(Some(StopReason::Threshold));
        }
    }
    if pool.exhausted {
        return Ok(Some(StopReason::Budget));
    }
    Ok((pool.fruitless >= bench.stop.patience).then_some(StopReason::Patience))
}

fn judge_look(bench: &Bench<'_>, pool: &Pool, candidate: usize) -> Look {
    let look = pool.looks.len() + 1;
    let alpha = agreement::sequential::spend(bench.stop.alpha, look as u32);
    let c = &pool.candidates[candidate];
    let mut by_locale: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut all, mut loss) = (Vec::new(), 0.0);
    for &i in bench.validation {
        let item = &bench.items[i];
        if let Some(s) = c
            .verdicts
            .get(&i)
            .and_then(|v| score(bench.judge.task, &c.version, item, v, bench.search.measure))
        {
            by_locale
                .entry(item.locale.to_string())
                .or_default()
                .push(s.distance);
            all.push(s.distance);
            loss += s.loss;
        }
    }
    let bound =
        |values: &[f64], alpha: f64| agreement::interval::upper_bound(values, alpha).unwrap_or(1.0);
    let (upper, each) = match bench.stop.scope {
        Scope::Mean => (bound(&all, alpha), alpha),
        Scope::WorstLocale => {
            // Bonferroni over locales: the claim is about all of them at once.
            let each = alpha / by_locale.len().max(1) as f64;
            (
                by_locale
                    .values()
                    .map(|v| bound(v, each))
                    .fold(0.0, f64::max),
                each,
            )
        }
    };
    let insufficient = match bench.stop.scope {
        Scope::Mean => Vec::new(),
        Scope::WorstLocale => by_locale
            .iter()
            .filter(|(_, v)| bound(&vec![0.0; v.len()], each) >= bench.stop.threshold)
            .map(|(l, _)| l.clone())
            .collect(),
    };
    let n = all.len();
    let mean = |sum: f64| if n == 0 { 1.0 } else { sum / n as f64 };
    Look {
        look,
        version: c.version.short(),
        n,
        disagreement: mean(all.iter().sum()),
        loss: mean(loss),
        upper,
        alpha,
        insufficient,
        passed: n > 0 && upper < bench.stop.threshold,
    }
}

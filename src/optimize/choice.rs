//! Which version is handed over at the end of a search.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::bench::{Bench, TuneError};
use super::event::Event;
use super::pool::{Pool, mean};
use super::race::{by_group, chance, harm, paired, take_turns};
use crate::agreement::tail_t;

/// By what the version that is handed over is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// Least loss: on validation among those that it was looked at with, else on `tune`.
    #[default]
    LeastLoss,
    /// The largest lower bound of the gain over the seed version on the items of `tune` that both
    /// were judged on, at `gate_alpha`, among those that do no significant harm in any locale; the
    /// seed version where no bound is above 0.
    LowerBound,
}

impl Pool {
    /// Judges the leader on the rest of `tune`, where the budget pays for that and for validation
    /// after it, until one leads that was judged on all of it: what passed a race by luck falls back.
    pub(super) async fn confirm_leader(&mut self, bench: &Bench<'_>) -> Result<(), TuneError> {
        while let Some(leader) = self.unseen() {
            let missing = |pool: &Self| {
                pool.missing(bench, &pool.candidates[leader], bench.tune)
                    .len()
            };
            let before = missing(self);
            if before == 0 || !self.pays_whole_look(bench, leader) {
                break;
            }
            self.extend(bench, leader, bench.tune).await?;
            if missing(self) == before {
                break; // another cap than that on calls is reached
            }
        }
        Ok(())
    }

    /// Whether a candidate's gain over the seed version, on the items of `tune` that both were judged
    /// on, cannot be told from chance, and no edit on the way to it was proven in its race, so that
    /// validation has to say which of them is better. An edit that needs no proof passes a race by
    /// luck now and then.
    pub(super) fn is_doubtful(&self, bench: &Bench<'_>, candidate: usize) -> bool {
        let (seed, own) = (&self.candidates[0], &self.candidates[candidate]);
        // The lower bound is a guard of its own.
        let guarded = bench.search.guard_start && bench.search.choice == Choice::LeastLoss;
        if !guarded || candidate == 0 || seed.looked {
            return false;
        }
        if self.has_proof(candidate, bench.stop.alpha) {
            return false;
        }
        let both = own.losses.iter();
        let diffs: Vec<(usize, f64)> = both
            .filter_map(|(i, loss)| Some((*i, seed.losses.get(i)? - loss)))
            .collect();
        let draws = bench.streams.seed_of(candidate, "doubt");
        chance(bench, &self.weigh(0, &diffs), draws) >= bench.stop.alpha
    }

    /// Whether an edit on the way from the seed version to a candidate was proven in its race, at an
    /// error rate shared by all steps so far.
    fn has_proof(&self, candidate: usize, alpha: f64) -> bool {
        let bar = alpha / self.step.max(1) as f64;
        let up = |i: &usize| self.candidates[*i].parent;
        std::iter::successors(Some(candidate), up)
            .any(|i| self.candidates[i].proof.is_some_and(|p| p < bar))
    }

    /// The end of a search whose leader is doubtful: leader and seed version are judged on the same
    /// items of validation, as many as the budget pays for with both, and the one with less loss there
    /// is handed over. Says whether that was done: not where so few could be paid that they would say
    /// nothing, or where validation was looked at before.
    pub(super) async fn compare_with_seed(
        &mut self,
        bench: &Bench<'_>,
        leader: usize,
    ) -> Result<bool, TuneError> {
        if !self.looks.is_empty() || !self.is_doubtful(bench, leader) {
            return Ok(false);
        }
        let items = self.affordable_validation(bench, leader);
        if items.len() < bench.search.first_stage.min(bench.validation.len()) {
            return Ok(false);
        }
        if !self.look_at(bench, leader, &items).await? || !self.look_at(bench, 0, &items).await? {
            return Ok(false);
        }
        let seed = &self.candidates[0];
        let scored = seed.scored(bench, &items);
        bench.emit(&Event::Compared {
            version: seed.version.short(),
            n: scored.len(),
            disagreement: mean(scored.values().map(|s| s.distance)),
            loss: mean(scored.values().map(|s| s.loss)),
        })?;
        Ok(true)
    }

    /// As many items of validation as the budget pays for with a candidate and the seed version
    /// both, locales and labels taking turns.
    fn affordable_validation(&self, bench: &Bench<'_>, candidate: usize) -> Vec<usize> {
        let calls = |index: usize| {
            let version = &self.candidates[index].version;
            bench.judge.calls_per_item(version) as u64
        };
        let mut items = bench.validation.to_vec();
        items.shuffle(&mut bench.streams.of(0, "validation"));
        let mut items = take_turns(bench, items);
        if let Some(left) = bench.calls_left() {
            let most = left / (calls(0) + calls(candidate)).max(1);
            items.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        }
        items
    }

    /// Settles which candidate is handed over, where the least loss does not say it.
    pub(super) fn settle(&mut self, bench: &Bench<'_>) {
        if bench.search.choice == Choice::LeastLoss {
            return;
        }
        let bounds = (1..self.candidates.len()).filter_map(|i| Some((i, self.bound(bench, i)?)));
        let best = bounds.fold(
            (0, 0.0),
            |best, next| if next.1 > best.1 { next } else { best },
        );
        self.settled = Some(best.0);
    }

    /// One-sided lower bound of a candidate's gain over the seed version; `None` where it does harm
    /// in a locale, or too few items were judged with both.
    fn bound(&self, bench: &Bench<'_>, candidate: usize) -> Option<f64> {
        let (seed, own) = (&self.candidates[0], &self.candidates[candidate]);
        let plain = paired(bench, seed, own, bench.tune);
        if self.harms_a_locale(bench, &plain) {
            return None;
        }
        let sums = by_group(bench, &self.weigh(0, &plain));
        let low = lower_bound(&sums, bench.search.gate_alpha)?;
        // From the mean over groups to the mean over items.
        Some(low * sums.len() as f64 / plain.len() as f64)
    }

    /// Whether any locale loses by a sign-flip test, at `gate_alpha` over all locales.
    fn harms_a_locale(&self, bench: &Bench<'_>, diffs: &[(usize, f64)]) -> bool {
        let alpha = bench.search.gate_alpha / self.locales.len().max(1) as f64;
        (0..self.locales.len()).any(|locale| {
            let own = diffs.iter().filter(|(i, _)| self.is_of(*i, locale));
            let seed = bench.streams.seed_of(locale, "choice");
            harm(bench, own.copied(), seed) < alpha
        })
    }
}

/// One-sided Student lower bound of a mean; `None` for fewer than two values.
fn lower_bound(values: &[f64], alpha: f64) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let t = tail_t(
        1.0 - 2.0 * alpha,
        values.len().checked_sub(1).filter(|d| *d > 0)?,
    )
    .ok()?;
    Some(mean - t * (squares / (n - 1.0) / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_students() {
        // 1..5: mean 3, s = 1.5811, t(.95, 4) = 2.1318 in any table, so 3 - 2.1318 * .7071.
        let bound = lower_bound(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.05).unwrap();
        assert!((bound - 1.4926).abs() < 1e-3, "{bound}");
        assert_eq!(lower_bound(&[1.0], 0.05), None);
        assert_eq!(lower_bound(&[], 0.05), None);
    }
}

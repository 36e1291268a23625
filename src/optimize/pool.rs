//! The pool of versions that passed, and what each of them has been paid for.

use super::bandit::Arms;
use super::bench::{Bench, TuneError};
use super::candidate::Candidate;
use super::event::Event;
use super::losses::{calibrate, losses};
use super::measure::Scored;
use super::race::Raced;
use super::stop::Look;
use crate::data::Item;
use crate::judge::Reading;
use crate::ledger::Halt;
use crate::locale::Locale;
use crate::prompt::Version;
use crate::propose::Kind;

/// All candidates that passed, the seed first.
pub struct Pool {
    /// In order of admission.
    pub candidates: Vec<Candidate>,
    /// Looks at validation so far.
    pub looks: Vec<Look>,
    /// Steps of the loop so far.
    pub step: usize,
    /// Proposals in a row that did not pass.
    pub fruitless: usize,
    /// Whether a call was refused for want of budget.
    pub exhausted: bool,
    /// What is known of each kind of proposal.
    pub(super) arms: Arms,
    /// Digests of versions already tried.
    pub(super) tried: std::collections::BTreeSet<String>,
}

impl Pool {
    /// A pool with the seed version, scored on `tune`.
    pub(super) async fn start(bench: &Bench<'_>, seed: Version) -> Result<Self, TuneError> {
        let tried = [seed.digest()].into();
        let mut seed = Candidate::new(seed);
        let mut pool = Pool {
            candidates: Vec::new(),
            looks: Vec::new(),
            step: 0,
            fruitless: 0,
            exhausted: false,
            arms: Arms::new(),
            tried,
        };
        pool.judge_missing(bench, &mut seed, bench.tune).await?;
        pool.admit(bench, seed)?;
        Ok(pool)
    }

    /// Judges those of the items that the candidate has no verdict for. Sets `exhausted` when some
    /// could not be paid; what could is kept.
    pub(super) async fn judge_missing(
        &mut self,
        bench: &Bench<'_>,
        candidate: &mut Candidate,
        items: &[usize],
    ) -> Result<(), TuneError> {
        let missing: Vec<usize> = items
            .iter()
            .copied()
            .filter(|i| {
                !candidate.verdicts.contains_key(i) && !candidate.version.shows(&bench.items[*i].id)
            })
            .collect();
        let rows: Vec<&Item> = missing.iter().map(|&i| &bench.items[i]).collect();
        let verdicts = bench.judge.verdicts(&candidate.version, &rows).await?;
        for (i, verdict) in missing.into_iter().zip(verdicts) {
            if verdict.readings.contains(&Reading::Unpaid) {
                self.exhausted = true;
            } else {
                candidate.verdicts.insert(i, verdict);
            }
        }
        Ok(())
    }

    /// Recalibrates a candidate and takes it in.
    pub(super) fn admit(
        &mut self,
        bench: &Bench<'_>,
        mut candidate: Candidate,
    ) -> Result<(), Halt> {
        candidate.losses = losses(bench, &candidate, bench.tune);
        if bench.search.calibration {
            candidate.version.calibration = calibrate(bench, &candidate);
        }
        let n = candidate.losses.len();
        let scored = candidate.scored(bench, bench.tune);
        bench.emit(&Event::Scored {
            version: candidate.version.short(),
            n,
            disagreement: mean(scored.values().map(|s| s.distance)),
            loss: mean(candidate.losses.values().copied()),
        })?;
        self.tried.insert(candidate.version.digest());
        self.candidates.push(candidate);
        Ok(())
    }

    /// Takes what a race taught: admits the winner, counts the loser.
    pub(super) fn learn(&mut self, bench: &Bench<'_>, raced: Raced) -> Result<(), Halt> {
        self.arms.learn(raced.kind, raced.passed.is_some());
        match raced.passed {
            Some(child) => {
                self.fruitless = 0;
                self.admit(bench, child)
            }
            None => {
                self.fruitless += 1;
                Ok(())
            }
        }
    }

    /// Counts a proposal that was refused.
    pub(super) fn refuse(
        &mut self,
        bench: &Bench<'_>,
        kind: Kind,
        why: String,
    ) -> Result<(), Halt> {
        self.arms.learn(kind, false);
        self.fruitless += 1;
        bench.emit(&Event::Refused {
            step: self.step,
            kind: kind_name(kind),
            why,
        })
    }

    /// The leader, if validation has not been looked at with it.
    pub(super) fn unseen(&self) -> Option<usize> {
        let leader = self.leader();
        (!self.candidates[leader].looked).then_some(leader)
    }

    /// Judges validation with a candidate; false when nothing of it could be paid. The seed is
    /// looked at only while a good part of the calls remains for the search.
    pub(super) async fn look(
        &mut self,
        bench: &Bench<'_>,
        index: usize,
    ) -> Result<bool, TuneError> {
        let mut candidate = self.candidates[index].clone();
        candidate.looked = true;
        let needed =
            (bench.validation.len() * bench.judge.calls_per_item(&candidate.version)) as u64;
        let scarce = bench
            .judge
            .ledger
            .remaining_calls()
            .is_some_and(|left| index == 0 && left < 4 * needed);
        if !scarce && !bench.validation.is_empty() {
            self.judge_missing(bench, &mut candidate, bench.validation)
                .await?;
            let scored = candidate.scored(bench, bench.validation);
            // A part of the split would compare candidates on different items.
            let voted = |i: &&usize| has_votes(&bench.items[**i]);
            if scored.len() == bench.validation.iter().filter(voted).count() {
                let loss = |s: &Scored| {
                    if bench.search.loss {
                        s.loss
                    } else {
                        s.distance
                    }
                };
                candidate.validation_loss = Some(mean(scored.values().map(loss)));
            }
        }
        let told = candidate.validation_loss.is_some();
        self.candidates[index] = candidate;
        Ok(told)
    }
}

fn has_votes(item: &Item) -> bool {
    item.votes.iter().any(|v| v.total() > 0)
}

/// The name of a kind of proposal, as in configs and logs.
pub(super) fn kind_name(kind: Kind) -> String {
    serde_json::to_value(kind)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Locales of some items, sorted.
pub(super) fn locales(bench: &Bench<'_>, items: &[usize]) -> Vec<Locale> {
    let set: std::collections::BTreeSet<_> = items
        .iter()
        .map(|&i| bench.items[i].locale.clone())
        .collect();
    set.into_iter().collect()
}

/// The mean, or infinity where there is nothing, so that nothing never wins.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut n, mut sum) = (0.0, 0.0);
    for v in values {
        n += 1.0;
        sum += v;
    }
    if n == 0.0 { f64::INFINITY } else { sum / n }
}

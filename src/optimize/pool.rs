//! The pool of versions that passed, and what each of them has been paid for.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;

use super::bandit::Arms;
use super::bench::{Bench, TuneError};
use super::candidate::Candidate;
use super::embed;
use super::event::Event;
use super::losses::{calibrate, losses};
use super::measure::Scored;
use super::objective::Objective;
use super::race::{Raced, take_turns};
use super::stop::Look;
use crate::data::Item;
use crate::judge::Reading;
use crate::ledger::Halt;
use crate::locale::Locale;
use crate::prompt::Version;
use crate::propose::Kind;

/// The budget is ample when it would pay for so many readings of `tune`.
const AMPLE: u64 = 10;

/// The budget is scarce when it began with less than so many readings of `tune`.
const SCARCE: u64 = 3;

/// Label words are compared without demos where the budget began with so many readings of `tune`: a
/// heat and the race of its winner may take one.
const WORDS_ALONE: u64 = 4;

/// At most one of so many calls of a budget stays for the end of the search: a budget that is small
/// beside the splits is worth more as search than as a figure of validation.
const END_SHARE: u64 = 3;

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
    /// The candidate that is handed over, where the search is over and its choice is settled.
    pub(super) settled: Option<usize>,
    /// Calls that the search had when it began; `None` without a cap.
    budget: Option<u64>,
    /// What the search works for.
    pub(super) objective: Objective,
    /// Locales of `tune`; their positions are their numbers.
    pub(super) locales: Vec<Locale>,
    /// Number of the locale by item of both splits.
    pub(super) locale_of: BTreeMap<usize, usize>,
    /// Vectors of tuning items, where the search clusters by them.
    pub(super) embeddings: BTreeMap<usize, Vec<f32>>,
    /// What is known of each kind of proposal.
    pub(super) arms: Arms,
    /// Kinds that have nothing (more) to offer for a candidate, by its position.
    pub(super) barren: std::collections::BTreeSet<(usize, Kind)>,
    /// Kinds that come once in a run, and came.
    pub(super) done: std::collections::BTreeSet<Kind>,
    /// Digests of versions already tried.
    pub(super) tried: std::collections::BTreeSet<String>,
}

impl Pool {
    /// A pool with the seed version, scored on `tune`.
    pub(super) async fn start(bench: &Bench<'_>, seed: Version) -> Result<Self, TuneError> {
        let budget = bench.calls_left();
        let locales = locales(bench, bench.tune);
        let mut pool = Pool {
            budget,
            objective: bench.search.objective,
            locale_of: numbers(bench, &locales),
            locales,
            ..Pool::empty(embed::of_tune(bench).await?)
        };
        let mut seed = Candidate::new(seed);
        let first = pool.first_items(bench, &seed.version);
        pool.judge_missing(bench, &mut seed, &first).await?;
        pool.admit(bench, seed)?;
        Ok(pool)
    }

    /// A pool without candidates.
    pub(super) fn empty(embeddings: BTreeMap<usize, Vec<f32>>) -> Self {
        Pool {
            candidates: Vec::new(),
            looks: Vec::new(),
            step: 0,
            fruitless: 0,
            exhausted: false,
            settled: None,
            budget: None,
            objective: Objective::MEAN,
            locales: Vec::new(),
            locale_of: BTreeMap::new(),
            embeddings,
            arms: Arms::new(),
            barren: std::collections::BTreeSet::new(),
            done: std::collections::BTreeSet::new(),
            tried: std::collections::BTreeSet::new(),
        }
    }

    /// Counts a step that helped, or one more in a row that did not.
    pub(super) fn count(&mut self, helped: bool) {
        self.fruitless = if helped { 0 } else { self.fruitless + 1 };
    }

    /// What the seed version is scored on at first: all of `tune` where the budget is ample, else a
    /// balanced part of it, to which races add what they need.
    fn first_items(&self, bench: &Bench<'_>, seed: &Version) -> Vec<usize> {
        if ample(bench, seed) {
            return bench.tune.to_vec();
        }
        let mut items = bench.tune.to_vec();
        items.shuffle(&mut bench.streams.of(0, "first items"));
        let mut items = take_turns(bench, items);
        items.truncate(bench.search.first_stage.max(1));
        items
    }

    /// Whether the search began with little more than a reading or two of `tune`.
    pub(super) fn is_scarce(&self, bench: &Bench<'_>, version: &Version) -> bool {
        self.began_below(SCARCE, bench, version)
    }

    /// Whether the search began with enough to compare label words without demos.
    pub(super) fn pays_for_words(&self, bench: &Bench<'_>, version: &Version) -> bool {
        !self.began_below(WORDS_ALONE, bench, version)
    }

    fn began_below(&self, readings: u64, bench: &Bench<'_>, version: &Version) -> bool {
        let reading = reading(bench, version);
        self.budget.is_some_and(|calls| calls < readings * reading)
    }

    /// Calls that stay for the end of the search, as far as they are no more than their share of the
    /// budget: to look at validation with a candidate that leads, and to score it on the rest of
    /// `tune`, which its calibration needs, and which tells luck in a race from a gain.
    pub(super) fn reserve(&self, bench: &Bench<'_>, candidate: &Candidate) -> u64 {
        if candidate.looked {
            return 0;
        }
        let most = self.budget.map_or(u64::MAX, |calls| calls / END_SHARE);
        let (tune, validation) = self.ending(bench, candidate);
        [tune + validation, validation]
            .into_iter()
            .find(|&calls| calls <= most)
            .unwrap_or(0)
    }

    /// Calls that the rest of `tune`, and validation, take with a candidate.
    fn ending(&self, bench: &Bench<'_>, candidate: &Candidate) -> (u64, u64) {
        let calls = |split| self.calls(bench, candidate, split) as u64;
        (calls(bench.tune), calls(bench.validation))
    }

    /// Calls that judging a candidate on the items takes, beyond those that it was judged on.
    pub(super) fn calls(&self, bench: &Bench<'_>, candidate: &Candidate, items: &[usize]) -> usize {
        self.missing(bench, candidate, items).len() * bench.judge.calls_per_item(&candidate.version)
    }

    /// Whether so many more calls can be paid without touching what the leader's end takes.
    pub(super) fn affords(&self, bench: &Bench<'_>, calls: usize) -> bool {
        let reserve = self.reserve(bench, &self.candidates[self.leader()]);
        self.leaves(bench, calls as u64, reserve)
    }

    /// Whether a stage of a race can be paid: what it takes with the parent and with the child, and
    /// after it what the child's end takes, should it pass.
    pub(super) fn affords_stage(
        &self,
        bench: &Bench<'_>,
        parent: usize,
        child: &Candidate,
        stage: &[usize],
    ) -> bool {
        let own = self.calls(bench, child, stage);
        let calls = own + self.calls(bench, &self.candidates[parent], stage);
        let end = self.reserve(bench, child).saturating_sub(own as u64);
        self.affords(bench, calls) && self.leaves(bench, calls as u64, end)
    }

    fn leaves(&self, bench: &Bench<'_>, calls: u64, reserve: u64) -> bool {
        let left = bench.calls_left();
        left.is_none_or(|left| left >= calls + reserve)
    }

    /// Those of the items that a candidate can be judged on and was not.
    pub(super) fn missing(
        &self,
        bench: &Bench<'_>,
        candidate: &Candidate,
        items: &[usize],
    ) -> Vec<usize> {
        let wanted = |i: &usize| {
            !candidate.verdicts.contains_key(i) && !candidate.version.shows(&bench.items[*i].id)
        };
        items.iter().copied().filter(wanted).collect()
    }

    /// Judges a candidate of the pool on more of `tune` and fits its calibration anew.
    pub(super) async fn extend(
        &mut self,
        bench: &Bench<'_>,
        index: usize,
        items: &[usize],
    ) -> Result<(), TuneError> {
        let mut candidate = self.candidates[index].clone();
        let before = candidate.verdicts.len();
        self.judge_missing(bench, &mut candidate, items).await?;
        if candidate.verdicts.len() > before {
            self.refit(bench, &mut candidate)?;
            self.candidates[index] = candidate;
        }
        Ok(())
    }

    /// Judges those of the items that the candidate has no verdict for. Sets `exhausted` when some
    /// could not be paid; what could is kept.
    pub(super) async fn judge_missing(
        &mut self,
        bench: &Bench<'_>,
        candidate: &mut Candidate,
        items: &[usize],
    ) -> Result<(), TuneError> {
        let missing = self.missing(bench, candidate, items);
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
        self.refit(bench, &mut candidate)?;
        self.candidates.push(candidate);
        Ok(())
    }

    /// Losses and calibration of a candidate from the verdicts that it has on `tune`.
    fn refit(&mut self, bench: &Bench<'_>, candidate: &mut Candidate) -> Result<(), Halt> {
        candidate.losses = losses(bench, candidate, bench.tune);
        if bench.search.calibration {
            candidate.version.calibration = calibrate(bench, candidate);
        }
        let scored = candidate.scored(bench, bench.tune);
        bench.emit(&Event::Scored {
            version: candidate.version.short(),
            n: candidate.losses.len(),
            disagreement: mean(scored.values().map(|s| s.distance)),
            loss: mean(candidate.losses.values().copied()),
        })?;
        self.tried.insert(candidate.version.digest());
        Ok(())
    }

    /// Takes what a race taught: admits the winner, counts the loser.
    pub(super) fn learn(&mut self, bench: &Bench<'_>, raced: Raced) -> Result<(), Halt> {
        self.arms.learn(raced.kind, raced.passed.is_some());
        self.count(raced.passed.is_some());
        raced
            .passed
            .map_or(Ok(()), |child| self.admit(bench, child))
    }

    /// Counts a proposal that was refused.
    pub(super) fn refuse(
        &mut self,
        bench: &Bench<'_>,
        kind: Kind,
        why: String,
    ) -> Result<(), Halt> {
        self.arms.learn(kind, false);
        self.count(false);
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

    /// Whether the budget pays for the rest of `tune` and for validation with a candidate.
    pub(super) fn pays_whole_look(&self, bench: &Bench<'_>, index: usize) -> bool {
        let (tune, validation) = self.ending(bench, &self.candidates[index]);
        bench
            .calls_left()
            .is_none_or(|left| left >= tune + validation)
    }

    /// Judges validation with a candidate, after what is missing of `tune`, so that the version
    /// that is looked at does not change afterwards. Where the budget does not pay for both, `tune`
    /// is left as it is; where it does not pay for validation, what is left goes to `tune`, and the
    /// answer is false.
    pub(super) async fn look(
        &mut self,
        bench: &Bench<'_>,
        index: usize,
    ) -> Result<bool, TuneError> {
        let (_, validation) = self.ending(bench, &self.candidates[index]);
        let pays = bench.calls_left().is_none_or(|left| left >= validation);
        if !pays || self.pays_whole_look(bench, index) {
            self.extend(bench, index, bench.tune).await?;
        }
        if !pays {
            self.candidates[index].looked = true;
            return Ok(false);
        }
        self.look_at(bench, index, bench.validation).await
    }

    /// Judges a candidate on items of validation; says whether its loss there is known now, which it
    /// is where all of them could be judged: fewer would compare candidates on different items.
    pub(super) async fn look_at(
        &mut self,
        bench: &Bench<'_>,
        index: usize,
        items: &[usize],
    ) -> Result<bool, TuneError> {
        let mut candidate = self.candidates[index].clone();
        candidate.looked = true;
        self.judge_missing(bench, &mut candidate, items).await?;
        let scored = candidate.scored(bench, items);
        let voted = |i: &&usize| has_votes(&bench.items[**i]);
        if !scored.is_empty() && scored.len() == items.iter().filter(voted).count() {
            let loss = |s: &Scored| {
                if bench.search.loss {
                    s.loss
                } else {
                    s.distance
                }
            };
            let losses = scored.iter().map(|(i, s)| (*i, loss(s))).collect();
            candidate.validation_loss = Some(self.value(&losses));
        }
        let told = candidate.validation_loss.is_some();
        self.candidates[index] = candidate;
        Ok(told)
    }
}

/// Whether what is left of the budget pays for many readings of `tune` with a version.
pub(super) fn ample(bench: &Bench<'_>, version: &Version) -> bool {
    let reading = reading(bench, version);
    bench
        .calls_left()
        .is_none_or(|left| left >= AMPLE * reading)
}

/// Calls that a reading of all of `tune` takes with a version.
fn reading(bench: &Bench<'_>, version: &Version) -> u64 {
    (bench.tune.len() * bench.judge.calls_per_item(version)) as u64
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

/// The number of its locale for each item of both splits. A locale of validation alone has the
/// number after the last.
fn numbers(bench: &Bench<'_>, locales: &[Locale]) -> BTreeMap<usize, usize> {
    let number = |i: &usize| {
        let own = &bench.items[*i].locale;
        locales
            .iter()
            .position(|l| l == own)
            .unwrap_or(locales.len())
    };
    let both = bench.tune.iter().chain(bench.validation);
    both.map(|i| (*i, number(i))).collect()
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

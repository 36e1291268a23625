//! The pool of versions that passed, with the frontier by locale.

use std::collections::BTreeMap;

use rand::RngExt;

use super::bandit::Arms;
use super::bench::{Bench, TuneError};
use super::event::Event;
use super::measure::{log_loss, score};
use super::race::Raced;
use super::stop::Look;
use crate::agreement;
use crate::data::Item;
use crate::judge::{Example, Reading, Verdict, fit, out_of_fold};
use crate::ledger::Halt;
use crate::locale::Locale;
use crate::prompt::{Calibration, Edit, Version};
use crate::propose::Kind;

/// Folds of the out-of-fold calibration.
const FOLDS: usize = 5;

/// A version under test with the verdicts it has been paid for.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The version, with its calibration.
    pub version: Version,
    /// Verdicts by item index, of `tune` and `validation`.
    pub verdicts: BTreeMap<usize, Verdict>,
    /// Loss by tuning item, with the calibration fitted out of fold.
    pub losses: BTreeMap<usize, f64>,
    /// Position of the parent in the pool.
    pub parent: Option<usize>,
    /// The edit that made it.
    pub edit: Option<Edit>,
    /// The card that the edit answers.
    pub card: Option<String>,
    /// Whether validation was looked at with it.
    pub looked: bool,
    /// Mean validation loss, once looked at.
    pub validation_loss: Option<f64>,
}

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
        let seed = Candidate {
            version: seed,
            verdicts: BTreeMap::new(),
            losses: BTreeMap::new(),
            parent: None,
            edit: None,
            card: None,
            looked: false,
            validation_loss: None,
        };
        let mut pool = Pool {
            candidates: Vec::new(),
            looks: Vec::new(),
            step: 0,
            fruitless: 0,
            exhausted: false,
            arms: Arms::new(),
            tried,
        };
        let mut seed = seed;
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
        let scored: Vec<f64> = bench
            .tune
            .iter()
            .filter_map(|i| {
                Some(
                    score(
                        bench.judge.task,
                        &candidate.version,
                        &bench.items[*i],
                        candidate.verdicts.get(i)?,
                        bench.search.measure,
                    )?
                    .distance,
                )
            })
            .collect();
        bench.emit(&Event::Scored {
            version: candidate.version.short(),
            n,
            disagreement: mean(scored.iter().copied()),
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

    /// Position of the candidate with the least loss on `tune`.
    pub fn leader(&self) -> usize {
        let loss = |i: usize| mean(self.candidates[i].losses.values().copied());
        (0..self.candidates.len()).fold(0, |best, i| if loss(i) < loss(best) { i } else { best })
    }

    /// The candidate to hand over: least loss on validation among those looked at; the leader on
    /// `tune` where validation was never paid for.
    pub fn best(&self) -> &Candidate {
        let looked = self
            .candidates
            .iter()
            .filter(|c| c.validation_loss.is_some());
        looked
            .min_by(|a, b| {
                a.validation_loss
                    .partial_cmp(&b.validation_loss)
                    .unwrap_or(std::cmp::Ordering::Equal)
            })
            .unwrap_or(&self.candidates[self.leader()])
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
            let scored: Vec<_> = bench
                .validation
                .iter()
                .filter_map(|i| {
                    score(
                        bench.judge.task,
                        &candidate.version,
                        &bench.items[*i],
                        candidate.verdicts.get(i)?,
                        bench.search.measure,
                    )
                })
                .collect();
            // A part of the split would compare candidates on different items.
            if scored.len()
                == bench
                    .validation
                    .iter()
                    .filter(|&&i| has_votes(&bench.items[i]))
                    .count()
            {
                candidate.validation_loss = Some(mean(scored.iter().map(|s| {
                    if bench.search.loss {
                        s.loss
                    } else {
                        s.distance
                    }
                })));
            }
        }
        let told = candidate.validation_loss.is_some();
        self.candidates[index] = candidate;
        Ok(told)
    }

    /// Draws a parent in proportion to the number of locales for which it is the best.
    pub(super) fn choose_parent(&mut self, bench: &Bench<'_>) -> usize {
        self.step += 1;
        let mut held = vec![0u32; self.candidates.len()];
        held[self.leader()] += 1;
        for locale in locales(bench, bench.tune) {
            let loss = |c: &Candidate| {
                mean(
                    c.losses
                        .iter()
                        .filter(|(i, _)| bench.items[**i].locale == locale)
                        .map(|(_, l)| *l),
                )
            };
            let best = (0..self.candidates.len()).fold(0, |best, i| {
                if loss(&self.candidates[i]) < loss(&self.candidates[best]) {
                    i
                } else {
                    best
                }
            });
            held[best] += 1;
        }
        let mut draw = bench
            .streams
            .of(self.step, "parent")
            .random_range(0..held.iter().sum::<u32>());
        for (i, h) in held.iter().enumerate() {
            if draw < *h {
                return i;
            }
            draw -= h;
        }
        0
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

struct Row {
    item: usize,
    scores: Vec<f64>,
    target: Vec<f64>,
}

/// The answered items of one criterion that have probabilities and votes.
fn rows(bench: &Bench<'_>, candidate: &Candidate, items: &[usize], criterion: usize) -> Vec<Row> {
    items
        .iter()
        .filter_map(|&item| {
            let Reading::Scores { scores } = &candidate.verdicts.get(&item)?.readings[criterion]
            else {
                return None;
            };
            let target =
                agreement::target_distribution(&bench.items[item].votes[criterion].counts)?;
            Some(Row {
                item,
                scores: scores.clone(),
                target,
            })
        })
        .collect()
}

fn examples<'a>(bench: &'a Bench<'_>, rows: &'a [Row]) -> Vec<Example<'a>> {
    rows.iter()
        .map(|r| Example {
            scores: &r.scores,
            target: &r.target,
            locale: &bench.items[r.item].locale,
        })
        .collect()
}

/// Fits the calibration of a candidate on the tuning items that it has verdicts for.
fn calibrate(bench: &Bench<'_>, candidate: &Candidate) -> Calibration {
    let mut calibration = Calibration::default();
    for (c, criterion) in bench.judge.task.criteria.iter().enumerate() {
        let rows = rows(bench, candidate, bench.tune, c);
        if !rows.is_empty() {
            calibration.criteria.insert(
                criterion.name.clone(),
                fit(
                    &examples(bench, &rows),
                    criterion.labels.len(),
                    bench.search.calibration_options(),
                ),
            );
        }
    }
    calibration
}

/// Search loss by item. With calibration on, it is fitted out of fold on these very items, so that
/// neither side of a comparison is judged by a threshold it was fitted on.
pub(super) fn losses(
    bench: &Bench<'_>,
    candidate: &Candidate,
    items: &[usize],
) -> BTreeMap<usize, f64> {
    let (task, search) = (bench.judge.task, bench.search);
    let mut plain = candidate.version.clone();
    if search.calibration {
        plain.calibration = Calibration::default();
    }
    let mut out = BTreeMap::new();
    for &i in items {
        if let Some(s) = candidate
            .verdicts
            .get(&i)
            .and_then(|v| score(task, &plain, &bench.items[i], v, search.measure))
        {
            out.insert(i, if search.loss { s.loss } else { s.distance });
        }
    }
    if !search.calibration {
        return out;
    }
    let judged = task.criteria.len() as f64;
    for (c, criterion) in task.criteria.iter().enumerate() {
        let rows = rows(bench, candidate, items, c);
        let folded = out_of_fold(
            &examples(bench, &rows),
            criterion.labels.len(),
            search.calibration_options(),
            FOLDS,
            &|i| i % FOLDS,
        );
        let (values, abstain) = (criterion.values(), criterion.abstains());
        for (row, probs) in rows.iter().zip(folded) {
            let Some(total) = out.get_mut(&row.item) else {
                continue;
            };
            let counts = &bench.items[row.item].votes[c].counts;
            let loss = |probs: &[f64]| {
                if search.loss {
                    return log_loss(probs, &row.target);
                }
                let label =
                    (0..probs.len()).fold(0, |b, l| if probs[l] > probs[b] { l } else { b });
                agreement::disagreement(
                    search.measure,
                    agreement::ScaleView {
                        values: &values,
                        abstain: &abstain,
                    },
                    counts,
                    Some(label),
                )
                .unwrap_or(1.0)
            };
            let raw = Calibration::default().apply(
                &criterion.name,
                &row.scores,
                &bench.items[row.item].locale,
            );
            *total += (loss(&probs) - loss(&raw)) / judged;
        }
    }
    out
}

//! GEPA (Agrawal et al. 2025; defaults of the reference implementation 0.1.4): a parent from the
//! Pareto front by validation item, reflection on the next 3 tuning items, a strict gate on the same
//! 3, then all of validation.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rand::RngExt;
use rand::seq::SliceRandom;

use super::Strategy;
use super::shared::{affords, agreement, ask, example, instruct, instruction, keep_by_validation};
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::event::Event;
use crate::optimize::pool::Pool;
use crate::optimize::streams::Stream;
use crate::prompt::Version;

const MINIBATCH: usize = 3;

/// GEPA.
pub(super) struct Gepa {
    seed: Version,
    epoch: Vec<usize>,
    /// Agreement by validation item, by candidate.
    scores: Vec<BTreeMap<usize, f64>>,
}

impl Gepa {
    pub(super) fn new(seed: Version) -> Self {
        Self {
            seed,
            epoch: Vec::new(),
            scores: Vec::new(),
        }
    }

    async fn go(&mut self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        if pool.candidates.is_empty() {
            let seed = Candidate::new(self.seed.clone());
            self.scores
                .push(keep_by_validation(bench, pool, seed).await?);
            return Ok(());
        }
        if !affords(bench, &self.seed, 2 * MINIBATCH + bench.validation.len()) {
            pool.exhausted = true;
            return Ok(());
        }
        let parent = self.parent(&mut bench.streams.of(pool.step, "parent"));
        let batch = self.batch(bench, &mut bench.streams.of(pool.step, "epoch"));
        let mut old = pool.candidates[parent].clone();
        let before: f64 = agreement(bench, pool, &mut old, &batch)
            .await?
            .values()
            .sum();
        pool.candidates[parent] = old.clone();
        if before >= batch.len() as f64 {
            pool.count(false); // all three agree: nothing to reflect on
            return Ok(());
        }
        let prompt = reflection(bench, &old, &batch);
        let text = ask(bench, pool, prompt, 1.0, pool.step as u32).await?;
        let Some((edit, version)) = text.and_then(|t| instruct(bench, &old.version, &t)) else {
            pool.count(false);
            return Ok(());
        };
        bench.emit(&Event::Proposed {
            step: pool.step,
            parent: old.version.short(),
            kind: "reflect".into(),
            card: None,
            edit: edit.clone(),
            child: version.short(),
        })?;
        let mut child = Candidate {
            parent: Some(parent),
            edit: Some(edit),
            ..Candidate::new(version)
        };
        let after: f64 = agreement(bench, pool, &mut child, &batch)
            .await?
            .values()
            .sum();
        let passed = after > before;
        bench.emit(&Event::Raced {
            child: child.version.short(),
            n: batch.len(),
            gain: (after - before) / batch.len() as f64,
            p: None,
            outcome: if passed { "passed" } else { "dropped" }.into(),
        })?;
        if passed {
            let held = pool.candidates.len();
            let scores = keep_by_validation(bench, pool, child).await?;
            if pool.candidates.len() > held {
                self.scores.push(scores);
            }
        }
        pool.count(passed);
        Ok(())
    }

    /// Drawn in proportion to the validation items on which a candidate is among the best, after
    /// candidates that are best only where others are too have been left out, worst mean first.
    fn parent(&self, rng: &mut Stream) -> usize {
        let items: BTreeSet<usize> = self.scores.iter().flat_map(|s| s.keys().copied()).collect();
        let mut fronts: Vec<BTreeSet<usize>> = Vec::new();
        for i in &items {
            let score = |c: usize| self.scores[c].get(i).copied().unwrap_or(-1.0);
            let top = (0..self.scores.len()).map(score).fold(f64::MIN, f64::max);
            fronts.push(
                (0..self.scores.len())
                    .filter(|&c| score(c) == top)
                    .collect(),
            );
        }
        let mean = |c: usize| super::shared::average(&self.scores[c]);
        let mut order: Vec<usize> = (0..self.scores.len()).collect();
        order.sort_by(|&a, &b| mean(a).total_cmp(&mean(b)));
        for c in order {
            if fronts.iter().all(|f| !f.contains(&c) || f.len() > 1) {
                fronts.iter_mut().for_each(|f| {
                    f.remove(&c);
                });
            }
        }
        let held: Vec<usize> = fronts.iter().flatten().copied().collect();
        if held.is_empty() {
            return 0;
        }
        held[rng.random_range(0..held.len())]
    }

    /// The next items of a shuffled epoch of `tune`.
    fn batch(&mut self, bench: &Bench<'_>, rng: &mut Stream) -> Vec<usize> {
        let size = MINIBATCH.min(bench.tune.len());
        if self.epoch.len() < size {
            let mut next = bench.tune.to_vec();
            next.shuffle(rng);
            next.append(&mut self.epoch);
            self.epoch = next;
        }
        self.epoch.split_off(self.epoch.len() - size)
    }
}

impl Strategy for Gepa {
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>> {
        self.go(bench, pool).boxed()
    }
}

fn reflection(bench: &Bench<'_>, parent: &Candidate, batch: &[usize]) -> String {
    let seen: Vec<String> = batch
        .iter()
        .map(|&i| example(bench, Some(parent), i))
        .collect();
    format!(
        "An assistant judges items under this instruction:\n```\n{}\n```\nHow it fared on some items, and what people said of them:\n{}\nWork out from these what the task is and which facts and strategies the assistant lacks. Write a better instruction for it. Answer with the new instruction alone, between ``` fences.",
        instruction(&parent.version),
        seen.join("\n")
    )
}

//! ProTeGi (Pryzant et al. 2023): for each instruction of a beam of 4, 4 criticisms of its errors on a
//! minibatch of 64, one edit for each and 2 paraphrases of it; a UCB bandit keeps the best 4.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rand::seq::SliceRandom;

use super::Strategy;
use super::shared::{
    affords, agreement, ask, average, example, instruct, instruction, keep, keep_new,
};
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::pool::Pool;
use crate::prompt::Version;

const BEAM: usize = 4;
const MINIBATCH: usize = 64;
/// Errors shown to the writer at once, and criticisms asked of it.
const ERRORS: usize = 4;
const GRADIENTS: u32 = 4;
const PARAPHRASES: u32 = 2;
/// Successors of one instruction that go into the bandit.
const SUCCESSORS: usize = 8;
/// Items of one pull, and pulls, of the bandit.
const PULL: usize = 16;
const PULLS: usize = 24;
/// Weight of what is not known in the bandit.
const EXPLORATION: f64 = 1.0;

/// ProTeGi.
pub(super) struct Protegi {
    seed: Version,
    beam: Vec<Candidate>,
}

impl Protegi {
    pub(super) fn new(seed: Version) -> Self {
        Self {
            seed,
            beam: Vec::new(),
        }
    }

    async fn go(&mut self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        if pool.candidates.is_empty() {
            let mut seed = Candidate::new(self.seed.clone());
            let batch = shuffled(bench, pool, 0, MINIBATCH);
            let scores = agreement(bench, pool, &mut seed, &batch).await?;
            self.beam = vec![seed.clone()];
            return keep(bench, pool, seed, average(&scores), scores.len());
        }
        let mut all = self.beam.clone();
        for (at, parent) in self.beam.clone().into_iter().enumerate() {
            if !affords(bench, &parent.version, MINIBATCH) {
                pool.exhausted = true;
                break;
            }
            all.extend(expand(bench, pool, parent, at as u64).await?);
        }
        self.beam = select(bench, pool, all).await?;
        let better = keep_new(bench, pool, &self.beam, |_| 0.0)?;
        pool.count(better);
        Ok(())
    }
}

/// Instructions that criticism of the parent's errors leads to.
async fn expand(
    bench: &Bench<'_>,
    pool: &mut Pool,
    mut parent: Candidate,
    at: u64,
) -> Result<Vec<Candidate>, TuneError> {
    let batch = shuffled(bench, pool, at + 1, MINIBATCH);
    let scores = agreement(bench, pool, &mut parent, &batch).await?;
    let wrong: Vec<usize> = scores
        .iter()
        .filter(|(_, s)| **s < 1.0)
        .map(|(i, _)| *i)
        .collect();
    let now = instruction(&parent.version);
    let mut texts = Vec::new();
    for g in 0..GRADIENTS {
        let mut shown = wrong.clone();
        shown.shuffle(&mut bench.streams.of(pool.step, &format!("errors {at} {g}")));
        shown.truncate(ERRORS);
        let errors: Vec<String> = shown
            .iter()
            .map(|&i| example(bench, Some(&parent), i))
            .collect();
        let errors = errors.join("\n");
        let why = format!(
            "A judge works under this instruction:\n{now}\nIt is wrong on:\n{errors}\nGive one reason why the instruction leads to these errors."
        );
        let Some(reason) = ask(bench, pool, why, 0.0, g + 10 * at as u32).await? else {
            continue;
        };
        let mend = format!(
            "A judge works under this instruction:\n{now}\nIt is wrong on:\n{errors}\nThe reason: {reason}\nWrite a better instruction. Answer with it alone, between ``` fences."
        );
        let Some(text) = ask(bench, pool, mend, 0.0, g + 10 * at as u32).await? else {
            continue;
        };
        for p in 0..PARAPHRASES {
            let say = format!(
                "Say this in other words, with the same meaning, between ``` fences:\n{text}"
            );
            texts.extend(ask(bench, pool, say, 1.0, p + 10 * g + 100 * at as u32).await?);
        }
        texts.push(text);
    }
    let mut out = Vec::new();
    for text in texts {
        if let Some((edit, version)) = instruct(bench, &parent.version, &text)
            && pool.tried.insert(version.digest())
        {
            out.push(Candidate {
                parent: Some(0),
                edit: Some(edit),
                ..Candidate::new(version)
            });
        }
    }
    out.shuffle(&mut bench.streams.of(pool.step, &format!("successors {at}")));
    out.truncate(SUCCESSORS);
    Ok(out)
}

/// The best of the candidates by a UCB bandit whose pulls are minibatches of `tune`.
async fn select(
    bench: &Bench<'_>,
    pool: &mut Pool,
    mut all: Vec<Candidate>,
) -> Result<Vec<Candidate>, TuneError> {
    let mut sums = vec![(0.0f64, 0.0f64); all.len()];
    for t in 0..PULLS {
        let value = |&(sum, n): &(f64, f64)| {
            if n == 0.0 {
                return f64::INFINITY;
            }
            sum / n + EXPLORATION * ((t.max(1) as f64).ln() / n).sqrt()
        };
        let arm = (0..all.len()).fold(0, |b, i| {
            if value(&sums[i]) > value(&sums[b]) {
                i
            } else {
                b
            }
        });
        if !affords(bench, &all[arm].version, PULL) {
            pool.exhausted = true;
            break;
        }
        let batch = shuffled(bench, pool, 100 + t as u64, PULL);
        let scores = agreement(bench, pool, &mut all[arm], &batch).await?;
        sums[arm] = (sums[arm].0 + average(&scores), sums[arm].1 + 1.0);
    }
    let mean = |i: usize| {
        if sums[i].1 == 0.0 {
            -1.0
        } else {
            sums[i].0 / sums[i].1
        }
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| mean(b).total_cmp(&mean(a)));
    order.truncate(BEAM);
    Ok(order.into_iter().map(|i| all[i].clone()).collect())
}

fn shuffled(bench: &Bench<'_>, pool: &Pool, salt: u64, n: usize) -> Vec<usize> {
    let mut items = bench.tune.to_vec();
    items.shuffle(&mut bench.streams.of(pool.step, &format!("minibatch {salt}")));
    items.truncate(n);
    items
}

impl Strategy for Protegi {
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>> {
        self.go(bench, pool).boxed()
    }
}

//! MIPROv2 (Opsahl-Ong et al. 2024; defaults of its reference implementation, `auto = light`): 6
//! demo sets and 3 instructions are made at first; a tree-structured Parzen estimator chooses
//! pairs, each is scored on a minibatch of validation, and the best average on all of it now and
//! then.

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rand::RngExt;
use rand::seq::SliceRandom;

use super::Strategy;
use super::shared::{
    affords, agreement, ask, average, example, instruct, instruction, keep, keep_by_validation,
    random_demos,
};
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::event::Event;
use crate::optimize::pool::Pool;
use crate::optimize::streams::Stream;
use crate::prompt::{Demo, Edit, Version};

/// Demo sets, and with them instructions half as many.
const SETS: usize = 6;
/// Labelled demos, and bootstrapped ones, of a set at most.
const DEMOS: usize = 4;
const MINIBATCH: usize = 35;
/// Trials between two full evaluations.
const FULL_EVERY: usize = 5;
/// Trials before the estimator chooses.
const STARTUP: usize = 10;
/// Pairs that the estimator compares.
const COMPARED: usize = 24;
/// Tips that make proposals differ.
const TIPS: [&str; 3] = [
    "Keep it simple and clear.",
    "Be descriptive, and say what to look out for.",
    "Say who the judge is and what is at stake.",
];

/// MIPROv2.
pub(super) struct Mipro {
    seed: Version,
    instructions: Vec<String>,
    sets: Vec<Vec<Demo>>,
    trials: Vec<Trial>,
    whole: Vec<(usize, usize)>,
}

/// One observation of a pair (instruction, demo set).
struct Trial {
    pair: (usize, usize),
    score: f64,
}

impl Mipro {
    pub(super) fn new(seed: Version) -> Self {
        Self {
            seed,
            instructions: Vec::new(),
            sets: Vec::new(),
            trials: Vec::new(),
            whole: Vec::new(),
        }
    }

    async fn go(&mut self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        if pool.candidates.is_empty() {
            let seed = Candidate::new(self.seed.clone());
            let scores = keep_by_validation(bench, pool, seed).await?;
            self.make_sets(bench, pool).await?;
            self.make_instructions(bench, pool).await?;
            self.whole.push((0, 0));
            self.trials.push(Trial {
                pair: (0, 0),
                score: average(&scores),
            });
            return Ok(());
        }
        if self.trials.len().is_multiple_of(FULL_EVERY + 1) {
            return self.evaluate_best(bench, pool).await;
        }
        let mut rng = bench.streams.of(pool.step, "trial");
        let mut batch = bench.validation.to_vec();
        batch.shuffle(&mut rng);
        batch.truncate(MINIBATCH);
        // The last full evaluation must remain payable.
        if !affords(bench, &self.seed, batch.len() + bench.validation.len()) {
            self.evaluate_best(bench, pool).await?;
            pool.exhausted = true;
            return Ok(());
        }
        let pair = self.suggest(&mut rng);
        let Some(mut candidate) = self.candidate(bench, pair) else {
            pool.count(false);
            return Ok(());
        };
        let score = average(&agreement(bench, pool, &mut candidate, &batch).await?);
        let best = self.trials.iter().map(|t| t.score).fold(0.0, f64::max);
        bench.emit(&Event::Raced {
            child: candidate.version.short(),
            n: batch.len(),
            gain: score - best,
            p: None,
            outcome: "more".into(),
        })?;
        self.trials.push(Trial { pair, score });
        pool.count(score > best);
        Ok(())
    }

    /// Scores the pair with the best average that was not scored on all of validation yet.
    async fn evaluate_best(&mut self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        let mut sums: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
        for t in self.trials.iter().filter(|t| !self.whole.contains(&t.pair)) {
            let sum = sums.entry(t.pair).or_default();
            *sum = (sum.0 + t.score, sum.1 + 1.0);
        }
        let best = sums
            .iter()
            .max_by(|a, b| (a.1.0 / a.1.1).total_cmp(&(b.1.0 / b.1.1)));
        let Some((&pair, _)) = best else {
            // Counted as a trial, so that the next step tries a pair.
            self.trials.push(Trial {
                pair: (0, 0),
                score: self.trials[0].score,
            });
            return Ok(());
        };
        self.whole.push(pair);
        let Some(candidate) = self.candidate(bench, pair) else {
            return Ok(());
        };
        if !affords(bench, &candidate.version, bench.validation.len()) {
            pool.exhausted = true;
            return Ok(());
        }
        let mut candidate = candidate;
        let scores = agreement(bench, pool, &mut candidate, bench.validation).await?;
        let score = average(&scores);
        keep(bench, pool, candidate, score, scores.len())?;
        self.trials.push(Trial { pair, score });
        Ok(())
    }

    fn candidate(&self, bench: &Bench<'_>, (i, d): (usize, usize)) -> Option<Candidate> {
        let mut version = self.seed.clone();
        if i > 0 {
            version = instruct(bench, &version, self.instructions.get(i)?)?.1;
        }
        version.demos = self.sets.get(d)?.clone();
        let edit = Edit::SetDemos {
            demos: version.demos.clone(),
        };
        Some(Candidate {
            parent: Some(0),
            edit: Some(edit),
            ..Candidate::new(version)
        })
    }

    /// No demos, labelled ones, then sets that begin with items which the seed judges as people do.
    async fn make_sets(&mut self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        let mut rng = bench.streams.of(pool.step, "sets");
        self.sets = vec![Vec::new(), random_demos(bench, DEMOS, &mut rng)];
        let mut seed = pool.candidates[0].clone();
        while self.sets.len() < SETS && !pool.exhausted {
            let wanted = rng.random_range(1..=DEMOS);
            let mut items = bench.tune.to_vec();
            items.shuffle(&mut rng);
            let mut right: Vec<Demo> = Vec::new();
            for item in items {
                if right.len() >= wanted || !affords(bench, &self.seed, 1) {
                    break;
                }
                let scores = agreement(bench, pool, &mut seed, &[item]).await?;
                if scores.get(&item) == Some(&1.0) {
                    right.extend(crate::propose::demo_of(
                        bench.judge.task,
                        &bench.items[item],
                    ));
                }
            }
            let more = random_demos(bench, DEMOS, &mut rng);
            right.extend(more.into_iter().filter(|d| !seed.version.shows(&d.source)));
            right.dedup_by(|a, b| a.source == b.source);
            right.truncate(2 * DEMOS);
            self.sets.push(right);
        }
        Ok(())
    }

    /// The seed's instruction, then what the writer makes of a summary of the data and a tip.
    async fn make_instructions(
        &mut self,
        bench: &Bench<'_>,
        pool: &mut Pool,
    ) -> Result<(), TuneError> {
        self.instructions = vec![instruction(&self.seed)];
        let seen: Vec<String> = bench
            .tune
            .iter()
            .take(10)
            .map(|&i| example(bench, None, i))
            .collect();
        let ask_for = format!(
            "Say in two or three sentences what these labelled items are about and what decides their labels:\n{}",
            seen.join("\n")
        );
        let summary = ask(bench, pool, ask_for, 1.0, 0).await?.unwrap_or_default();
        for (n, tip) in TIPS.iter().enumerate().take(SETS / 2) {
            let prompt = format!(
                "Write an instruction for a judge of such items.\nThe data: {summary}\nThe present instruction: {}\nTip: {tip}\nAnswer with the instruction alone, between ``` fences.",
                self.instructions[0]
            );
            let text = ask(bench, pool, prompt, 1.0, n as u32 + 1).await?;
            self.instructions
                .extend(text.filter(|t| instruct(bench, &self.seed, t).is_some()));
        }
        Ok(())
    }

    /// A pair that is more usual among good trials than among the others (Bergstra et al. 2011).
    fn suggest(&self, rng: &mut Stream) -> (usize, usize) {
        let (ni, nd) = (self.instructions.len().max(1), self.sets.len().max(1));
        let random = |rng: &mut Stream| (rng.random_range(0..ni), rng.random_range(0..nd));
        if self.trials.len() < STARTUP {
            return random(rng);
        }
        let mut order: Vec<&Trial> = self.trials.iter().collect();
        order.sort_by(|a, b| b.score.total_cmp(&a.score));
        let (good, rest) = order.split_at(order.len().div_ceil(10).clamp(1, 25));
        // Every choice is believed to have been seen once, spread over all of them.
        let share = |trials: &[&Trial], pair: (usize, usize)| {
            let n = trials.len() as f64 + 1.0;
            let of = |hits: usize, k: usize| (hits as f64 + 1.0 / k as f64) / n;
            of(trials.iter().filter(|t| t.pair.0 == pair.0).count(), ni)
                * of(trials.iter().filter(|t| t.pair.1 == pair.1).count(), nd)
        };
        let ratio = |pair| share(good, pair) / share(rest, pair);
        let mut best = random(rng);
        for _ in 1..COMPARED {
            let other = random(rng);
            if ratio(other) > ratio(best) {
                best = other;
            }
        }
        best
    }
}

impl Strategy for Mipro {
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>> {
        self.go(bench, pool).boxed()
    }
}

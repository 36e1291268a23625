//! CAPO (Zehle et al. 2025): a population of instructions with few-shot demos, crossed and mutated by
//! the writer, raced on growing blocks of `tune` with a paired t-test, at a price for length.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rand::RngExt;
use rand::seq::SliceRandom;

use super::Strategy;
use super::shared::{
    affords, agreement, ask, average, instruct, instruction, keep, keep_new, on_tune, pick,
    random_demos,
};
use crate::agreement::paired;
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::pool::Pool;
use crate::prompt::{Edit, Version};

/// Versions of a generation.
const POPULATION: usize = 10;
/// Children of a step.
const CHILDREN: usize = 4;
/// Items of a block, and blocks of a race at most.
const BLOCK: usize = 30;
const BLOCKS: usize = 10;
/// Error rate at which a version is given up in a race.
const ALPHA: f64 = 0.2;
/// Price of a prompt as long as the longest of the first generation.
const LENGTH_PRICE: f64 = 0.05;
/// Demos of a version at most.
const DEMOS: usize = 5;

/// CAPO.
pub(super) struct Capo {
    seed: Version,
    population: Vec<Candidate>,
    longest: usize,
}

impl Capo {
    pub(super) fn new(seed: Version) -> Self {
        Self {
            seed,
            population: Vec::new(),
            longest: 1,
        }
    }

    async fn go(&mut self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        if pool.candidates.is_empty() {
            return self.first(bench, pool).await;
        }
        let mut rng = bench.streams.of(pool.step, "children");
        let mut all = self.population.clone();
        for n in 0..CHILDREN as u32 {
            let (Some(a), Some(b)) = (
                pick(&self.population, &mut rng),
                pick(&self.population, &mut rng),
            ) else {
                break;
            };
            let cross = format!(
                "Merge these two instructions into one that keeps what is best of both, between ``` fences:\n1. {}\n2. {}",
                instruction(&a.version),
                instruction(&b.version)
            );
            let Some(text) = ask(bench, pool, cross, 1.0, n).await? else {
                continue;
            };
            let mutate =
                format!("Say this instruction differently and better, between ``` fences:\n{text}");
            let text = ask(bench, pool, mutate, 1.0, n).await?.unwrap_or(text);
            let mut demos = a.version.demos.clone();
            demos.extend(b.version.demos.iter().cloned());
            demos.shuffle(&mut rng);
            demos.dedup_by(|x, y| x.source == y.source);
            demos.truncate(a.version.demos.len().midpoint(b.version.demos.len()));
            // One of three: a demo more, a demo fewer, another order.
            match rng.random_range(0..3) {
                0 if demos.len() < DEMOS => demos.extend(random_demos(bench, 1, &mut rng)),
                1 => {
                    demos.pop();
                }
                _ => demos.shuffle(&mut rng),
            }
            all.extend(self.child(bench, &text, demos));
        }
        self.population = self.race(bench, pool, all).await?;
        let better = keep_new(bench, pool, &self.population, |c| self.price(c))?;
        pool.count(better);
        Ok(())
    }

    /// Paraphrases of the seed with up to five demos each.
    async fn first(&mut self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        let mut seed = Candidate::new(self.seed.clone());
        let mut block = bench.tune.to_vec();
        block.shuffle(&mut bench.streams.of(0, "block 0"));
        block.truncate(BLOCK);
        let scores = agreement(bench, pool, &mut seed, &block).await?;
        keep(bench, pool, seed.clone(), average(&scores), scores.len())?;
        let mut rng = bench.streams.of(pool.step, "first");
        self.population = vec![seed];
        for n in 1..POPULATION as u32 {
            let prompt = format!(
                "Say this instruction for a judge in other words, between ``` fences:\n{}",
                instruction(&self.seed)
            );
            let text = ask(bench, pool, prompt, 1.0, n)
                .await?
                .unwrap_or_else(|| instruction(&self.seed));
            let k = rng.random_range(0..=DEMOS);
            let demos = random_demos(bench, k, &mut rng);
            self.population.extend(self.child(bench, &text, demos));
        }
        let length = |c: &Candidate| length(&c.version);
        self.longest = self.population.iter().map(length).max().unwrap_or(1).max(1);
        Ok(())
    }

    fn child(
        &self,
        bench: &Bench<'_>,
        text: &str,
        demos: Vec<crate::prompt::Demo>,
    ) -> Option<Candidate> {
        let mut version =
            instruct(bench, &self.seed, text).map_or_else(|| self.seed.clone(), |(_, v)| v);
        version.demos.clone_from(&demos);
        (version != self.seed).then(|| Candidate {
            parent: Some(0),
            edit: Some(Edit::SetDemos { demos }),
            ..Candidate::new(version)
        })
    }

    fn price(&self, candidate: &Candidate) -> f64 {
        LENGTH_PRICE * length(&candidate.version) as f64 / self.longest as f64
    }

    /// Judges block after block and gives up versions that enough others are surely ahead of.
    async fn race(
        &self,
        bench: &Bench<'_>,
        pool: &mut Pool,
        mut all: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, TuneError> {
        let mut items = bench.tune.to_vec();
        items.shuffle(&mut bench.streams.of(0, "block 0"));
        for block in items.chunks(BLOCK).take(BLOCKS) {
            if all.len() <= POPULATION {
                break;
            }
            for candidate in &mut all {
                let missing = pool.missing(bench, candidate, block).len();
                if !affords(bench, &candidate.version, missing) {
                    pool.exhausted = true;
                    return Ok(self.best_of(bench, all));
                }
                agreement(bench, pool, candidate, block).await?;
            }
            all = self.survivors(bench, pool, all);
        }
        Ok(self.best_of(bench, all))
    }

    fn survivors(&self, bench: &Bench<'_>, pool: &Pool, all: Vec<Candidate>) -> Vec<Candidate> {
        let seed = bench.streams.seed_of(pool.step, "race");
        let scores: Vec<_> = all
            .iter()
            .map(|c| {
                let price = self.price(c);
                let scored = c.scored(bench, bench.tune).into_iter();
                scored
                    .map(|(i, s)| (i, 1.0 - s.distance - price))
                    .collect::<std::collections::BTreeMap<_, _>>()
            })
            .collect();
        let ahead = |a: usize, b: usize| {
            let diffs: Vec<f64> = scores[a]
                .iter()
                .filter_map(|(i, s)| Some(s - scores[b].get(i)?))
                .collect();
            paired::permutation(&diffs, paired::Tail::Above, 500, seed).is_ok_and(|p| p < ALPHA)
        };
        let beaten =
            |b: usize| (0..all.len()).filter(|&a| a != b && ahead(a, b)).count() >= POPULATION;
        let keep: Vec<bool> = (0..all.len()).map(|b| !beaten(b)).collect();
        all.into_iter()
            .zip(keep)
            .filter_map(|(c, k)| k.then_some(c))
            .collect()
    }

    fn best_of(&self, bench: &Bench<'_>, mut all: Vec<Candidate>) -> Vec<Candidate> {
        let score = |c: &Candidate| match on_tune(bench, c) {
            (_, 0) => -1.0,
            (agreement, _) => agreement - self.price(c),
        };
        all.sort_by(|a, b| score(b).total_cmp(&score(a)));
        all.truncate(POPULATION);
        all
    }
}

/// Characters of a version's instruction and demos.
fn length(version: &Version) -> usize {
    let demos = version.demos.iter().flat_map(|d| d.fields.values());
    instruction(version).chars().count() + demos.map(|t| t.chars().count()).sum::<usize>()
}

impl Strategy for Capo {
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>> {
        self.go(bench, pool).boxed()
    }
}

//! OPRO (Yang et al. 2023): the writer sees the 20 best instructions so far with their scores, worst
//! first, and 3 examples, and writes 8 new ones, which are scored on `tune`.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Strategy;
use super::shared::{affords, agreement, ask, average, example, instruct, instruction, keep, pick};
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::pool::Pool;
use crate::prompt::Version;

/// Instructions shown to the writer.
const SHOWN: usize = 20;
/// Instructions written in a step.
const WRITTEN: u32 = 8;
/// Items shown to the writer.
const EXAMPLES: usize = 3;

/// OPRO.
pub(super) struct Opro {
    seed: Version,
}

impl Opro {
    pub(super) fn new(seed: Version) -> Self {
        Self { seed }
    }

    async fn go(&self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        if pool.candidates.is_empty() {
            let mut seed = Candidate::new(self.seed.clone());
            let scores = agreement(bench, pool, &mut seed, bench.tune).await?;
            return keep(bench, pool, seed, average(&scores), scores.len());
        }
        let best = pool.best().validation_loss;
        let prompt = self.prompt(bench, pool);
        for n in 0..WRITTEN {
            if !affords(bench, &self.seed, bench.tune.len() + 1) {
                pool.exhausted = true;
                break;
            }
            let text = ask(bench, pool, prompt.clone(), 1.0, n).await?;
            let Some((edit, version)) = text.and_then(|t| instruct(bench, &self.seed, &t)) else {
                continue;
            };
            if !pool.tried.insert(version.digest()) {
                continue;
            }
            let mut child = Candidate {
                parent: Some(0),
                edit: Some(edit),
                ..Candidate::new(version)
            };
            let scores = agreement(bench, pool, &mut child, bench.tune).await?;
            keep(bench, pool, child, average(&scores), scores.len())?;
        }
        pool.count(pool.best().validation_loss < best);
        Ok(())
    }

    fn prompt(&self, bench: &Bench<'_>, pool: &Pool) -> String {
        let mut order: Vec<&Candidate> = pool.candidates.iter().collect();
        order.sort_by(|a, b| {
            b.validation_loss
                .partial_cmp(&a.validation_loss)
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let from = order.len().saturating_sub(SHOWN);
        let known: Vec<String> = order[from..]
            .iter()
            .map(|c| {
                let score = 100.0 * (1.0 - c.validation_loss.unwrap_or(1.0));
                format!(
                    "instruction: {}\nscore: {score:.0}",
                    instruction(&c.version)
                )
            })
            .collect();
        let mut rng = bench.streams.of(pool.step, "examples");
        let seen: Vec<String> = (0..EXAMPLES)
            .filter_map(|_| pick(bench.tune, &mut rng))
            .map(|&i| example(bench, None, i))
            .collect();
        format!(
            "Instructions for a judge, with scores from 0 to 100; higher is better:\n\n{}\n\nItems that are judged, with what people said:\n{}\n\nWrite an instruction that differs from all of these and scores higher. Answer with the instruction alone, between ``` fences.",
            known.join("\n\n"),
            seen.join("\n")
        )
    }
}

impl Strategy for Opro {
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>> {
        self.go(bench, pool).boxed()
    }
}

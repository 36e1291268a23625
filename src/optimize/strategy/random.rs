//! Random demo sets, each scored on all of validation; the best one is handed over.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Strategy;
use super::shared::{affords, keep_by_validation, random_demos};
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::pool::Pool;
use crate::prompt::{Edit, Version};

/// Random search.
pub(super) struct Random {
    seed: Version,
}

impl Random {
    pub(super) fn new(seed: Version) -> Self {
        Self { seed }
    }

    async fn go(&self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        if pool.candidates.is_empty() {
            let seed = Candidate::new(self.seed.clone());
            keep_by_validation(bench, pool, seed).await?;
            return Ok(());
        }
        if !affords(bench, &self.seed, bench.validation.len()) {
            pool.exhausted = true;
            return Ok(());
        }
        let mut rng = bench.streams.of(pool.step, "random demos");
        let edit = Edit::SetDemos {
            demos: random_demos(bench, bench.search.demos, &mut rng),
        };
        let best = pool.best().validation_loss;
        let Ok(version) = edit.apply(&self.seed) else {
            pool.fruitless += 1;
            return Ok(());
        };
        let child = Candidate {
            parent: Some(0),
            edit: Some(edit),
            ..Candidate::new(version)
        };
        keep_by_validation(bench, pool, child).await?;
        pool.count(pool.best().validation_loss < best);
        Ok(())
    }
}

impl Strategy for Random {
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>> {
        self.go(bench, pool).boxed()
    }
}

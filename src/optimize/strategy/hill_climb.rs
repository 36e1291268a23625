//! Hill climbing: random edits of every kind that needs no statistics, kept when disagreement on all
//! of `tune` falls.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Strategy;
use super::shared::{affords, agreement, average, keep, pick};
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::event::Event;
use crate::optimize::pool::{Pool, kind_name};
use crate::prompt::Version;
use crate::propose::{self, Kind};

/// Hill climbing.
pub(super) struct HillClimb {
    seed: Version,
}

impl HillClimb {
    pub(super) fn new(seed: Version) -> Self {
        Self { seed }
    }

    async fn go(&self, bench: &Bench<'_>, pool: &mut Pool) -> Result<(), TuneError> {
        if pool.candidates.is_empty() {
            let mut seed = Candidate::new(self.seed.clone());
            let scores = agreement(bench, pool, &mut seed, bench.tune).await?;
            return keep(bench, pool, seed, average(&scores), scores.len());
        }
        if !affords(bench, &self.seed, bench.tune.len()) {
            pool.exhausted = true;
            return Ok(());
        }
        // Every kept version was better than the one before it.
        let parent = pool.candidates.len() - 1;
        let old = pool.candidates[parent].clone();
        let material = bench.material(&old.version, &[], None, &[]);
        let kinds: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|k| k.possible(&material, false))
            .collect();
        let mut rng = bench.streams.of(pool.step, "edit");
        let kind = pick(&kinds, &mut rng).copied();
        let edits = kind.map_or_else(Vec::new, |k| propose::propose(k, &material, &mut rng));
        let edit = pick(&edits, &mut rng).cloned();
        let (Some(kind), Some(edit)) = (kind, edit) else {
            pool.count(false);
            return Ok(());
        };
        let version = match edit.apply(&old.version) {
            Ok(version) if pool.tried.insert(version.digest()) => version,
            _ => {
                pool.count(false);
                return Ok(());
            }
        };
        bench.emit(&Event::Proposed {
            step: pool.step,
            parent: old.version.short(),
            kind: kind_name(kind),
            card: None,
            edit: edit.clone(),
            child: version.short(),
        })?;
        let mut child = Candidate {
            parent: Some(parent),
            edit: Some(edit),
            ..Candidate::new(version)
        };
        let scores = agreement(bench, pool, &mut child, bench.tune).await?;
        let score = average(&scores);
        let passed = old.validation_loss.is_none_or(|loss| 1.0 - score < loss);
        bench.emit(&Event::Raced {
            child: child.version.short(),
            n: scores.len(),
            gain: old.validation_loss.unwrap_or(1.0) - (1.0 - score),
            p: None,
            outcome: if passed { "passed" } else { "dropped" }.into(),
        })?;
        if passed {
            keep(bench, pool, child, score, scores.len())?;
        }
        pool.count(passed);
        Ok(())
    }
}

impl Strategy for HillClimb {
    fn step<'a>(
        &'a mut self,
        bench: &'a Bench<'_>,
        pool: &'a mut Pool,
    ) -> BoxFuture<'a, Result<(), TuneError>> {
        self.go(bench, pool).boxed()
    }
}

//! A version under test with what is known of it.

use std::collections::BTreeMap;

use super::bench::Bench;
use super::measure::{Scored, score};
use crate::judge::{Reading, Verdict};
use crate::prompt::{Edit, Version};

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
    /// The p-value of its gain over the parent, where its race asked for proof.
    pub proof: Option<f64>,
    /// Whether validation was looked at with it.
    pub looked: bool,
    /// Mean validation loss, once looked at.
    pub validation_loss: Option<f64>,
}

impl Candidate {
    /// A version that nothing is known of.
    pub(super) fn new(version: Version) -> Self {
        Self {
            version,
            verdicts: BTreeMap::new(),
            losses: BTreeMap::new(),
            parent: None,
            edit: None,
            card: None,
            proof: None,
            looked: false,
            validation_loss: None,
        }
    }

    /// Whether it was judged on all of these items, and no label came of any.
    pub(super) fn fails_on(&self, items: &[usize]) -> bool {
        let failed = |i: &usize| {
            let verdict = self.verdicts.get(i);
            verdict.is_some_and(|v| v.readings.iter().all(|r| matches!(r, Reading::Failed(_))))
        };
        !items.is_empty() && items.iter().all(failed)
    }

    /// How its verdicts fare, by item, under its own calibration; items without verdict or votes
    /// are left out.
    pub(super) fn scored(&self, bench: &Bench<'_>, items: &[usize]) -> BTreeMap<usize, Scored> {
        let (task, measure) = (bench.judge.task, bench.search.measure);
        let of = |i: &usize| {
            let verdict = self.verdicts.get(i)?;
            let scored = score(task, &self.version, &bench.items[*i], verdict, measure)?;
            Some((*i, scored))
        };
        items.iter().filter_map(of).collect()
    }
}

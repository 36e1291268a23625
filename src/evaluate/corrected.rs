//! Owns rates corrected for a judge's errors: prediction-powered inference from a sample that people
//! labelled too. Must not know what the rate measures, or how the sample was drawn.
//!
//! Angelopoulos et al. (2023, Science 382) add to the judge's rate over the unlabelled items the
//! mean error that people found in the labelled ones. With the power tuning of PPI++ (Angelopoulos,
//! Duchi and Zrnic 2023) the judge is trusted by a factor `lambda` in 0..=1, chosen by its formula
//! for the smallest variance: a judge that knows nothing gets 0, and people's sample stands alone.
//!
//! The judge's rate is taken over the unlabelled items, as in the papers, or over all items, the labelled
//! ones too: that is right where the sample was drawn unevenly and its items are weighted, since what
//! is left over is then no picture of the whole (the difference estimator of survey sampling). The
//! variance is computed from sums per cluster, so an item that is in both lists, in the same cluster,
//! counts with what its two terms make together.
//!
//! A rate is a ratio `E[hit] / E[eligible]`: ASR and NSR have every item eligible, CSR only those
//! that people, or the judge, find relevant. So it solves `E[hit - rate * eligible] = 0`, and the same
//! estimator is used for that equation: numerator and denominator are corrected with one
//! `lambda`, which is tuned on `hit - rate * eligible`, and the variance is that of the equation by the
//! square of the corrected denominator (the delta method). With every item eligible it is the mean.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::agreement::{Interval, Undefined, tail_t, within};

/// What one side says of one item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// Whether it counts; only where it is eligible.
    pub hit: bool,
    /// Whether it is in the denominator.
    pub eligible: bool,
}

impl Said {
    fn psi(self, rate: f64) -> f64 {
        self.h() - rate * self.e()
    }

    fn h(self) -> f64 {
        f64::from(u8::from(self.hit && self.eligible))
    }

    fn e(self) -> f64 {
        f64::from(u8::from(self.eligible))
    }
}

/// An item that people labelled too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// The judge.
    pub judge: Said,
    /// People.
    pub people: Said,
    /// How many items it stands for, as the sample was drawn; 1 for all where it was drawn evenly.
    pub weight: f64,
    /// Items of a cluster (prompts of one question) depend on each other.
    pub cluster: usize,
}

/// An item over which the judge's rate is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imputed {
    /// The judge.
    pub judge: Said,
    /// As in [`Checked`].
    pub cluster: usize,
}

/// A corrected rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Corrected {
    /// Items with people's labels.
    pub labelled: usize,
    /// Items over which the judge's rate is taken.
    pub imputed: usize,
    /// The rate.
    pub value: f64,
    /// Its interval.
    pub low: f64,
    /// Its interval.
    pub high: f64,
    /// How far the judge is trusted, from 0 to 1.
    pub lambda: f64,
    /// Variance of the rate, all of it.
    pub variance: f64,
    /// The part of it that two more errors in the sample would add, one of each direction.
    pub padding: f64,
}

/// Fewest labelled items for a correction.
pub const LEAST_LABELLED: usize = 10;

/// The corrected rate with its interval: Student's t with one degree less than the labelled items have
/// clusters; variances are those of sums of clusters. A sample can miss a rare error altogether, so
/// the variance is that of the sample with two more errors, one of each direction, as Agresti and
/// Coull (1998) add observations to a share.
///
/// # Errors
/// Fewer than [`LEAST_LABELLED`] labelled items, no eligible item, a weight that is not positive, a
/// level outside (0, 1).
pub fn correct(
    labelled: &[Checked],
    imputed: &[Imputed],
    level: f64,
) -> Result<Corrected, Undefined> {
    if labelled.len() < LEAST_LABELLED {
        return Err(Undefined::TooFew {
            what: "items with people's labels",
            have: labelled.len(),
            need: LEAST_LABELLED,
        });
    }
    let sample = Sample::new(labelled, imputed)?;
    // The variance does not depend much on the rate at which it is taken: the untuned one will do.
    let untuned = if imputed.is_empty() { 0.0 } else { 1.0 };
    let first = sample.rate(untuned).or_else(|_| sample.rate(0.0))?;
    let lambda = sample.tuned(first);
    let (value, lambda) = match sample.rate(lambda) {
        Ok(value) => (value, lambda),
        Err(_) => (sample.rate(0.0)?, 0.0),
    };
    let below = sample.eligible(lambda);
    let padding = 2.0 / (sample.effective() * sample.effective()) / (below * below);
    let variance = sample.variance(value, lambda) / (below * below) + padding;
    let half = tail_t(level, sample.clusters().saturating_sub(1).max(1))? * variance.sqrt();
    let interval = Interval {
        low: (value - half).clamp(0.0, 1.0),
        high: (value + half).clamp(0.0, 1.0),
        level,
    };
    Ok(Corrected {
        labelled: labelled.len(),
        imputed: imputed.len(),
        value: value.clamp(0.0, 1.0),
        low: interval.low,
        high: interval.high,
        lambda,
        variance,
        padding,
    })
}

struct Sample<'a> {
    labelled: &'a [Checked],
    imputed: &'a [Imputed],
    /// Of the labelled items; they add up to 1.
    weights: Vec<f64>,
}

impl<'a> Sample<'a> {
    fn new(labelled: &'a [Checked], imputed: &'a [Imputed]) -> Result<Self, Undefined> {
        for item in labelled {
            within("weight", item.weight, f64::MIN_POSITIVE, f64::MAX)?;
        }
        let sum: f64 = labelled.iter().map(|i| i.weight).sum();
        Ok(Self {
            labelled,
            imputed,
            weights: labelled.iter().map(|i| i.weight / sum).collect(),
        })
    }

    /// The number of evenly weighted items that know as much (Kish).
    fn effective(&self) -> f64 {
        1.0 / self.weights.iter().map(|w| w * w).sum::<f64>()
    }

    fn clusters(&self) -> usize {
        let all: std::collections::BTreeSet<usize> =
            self.labelled.iter().map(|i| i.cluster).collect();
        all.len()
    }

    /// Mean of a value: the judge's over the imputed items, corrected by the labelled ones.
    fn mean(&self, lambda: f64, of: impl Fn(Said) -> f64) -> f64 {
        let n = self.imputed.len().max(1) as f64;
        let rest: f64 = self.imputed.iter().map(|i| of(i.judge)).sum::<f64>() / n;
        let both = self.labelled.iter().zip(&self.weights);
        let error: f64 = both
            .map(|(i, w)| w * (of(i.people) - lambda * of(i.judge)))
            .sum();
        lambda * rest + error
    }

    fn eligible(&self, lambda: f64) -> f64 {
        self.mean(lambda, Said::e)
    }

    fn rate(&self, lambda: f64) -> Result<f64, Undefined> {
        let below = self.eligible(lambda);
        if below <= 1e-9 {
            return Err(Undefined::Empty("eligible items"));
        }
        Ok(self.mean(lambda, Said::h) / below)
    }

    /// The factor of the smallest variance: `cov(people, judge) / ((1 + n/N) var(judge))`, from 0 to 1.
    fn tuned(&self, rate: f64) -> f64 {
        if self.imputed.is_empty() {
            return 0.0;
        }
        let mean = |of: &dyn Fn(&Checked) -> f64| -> f64 {
            let both = self.labelled.iter().zip(&self.weights);
            both.map(|(i, w)| w * of(i)).sum()
        };
        let (people, judge) = (mean(&|i| i.people.psi(rate)), mean(&|i| i.judge.psi(rate)));
        let together = mean(&|i| (i.people.psi(rate) - people) * (i.judge.psi(rate) - judge));
        let n = self.labelled.len() as f64;
        let weighted = self.labelled.iter().zip(&self.weights);
        let all: Vec<(f64, f64)> = weighted
            .map(|(i, w)| (i.judge.psi(rate), w * n))
            .chain(self.imputed.iter().map(|i| (i.judge.psi(rate), 1.0)))
            .collect();
        let sum: f64 = all.iter().map(|(_, w)| w).sum();
        let centre = all.iter().map(|(v, w)| v * w).sum::<f64>() / sum;
        let spread = all
            .iter()
            .map(|(v, w)| w * (v - centre).powi(2))
            .sum::<f64>();
        let variance = spread / (sum - 1.0);
        if variance <= 0.0 {
            return 0.0;
        }
        let ratio = self.effective() / self.imputed.len() as f64;
        (together / ((1.0 + ratio) * variance)).clamp(0.0, 1.0)
    }

    /// Variance of the equation's mean, by sums of clusters, which labelled and imputed items may
    /// share.
    fn variance(&self, rate: f64, lambda: f64) -> f64 {
        let error = |i: &Checked| i.people.psi(rate) - lambda * i.judge.psi(rate);
        let both = || self.labelled.iter().zip(&self.weights);
        let centre: f64 = both().map(|(i, w)| w * error(i)).sum();
        let clusters = self.clusters() as f64;
        // One cluster shows nothing of how clusters differ; its items count as if they were apart.
        let small = (clusters / (clusters - 1.0).max(1.0)).sqrt();
        let mut sums = BTreeMap::<usize, f64>::new();
        for (i, w) in both() {
            *sums.entry(i.cluster).or_default() += w * small * (error(i) - centre);
        }
        let n = self.imputed.len().max(1) as f64;
        let rest = self.imputed.iter().map(|i| i.judge.psi(rate));
        let middle = rest.sum::<f64>() / n;
        for i in self.imputed {
            *sums.entry(i.cluster).or_default() += lambda / n * (i.judge.psi(rate) - middle);
        }
        sums.values().map(|s| s * s).sum()
    }
}

//! Owns how many labelled items a claim needs, per locale and in all, before a call is paid for.
//! Must not know which claim a run makes later.

use serde::{Deserialize, Serialize};

use crate::agreement::power::{
    certify_power, items_to_certify, items_to_detect, most_misses, zero_error_items,
};
use crate::agreement::sequential::spend;
use crate::agreement::{Undefined, rate, within};

/// What is to be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "claim")]
pub enum Claim {
    /// Disagreement with people is below a threshold.
    Certify {
        /// The threshold.
        threshold: f64,
        /// Disagreement that the judge truly has.
        expected: f64,
    },
    /// Disagreement went down.
    Gain {
        /// Disagreement before.
        before: f64,
        /// By how much it truly went down.
        gain: f64,
        /// Share of items that only the old judge gets right; `None` takes the share that two judges
        /// have whose misses have nothing to do with each other, which is on the safe side.
        worse: Option<f64>,
    },
}

/// What the claim is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// All locales together.
    #[default]
    Mean,
    /// Every single locale.
    WorstLocale,
}

/// A claim with its error rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What is to be claimed.
    #[serde(flatten)]
    pub what: Claim,
    /// What it is about.
    pub scope: Scope,
    /// Probability of claiming what is not so, at most.
    pub alpha: f64,
    /// Probability of being able to claim what is so, at least.
    pub power: f64,
    /// The look of the stop rule at which the items are to be enough still (each look spends its own
    /// part of alpha); `None` for one planned test. A gain is looked at once.
    pub looks: Option<u32>,
    /// Locales.
    pub locales: usize,
}

/// How many items the claim needs. Its JSON form is described in `docs/agree.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Name and version of this form: `pluralis-power/1`.
    pub schema: &'static str,
    /// The question.
    pub question: Question,
    /// Labelled items per locale.
    pub per_locale: usize,
    /// Labelled items in all.
    pub total: usize,
    /// Error rate of each single test: alpha, less what other looks use up.
    pub alpha_each: f64,
    /// Power of each single test.
    pub power_each: f64,
    /// Power of the whole claim with this many items; for a gain, as asked for.
    pub power: f64,
    /// Items per locale below which not even a judge without a single miss could pass.
    pub least_per_locale: Option<usize>,
    /// Disagreements among the items of one test that still pass.
    pub misses_allowed: Option<u64>,
    /// For a gain: share of items that only the new judge gets right.
    pub better: Option<f64>,
    /// For a gain: share of items that only the old judge gets right.
    pub worse: Option<f64>,
    /// The same question with fewer and more items.
    pub nearby: Vec<Nearby>,
}

/// Another number of items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Nearby {
    /// Items per locale.
    pub per_locale: usize,
    /// Power of the whole claim.
    pub power: f64,
}

/// Answers a question.
///
/// # Errors
/// Rates out of range; an expected disagreement that is not below the threshold; no gain; more items
/// than a search goes up to.
pub fn items_needed(question: &Question) -> Result<Answer, Undefined> {
    rate("alpha", question.alpha)?;
    rate("power", question.power)?;
    if question.locales == 0 {
        return Err(Undefined::Empty("locales"));
    }
    if question.looks == Some(0) {
        return Err(Undefined::Empty("looks"));
    }
    match question.what {
        Claim::Certify {
            threshold,
            expected,
        } => certify(question, threshold, expected),
        Claim::Gain {
            before,
            gain,
            worse,
        } => detect(question, before, gain, worse),
    }
}

/// Tests that must all pass, and the power of each. Each locale is tested at all of alpha: what is
/// claimed of every locale is wrong only if some locale passes that should not (intersection-union
/// test, Berger 1982), and the stop rule does the same.
fn split(question: &Question) -> (usize, f64) {
    match question.scope {
        Scope::Mean => (1, question.power),
        Scope::WorstLocale => {
            let tests = question.locales;
            (tests, question.power.powf(1.0 / tests as f64))
        }
    }
}

fn certify(question: &Question, threshold: f64, expected: f64) -> Result<Answer, Undefined> {
    // All looks together use at most alpha, the k-th of them `alpha · 6 / (π² k²)`.
    let alpha_each = question
        .looks
        .map_or(question.alpha, |look| spend(question.alpha, look));
    let (tests, power_each) = split(question);
    let shared = question.locales / tests;
    let needed = items_to_certify(threshold, expected, alpha_each, power_each)?;
    let least = zero_error_items(threshold, alpha_each)?;
    let per_locale = needed.div_ceil(shared);
    let whole = |per_locale: usize| -> Result<f64, Undefined> {
        let one = certify_power(per_locale * shared, threshold, expected, alpha_each)?;
        Ok(one.powi(tests as i32))
    };
    let mut nearby = Vec::new();
    for share in [0.5, 0.75, 1.0, 1.25, 1.5, 2.0] {
        let per_locale = ((per_locale as f64 * share).round() as usize).max(1);
        nearby.push(Nearby {
            per_locale,
            power: whole(per_locale)?,
        });
    }
    Ok(Answer {
        schema: "pluralis-power/1",
        question: *question,
        per_locale,
        total: per_locale * question.locales,
        alpha_each,
        power_each,
        power: whole(per_locale)?,
        least_per_locale: Some(least.div_ceil(shared)),
        misses_allowed: most_misses(per_locale * shared, threshold, alpha_each)?,
        better: None,
        worse: None,
        nearby,
    })
}

fn detect(
    question: &Question,
    before: f64,
    gain: f64,
    worse: Option<f64>,
) -> Result<Answer, Undefined> {
    within("disagreement before", before, 0.0, 1.0)?;
    within("gain", gain, 0.0, before)?;
    let after = before - gain;
    // Unrelated misses: the new judge misses what the old one got right.
    let worse = worse.unwrap_or(after * (1.0 - before));
    // More cannot get worse than the new judge misses or the old one got right.
    within(
        "share of items that get worse",
        worse,
        0.0,
        after.min(1.0 - before),
    )?;
    let better = worse + gain;
    let (alpha_each, (tests, power_each)) = (question.alpha, split(question));
    let shared = question.locales / tests;
    let needed = items_to_detect(better, worse, alpha_each, power_each)?;
    let per_locale = needed.div_ceil(shared);
    let mut nearby = Vec::new();
    for power in [0.5, 0.7, 0.8, 0.9, 0.95] {
        let each = f64::powf(power, 1.0 / tests as f64);
        let needed = items_to_detect(better, worse, alpha_each, each)?;
        nearby.push(Nearby {
            per_locale: needed.div_ceil(shared),
            power,
        });
    }
    Ok(Answer {
        schema: "pluralis-power/1",
        question: *question,
        per_locale,
        total: per_locale * question.locales,
        alpha_each,
        power_each,
        power: question.power,
        least_per_locale: None,
        misses_allowed: None,
        better: Some(better),
        worse: Some(worse),
        nearby,
    })
}

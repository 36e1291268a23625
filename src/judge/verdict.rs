//! What a judge said of one item, before and after calibration.

use serde::{Deserialize, Serialize};

use crate::locale::Locale;
use crate::prompt::Version;
use crate::task::Task;

/// The judge's reading per criterion, as the model answered (calibration not yet applied, so that
/// one answer serves every calibration).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// By the index of the task's criterion.
    pub readings: Vec<Reading>,
}

/// One criterion's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Reading {
    /// Natural-log probability of each label, normalised over the labels.
    Scores {
        /// By label index.
        scores: Vec<f64>,
    },
    /// A label without probabilities.
    Label {
        /// Label index.
        label: usize,
    },
    /// No label could be had; counts as full disagreement.
    Failed(Failure),
    /// Not asked, because the budget did not allow it. Not a verdict at all.
    Unpaid,
}

/// Why there is no label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, counted in reports.
    pub failure: FailureKind,
    /// What happened, for people.
    pub message: String,
}

/// Kinds of failed verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The answer names no label, or several.
    Unparsable,
    /// The provider or the model would not answer.
    Refused,
    /// The call failed for good.
    Endpoint,
}

/// A verdict on one criterion after calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The label, unless the verdict failed.
    pub label: Option<usize>,
    /// Distribution over labels, where the endpoint gave one.
    pub probs: Option<Vec<f64>>,
    /// Why there is no label.
    pub failure: Option<FailureKind>,
}

impl Reading {
    /// A failed reading.
    pub fn failed(failure: FailureKind, message: String) -> Self {
        Self::Failed(Failure { failure, message })
    }

    /// Normalises log scores of the labels; impossible labels keep a floor so that no loss is infinite.
    pub fn from_scores(scores: &[f64]) -> Self {
        const FLOOR: f64 = -30.0;
        let top = scores
            .iter()
            .copied()
            .filter(|s| s.is_finite())
            .fold(f64::NEG_INFINITY, f64::max);
        if !top.is_finite() {
            return Self::failed(
                FailureKind::Unparsable,
                "the model gave no label any probability".into(),
            );
        }
        let shifted: Vec<f64> = scores
            .iter()
            .map(|s| {
                if s.is_finite() {
                    (s - top).max(FLOOR)
                } else {
                    FLOOR
                }
            })
            .collect();
        let norm = shifted.iter().map(|s| s.exp()).sum::<f64>().ln();
        Self::Scores {
            scores: shifted.iter().map(|s| s - norm).collect(),
        }
    }

    /// The decision under a version's calibration; `None` when the item was not paid for.
    pub fn decide(
        &self,
        task: &Task,
        version: &Version,
        criterion: usize,
        locale: &Locale,
    ) -> Option<Decision> {
        match self {
            Reading::Unpaid => None,
            Reading::Failed(f) => Some(Decision {
                label: None,
                probs: None,
                failure: Some(f.failure),
            }),
            Reading::Label { label } => Some(Decision {
                label: Some(*label),
                probs: None,
                failure: None,
            }),
            Reading::Scores { scores } => {
                let probs =
                    version
                        .calibration
                        .apply(&task.criteria[criterion].name, scores, locale);
                Some(Decision {
                    label: most_likely(&probs),
                    probs: Some(probs),
                    failure: None,
                })
            }
        }
    }
}

/// The first of the most probable labels.
fn most_likely(probs: &[f64]) -> Option<usize> {
    let mut best: Option<usize> = None;
    for (i, p) in probs.iter().enumerate() {
        if best.is_none_or(|b| *p > probs[b]) {
            best = Some(i);
        }
    }
    best
}

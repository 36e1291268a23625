//! From a verdict and the votes of its item to numbers.

use serde::{Deserialize, Serialize};

use crate::agreement::{self, Measure, ScaleView};
use crate::data::Item;
use crate::judge::Verdict;
use crate::prompt::Version;
use crate::task::Task;

/// Least probability that the loss believes in: a failed verdict costs as much as a label at it.
const FLOOR: f64 = 0.01;

/// How one verdict fares against the votes of its item.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// Disagreement from 0 to 1, mean over the criteria that have votes; 1 for a failed verdict.
    pub distance: f64,
    /// Log loss of the label distribution against the vote shares, mean over criteria, in nats;
    /// at most `-ln(0.01)`. A label without probabilities counts as a sure one.
    pub loss: f64,
}

/// Scores a verdict; `None` when it was not paid for or the item has no votes.
pub fn score(
    task: &Task,
    version: &Version,
    item: &Item,
    verdict: &Verdict,
    measure: Measure,
) -> Option<Scored> {
    let mut sum = Scored {
        distance: 0.0,
        loss: 0.0,
    };
    let mut n = 0.0;
    for (c, criterion) in task.criteria.iter().enumerate() {
        let counts = &item.votes[c].counts;
        let Some(target) = agreement::target_distribution(counts) else {
            continue;
        };
        let decision = verdict.readings[c].decide(task, version, c, &item.locale)?;
        let (values, abstain) = (criterion.values(), criterion.abstains());
        let Ok(distance) = agreement::disagreement(
            measure,
            ScaleView {
                values: &values,
                abstain: &abstain,
            },
            counts,
            decision.label,
        ) else {
            continue;
        };
        sum.distance += distance;
        sum.loss += match (&decision.probs, decision.label) {
            (Some(probs), _) => log_loss(probs, &target),
            (None, Some(label)) => log_loss(
                &(0..target.len())
                    .map(|l| if l == label { 1.0 } else { 0.0 })
                    .collect::<Vec<_>>(),
                &target,
            ),
            (None, None) => -FLOOR.ln(),
        };
        n += 1.0;
    }
    (n > 0.0).then(|| Scored {
        distance: sum.distance / n,
        loss: sum.loss / n,
    })
}

/// Cross-entropy with the probabilities held above [`FLOOR`].
pub(super) fn log_loss(probs: &[f64], target: &[f64]) -> f64 {
    probs
        .iter()
        .zip(target)
        .map(|(p, t)| -t * p.max(FLOOR).ln())
        .sum()
}

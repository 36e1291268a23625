//! From a verdict and the votes of its item to numbers.

use serde::{Deserialize, Serialize};

use super::bench::Bench;
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
    /// Log loss of the label distribution against what the measure asks for
    /// ([`agreement::target_of`]), mean over criteria, in nats; at most `-ln(0.01)`. A label without probabilities counts as a sure one.
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
        let (values, abstain) = (criterion.values(), criterion.abstains());
        let Some(target) = agreement::target_of(measure, &abstain, counts) else {
            continue;
        };
        let decision = verdict.readings[c].decide(task, version, c, &item.locale)?;
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

/// Expected disagreement of a held-out rater with the others on an item, mean over the criteria that
/// have at least two votes; `None` where none has. The yardstick beside a judge's figure.
pub fn people(task: &Task, item: &Item, measure: Measure) -> Option<f64> {
    over_criteria(task, item, |_, scale, votes| {
        agreement::ceiling::held_out(measure, scale, votes).ok()
    })
}

/// A judge and a held-out rater on one item, both against panels that lack one rater, so that
/// neither has the advantage of one vote more. `None` where no criterion has two votes.
pub(super) fn beside_people(
    bench: &Bench<'_>,
    version: &Version,
    item: &Item,
    verdict: &Verdict,
) -> Option<(f64, f64)> {
    let (task, measure) = (bench.judge.task, bench.search.measure);
    let human = people(task, item, measure)?;
    let judge = over_criteria(task, item, |c, scale, votes| {
        let decision = verdict.readings[c].decide(task, version, c, &item.locale)?;
        agreement::ceiling::against_panel(measure, scale, votes, decision.label).ok()
    })?;
    Some((judge, human))
}

/// Mean over the criteria for which the figure is defined.
fn over_criteria(
    task: &Task,
    item: &Item,
    figure: impl Fn(usize, ScaleView<'_>, &[u32]) -> Option<f64>,
) -> Option<f64> {
    let mut found = Vec::new();
    for (c, criterion) in task.criteria.iter().enumerate() {
        let (values, abstain) = (criterion.values(), criterion.abstains());
        let scale = ScaleView {
            values: &values,
            abstain: &abstain,
        };
        found.extend(figure(c, scale, &item.votes[c].counts));
    }
    agreement::mean(&found).ok()
}

/// Cross-entropy with the probabilities held above [`FLOOR`].
pub(super) fn log_loss(probs: &[f64], target: &[f64]) -> f64 {
    probs
        .iter()
        .zip(target)
        .map(|(p, t)| -t * p.max(FLOOR).ln())
        .sum()
}

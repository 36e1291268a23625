//! Search losses of a candidate by item, with calibration fitted out of fold, and the calibration
//! itself. Must not know which candidate wins.

use std::collections::BTreeMap;

use super::bench::Bench;
use super::candidate::Candidate;
use super::measure::{log_loss, score};
use crate::agreement;
use crate::judge::{Example, Reading, fit, out_of_fold};
use crate::prompt::Calibration;

/// Folds of the out-of-fold calibration.
const FOLDS: usize = 5;

struct Row {
    item: usize,
    scores: Vec<f64>,
    target: Vec<f64>,
}

/// The answered items of one criterion that have probabilities and votes.
fn rows(bench: &Bench<'_>, candidate: &Candidate, items: &[usize], criterion: usize) -> Vec<Row> {
    let abstain = bench.judge.task.criteria[criterion].abstains();
    items
        .iter()
        .filter_map(|&item| {
            let Reading::Scores { scores } = &candidate.verdicts.get(&item)?.readings[criterion]
            else {
                return None;
            };
            let counts = &bench.items[item].votes[criterion].counts;
            let target = agreement::target_of(bench.search.measure, &abstain, counts)?;
            Some(Row {
                item,
                scores: scores.clone(),
                target,
            })
        })
        .collect()
}

fn examples<'a>(bench: &'a Bench<'_>, rows: &'a [Row]) -> Vec<Example<'a>> {
    rows.iter()
        .map(|r| Example {
            scores: &r.scores,
            target: &r.target,
            locale: &bench.items[r.item].locale,
        })
        .collect()
}

/// Fits the calibration of a candidate on the tuning items that it has verdicts for.
pub(super) fn calibrate(bench: &Bench<'_>, candidate: &Candidate) -> Calibration {
    let mut calibration = Calibration::default();
    for (c, criterion) in bench.judge.task.criteria.iter().enumerate() {
        let rows = rows(bench, candidate, bench.tune, c);
        if !rows.is_empty() {
            calibration.criteria.insert(
                criterion.name.clone(),
                fit(
                    &examples(bench, &rows),
                    criterion.labels.len(),
                    bench.search.calibration_options(),
                ),
            );
        }
    }
    calibration
}

/// Search loss by item. With calibration on, it is fitted out of fold on these very items, so that
/// neither side of a comparison is judged by a threshold it was fitted on.
pub(super) fn losses(
    bench: &Bench<'_>,
    candidate: &Candidate,
    items: &[usize],
) -> BTreeMap<usize, f64> {
    let (task, search) = (bench.judge.task, bench.search);
    let mut plain = candidate.version.clone();
    if search.calibration {
        plain.calibration = Calibration::default();
    }
    let mut out = BTreeMap::new();
    for &i in items {
        if let Some(s) = candidate
            .verdicts
            .get(&i)
            .and_then(|v| score(task, &plain, &bench.items[i], v, search.measure))
        {
            out.insert(i, if search.loss { s.loss } else { s.distance });
        }
    }
    if !search.calibration {
        return out;
    }
    let judged = task.criteria.len() as f64;
    for (c, criterion) in task.criteria.iter().enumerate() {
        let rows = rows(bench, candidate, items, c);
        let folded = out_of_fold(
            &examples(bench, &rows),
            criterion.labels.len(),
            search.calibration_options(),
            FOLDS,
            &|i| i % FOLDS,
        );
        let (values, abstain) = (criterion.values(), criterion.abstains());
        for (row, probs) in rows.iter().zip(folded) {
            let Some(total) = out.get_mut(&row.item) else {
                continue;
            };
            let counts = &bench.items[row.item].votes[c].counts;
            let loss = |probs: &[f64]| {
                if search.loss {
                    return log_loss(probs, &row.target);
                }
                let label =
                    (0..probs.len()).fold(0, |b, l| if probs[l] > probs[b] { l } else { b });
                agreement::disagreement(
                    search.measure,
                    agreement::ScaleView {
                        values: &values,
                        abstain: &abstain,
                    },
                    counts,
                    Some(label),
                )
                .unwrap_or(1.0)
            };
            let raw = Calibration::default().apply(
                &criterion.name,
                &row.scores,
                &bench.items[row.item].locale,
            );
            *total += (loss(&probs) - loss(&raw)) / judged;
        }
    }
    out
}

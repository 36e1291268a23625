//! Owns which figures a judge has beside people: disagreement with the votes, the same against
//! smaller panels, agreement with the majority, the alternative annotator test.
//! Must not know how verdicts came about.

use serde::Serialize;

use super::figure::{Better, Kind, Measured, reason};
use super::people::{View, kappa_room, matrix};
use super::spec::Plan;
use crate::agreement::ceiling::{
    AltTestPlan, Rating, against_panel, alternative_annotator_test, held_out,
};
use crate::agreement::interval::mean_of_shares;
use crate::agreement::kappa::{Weights, cohen_kappa};
use crate::agreement::table::Confusion;
use crate::agreement::{Interval, Stat, Undefined, classification, disagreement, majority};

/// Outcome of the alternative annotator test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AltTestResult {
    /// Share of raters against whom the judge won.
    pub winning_rate: Option<f64>,
    /// Mean over raters of the share of items on which the judge is as close to the others as the
    /// rater, or closer.
    pub advantage: Option<f64>,
    /// Whether the judge won against half of the raters or more.
    pub passed: Option<bool>,
    /// Per rater.
    pub raters: Vec<AltTestRow>,
    /// Raters with too few items.
    pub left_out: Vec<String>,
    /// Why there is no outcome.
    pub undefined: Option<String>,
}

/// The judge against one rater.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AltTestRow {
    /// The rater.
    pub rater: String,
    /// Items on which both were scored.
    pub n: usize,
    /// Share of items on which the judge is as close to the others as the rater, or closer.
    pub judge_wins: f64,
    /// Share of items on which the rater is as close to the others as the judge, or closer.
    pub rater_wins: f64,
    /// One-sided p-value of "the judge is worse than the rater by epsilon or more".
    pub p_value: f64,
    /// Whether that is refused, corrected over raters.
    pub won: bool,
}

/// The one label that most people chose, per item; `None` without votes or on a tie.
pub(super) fn majorities(view: &View) -> Vec<Option<usize>> {
    view.votes
        .iter()
        .map(|v| majority(v, &view.abstain))
        .collect()
}

/// A judge's label per item.
pub(super) fn labels(view: &View, judge: usize) -> Vec<Option<usize>> {
    let of = |item: &super::LabelledItem| item.verdicts[judge].map(|l| l as usize);
    view.data.items.iter().map(of).collect()
}

/// Every figure that a judge has on this scale.
pub(super) fn figures<'a>(view: &'a View<'a>, judge: usize, plan: &Plan) -> Vec<Measured<'a>> {
    let (scale, measure) = (view.scale(), plan.measure);
    let verdicts = labels(view, judge);
    let each = |f: &dyn Fn(&[u32], Option<usize>) -> Stat| {
        let of = |(votes, label): (&Vec<u32>, &Option<usize>)| f(votes, *label).ok();
        view.votes.iter().zip(&verdicts).map(of).collect::<Vec<_>>()
    };
    let panel = each(&|votes, label| against_panel(measure, scale, votes, label));
    let person = each(&|votes, _| held_out(measure, scale, votes));
    let beyond = panel.iter().zip(&person).map(|(j, p)| Some((*j)? - (*p)?));
    let mut out = vec![
        Measured {
            name: "disagreement",
            better: Better::Low,
            kind: Kind::Mean(each(&|votes, label| {
                disagreement(measure, scale, votes, label)
            })),
        },
        Measured {
            name: "beyond_people",
            better: Better::Low,
            kind: Kind::Difference(beyond.collect()),
        },
        Measured {
            name: "panel_disagreement",
            better: Better::Low,
            kind: Kind::Mean(panel),
        },
    ];
    out.extend(against_majority(view, judge, &verdicts));
    out
}

type MatrixFigure<'a> = Box<dyn Fn(&Confusion) -> Stat + Sync + 'a>;

/// Figures that take the majority as the truth. A verdict without a label is a label of its own
/// here, which nobody else uses, so that it stays in the denominator; weighted kappas leave it out,
/// since it has no position.
fn against_majority<'a>(
    view: &'a View<'a>,
    judge: usize,
    verdicts: &[Option<usize>],
) -> Vec<Measured<'a>> {
    let most = majorities(view);
    let hit =
        |(m, v): (&Option<usize>, &Option<usize>)| Some(f64::from(u8::from(*v == Some((*m)?))));
    let hits: Vec<Option<f64>> = most.iter().zip(verdicts).map(hit).collect();
    let truth: Vec<Option<usize>> = most.iter().map(|m| view.place[(*m)?]).collect();
    let given = view.judge(judge);
    let failed = view.width;
    let whole: Vec<Option<usize>> = given.iter().map(|g| Some(g.unwrap_or(failed))).collect();
    let all: Vec<Option<f64>> = truth.iter().zip(&hits).map(|(t, h)| t.and(*h)).collect();
    let answered = all.iter().zip(&given).map(|(h, g)| g.and(*h)).collect();
    let mut kinds: Vec<(&'static str, MatrixFigure<'a>)> = vec![
        ("kappa", Box::new(|m| cohen_kappa(m, Weights::Nominal))),
        ("mcc", Box::new(classification::matthews_correlation)),
        ("macro_f1", Box::new(move |m| macro_f1(m, failed))),
        (
            "balanced_accuracy",
            Box::new(classification::balanced_accuracy),
        ),
    ];
    let plain = kinds.len();
    for (name, weights) in view.weights() {
        let name = if name == "linear" {
            "kappa_linear"
        } else {
            "kappa_quadratic"
        };
        kinds.push((name, Box::new(move |m| cohen_kappa(m, weights))));
    }
    let with_failures = std::sync::Arc::new((truth.clone(), whole, view.width + 1, all));
    let without = std::sync::Arc::new((truth, given, view.width, answered));
    let mut out = vec![Measured {
        name: "accuracy",
        better: Better::High,
        kind: Kind::Mean(hits),
    }];
    for (at, (name, of)) in kinds.into_iter().enumerate() {
        let columns = if at < plain { &with_failures } else { &without };
        let (columns, other, third) = (columns.clone(), columns.clone(), columns.clone());
        let agreed = columns.3.clone();
        out.push(Measured {
            name,
            better: Better::High,
            kind: Kind::Rows {
                of: Box::new(move |rows| of(&matrix(columns.2, rows, &columns.0, &columns.1)?)),
                agreed,
                room: Box::new(move |rows| match name {
                    "macro_f1" | "balanced_accuracy" => Ok(1.0),
                    _ => kappa_room(&matrix(other.2, rows, &other.0, &other.1)?.row_sums()),
                }),
                least: (name == "balanced_accuracy").then(|| -> super::figure::Least<'a> {
                    Box::new(move |rows, level| {
                        recalls(&matrix(third.2, rows, &third.0, &third.1)?, level)
                    })
                }),
                all: false,
            },
        });
    }
    out
}

/// Interval of balanced accuracy from each label's share of hits: resampling cannot see how uncertain
/// the share of a label is that people seldom used.
fn recalls(matrix: &Confusion, level: f64) -> Result<Interval, Undefined> {
    let sums = matrix.row_sums();
    let part = |l: usize| (matrix.count(l, l) as f64, sums[l] as usize);
    let parts: Vec<(f64, usize)> = (0..sums.len()).map(part).filter(|p| p.1 > 0).collect();
    mean_of_shares(&parts, level)
}

/// Macro-F1 over the labels of the scale that occur on either side. A failed verdict misses the
/// label that it should have been; "failed" is no label to be averaged over.
fn macro_f1(matrix: &Confusion, failed: usize) -> Stat {
    let value = classification::macro_f1(matrix)?;
    let (rows, columns) = (matrix.row_sums(), matrix.column_sums());
    if columns[failed] == 0.0 {
        return Ok(value);
    }
    let used = rows
        .iter()
        .zip(&columns)
        .filter(|(r, c)| **r + **c > 0.0)
        .count() as f64;
    Ok(value * used / (used - 1.0))
}

/// The alternative annotator test over some items.
pub(super) fn alt_test(view: &View, judge: usize, rows: &[usize], plan: &Plan) -> AltTestResult {
    match try_alt_test(view, judge, rows, plan) {
        Ok(result) => result,
        Err(why) => AltTestResult {
            winning_rate: None,
            advantage: None,
            passed: None,
            raters: Vec::new(),
            left_out: Vec::new(),
            undefined: Some(why),
        },
    }
}

fn try_alt_test(
    view: &View,
    judge: usize,
    rows: &[usize],
    plan: &Plan,
) -> Result<AltTestResult, String> {
    if !view.data.named {
        return Err("raters are exchangeable, and the test compares with each of them".into());
    }
    let mut ratings = Vec::new();
    for (item, &row) in rows.iter().enumerate() {
        ratings.extend(view.data.items[row].votes.iter().map(|v| Rating {
            item,
            rater: v.rater as usize,
            label: v.label as usize,
        }));
    }
    let verdicts = labels(view, judge);
    let verdicts: Vec<Option<usize>> = rows.iter().map(|&r| verdicts[r]).collect();
    let test_plan = AltTestPlan {
        epsilon: plan.epsilon,
        q: 0.05,
        least_items: plan.least_items,
    };
    let test =
        alternative_annotator_test(plan.measure, view.scale(), &ratings, &verdicts, test_plan)
            .map_err(|why| match why {
                Undefined::TooFew { .. } => format!(
                    "no rater shares {} items or more with another rater",
                    plan.least_items
                ),
                other => reason(&other),
            })?;
    let name = |rater: usize| view.data.raters[rater].clone();
    Ok(AltTestResult {
        winning_rate: Some(test.winning_rate),
        advantage: Some(test.advantage),
        passed: Some(test.passed()),
        left_out: test.left_out.iter().map(|&r| name(r)).collect(),
        raters: test
            .raters
            .iter()
            .map(|r| AltTestRow {
                rater: name(r.rater),
                n: r.items,
                judge_wins: r.judge_wins,
                rater_wins: r.rater_wins,
                p_value: r.p_value,
                won: r.won,
            })
            .collect(),
        undefined: None,
    })
}

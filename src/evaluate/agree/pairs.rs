//! Owns the comparison of every rater and judge with every other: agreement, kappas, confusion.
//! Must not know votes of more than two.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figure::{Figure, Layout};
use super::people::{View, kappas};
use super::spec::Plan;
use crate::agreement::classification::percent_agreement;
use crate::agreement::table::Confusion;

/// More raters and judges than this are not compared pair by pair.
pub const MOST_MEMBERS: usize = 60;

/// Steps of resampling that all pairs together may take.
const MOST_STEPS: usize = 200_000_000;

/// How often each label of one met each label of the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    /// Labels of the rows and columns; judges' matrices end with a column `(none)` for failed verdicts.
    pub labels: Vec<String>,
    /// Counts, one list per row.
    pub counts: Vec<Vec<u64>>,
}

impl Matrix {
    /// From two columns of labels.
    pub(super) fn of(labels: Vec<String>, a: &[Option<usize>], b: &[Option<usize>]) -> Matrix {
        let width = labels.len();
        let mut counts = vec![vec![0; width]; width];
        for (a, b) in a.iter().zip(b) {
            if let (Some(a), Some(b)) = (*a, *b) {
                counts[a][b] += 1;
            }
        }
        Matrix { labels, counts }
    }
}

/// Two raters or judges on the items that both labelled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The one; rows of the matrix.
    pub a: String,
    /// The other; columns of the matrix.
    pub b: String,
    /// Share of items on which both gave the same label.
    pub agreement: Figure,
    /// Cohen's kappas: `cohen_kappa`, and the weighted ones on an ordered scale.
    pub kappas: BTreeMap<&'static str, Figure>,
    /// Their labels against each other.
    pub confusion: Matrix,
}

/// Names of those who are compared: named raters, then judges.
fn members(view: &View) -> Vec<(String, Vec<Option<usize>>)> {
    let data = view.data;
    let raters = if data.named { data.raters.len() } else { 0 };
    let raters = (0..raters).map(|r| (data.raters[r].clone(), view.rater(r as u32)));
    let judges = (0..data.judges.len()).map(|j| (data.judges[j].clone(), view.judge(j)));
    raters.chain(judges).collect()
}

/// Why there are no pairs, where that needs saying.
pub(super) fn left_out(view: &View) -> Option<String> {
    let raters = if view.data.named {
        view.data.raters.len()
    } else {
        0
    };
    let members = raters + view.data.judges.len();
    (members > MOST_MEMBERS).then(|| {
        format!("{members} raters and judges are too many to compare pair by pair (up to {MOST_MEMBERS})")
    })
}

/// Every pair on some items; pairs that share no item are left out.
pub(super) fn pairs(view: &View, rows: &[usize], layout: &Layout, plan: &Plan) -> Vec<Pair> {
    if left_out(view).is_some() {
        return Vec::new();
    }
    let members = members(view);
    let shared = |a: &[Option<usize>], b: &[Option<usize>]| {
        let both = |&&r: &&usize| a[r].is_some() && b[r].is_some();
        rows.iter().filter(both).copied().collect::<Vec<usize>>()
    };
    let mut found = Vec::new();
    for (at, a) in members.iter().enumerate() {
        for b in &members[at + 1..] {
            let rows = shared(&a.1, &b.1);
            if !rows.is_empty() {
                found.push((a, b, rows));
            }
        }
    }
    let steps: usize = found.iter().map(|f| f.2.len()).sum();
    let resamples = plan.resamples.min((MOST_STEPS / steps.max(1)).max(200));
    let plan = Plan { resamples, ..*plan };
    found
        .into_iter()
        .map(|(a, b, rows)| pair(view, a, b, &rows, layout, &plan))
        .collect()
}

type Member = (String, Vec<Option<usize>>);

fn pair(view: &View, a: &Member, b: &Member, rows: &[usize], layout: &Layout, plan: &Plan) -> Pair {
    let measured = kappas(view, a.1.clone(), b.1.clone());
    let pick = |column: &[Option<usize>]| rows.iter().map(|&r| column[r]).collect::<Vec<_>>();
    let (x, y) = (pick(&a.1), pick(&b.1));
    let labels = kept_labels(view);
    let agreement = Confusion::from_pairs(labels.len(), &x, &y)
        .and_then(|m| Ok((percent_agreement(&m)?, m.total())));
    Pair {
        a: a.0.clone(),
        b: b.0.clone(),
        agreement: match agreement {
            Ok((share, n)) => Figure::share(share, n as usize, plan.level),
            Err(why) => Figure::undefined(0, &why),
        },
        kappas: measured
            .iter()
            .map(|m| (m.name, m.figure(rows, layout, plan)))
            .collect(),
        confusion: Matrix::of(labels, &x, &y),
    }
}

/// Names of the labels that the kappa family counts.
pub(super) fn kept_labels(view: &View) -> Vec<String> {
    let labels = view.data.labels.iter().zip(&view.place);
    labels
        .filter(|(_, place)| place.is_some())
        .map(|(l, _)| l.label.clone())
        .collect()
}

//! Owns which figures people's votes have: agreement, the kappa family, alpha, AC1 and AC2, and the
//! disagreement of a held-out rater. Must not know judges.

use super::figure::{Better, Kind, Measured};
use super::read::Labelled;
use super::spec::{Plan, Scale};
use crate::agreement::alpha::{Metric, krippendorff_alpha};
use crate::agreement::ceiling::held_out;
use crate::agreement::kappa::{Weights, cohen_kappa, fleiss_kappa};
use crate::agreement::table::{Confusion, CountTable};
use crate::agreement::{Measure, ScaleView, Stat, Undefined, ac};

/// The labels as the figures see them.
pub(super) struct View<'a> {
    pub data: &'a Labelled,
    /// Values for the distance of a verdict; an abstention has 0, which no distance uses.
    pub values: Vec<f64>,
    pub abstain: Vec<bool>,
    /// Index of each label in the tables of the kappa family: on an ordered scale labels that
    /// abstain have no position, so there they count as missing.
    pub place: Vec<Option<usize>>,
    /// Number of labels in those tables, and their values.
    pub width: usize,
    pub table_values: Vec<f64>,
    /// Votes per item and label.
    pub votes: Vec<Vec<u32>>,
}

impl<'a> View<'a> {
    pub fn new(data: &'a Labelled) -> View<'a> {
        let abstain: Vec<bool> = data.labels.iter().map(|l| l.abstain).collect();
        let ordered = data.scale.is_ordered();
        let mut width = 0;
        let mut table_values = Vec::new();
        let mut place = Vec::new();
        for label in &data.labels {
            let kept = !(ordered && label.abstain);
            place.push(kept.then_some(width));
            if kept {
                width += 1;
                table_values.push(label.value.unwrap_or(0.0));
            }
        }
        let count = |item: &super::LabelledItem| {
            let mut votes = vec![0; abstain.len()];
            item.votes.iter().for_each(|v| votes[v.label as usize] += 1);
            votes
        };
        View {
            data,
            values: data.labels.iter().map(|l| l.value.unwrap_or(0.0)).collect(),
            votes: data.items.iter().map(count).collect(),
            abstain,
            place,
            width,
            table_values,
        }
    }

    /// The scale for the distance of a verdict from votes.
    pub fn scale(&self) -> ScaleView<'_> {
        ScaleView {
            values: &self.values,
            abstain: &self.abstain,
        }
    }

    /// Weighted kappas of the scale, with their names.
    pub fn weights(&self) -> Vec<(&'static str, Weights<'_>)> {
        match self.data.scale {
            Scale::Nominal => Vec::new(),
            Scale::Ordinal => vec![
                ("linear", Weights::Linear),
                ("quadratic", Weights::Quadratic),
            ],
            Scale::Interval | Scale::Ratio => vec![
                ("linear", Weights::LinearValues(&self.table_values)),
                ("quadratic", Weights::QuadraticValues(&self.table_values)),
            ],
        }
    }

    fn metric(&self) -> Metric<'_> {
        match self.data.scale {
            Scale::Nominal => Metric::Nominal,
            Scale::Ordinal => Metric::Ordinal,
            Scale::Interval => Metric::Interval(&self.table_values),
            Scale::Ratio => Metric::Ratio(&self.table_values),
        }
    }

    /// Votes of the items as the kappa family counts them.
    fn table(&self) -> Result<CountTable, Undefined> {
        let mut counts = Vec::with_capacity(self.votes.len() * self.width);
        for votes in &self.votes {
            let kept = votes.iter().zip(&self.place).filter(|(_, p)| p.is_some());
            counts.extend(kept.map(|(&n, _)| n));
        }
        CountTable::new(self.width, counts)
    }

    /// A judge's labels, one per item, as the kappa family counts them.
    pub fn judge(&self, judge: usize) -> Vec<Option<usize>> {
        let of = |item: &super::LabelledItem| self.place[item.verdicts[judge]? as usize];
        self.data.items.iter().map(of).collect()
    }

    /// A rater's labels, one per item, as the kappa family counts them.
    pub fn rater(&self, rater: u32) -> Vec<Option<usize>> {
        let of = |item: &super::LabelledItem| {
            let vote = item.votes.iter().find(|v| v.rater == rater)?;
            self.place[vote.label as usize]
        };
        self.data.items.iter().map(of).collect()
    }
}

/// Confusion matrix of some items.
pub(super) fn matrix(
    width: usize,
    rows: &[usize],
    a: &[Option<usize>],
    b: &[Option<usize>],
) -> Result<Confusion, Undefined> {
    let pick = |column: &[Option<usize>]| rows.iter().map(|&r| column[r]).collect::<Vec<_>>();
    Confusion::from_pairs(width, &pick(a), &pick(b))
}

/// `1 - Σ share²` of the labels that some items carry.
pub(super) fn kappa_room(counts: &[f64]) -> Stat {
    let total: f64 = counts.iter().sum();
    let squares: f64 = counts.iter().map(|c| c * c).sum();
    if total == 0.0 || squares >= total * total {
        return Err(Undefined::OneLabel);
    }
    Ok(1.0 - squares / (total * total))
}

fn totals(table: &CountTable, rows: &[usize]) -> Vec<f64> {
    let mut totals = vec![0.0; table.labels()];
    for item in table.select(rows).items() {
        totals
            .iter_mut()
            .zip(item)
            .for_each(|(t, &n)| *t += f64::from(n));
    }
    totals
}

/// Every figure that people's votes have on this scale.
///
/// # Errors
/// A scale without labels.
pub(super) fn figures<'a>(view: &'a View<'a>, plan: &Plan) -> Result<Vec<Measured<'a>>, Undefined> {
    let scale = view.scale();
    let held = |measure: Measure| {
        let of = |v: &Vec<u32>| held_out(measure, scale, v).ok();
        view.votes.iter().map(of).collect::<Vec<_>>()
    };
    let pairwise = held(Measure::MeanVotes);
    let agreed: Vec<Option<f64>> = pairwise.iter().map(|d| d.map(|d| 1.0 - d)).collect();
    let unanimous = agreed
        .iter()
        .map(|a| a.map(|a| f64::from(u8::from(a >= 1.0))));
    let mean = |name, better, values| Measured {
        name,
        better,
        kind: Kind::Mean(values),
    };
    let mut out = vec![
        mean("agreement", Better::High, agreed.clone()),
        mean("unanimous", Better::High, unanimous.collect()),
        mean("held_out", Better::Low, held(plan.measure)),
    ];
    if view.data.named && view.data.raters.len() == 2 {
        out.extend(kappas(view, view.rater(0), view.rater(1)));
    }
    out.extend(tables(view, view.table()?));
    Ok(out)
}

/// Cohen's kappas of two columns of labels.
pub(super) fn kappas<'a>(
    view: &'a View<'a>,
    a: Vec<Option<usize>>,
    b: Vec<Option<usize>>,
) -> Vec<Measured<'a>> {
    let same = |(a, b): (&Option<usize>, &Option<usize>)| Some(f64::from(u8::from((*a)? == (*b)?)));
    let agreed: Vec<Option<f64>> = a.iter().zip(&b).map(same).collect();
    let name = |of: &str| match of {
        "linear" => "cohen_kappa_linear",
        _ => "cohen_kappa_quadratic",
    };
    let mut kinds = vec![("cohen_kappa", Weights::Nominal)];
    kinds.extend(view.weights().into_iter().map(|(of, w)| (name(of), w)));
    let columns = std::sync::Arc::new((a, b));
    let measured = |(name, weights): (&'static str, Weights<'a>)| {
        let (of, room) = (columns.clone(), columns.clone());
        Measured {
            name,
            better: Better::High,
            kind: Kind::Rows {
                of: Box::new(move |rows| {
                    cohen_kappa(&matrix(view.width, rows, &of.0, &of.1)?, weights)
                }),
                agreed: agreed.clone(),
                room: Box::new(move |rows| {
                    kappa_room(&matrix(view.width, rows, &room.0, &room.1)?.row_sums())
                }),
                least: None,
                all: false,
            },
        }
    };
    kinds.into_iter().map(measured).collect()
}

type TableFigure<'a> = Box<dyn Fn(&CountTable) -> Stat + Sync + 'a>;

fn tables<'a>(view: &'a View<'a>, table: CountTable) -> Vec<Measured<'a>> {
    let agreed: Vec<Option<f64>> = table
        .items()
        .map(|item| {
            let n: f64 = item.iter().map(|&c| f64::from(c)).sum();
            let same: f64 = item
                .iter()
                .map(|&c| f64::from(c) * (f64::from(c) - 1.0))
                .sum();
            (n >= 2.0).then(|| same / (n * (n - 1.0)))
        })
        .collect();
    let mut kinds: Vec<(&'static str, TableFigure<'a>, bool)> = vec![
        (
            "fleiss_kappa",
            Box::new(|t| fleiss_kappa(t, Weights::Nominal)),
            false,
        ),
        (
            "krippendorff_alpha",
            Box::new(|t| krippendorff_alpha(t, view.metric())),
            false,
        ),
        ("gwet_ac1", Box::new(ac::gwet_ac1), true),
    ];
    let graded = match view.data.scale {
        Scale::Nominal => None,
        Scale::Ordinal => Some(Weights::Ordinal),
        Scale::Interval | Scale::Ratio => Some(Weights::QuadraticValues(&view.table_values)),
    };
    if let Some(weights) = graded {
        kinds.push((
            "gwet_ac2",
            Box::new(move |t| ac::gwet_ac2(t, weights)),
            true,
        ));
    }
    let table = std::sync::Arc::new(table);
    let measured = |(name, of, gwet): (&'static str, TableFigure<'a>, bool)| {
        let (table, other) = (table.clone(), table.clone());
        Measured {
            name,
            better: Better::High,
            kind: Kind::Rows {
                of: Box::new(move |rows| of(&table.select(rows))),
                agreed: agreed.clone(),
                room: Box::new(move |rows| {
                    let counts = totals(&other, rows);
                    if gwet {
                        // Chance agreement of AC1 is Σ share (1 - share) / (k - 1).
                        let spread = kappa_room(&counts).unwrap_or(0.0);
                        return Ok(1.0 - spread / (counts.len() as f64 - 1.0).max(1.0));
                    }
                    kappa_room(&counts)
                }),
                least: None,
                all: name != "krippendorff_alpha",
            },
        }
    };
    kinds.into_iter().map(measured).collect()
}

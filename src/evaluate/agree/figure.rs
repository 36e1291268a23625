//! Owns one figure over some items, with the interval that fits it, and the same figure averaged
//! over locales. Must not know which figure it is.

use serde::Serialize;

use super::spec::Plan;
use crate::agreement::bootstrap::{
    Method, Plan as Resampling, Sample, Statistic, bootstrap, bootstrap_rows,
};
use crate::agreement::interval::{clopper_pearson, mean_interval, wilson};
use crate::agreement::{Interval, Stat, Undefined, mean};

/// How an interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Wilson's, or its generalisation for means of values between 0 and 1.
    Wilson,
    /// Clopper and Pearson's, of a share of few items: Wilson's covers too little at some shares.
    ClopperPearson,
    /// Quantiles of resamples.
    Percentile,
    /// Bias-corrected and accelerated quantiles of resamples.
    Bca,
    /// Wilson's interval of the observed agreement, carried over to the chance-corrected figure
    /// with chance agreement as it was seen; used where resampling has nothing to vary.
    Agreement,
}

/// An interval of a [`Figure`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How it was made.
    pub by: By,
}

/// A figure with its number of items, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Items that it rests on.
    pub n: usize,
    /// The value.
    pub value: Option<f64>,
    /// Its interval at the level of the settings.
    pub interval: Option<Span>,
    /// Why there is no value, or no interval.
    pub undefined: Option<String>,
}

impl Figure {
    /// A figure that does not exist.
    pub(super) fn undefined(n: usize, why: &Undefined) -> Figure {
        Figure {
            n,
            value: None,
            interval: None,
            undefined: Some(reason(why)),
        }
    }

    /// A mean of values between 0 and 1.
    /// A mean of values between 0 and 1.
    pub(super) fn mean_of(value: f64, values: &[f64], level: f64) -> Figure {
        Figure::new(values.len(), value, mean_span(values, level))
    }

    /// A share of `n` items.
    pub(super) fn share(value: f64, n: usize, level: f64) -> Figure {
        Figure::new(n, value, share_span(value * n as f64, n, level))
    }

    fn new(n: usize, value: f64, interval: Result<Span, Undefined>) -> Figure {
        Figure {
            n,
            value: Some(value),
            undefined: interval
                .as_ref()
                .err()
                .map(|e| format!("no interval: {}", reason(e))),
            interval: interval.ok(),
        }
    }
}

/// With fewer items the interval of a share is the exact one.
const FEW: usize = 30;
/// With fewer items macro-F1 has no interval: resampling cannot know how sure the F1 of a label
/// is that few items have.
const MACRO_F1: usize = 50;

/// The interval of a share: exact for few items, else Wilson's.
fn share_span(hits: f64, n: usize, level: f64) -> Result<Span, Undefined> {
    let (interval, by) = if n < FEW {
        (clopper_pearson(hits, n, level)?, By::ClopperPearson)
    } else {
        (wilson(hits, n, level)?, By::Wilson)
    };
    Ok(Span {
        low: interval.low,
        high: interval.high,
        by,
    })
}

/// The interval of a mean of values between 0 and 1.
fn mean_span(values: &[f64], level: f64) -> Result<Span, Undefined> {
    if values.iter().all(|&v| v == 0.0 || v == 1.0) {
        return share_span(values.iter().sum(), values.len(), level);
    }
    let i = mean_interval(values, level)?;
    Ok(Span {
        low: i.low,
        high: i.high,
        by: By::Wilson,
    })
}

/// The reason without the word "undefined".
pub(super) fn reason(why: &Undefined) -> String {
    let text = why.to_string();
    text.strip_prefix("undefined: ").unwrap_or(&text).to_owned()
}

/// Which end of a figure is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    High,
    Low,
}

type Of<'a> = Box<dyn Fn(&[usize]) -> Stat + Sync + 'a>;

pub(super) type Least<'a> = Box<dyn Fn(&[usize], f64) -> Result<Interval, Undefined> + Sync + 'a>;

/// How a figure comes from items.
pub(super) enum Kind<'a> {
    /// The mean of a value in `[0, 1]` per item.
    Mean(Vec<Option<f64>>),
    /// The mean of a value in `[-1, 1]` per item.
    Difference(Vec<Option<f64>>),
    /// Any figure of a list of items (with repeats).
    Rows {
        of: Of<'a>,
        /// Agreement of each item that the figure rests on, 0 to 1.
        agreed: Vec<Option<f64>>,
        /// How far chance agreement is from 1, for items that agree throughout.
        room: Of<'a>,
        /// An interval that the resampled one must not be narrower than.
        least: Option<Least<'a>>,
        /// Whether items without such an agreement count too (as label shares).
        all: bool,
    },
}

/// A figure that can be had for any set of items.
pub(super) struct Measured<'a> {
    pub name: &'static str,
    pub better: Better,
    pub kind: Kind<'a>,
}

/// Where the items of all figures belong.
pub(super) struct Layout {
    pub locale: Vec<usize>,
    pub group: Vec<usize>,
    pub grouped: bool,
}

impl Layout {
    fn pick(&self, rows: &[usize]) -> (Vec<usize>, Vec<usize>) {
        (
            rows.iter().map(|&r| self.locale[r]).collect(),
            rows.iter().map(|&r| self.group[r]).collect(),
        )
    }
}

fn resampling(plan: &Plan, method: Method) -> Resampling {
    Resampling {
        method,
        resamples: plan.resamples,
        level: plan.level,
        seed: plan.seed,
    }
}

/// BCa; over more than 500 items its corrections vanish, and the plain quantiles cost less.
fn method(items: usize) -> Method {
    if items > 500 {
        Method::Percentile
    } else {
        Method::Bca
    }
}

fn by(method: Method) -> impl Fn(Interval) -> Span {
    move |i| Span {
        low: i.low,
        high: i.high,
        by: match method {
            Method::Percentile => By::Percentile,
            Method::Bca => By::Bca,
        },
    }
}

impl Measured<'_> {
    fn of(&self, rows: &[usize]) -> Stat {
        match &self.kind {
            Kind::Mean(values) | Kind::Difference(values) => {
                mean(&rows.iter().filter_map(|&r| values[r]).collect::<Vec<_>>())
            }
            Kind::Rows { of, .. } => of(rows),
        }
    }

    fn values(&self) -> &[Option<f64>] {
        match &self.kind {
            Kind::Mean(values) | Kind::Difference(values) => values,
            Kind::Rows { agreed, .. } => agreed,
        }
    }

    fn counts_all(&self) -> bool {
        matches!(self.kind, Kind::Rows { all: true, .. })
    }

    /// The figure over some items.
    pub fn figure(&self, rows: &[usize], layout: &Layout, plan: &Plan) -> Figure {
        let values = self.values();
        let used: Vec<usize> = rows
            .iter()
            .copied()
            .filter(|&r| values[r].is_some())
            .collect();
        let n = used.len();
        match &self.kind {
            Kind::Rows { of, all, .. } => {
                let rows = if *all { rows } else { &used };
                match of(rows) {
                    Err(why) => Figure::undefined(n, &why),
                    Ok(value) => {
                        Figure::new(n, value, self.rows_interval(value, rows, layout, plan))
                    }
                }
            }
            Kind::Mean(_) | Kind::Difference(_) => {
                let picked: Vec<f64> = used.iter().filter_map(|&r| values[r]).collect();
                match mean(&picked) {
                    Err(_) => Figure::undefined(n, &Undefined::Empty(NO_ITEMS)),
                    Ok(value) => {
                        Figure::new(n, value, self.mean_interval(&picked, &used, layout, plan))
                    }
                }
            }
        }
    }

    fn mean_interval(
        &self,
        values: &[f64],
        rows: &[usize],
        layout: &Layout,
        plan: &Plan,
    ) -> Result<Span, Undefined> {
        if !layout.grouped {
            // Differences are moved to 0..=1 and back; resampling few of them would miss rare ones.
            let signed = matches!(self.kind, Kind::Difference(_));
            let moved = |v: &f64| if signed { (v + 1.0) / 2.0 } else { *v };
            let i = mean_span(&values.iter().map(moved).collect::<Vec<_>>(), plan.level)?;
            let back = |end: f64| if signed { 2.0 * end - 1.0 } else { end };
            return Ok(Span {
                low: back(i.low),
                high: back(i.high),
                ..i
            });
        }
        let (stratum, cluster) = layout.pick(rows);
        let sample = Sample {
            values,
            stratum: &stratum,
            cluster: &cluster,
        };
        bootstrap(
            sample,
            Statistic::PooledMean,
            resampling(plan, method(rows.len())),
        )
        .map(by(method(rows.len())))
    }

    fn rows_interval(
        &self,
        value: f64,
        rows: &[usize],
        layout: &Layout,
        plan: &Plan,
    ) -> Result<Span, Undefined> {
        let Kind::Rows { of, least, .. } = &self.kind else {
            return Err(Undefined::Empty(NO_ITEMS));
        };
        if self.name == "macro_f1" && rows.len() < MACRO_F1 {
            return Err(Undefined::TooFew {
                what: "items for an interval of macro-F1",
                have: rows.len(),
                need: MACRO_F1,
            });
        }
        let (stratum, cluster) = layout.pick(rows);
        let pick = |drawn: &[usize]| drawn.iter().map(|&at| rows[at]).collect::<Vec<_>>();
        let plan_of = resampling(plan, method(rows.len()));
        let resampled = bootstrap_rows(&stratum, &cluster, plan_of, |drawn| of(&pick(drawn)));
        let span = match resampled {
            Ok(i) if i.high > i.low => by(method(rows.len()))(i),
            Ok(_) | Err(Undefined::Resamples { .. }) => {
                self.agreement_interval(value, rows, plan.level)?
            }
            Err(other) => return Err(other),
        };
        match least {
            None => Ok(span),
            Some(least) => {
                let least = least(rows, plan.level)?;
                Ok(Span {
                    low: span.low.min(least.low),
                    high: span.high.max(least.high),
                    ..span
                })
            }
        }
    }

    /// `1 - (1 - agreement) / room` at both ends of Wilson's interval of the agreement, where
    /// `room` is what the data imply: `(1 - agreement) / (1 - value)`.
    fn agreement_interval(
        &self,
        value: f64,
        rows: &[usize],
        level: f64,
    ) -> Result<Span, Undefined> {
        let Kind::Rows { agreed, room, .. } = &self.kind else {
            return Err(Undefined::Empty(NO_ITEMS));
        };
        let picked: Vec<f64> = rows.iter().filter_map(|&r| agreed[r]).collect();
        let agreement = mean(&picked)?;
        let room = if agreement < 1.0 && value < 1.0 {
            (1.0 - agreement) / (1.0 - value)
        } else {
            room(rows)?
        };
        let ends = if agreement >= 1.0 {
            wilson(picked.len() as f64, picked.len(), level)?
        } else {
            mean_interval(&picked, level)?
        };
        let at = |agreement: f64| (1.0 - (1.0 - agreement) / room).clamp(-1.0, 1.0);
        Ok(Span {
            low: at(ends.low).min(value),
            high: at(ends.high).max(value),
            by: By::Agreement,
        })
    }

    /// The mean over locales in which the figure exists, every locale counting alike.
    pub fn over_locales(&self, locales: &[Vec<usize>], layout: &Layout, plan: &Plan) -> Figure {
        let counts = |r: &&usize| self.values()[**r].is_some() || self.counts_all();
        let counted = locales
            .iter()
            .map(|l| l.iter().filter(counts).copied().collect());
        let usable: Vec<Vec<usize>> = counted
            .filter(|l: &Vec<usize>| self.of(l).is_ok())
            .collect();
        let rows: Vec<usize> = usable.iter().flat_map(|l| l.iter().copied()).collect();
        let n = rows.iter().filter(|&&r| self.values()[r].is_some()).count();
        let Some(last) = usable.len().checked_sub(1) else {
            return Figure::undefined(n, &Undefined::Empty("locales in which the figure exists"));
        };
        let mut place = vec![0; layout.locale.iter().max().map_or(0, |m| m + 1)];
        usable
            .iter()
            .enumerate()
            .for_each(|(at, l)| place[layout.locale[l[0]]] = at);
        let figure = |rows: &[usize]| {
            let mut parts = vec![Vec::new(); last + 1];
            rows.iter()
                .for_each(|&r| parts[place[layout.locale[r]]].push(r));
            let each = parts
                .iter()
                .map(|p| self.of(p))
                .collect::<Result<Vec<_>, _>>()?;
            mean(&each)
        };
        let value = match figure(&rows) {
            Ok(value) => value,
            Err(why) => return Figure::undefined(n, &why),
        };
        let (stratum, cluster) = layout.pick(&rows);
        let interval = bootstrap_rows(
            &stratum,
            &cluster,
            resampling(plan, method(rows.len())),
            |drawn| figure(&drawn.iter().map(|&at| rows[at]).collect::<Vec<_>>()),
        );
        let interval = match interval {
            Ok(i) if i.high <= i.low => Err(Undefined::Empty("differences between resamples")),
            other => other.map(by(method(rows.len()))),
        };
        Figure::new(n, value, interval)
    }
}

const NO_ITEMS: &str = "items with the labels that the figure needs";

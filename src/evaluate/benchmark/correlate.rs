//! How two rates go together, over models and over countries.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::figures::models;
use super::{Line, cell};
use crate::agreement::correlation::{Correlation, LEAST_PAIRS, fisher, pearson, spearman};
use crate::agreement::{Interval, Stat};

/// One model or country.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// The first rate.
    pub x: f64,
    /// The second.
    pub y: f64,
}

/// A correlation coefficient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// From -1 to 1.
    pub value: f64,
    /// Fisher's interval.
    pub interval: Interval,
}

/// How two rates go together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correlated {
    /// The first rate.
    pub x: String,
    /// The second.
    pub y: String,
    /// `models` or `countries`.
    pub over: String,
    /// What is correlated.
    pub points: Vec<Point>,
    /// Pearson's.
    pub pearson: Option<Coefficient>,
    /// Spearman's.
    pub spearman: Option<Coefficient>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// The correlation of points.
pub fn correlated(x: &str, y: &str, over: &str, points: Vec<Point>, level: f64) -> Correlated {
    let xs: Vec<f64> = points.iter().map(|p| p.x).collect();
    let ys: Vec<f64> = points.iter().map(|p| p.y).collect();
    let n = points.len();
    let mut why = None;
    let mut coefficient = |of: Stat, kind| {
        let found = of.and_then(|value| {
            let interval = fisher(value, n, kind, level)?;
            Ok(Coefficient { value, interval })
        });
        found.map_err(|e| why = Some(e.to_string())).ok()
    };
    let (pearson, spearman) = match n < LEAST_PAIRS {
        true => (None, None),
        false => (
            coefficient(pearson(&xs, &ys), Correlation::Pearson),
            coefficient(spearman(&xs, &ys), Correlation::Spearman),
        ),
    };
    if n < LEAST_PAIRS {
        why = Some(format!(
            "insufficient data: {n} {over}, at least {LEAST_PAIRS} needed"
        ));
    }
    Correlated {
        x: x.to_owned(),
        y: y.to_owned(),
        over: over.to_owned(),
        points,
        pearson,
        spearman,
        undefined: why,
    }
}

/// Two rates over models (each the mean over the countries where it has both) and over countries
/// (each the mean over the models that have both there). The rates may come from different parts of
/// the benchmark: lines are matched by model and country.
pub fn correlations(x: (&str, &[Line]), y: (&str, &[Line]), level: f64) -> [Correlated; 2] {
    let (first, second) = (grid(x, level), grid(y, level));
    let mut by_model: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut by_country: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for ((model, country), a) in &first {
        if let Some(b) = second.get(&(*model, *country)) {
            by_model.entry(model).or_default().push((*a, *b));
            by_country.entry(country).or_default().push((*a, *b));
        }
    }
    let points = |of: BTreeMap<&str, Vec<(f64, f64)>>| {
        let point = |(name, cells): (&str, Vec<(f64, f64)>)| {
            let n = cells.len() as f64;
            Point {
                name: name.to_owned(),
                x: cells.iter().map(|c| c.0).sum::<f64>() / n,
                y: cells.iter().map(|c| c.1).sum::<f64>() / n,
            }
        };
        of.into_iter().map(point).collect::<Vec<_>>()
    };
    [
        correlated(x.0, y.0, "models", points(by_model), level),
        correlated(x.0, y.0, "countries", points(by_country), level),
    ]
}

/// The rate of each model in each country.
fn grid<'a>((rate, lines): (&str, &'a [Line]), level: f64) -> BTreeMap<(&'a str, &'a str), f64> {
    let mut out = BTreeMap::new();
    let countries: BTreeSet<&str> = lines.iter().map(|l| l.locale.as_str()).collect();
    for model in models(lines) {
        for country in &countries {
            let own: Vec<&Line> = lines
                .iter()
                .filter(|l| l.model == model && l.locale.as_str() == *country)
                .collect();
            if let Some(value) = cell(&own, level).rates.get(rate).and_then(|r| r.value) {
                out.insert((model, *country), value);
            }
        }
    }
    out
}

//! Owns the comparison of models on one rate: means over countries, pairs tested item by item, and
//! ranks that say when two models cannot be told apart. Must not know how labels came about.
//!
//! Every country counts alike. Two models are compared on the prompts that both answered: the
//! difference of their rates is a sum over prompts, of which the signs of all terms of a question's
//! cluster are flipped together; were the models alike, every pattern of signs would be as likely. For a
//! rate with its own denominator (CSR) a term is the linearised one, `(hit - rate * eligible) / eligible
//! items` of either model, whose sum is the difference itself. Tests of all pairs are corrected by Holm,
//! so that with the chosen confidence no pair is told apart by chance; a model's rank lies between one
//! more than the models that are told to be better and the number of models without those told to be
//! worse (simultaneous for all models, as in Mogstad et al. 2024).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use super::benchmark::{Better, Line, RateFigure, cell};
use crate::agreement::multiple::holm;
use crate::agreement::paired::paired_permutation;
use crate::agreement::{Interval, Undefined};
use crate::task::Standing;

/// Patterns of signs of each test.
pub const DRAWS: usize = 20_000;

/// A leaderboard of one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Board {
    /// The rate.
    pub rate: String,
    /// Which end is the good one.
    pub better: Better,
    /// Countries, by name.
    pub countries: Vec<String>,
    /// The best first; models without the rate last.
    pub models: Vec<Ranked>,
    /// Every pair.
    pub pairs: Vec<Pair>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// Its name.
    pub model: String,
    /// Responses in the denominators.
    pub n: usize,
    /// Mean over the countries in which the rate exists.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: Option<Interval>,
    /// The best and the worst rank that it can have.
    pub rank: Option<(usize, usize)>,
    /// By country.
    pub countries: BTreeMap<String, RateFigure>,
}

/// Two models on the prompts that both answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// The one.
    pub a: String,
    /// The other.
    pub b: String,
    /// Prompts that both answered, in countries in which both have the rate.
    pub n: usize,
    /// Rate of `a` less that of `b`.
    pub difference: f64,
    /// Of the sign-flip test.
    pub p: f64,
    /// Corrected for all pairs.
    pub adjusted: f64,
    /// Whether they can be told apart.
    pub apart: bool,
}

/// The leaderboard of a rate.
///
/// # Errors
/// A level outside (0, 1).
pub fn board(
    rate: &str,
    better: Better,
    lines: &[Line],
    level: f64,
    seed: u64,
) -> Result<Board, Undefined> {
    crate::agreement::rate("level", level)?;
    let lines: Vec<&Line> = lines
        .iter()
        .filter(|l| !l.unpaid && l.rates.contains_key(rate))
        .collect();
    let mut names: Vec<&str> = Vec::new();
    for line in &lines {
        if !names.contains(&line.model.as_str()) {
            names.push(&line.model);
        }
    }
    let mut models: Vec<Ranked> = names
        .iter()
        .map(|m| ranked(m, rate, &lines, level))
        .collect();
    let pairs = pairs(rate, &names, &lines, 1.0 - level, seed)?;
    let sign = match better {
        Better::High => 1.0,
        Better::Low => -1.0,
    };
    let valued = models.iter().filter(|m| m.value.is_some()).count();
    for model in models.iter_mut().filter(|m| m.value.is_some()) {
        let (mut above, mut below) = (0, 0);
        for pair in pairs.iter().filter(|p| p.apart) {
            let ahead = match &model.model {
                m if *m == pair.a => sign * pair.difference,
                m if *m == pair.b => -sign * pair.difference,
                _ => continue,
            };
            match ahead > 0.0 {
                true => below += 1,
                false => above += 1,
            }
        }
        model.rank = Some((1 + above, valued - below));
    }
    let key = |m: &Ranked| m.value.map_or(f64::NEG_INFINITY, |v| sign * v);
    models.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.model.cmp(&b.model)));
    let countries: BTreeSet<String> = lines.iter().map(|l| l.locale.to_string()).collect();
    Ok(Board {
        rate: rate.to_owned(),
        better,
        countries: countries.into_iter().collect(),
        models,
        pairs,
    })
}

fn ranked(model: &str, rate: &str, lines: &[&Line], level: f64) -> Ranked {
    let mut by: BTreeMap<String, Vec<&Line>> = BTreeMap::new();
    for line in lines.iter().filter(|l| l.model == model) {
        by.entry(line.locale.to_string()).or_default().push(line);
    }
    let countries: BTreeMap<String, RateFigure> = by
        .into_iter()
        .filter_map(|(country, own)| Some((country, cell(&own, level).rates.remove(rate)?)))
        .collect();
    let figures: Vec<(f64, Interval)> = countries
        .values()
        .filter_map(|f| Some((f.value?, f.interval?)))
        .collect();
    let (value, interval) = mean_of(&figures, level);
    Ranked {
        model: model.to_owned(),
        n: countries.values().map(|f| f.n).sum(),
        value,
        interval,
        rank: None,
        countries,
    }
}

/// Mean of independent rates: distances to the ends of their intervals, added as variances are
/// (MOVER, Donner and Zou 2012).
fn mean_of(figures: &[(f64, Interval)], level: f64) -> (Option<f64>, Option<Interval>) {
    if figures.is_empty() {
        return (None, None);
    }
    let count = figures.len() as f64;
    let value = figures.iter().map(|(v, _)| v).sum::<f64>() / count;
    let far = |of: &dyn Fn(&(f64, Interval)) -> f64| {
        figures.iter().map(|f| of(f).powi(2)).sum::<f64>().sqrt() / count
    };
    let interval = Interval {
        low: (value - far(&|(v, i)| v - i.low)).max(0.0),
        high: (value + far(&|(v, i)| i.high - v)).min(1.0),
        level,
    };
    (Some(value), Some(interval))
}

/// Whether a line counts, and whether it is in the denominator.
fn stands(line: &Line, rate: &str) -> (f64, f64) {
    match line.rates.get(rate) {
        Some(Standing::Hit) => (1.0, 1.0),
        Some(Standing::Miss | Standing::Open | Standing::OpenMiss) => (0.0, 1.0),
        Some(Standing::Outside) | None => (0.0, 0.0),
    }
}

fn pairs(
    rate: &str,
    names: &[&str],
    lines: &[&Line],
    alpha: f64,
    seed: u64,
) -> Result<Vec<Pair>, Undefined> {
    let mut of: HashMap<&str, BTreeMap<(&str, &str), &Line>> = HashMap::new();
    for line in lines {
        let own = of.entry(&line.model).or_default();
        own.insert((line.locale.as_str(), &line.prompt), line);
    }
    let mut out = Vec::new();
    for (at, a) in names.iter().enumerate() {
        for b in &names[at + 1..] {
            if let Some(pair) = pair(rate, (a, &of[a]), (b, &of[b]), seed)? {
                out.push(pair);
            }
        }
    }
    let adjusted = holm(&out.iter().map(|p| p.p).collect::<Vec<_>>())?;
    for (pair, adjusted) in out.iter_mut().zip(adjusted) {
        pair.adjusted = adjusted;
        pair.apart = adjusted <= alpha && pair.difference != 0.0;
    }
    Ok(out)
}

type Own<'a> = BTreeMap<(&'a str, &'a str), &'a Line>;

fn pair(
    rate: &str,
    (a, of_a): (&str, &Own<'_>),
    (b, of_b): (&str, &Own<'_>),
    seed: u64,
) -> Result<Option<Pair>, Undefined> {
    let mut by: BTreeMap<&str, Vec<(&Line, &Line)>> = BTreeMap::new();
    for (key, line) in of_a {
        if let Some(other) = of_b.get(key) {
            by.entry(key.0).or_default().push((line, other));
        }
    }
    let sums = |own: &[(&Line, &Line)]| {
        let mut s = [0.0; 4];
        for (x, y) in own {
            let ((h, e), (i, f)) = (stands(x, rate), stands(y, rate));
            s = [s[0] + h, s[1] + e, s[2] + i, s[3] + f];
        }
        s
    };
    // A country in which one of them has no eligible response tells nothing of the two.
    by.retain(|_, own| {
        let s = sums(own);
        s[1] > 0.0 && s[3] > 0.0
    });
    let countries = by.len() as f64;
    let (mut n, mut difference) = (0, 0.0);
    let mut clusters: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for (country, own) in &by {
        let [hits_a, all_a, hits_b, all_b] = sums(own);
        let pooled = (hits_a + hits_b) / (all_a + all_b);
        n += own.len();
        difference += (hits_a / all_a - hits_b / all_b) / countries;
        for (x, y) in own {
            let ((h, e), (i, f)) = (stands(x, rate), stands(y, rate));
            let term = (h - pooled * e) / all_a - (i - pooled * f) / all_b;
            *clusters.entry((*country, x.group.as_str())).or_default() += term / countries;
        }
    }
    if n == 0 {
        return Ok(None);
    }
    let terms: Vec<f64> = clusters.into_values().collect();
    Ok(Some(Pair {
        a: a.to_owned(),
        b: b.to_owned(),
        n,
        difference,
        p: paired_permutation(&terms, DRAWS, seed)?,
        adjusted: 1.0,
        apart: false,
    }))
}

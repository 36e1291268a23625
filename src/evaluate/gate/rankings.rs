//! Owns the rankings that annotators give: averaged ranks, and how far each two annotators agree
//! (quadratic-weighted kappa). Must not know what was ranked.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::agreement::bootstrap::{Method, Plan, bootstrap_rows};
use crate::agreement::correlation::ranks;
use crate::agreement::kappa::{Weights, cohen_kappa};
use crate::agreement::table::Confusion;
use crate::agreement::{Interval, Stat, Undefined};

/// One thing that was ranked.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Its name.
    pub item: String,
    /// Within which others it was ranked.
    pub group: String,
    /// By annotator: its rank (1 is best) or its score.
    pub values: Vec<Option<f64>>,
}

/// How rankings are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Values are scores, higher is better: ranks are made of them within each group, ties sharing
    /// the mean of their ranks.
    pub scores: bool,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Resamples of each bootstrap.
    pub resamples: usize,
    /// Seed of the bootstraps.
    pub seed: u64,
}

/// What rankings come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rankings {
    /// Confidence level of the intervals.
    pub level: f64,
    /// Groups in their order, best item first.
    pub items: Vec<Placed>,
    /// Each two annotators.
    pub pairs: Vec<Pair>,
    /// Mean of the pairs' kappas; absent where none exists.
    pub mean_kappa: Option<f64>,
}

/// An item with its averaged rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placed {
    /// Its group.
    pub group: String,
    /// Its name.
    pub item: String,
    /// Annotators who ranked it.
    pub n: usize,
    /// Mean of their ranks; absent without one.
    pub rank: Option<f64>,
    /// Place in its group by that mean; ties share the better place.
    pub place: Option<usize>,
}

/// Two annotators.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Their names.
    pub annotators: [String; 2],
    /// Items that both ranked.
    pub n: usize,
    /// Quadratic-weighted kappa of their ranks.
    pub kappa: Option<f64>,
    /// Lower end of its interval (groups resampled whole; items where there is one group).
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Why a figure is absent.
    pub why: Option<String>,
}

/// Averages ranks and compares annotators.
///
/// # Errors
/// Nothing was ranked.
pub fn rankings(
    items: &[Ranked],
    annotators: &[String],
    options: &Options,
) -> Result<Rankings, Undefined> {
    if items.is_empty() {
        return Err(Undefined::Empty("items"));
    }
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for item in items {
        let next = groups.len();
        groups.entry(&item.group).or_insert(next);
    }
    let group: Vec<usize> = items.iter().map(|i| groups[i.group.as_str()]).collect();
    let columns: Vec<Vec<Option<f64>>> = (0..annotators.len())
        .map(|a| {
            let given: Vec<Option<f64>> = items.iter().map(|i| i.values[a]).collect();
            match options.scores {
                true => from_scores(&given, &group),
                false => given,
            }
        })
        .collect();
    let mut pairs = Vec::new();
    for a in 0..annotators.len() {
        for b in a + 1..annotators.len() {
            let names = [annotators[a].clone(), annotators[b].clone()];
            pairs.push(pair(names, &columns[a], &columns[b], &group, options));
        }
    }
    let kappas: Vec<f64> = pairs.iter().filter_map(|p| p.kappa).collect();
    Ok(Rankings {
        level: options.level,
        items: placed(items, &columns),
        mean_kappa: (!kappas.is_empty()).then(|| kappas.iter().sum::<f64>() / kappas.len() as f64),
        pairs,
    })
}

fn from_scores(given: &[Option<f64>], group: &[usize]) -> Vec<Option<f64>> {
    let mut out = vec![None; given.len()];
    let last = group.iter().max().copied().unwrap_or(0);
    for g in 0..=last {
        let own: Vec<usize> = (0..given.len())
            .filter(|&i| group[i] == g && given[i].is_some())
            .collect();
        // The highest score is rank 1.
        let turned: Vec<f64> = own.iter().filter_map(|&i| given[i]).map(|v| -v).collect();
        for (i, rank) in own.into_iter().zip(ranks(&turned)) {
            out[i] = Some(rank);
        }
    }
    out
}

fn placed(items: &[Ranked], columns: &[Vec<Option<f64>>]) -> Vec<Placed> {
    let mut out: Vec<Placed> = items
        .iter()
        .enumerate()
        .map(|(i, item)| {
            let given: Vec<f64> = columns.iter().filter_map(|c| c[i]).collect();
            Placed {
                group: item.group.clone(),
                item: item.item.clone(),
                n: given.len(),
                rank: (!given.is_empty()).then(|| given.iter().sum::<f64>() / given.len() as f64),
                place: None,
            }
        })
        .collect();
    let rank = |p: &Placed| p.rank.unwrap_or(f64::INFINITY);
    out.sort_by(|a, b| {
        let by_group = a.group.cmp(&b.group);
        by_group.then(rank(a).total_cmp(&rank(b)))
    });
    for at in 0..out.len() {
        let Some(own) = out[at].rank else { continue };
        let better =
            |p: &&Placed| p.group == out[at].group && p.rank.is_some_and(|r| r < own - 1e-9);
        out[at].place = Some(out[..at].iter().filter(better).count() + 1);
    }
    out
}

fn pair(
    annotators: [String; 2],
    a: &[Option<f64>],
    b: &[Option<f64>],
    group: &[usize],
    options: &Options,
) -> Pair {
    let both: Vec<(f64, f64, usize)> = a
        .iter()
        .zip(b)
        .zip(group)
        .filter_map(|((a, b), g)| Some(((*a)?, (*b)?, *g)))
        .collect();
    let mut values: Vec<f64> = both.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let label = |v: f64| values.partition_point(|x| *x < v);
    let labels: Vec<(usize, usize)> = both
        .iter()
        .map(|(a, b, _)| (label(*a), label(*b)))
        .collect();
    let kappa = |rows: &[usize]| -> Stat {
        let mut counts = vec![0; values.len() * values.len()];
        for &row in rows {
            counts[labels[row].0 * values.len() + labels[row].1] += 1;
        }
        let matrix = Confusion::new(values.len(), counts)?;
        cohen_kappa(&matrix, Weights::QuadraticValues(&values))
    };
    let all: Vec<usize> = (0..both.len()).collect();
    let several = both.iter().any(|x| x.2 != both[0].2);
    let clusters: Vec<usize> = all
        .iter()
        .map(|&i| if several { both[i].2 } else { i })
        .collect();
    let plan = Plan {
        method: Method::Percentile,
        resamples: options.resamples,
        level: options.level,
        seed: options.seed,
    };
    let figure = match both.is_empty() {
        true => Err(Undefined::NoPairs),
        false => kappa(&all),
    };
    let interval: Result<Interval, Undefined> =
        figure.and_then(|_| bootstrap_rows(&vec![0; both.len()], &clusters, plan, kappa));
    let why = figure.as_ref().err().or(interval.as_ref().err());
    Pair {
        annotators,
        n: both.len(),
        why: why.map(ToString::to_string),
        kappa: figure.ok(),
        low: interval.as_ref().ok().map(|i| i.low),
        high: interval.ok().map(|i| i.high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        scores: false,
        level: 0.95,
        resamples: 200,
        seed: 1,
    };

    fn items(rows: &[(&str, &[f64])]) -> Vec<Ranked> {
        let of = |(at, (group, values)): (usize, &(&str, &[f64]))| Ranked {
            item: format!("i{at}"),
            group: (*group).into(),
            values: values.iter().map(|v| (*v > -9.0).then_some(*v)).collect(),
        };
        rows.iter().enumerate().map(of).collect()
    }

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("a{i}")).collect()
    }

    #[test]
    fn ranks_are_averaged_within_groups() {
        let rows = items(&[
            ("x", &[1.0, 2.0, 1.0]),
            ("x", &[2.0, 1.0, 3.0]),
            ("x", &[3.0, 3.0, 2.0]),
            ("y", &[1.0, -10.0, 2.0]),
        ]);
        let r = rankings(&rows, &names(3), &OPTIONS).unwrap();
        let got: Vec<_> = r
            .items
            .iter()
            .map(|p| (p.item.as_str(), p.n, p.place))
            .collect();
        assert_eq!(
            got,
            [
                ("i0", 3, Some(1)),
                ("i1", 3, Some(2)),
                ("i2", 3, Some(3)),
                ("i3", 2, Some(1))
            ]
        );
        assert!((r.items[0].rank.unwrap() - 4.0 / 3.0).abs() < 1e-12);
        assert_eq!(r.items[3].rank, Some(1.5));
    }

    /// For two complete rankings without ties, quadratic-weighted kappa equals Spearman's
    /// correlation, as both margins are uniform: 1 - 6 Σd² / (n (n² - 1)).
    #[test]
    fn kappa_of_full_rankings_is_spearmans_correlation() {
        let second = [2.0, 1.0, 3.0, 5.0, 4.0];
        let rows: Vec<[f64; 2]> = (0..5).map(|i| [i as f64 + 1.0, second[i]]).collect();
        let rows: Vec<(&str, &[f64])> = rows.iter().map(|r| ("x", &r[..])).collect();
        let r = rankings(&items(&rows), &names(2), &OPTIONS).unwrap();
        let expected = 1.0 - 6.0 * 4.0 / (5.0 * 24.0);
        assert!(
            (r.pairs[0].kappa.unwrap() - expected).abs() < 1e-12,
            "{:?}",
            r.pairs
        );
        assert_eq!(r.pairs[0].n, 5);
    }

    #[test]
    fn scores_become_ranks_with_ties_shared() {
        let rows = items(&[
            ("x", &[9.0, 5.0]),
            ("x", &[7.0, 5.0]),
            ("x", &[7.0, 1.0]),
            ("y", &[1.0, 1.0]),
        ]);
        let scores = Options {
            scores: true,
            ..OPTIONS
        };
        let r = rankings(&rows, &names(2), &scores).unwrap();
        let ranks: Vec<_> = r.items.iter().map(|p| p.rank.unwrap()).collect();
        // First annotator 1, 2.5, 2.5; second 1.5, 1.5, 3.
        assert_eq!(ranks, [1.25, 2.0, 2.75, 1.0]);
    }

    #[test]
    fn what_cannot_be_compared_says_why() {
        assert!(rankings(&[], &names(2), &OPTIONS).is_err());
        let none = rankings(&items(&[("x", &[1.0, -10.0])]), &names(2), &OPTIONS).unwrap();
        assert!(none.pairs[0].kappa.is_none() && none.pairs[0].why.is_some());
        let same = rankings(
            &items(&[("x", &[1.0, 1.0]), ("x", &[1.0, 1.0])]),
            &names(2),
            &OPTIONS,
        )
        .unwrap();
        assert!(same.pairs[0].why.is_some() && same.mean_kappa.is_none());
    }
}

//! Owns intervals and one-sided bounds for proportions and for means of values in `[0, 1]`.
//! Must not know what the values measure.

use serde::{Deserialize, Serialize};

use super::tail::{beta_quantile, bisect, normal_quantile, t_quantile};
use super::{Stat, Undefined, all_within, mean, rate, same_length, within};

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level, 0.95 for 95 %.
    pub level: f64,
}

impl Interval {
    /// Whether a value lies in the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Wilson's score interval for a proportion (Wilson 1927). Successes may be fractional.
///
/// # Errors
/// No trials, more successes than trials, a level outside (0, 1).
pub fn wilson(successes: f64, n: usize, level: f64) -> Result<Interval, Undefined> {
    let n = trials(successes, n)?;
    rate("level", level)?;
    let z = normal_quantile(0.5 + level / 2.0);
    Ok(score_interval(successes / n, n, z, level))
}

/// Interval for the mean of independent proportions, each given as (successes, trials), every
/// proportion counting alike: distances to the ends of Wilson's intervals, added as variances are
/// (MOVER, Donner and Zou 2012). It keeps a width where a proportion of few trials is 0 or 1.
///
/// # Errors
/// No proportions; as [`wilson`].
pub fn mean_of_shares(parts: &[(f64, usize)], level: f64) -> Result<Interval, Undefined> {
    if parts.is_empty() {
        return Err(Undefined::Empty("proportions"));
    }
    let count = parts.len() as f64;
    let (mut centre, mut below, mut above) = (0.0, 0.0, 0.0);
    for &(successes, n) in parts {
        let i = wilson(successes, n, level)?;
        let share = successes / n as f64;
        centre += share / count;
        below += ((share - i.low) / count).powi(2);
        above += ((i.high - share) / count).powi(2);
    }
    Ok(Interval {
        low: (centre - below.sqrt()).max(0.0),
        high: (centre + above.sqrt()).min(1.0),
        level,
    })
}

/// The exact interval of Clopper and Pearson (1934): never covers less than its level.
///
/// # Errors
/// No trials, more successes than trials, a level outside (0, 1).
pub fn clopper_pearson(successes: f64, n: usize, level: f64) -> Result<Interval, Undefined> {
    let n = trials(successes, n)?;
    rate("level", level)?;
    let tail = (1.0 - level) / 2.0;
    let low = if successes == 0.0 {
        0.0
    } else {
        beta_quantile(successes, n - successes + 1.0, tail)
    };
    Ok(Interval {
        low,
        high: exact_upper(successes, n, tail),
        level,
    })
}

/// Wilson's interval for a share of rows that come in clusters (several prompts of one question),
/// with the number of independent rows that would carry as much information, `n / deff`, and
/// Student's t of one degree less than there are clusters (Dean and Pagano 2015). `deff` is the
/// variance that the clusters show by that of independent rows; it is taken to be at least 1, and at
/// most what clusters of equal rows would give. That is also taken where the share is 0 or 1, and
/// nothing is shown. Clusters of one row each give [`wilson`]'s own variance and no fewer rows.
///
/// # Errors
/// No values, a value that is neither 0 nor 1, inputs of different lengths, a level outside (0, 1).
pub fn clustered_share(
    values: &[f64],
    cluster: &[usize],
    level: f64,
) -> Result<Interval, Undefined> {
    all_within("values", values, 0.0, 1.0)?;
    same_length("clusters", cluster.len(), values.len())?;
    rate("level", level)?;
    let n = values.len() as f64;
    let p = mean(values)?;
    let mut sums = std::collections::BTreeMap::<usize, (f64, f64)>::new();
    for (v, c) in values.iter().zip(cluster) {
        let sum = sums.entry(*c).or_default();
        *sum = (sum.0 + v - p, sum.1 + 1.0);
    }
    let clusters = sums.len() as f64;
    if clusters == n || clusters < 2.0 {
        // One cluster shows nothing of how clusters differ: it counts as one row.
        let rows = if clusters == n { n } else { 1.0 };
        let z = normal_quantile(0.5 + level / 2.0);
        return Ok(score_interval(p, rows, z, level));
    }
    let most = sums.values().map(|(_, m)| m * m).sum::<f64>() / n;
    let between = sums.values().map(|(t, _)| t * t).sum::<f64>() * clusters / (clusters - 1.0);
    let independent = n * p * (1.0 - p);
    let deff = if independent > 0.0 {
        (between / independent).clamp(1.0, most.max(1.0))
    } else {
        most
    };
    let t = t_quantile(0.5 + level / 2.0, clusters - 1.0);
    Ok(score_interval(p, n / deff, t, level))
}

/// Interval for the mean of values in `[0, 1]`: Wilson's for values that are all 0 or 1; otherwise
/// Wilson's formula with the number of 0/1 observations that would carry as much information,
/// `n_eff = n m(1-m) / s²`, and Student's t in place of the normal quantile. `s²` is the sample
/// variance with one extra observation of the largest variance that the mean allows, `m(1-m)`, so
/// that values which happen to be equal do not give an interval of no width.
///
/// # Errors
/// No values, a value outside `[0, 1]`, a level outside (0, 1).
pub fn mean_interval(values: &[f64], level: f64) -> Result<Interval, Undefined> {
    all_within("values", values, 0.0, 1.0)?;
    rate("level", level)?;
    let n = values.len() as f64;
    let m = mean(values)?;
    if m <= 0.0 || m >= 1.0 || values.iter().all(|&v| v == 0.0 || v == 1.0) {
        return wilson(values.iter().sum(), values.len(), level);
    }
    let largest = m * (1.0 - m);
    let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
    let variance = (squares + largest) / n;
    Ok(score_interval(
        m,
        n * largest / variance,
        t_quantile(0.5 + level / 2.0, n),
        level,
    ))
}

/// One-sided upper confidence bound for the mean of independent values in `[0, 1]`: the mean lies
/// above it with probability at most `alpha`. Exact (Clopper and Pearson) where every value is 0 or
/// 1, otherwise by betting ([`upper_bound_grouped`] explains it). The order of values is irrelevant.
///
/// # Errors
/// No values, a value outside `[0, 1]`, `alpha` outside (0, 1).
pub fn upper_bound(values: &[f64], alpha: f64) -> Stat {
    all_within("values", values, 0.0, 1.0)?;
    rate("alpha", alpha)?;
    if values.iter().all(|&v| v == 0.0 || v == 1.0) {
        return Ok(exact_upper(values.iter().sum(), values.len() as f64, alpha));
    }
    Ok(betting_upper(values, 1.0, alpha))
}

/// One-sided upper confidence bound for the mean of the strata's means (locales), where the rows
/// of a cluster (the translations of one item) may depend on each other but clusters do not.
///
/// By betting (Waudby-Smith and Ramdas 2024): against the claim "the mean is at least `m`" a gambler
/// stakes a fixed fraction `b` on every observation being lower, and the wealth `Π(1 + b(m - y))` has
/// expectation at most 1 if the claim is true, by the inequality of the two means even when
/// strata differ. Wealth averaged over a few fractions therefore reaches `1/alpha` with
/// probability at most `alpha`; the bound is the smallest `m` at which it does. `y` is the weighted
/// sum of a cluster, so that the mean of all `y` is the mean of the strata's means. With strata of one
/// size, no shared clusters and only 0/1 values the bound is Clopper and Pearson's instead, which
/// holds for unequal strata too (Hoeffding 1956).
///
/// # Errors
/// No values, inputs of different lengths, a value outside `[0, 1]`, `alpha` outside (0, 1).
pub fn upper_bound_grouped(
    values: &[f64],
    stratum: &[usize],
    cluster: &[usize],
    alpha: f64,
) -> Stat {
    all_within("values", values, 0.0, 1.0)?;
    rate("alpha", alpha)?;
    same_length("strata", stratum.len(), values.len())?;
    same_length("clusters", cluster.len(), values.len())?;
    let mut sizes = std::collections::BTreeMap::<usize, f64>::new();
    for &s in stratum {
        *sizes.entry(s).or_default() += 1.0;
    }
    let mut sums = std::collections::BTreeMap::<usize, (f64, f64)>::new();
    for ((&value, s), &c) in values.iter().zip(stratum).zip(cluster) {
        let weight = 1.0 / (sizes.len() as f64 * sizes[s]);
        let sum = sums.entry(c).or_default();
        *sum = (sum.0 + weight * value, sum.1 + weight);
    }
    let first = sizes.values().next().copied();
    if sums.len() == values.len() && sizes.values().all(|&n| Some(n) == first) {
        return upper_bound(values, alpha);
    }
    let clusters = sums.len() as f64;
    let scaled: Vec<f64> = sums.values().map(|(sum, _)| sum * clusters).collect();
    let most = sums
        .values()
        .map(|(_, weight)| weight * clusters)
        .fold(0.0, f64::max);
    Ok(betting_upper(&scaled, most, alpha))
}

fn trials(successes: f64, n: usize) -> Stat {
    if n == 0 {
        return Err(Undefined::Empty("trials"));
    }
    within("successes", successes, 0.0, n as f64)?;
    Ok(n as f64)
}

fn score_interval(p: f64, n: f64, z: f64, level: f64) -> Interval {
    let shrink = 1.0 + z * z / n;
    let centre = (p + z * z / (2.0 * n)) / shrink;
    let half = z / shrink * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    // Rounding must not leave a proportion of 0 or 1 outside its own interval.
    let low = if p <= 0.0 {
        0.0
    } else {
        (centre - half).max(0.0)
    };
    let high = if p >= 1.0 {
        1.0
    } else {
        (centre + half).min(1.0)
    };
    Interval { low, high, level }
}

fn exact_upper(successes: f64, n: f64, tail: f64) -> f64 {
    if successes >= n {
        1.0
    } else {
        beta_quantile(successes + 1.0, n - successes, 1.0 - tail)
    }
}

/// Spreads of the values for which the gambler holds a good fraction ready.
const SPREADS: [f64; 4] = [0.5, 0.35, 0.22, 0.1];

/// The smallest mean at which averaged wealth reaches `1/alpha`. Values lie in `0..=most`.
fn betting_upper(values: &[f64], most: f64, alpha: f64) -> f64 {
    let n = values.len() as f64;
    let stakes = SPREADS.map(|spread| (2.0 * (1.0 / alpha).ln() / n).sqrt() / spread);
    let refused = |m: f64| {
        // A stake above this could lose more than everything.
        let cap = 1.0 / (most - m).max(f64::MIN_POSITIVE);
        let logs = stakes.map(|b| {
            let b = b.min(cap);
            values
                .iter()
                .map(|y| (b * (m - y)).max(-1.0).ln_1p())
                .sum::<f64>()
        });
        log_mean_exp(&logs) >= -alpha.ln()
    };
    let bound = bisect(0.0, 1.0, refused);
    bound.max(values.iter().sum::<f64>() / n).min(1.0)
}

/// Logarithm of the mean of exponentials, without overflow.
pub(crate) fn log_mean_exp(logs: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_infinite() {
        return top;
    }
    top + (logs.iter().map(|l| (l - top).exp()).sum::<f64>() / logs.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    // statsmodels.stats.proportion.proportion_confint(15, 100): "wilson" and "beta".
    #[test]
    fn against_statsmodels() {
        let w = wilson(15.0, 100, 0.95).unwrap();
        near(w.low, 0.09305985283656629);
        near(w.high, 0.23283559590832367);
        let c = clopper_pearson(15.0, 100, 0.95).unwrap();
        near(c.low, 0.08645438564164858);
        near(c.high, 0.2353075001489549);
    }

    #[test]
    fn a_mean_of_shares_adds_distances_as_variances() {
        let one = mean_of_shares(&[(15.0, 100)], 0.95).unwrap();
        let w = wilson(15.0, 100, 0.95).unwrap();
        near(one.low, w.low);
        near(one.high, w.high);
        // Two alike: the same centre, distances divided by the root of two.
        let two = mean_of_shares(&[(15.0, 100), (15.0, 100)], 0.95).unwrap();
        near(two.low, 0.15 - (0.15 - w.low) / 2f64.sqrt());
        near(two.high, 0.15 + (w.high - 0.15) / 2f64.sqrt());
        assert!(mean_of_shares(&[], 0.95).is_err() && mean_of_shares(&[(0.0, 0)], 0.95).is_err());
    }

    #[test]
    fn clusters_count_as_what_they_tell() {
        let single: Vec<f64> = (0..40).map(|i| f64::from(i % 5 == 0)).collect();
        let own: Vec<usize> = (0..40).collect();
        let plain = wilson(8.0, 40, 0.95).unwrap();
        let i = clustered_share(&single, &own, 0.95).unwrap();
        near(i.low, plain.low);
        near(i.high, plain.high);
        // Each row three times: no more is known than from one of them.
        let thrice: Vec<f64> = single.iter().flat_map(|v| [*v; 3]).collect();
        let of: Vec<usize> = (0..120).map(|i| i / 3).collect();
        let c = clustered_share(&thrice, &of, 0.95).unwrap();
        assert!(
            c.low <= plain.low && plain.high <= c.high,
            "{c:?} {plain:?}"
        );
        assert!(c.high - c.low < 1.1 * (plain.high - plain.low), "{c:?}");
        // Nothing seen in 40 clusters of three is no more than nothing seen in 40 rows.
        let none = clustered_share(&[0.0; 120], &of, 0.95).unwrap();
        assert!(none.low == 0.0 && none.high >= wilson(0.0, 40, 0.95).unwrap().high);
        let one = clustered_share(&[1.0, 0.0], &[7, 7], 0.95).unwrap();
        assert!(one.high - one.low > 0.7, "{one:?}");
        assert!(clustered_share(&[0.0], &[], 0.95).is_err());
    }

    #[test]
    fn nothing_seen_is_not_nothing() {
        // 1 - alpha^(1/n), the "rule of three" in exact form.
        near(
            upper_bound(&[0.0; 59], 0.05).unwrap(),
            1.0 - 0.05f64.powf(1.0 / 59.0),
        );
        assert_eq!(clopper_pearson(0.0, 10, 0.95).unwrap().low, 0.0);
        assert_eq!(wilson(10.0, 10, 0.95).unwrap().high, 1.0);
        assert_eq!(upper_bound(&[1.0, 1.0], 0.05), Ok(1.0));
        let same = mean_interval(&[0.5; 10], 0.95).unwrap();
        assert!(same.low < 0.45 && same.high > 0.55, "{same:?}");
    }

    #[test]
    fn bounds_stand_above_the_mean_and_ignore_order() {
        let values: Vec<f64> = (0..60).map(|i| f64::from(i % 4) / 3.0).collect();
        let bound = upper_bound(&values, 0.05).unwrap();
        let mut turned = values.clone();
        turned.reverse();
        near(bound, upper_bound(&turned, 0.05).unwrap());
        assert!(bound > 0.5 && bound < 0.7, "{bound}");
        assert!(upper_bound(&values, 0.01).unwrap() > bound);
    }

    #[test]
    fn clusters_count_as_one_observation() {
        let values = vec![0.0, 0.5, 0.0, 0.5, 1.0, 0.5, 0.0, 0.0];
        let rows: Vec<usize> = (0..8).collect();
        let apart = upper_bound_grouped(&values, &[0; 8], &rows, 0.05).unwrap();
        let doubled: Vec<f64> = values.iter().flat_map(|&v| [v, v]).collect();
        let pairs: Vec<usize> = (0..16).map(|i| i / 2).collect();
        near(
            apart,
            upper_bound_grouped(&doubled, &[0; 16], &pairs, 0.05).unwrap(),
        );
        near(apart, upper_bound(&values, 0.05).unwrap());
    }

    #[test]
    fn degenerate_input_has_a_reason() {
        assert!(wilson(0.0, 0, 0.95).is_err());
        assert!(wilson(2.0, 1, 0.95).is_err());
        assert!(wilson(f64::NAN, 1, 0.95).is_err());
        assert!(clopper_pearson(1.0, 2, 1.0).is_err());
        assert!(mean_interval(&[], 0.95).is_err());
        assert!(upper_bound(&[0.5, 1.5], 0.05).is_err());
        assert!(upper_bound(&[0.5], 0.0).is_err());
    }
}

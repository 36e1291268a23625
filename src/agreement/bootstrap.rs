//! Owns bootstrap intervals: strata (locales) are kept apart, clusters (groups) are drawn whole.
//! Must not know what the values measure.
//!
//! Every resample draws from its own stream, keyed by seed and index: any number of threads will do.
//! Clusters are drawn within their home stratum, the one in which they
//! have most rows, and take all their rows along; a cluster that lies in one stratum only gives the
//! ordinary stratified cluster bootstrap. Quantiles are widened for small samples as Hesterberg
//! (2015, section 5.3) proposes: `Φ(sqrt(n/(n-S)) t)` in place of the nominal level, with n
//! clusters, S strata and Student's t of n-S degrees.

use std::collections::HashMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::draws::{below, stream};
use super::tail::{normal_below, normal_quantile, t_quantile};
use super::{Interval, Stat, Undefined, all_within, rate, same_length};

/// Values with the stratum and the cluster of each; ids are arbitrary numbers.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// One number per row.
    pub values: &'a [f64],
    /// Stratum (locale) of each row.
    pub stratum: &'a [usize],
    /// Cluster (group) of each row.
    pub cluster: &'a [usize],
}

/// What is estimated from a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Mean over all rows.
    PooledMean,
    /// Mean of the strata's means: every locale counts alike.
    MeanOfStrata,
    /// The largest of the strata's means. Its bootstrap interval lies too high when several strata
    /// are close to the worst, which is the safe side for a disagreement.
    WorstStratum,
}

/// How the resampled figures become an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Quantiles of the resampled figures.
    Percentile,
    /// Bias-corrected and accelerated quantiles (Efron 1987).
    Bca,
}

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// How the interval is formed.
    pub method: Method,
    /// Number of resamples; 2,000 is a good start.
    pub resamples: usize,
    /// Confidence level, 0.95 for 95 %.
    pub level: f64,
    /// Seed; every value counts, 0 included.
    pub seed: u64,
}

/// The figure for a sample itself.
///
/// # Errors
/// No values, inputs of different lengths, values that are not finite.
pub fn estimate(sample: Sample, statistic: Statistic) -> Stat {
    let sums = ClusterSums::new(sample)?;
    sums.figure(statistic, 0..sums.parts.len())
}

/// Bootstrap interval for a figure that is made of means. It covers too little for fewer than about
/// 50 values of 0 and 1 (a sample without a miss has no spread); prefer `mean_interval` there.
///
/// # Errors
/// As [`estimate`]; also a level outside (0, 1), no resamples, or no stratum with two clusters.
pub fn bootstrap(sample: Sample, statistic: Statistic, plan: Plan) -> Result<Interval, Undefined> {
    let sums = ClusterSums::new(sample)?;
    interval(&sums.layout, plan, |drawn| {
        sums.figure(statistic, drawn.iter().copied())
    })
}

/// Bootstrap (BCa) interval for the mean of strata means of paired differences; give every row the
/// same stratum for the pooled mean.
///
/// # Errors
/// As [`bootstrap`].
pub fn paired_bootstrap(
    diffs: &[f64],
    stratum: &[usize],
    cluster: &[usize],
    resamples: usize,
    level: f64,
    seed: u64,
) -> Result<Interval, Undefined> {
    let plan = Plan {
        method: Method::Bca,
        resamples,
        level,
        seed,
    };
    bootstrap(
        Sample {
            values: diffs,
            stratum,
            cluster,
        },
        Statistic::MeanOfStrata,
        plan,
    )
}

/// Bootstrap interval for any figure of rows, such as a kappa: `figure` receives the row numbers of
/// a resample, with repeats. Resamples without a figure are left out, up to one in twenty.
///
/// # Errors
/// The reason of the figure itself; as [`bootstrap`]; too many resamples without a figure.
pub fn bootstrap_rows(
    stratum: &[usize],
    cluster: &[usize],
    plan: Plan,
    figure: impl Fn(&[usize]) -> Stat + Sync,
) -> Result<Interval, Undefined> {
    let layout = Layout::new(stratum, cluster)?;
    let mut rows = vec![Vec::new(); layout.clusters];
    for (row, &c) in layout.of_row.iter().enumerate() {
        rows[c].push(row);
    }
    interval(&layout, plan, |drawn| {
        let drawn: Vec<usize> = drawn
            .iter()
            .flat_map(|&c| rows[c].iter().copied())
            .collect();
        figure(&drawn)
    })
}

/// Which rows belong together, in dense numbers.
struct Layout {
    /// Cluster of each row.
    of_row: Vec<usize>,
    /// Number of clusters.
    clusters: usize,
    /// Stratum of each row.
    stratum: Vec<usize>,
    /// Number of strata.
    strata: usize,
    /// Clusters by home stratum; only strata that are home to some.
    homes: Vec<Vec<usize>>,
}

/// Numbers ids in the order in which they appear.
fn dense(ids: &[usize]) -> (Vec<usize>, usize) {
    let mut seen = HashMap::new();
    let mut number = |id| {
        let next = seen.len();
        *seen.entry(id).or_insert(next)
    };
    (ids.iter().map(|&id| number(id)).collect(), seen.len())
}

impl Layout {
    fn new(stratum: &[usize], cluster: &[usize]) -> Result<Layout, Undefined> {
        same_length("clusters", cluster.len(), stratum.len())?;
        if stratum.is_empty() {
            return Err(Undefined::Empty("rows"));
        }
        let (stratum, strata) = dense(stratum);
        let (of_row, clusters) = dense(cluster);
        let mut rows = HashMap::<(usize, usize), usize>::new();
        for (&c, &s) in of_row.iter().zip(&stratum) {
            *rows.entry((c, s)).or_default() += 1;
        }
        let mut home = vec![(0, usize::MAX); clusters];
        for (&(c, s), &n) in &rows {
            // The lower number on a tie, so that the order of the map does not matter.
            if n > home[c].0 || (n == home[c].0 && s < home[c].1) {
                home[c] = (n, s);
            }
        }
        let mut homes = vec![Vec::new(); strata];
        for (c, &(_, s)) in home.iter().enumerate() {
            homes[s].push(c);
        }
        homes.retain(|clusters| !clusters.is_empty());
        Ok(Layout {
            of_row,
            clusters,
            stratum,
            strata,
            homes,
        })
    }
}

/// Sums per cluster and stratum, so that a resample costs one addition per cluster.
struct ClusterSums {
    layout: Layout,
    /// Per cluster: (stratum, sum, rows).
    parts: Vec<Vec<(usize, f64, f64)>>,
}

impl ClusterSums {
    fn new(sample: Sample) -> Result<ClusterSums, Undefined> {
        all_within("values", sample.values, f64::MIN, f64::MAX)?;
        same_length("strata", sample.stratum.len(), sample.values.len())?;
        let layout = Layout::new(sample.stratum, sample.cluster)?;
        let mut parts = vec![Vec::<(usize, f64, f64)>::new(); layout.clusters];
        for ((&c, &s), &value) in layout.of_row.iter().zip(&layout.stratum).zip(sample.values) {
            match parts[c].iter_mut().find(|p| p.0 == s) {
                Some(part) => (part.1, part.2) = (part.1 + value, part.2 + 1.0),
                None => parts[c].push((s, value, 1.0)),
            }
        }
        Ok(ClusterSums { layout, parts })
    }

    fn figure(&self, statistic: Statistic, clusters: impl Iterator<Item = usize>) -> Stat {
        let mut sums = vec![(0.0, 0.0); self.layout.strata];
        for &(s, sum, rows) in clusters.flat_map(|c| &self.parts[c]) {
            sums[s] = (sums[s].0 + sum, sums[s].1 + rows);
        }
        sums.retain(|&(_, rows)| rows > 0.0); // a resample may miss a stratum
        if sums.is_empty() {
            return Err(Undefined::Empty("rows"));
        }
        let means = sums.iter().map(|(sum, rows)| sum / rows);
        Ok(match statistic {
            Statistic::PooledMean => {
                sums.iter().map(|s| s.0).sum::<f64>() / sums.iter().map(|s| s.1).sum::<f64>()
            }
            Statistic::MeanOfStrata => means.sum::<f64>() / sums.len() as f64,
            Statistic::WorstStratum => means.fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Most blocks of clusters that the acceleration of BCa leaves out one at a time.
const BLOCKS: usize = 500;

fn interval(
    layout: &Layout,
    plan: Plan,
    figure: impl Fn(&[usize]) -> Stat + Sync,
) -> Result<Interval, Undefined> {
    rate("level", plan.level)?;
    if plan.resamples == 0 {
        return Err(Undefined::Empty("resamples"));
    }
    let degrees = layout.clusters - layout.homes.len();
    if degrees == 0 {
        return Err(Undefined::TooFew {
            what: "groups in a stratum",
            have: 1,
            need: 2,
        });
    }
    let all: Vec<usize> = (0..layout.clusters).collect();
    let centre = figure(&all)?;
    let drawn: Vec<Stat> = (0..plan.resamples)
        .into_par_iter()
        .map_init(Vec::new, |buffer, index| {
            let mut rng = stream(plan.seed, index as u64);
            buffer.clear();
            for home in &layout.homes {
                buffer.extend((0..home.len()).map(|_| home[below(&mut rng, home.len())]));
            }
            figure(buffer)
        })
        .collect();
    let mut figures: Vec<f64> = drawn.into_iter().flatten().collect();
    let failed = plan.resamples - figures.len();
    if failed * 20 > plan.resamples {
        return Err(Undefined::Resamples {
            failed,
            resamples: plan.resamples,
        });
    }
    figures.sort_by(f64::total_cmp);
    let n = layout.clusters as f64;
    let wide = t_quantile(0.5 + plan.level / 2.0, degrees as f64) * (n / degrees as f64).sqrt();
    let (bias, acceleration) = match plan.method {
        Method::Percentile => (0.0, 0.0),
        Method::Bca => (
            median_bias(&figures, centre),
            acceleration(layout.clusters, &figure),
        ),
    };
    let end = |z: f64| {
        let shift = bias + z;
        let scale = 1.0 - acceleration * shift;
        // Past this point the correction turns round; the outermost figure is then the honest end.
        let p = if scale > 0.0 {
            normal_below(bias + shift / scale)
        } else {
            f64::from(z > 0.0)
        };
        quantile(&figures, p)
    };
    Ok(Interval {
        low: end(-wide),
        high: end(wide),
        level: plan.level,
    })
}

/// How far the resampled figures' median lies from the figure itself, in normal units.
fn median_bias(sorted: &[f64], centre: f64) -> f64 {
    // Sums in another order differ in the last digits; such figures are ties.
    let slack = 1e-12 * centre.abs().max(1e-300);
    let below = sorted.partition_point(|&v| v < centre - slack) as f64;
    let up_to = sorted.partition_point(|&v| v <= centre + slack) as f64;
    let n = sorted.len() as f64;
    normal_quantile(((below + up_to) / (2.0 * n)).clamp(0.5 / n, 1.0 - 0.5 / n))
}

/// Skewness of the figure's influence, from leaving out one cluster (or block of clusters) at a time.
fn acceleration(clusters: usize, figure: &(impl Fn(&[usize]) -> Stat + Sync)) -> f64 {
    let blocks = clusters.min(BLOCKS);
    let left: Vec<f64> = (0..blocks)
        .into_par_iter()
        .map(|b| {
            figure(
                &(0..clusters)
                    .filter(|c| c % blocks != b)
                    .collect::<Vec<_>>(),
            )
        })
        .collect::<Vec<Stat>>()
        .into_iter()
        .flatten()
        .collect();
    if left.is_empty() {
        return 0.0;
    }
    let centre = left.iter().sum::<f64>() / left.len() as f64;
    let (squares, cubes) = left.iter().fold((0.0, 0.0), |(s, c), v| {
        let d = centre - v;
        (s + d * d, c + d * d * d)
    });
    let scale: f64 = 6.0 * f64::powf(squares, 1.5);
    if scale > f64::MIN_POSITIVE {
        cubes / scale
    } else {
        0.0
    }
}

/// Quantile of sorted figures, linear between neighbours.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let place = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + part * (sorted[high] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        method: Method::Percentile,
        resamples: 4000,
        level: 0.95,
        seed: 7,
    };

    fn values(n: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 37) % 101) as f64 / 100.0).collect()
    }

    #[test]
    fn agrees_with_the_normal_interval_of_a_mean() {
        let values = values(101);
        let rows: Vec<usize> = (0..101).collect();
        let sample = Sample {
            values: &values,
            stratum: &[0; 101],
            cluster: &rows,
        };
        let half = 1.9839715 * (102.0f64 * 101.0 / 12.0).sqrt() / 100.0 / 101.0f64.sqrt();
        for method in [Method::Percentile, Method::Bca] {
            let i = bootstrap(sample, Statistic::PooledMean, Plan { method, ..PLAN }).unwrap();
            assert!(
                (i.low - (0.5 - half)).abs() < 0.005 && (i.high - (0.5 + half)).abs() < 0.005,
                "{i:?} {half}"
            );
        }
    }

    #[test]
    fn the_same_on_any_number_of_threads() {
        let values = values(60);
        let cluster: Vec<usize> = (0..60).map(|i| i / 2).collect();
        let stratum: Vec<usize> = (0..60).map(|i| i / 20).collect();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| paired_bootstrap(&values, &stratum, &cluster, 500, 0.9, 0).unwrap())
        };
        assert_eq!(run(1), run(2));
        assert_eq!(run(1), run(5));
        let other = paired_bootstrap(&values, &stratum, &cluster, 500, 0.9, 1).unwrap();
        assert_ne!(run(1), other);
    }

    #[test]
    fn whole_clusters_widen_the_interval() {
        let values: Vec<f64> = (0..80).map(|i| f64::from(i / 4 % 2)).collect();
        let rows: Vec<usize> = (0..80).collect();
        let fours: Vec<usize> = (0..80).map(|i| i / 4).collect();
        let width = |cluster: &[usize]| {
            let i = bootstrap(
                Sample {
                    values: &values,
                    stratum: &[0; 80],
                    cluster,
                },
                Statistic::PooledMean,
                PLAN,
            )
            .unwrap();
            i.high - i.low
        };
        let ratio = width(&fours) / width(&rows);
        assert!((1.8..2.4).contains(&ratio), "{ratio}");
    }

    #[test]
    fn strata_count_alike_and_clusters_may_span_them() {
        let sample = Sample {
            values: &[0.0, 0.0, 0.0, 1.0],
            stratum: &[5, 5, 5, 9],
            cluster: &[0, 1, 2, 0],
        };
        assert_eq!(estimate(sample, Statistic::PooledMean), Ok(0.25));
        assert_eq!(estimate(sample, Statistic::MeanOfStrata), Ok(0.5));
        assert_eq!(estimate(sample, Statistic::WorstStratum), Ok(1.0));
        assert!(bootstrap(sample, Statistic::MeanOfStrata, PLAN).is_ok());
    }

    #[test]
    fn any_figure_of_rows() {
        let values = values(101);
        let rows: Vec<usize> = (0..101).collect();
        let sample = Sample {
            values: &values,
            stratum: &[0; 101],
            cluster: &rows,
        };
        let plan = Plan {
            method: Method::Bca,
            ..PLAN
        };
        let by_rows = bootstrap_rows(&[0; 101], &rows, plan, |drawn| {
            super::super::mean(&drawn.iter().map(|&r| values[r]).collect::<Vec<_>>())
        })
        .unwrap();
        let direct = bootstrap(sample, Statistic::PooledMean, plan).unwrap();
        assert!(
            (by_rows.low - direct.low).abs() < 1e-12 && (by_rows.high - direct.high).abs() < 1e-12
        );
        let never = bootstrap_rows(&[0; 101], &rows, plan, |drawn| {
            if drawn.len() == 101 && drawn[1] == 1 && drawn[2] == 2 {
                Ok(1.0)
            } else {
                Err(Undefined::OneLabel)
            }
        });
        assert!(
            matches!(never, Err(Undefined::Resamples { .. })),
            "{never:?}"
        );
    }

    #[test]
    fn equal_values_give_a_point_and_lone_clusters_a_reason() {
        let same = paired_bootstrap(
            &[0.0; 9],
            &[0; 9],
            &[0, 1, 2, 3, 4, 5, 6, 7, 8],
            200,
            0.95,
            1,
        )
        .unwrap();
        assert_eq!((same.low, same.high), (0.0, 0.0));
        assert!(paired_bootstrap(&[0.1, 0.2], &[0, 1], &[0, 1], 200, 0.95, 1).is_err());
        assert!(paired_bootstrap(&[], &[], &[], 200, 0.95, 1).is_err());
        assert!(paired_bootstrap(&[f64::NAN, 0.0], &[0, 0], &[0, 1], 200, 0.95, 1).is_err());
    }
}

//! The bridge to linfa's k-means: the only file that knows its types and its generator.
//!
//! linfa wants ndarray 0.16 and a rand_core 0.6 generator, which rand_xoshiro 0.6 re-exports.
//! Clusters are counted anew from the centroids: `cluster_count` belongs to the last run, not to the best one.
//! The k-means|| start is never used: it does not give the same answer twice for one seed.

use linfa::DatasetBase;
use linfa::prelude::Fit;
use linfa_clustering::{KMeans, KMeansInit};
use ndarray::{Array2, ArrayView1, Axis};
use rand_xoshiro::Xoshiro256Plus;
use rand_xoshiro::rand_core::SeedableRng as _;

/// Restarts at least: one start often ends in a poor optimum.
const MIN_RUNS: usize = 5;

/// Rounds of reassignment; k-means on a few thousand short rows settles within a few dozen.
const MAX_ITERATIONS: u64 = 100;

/// Centroids, or the single answer "all together" where nothing can be split.
pub(super) struct Model(Option<Array2<f64>>);

/// Fits k-means with k-means++ starts. The same rows, k and seed give the same model.
pub(super) fn fit(points: &Array2<f64>, k: usize, runs: usize, seed: u64) -> Model {
    let k = k.min(distinct(points, k));
    if k < 2 {
        return Model(None);
    }
    let rng = Xoshiro256Plus::seed_from_u64(seed);
    let params = KMeans::params_with_rng(k, rng)
        .init_method(KMeansInit::KMeansPlusPlus)
        .n_runs(runs.max(MIN_RUNS))
        .max_n_iterations(MAX_ITERATIONS);
    // The parameters are valid and the rows finite, so an error is not expected; if it comes, one
    // cluster is a true if dull answer.
    let model = params.fit(&DatasetBase::from(points.view()));
    Model(model.ok().map(|m| m.centroids().clone()))
}

impl Model {
    /// The nearest centroid of every row (the first of equals); numbers may have gaps.
    pub(super) fn labels(&self, points: &Array2<f64>) -> Vec<usize> {
        let Some(centroids) = &self.0 else {
            return vec![0; points.nrows()];
        };
        let nearest = |row: ArrayView1<f64>| {
            let mut best = (0, f64::INFINITY);
            for (cluster, centroid) in centroids.axis_iter(Axis(0)).enumerate() {
                let distance = row
                    .iter()
                    .zip(centroid)
                    .map(|(a, b)| (a - b) * (a - b))
                    .sum();
                if distance < best.1 {
                    best = (cluster, distance);
                }
            }
            best.0
        };
        points.axis_iter(Axis(0)).map(nearest).collect()
    }
}

/// Number of different rows, counted up to `enough`.
fn distinct(points: &Array2<f64>, enough: usize) -> usize {
    let mut seen: Vec<ArrayView1<f64>> = Vec::new();
    for row in points.axis_iter(Axis(0)) {
        if seen.len() >= enough {
            break;
        }
        if !seen.contains(&row) {
            seen.push(row);
        }
    }
    seen.len()
}

/// Cluster numbers without gaps, in the order of their first row.
pub(super) fn compact(labels: &[usize]) -> Vec<usize> {
    let mut names: Vec<usize> = Vec::new();
    let number = |label: &usize| {
        names.iter().position(|n| n == label).unwrap_or_else(|| {
            names.push(*label);
            names.len() - 1
        })
    };
    labels.iter().map(number).collect()
}

/// The mean row of the rows whose numbers are given; zero for none.
pub(super) fn mean(points: &Array2<f64>, rows: &[usize]) -> Vec<f64> {
    let mut sum = vec![0.0; points.ncols()];
    for &row in rows {
        sum.iter_mut()
            .zip(points.row(row))
            .for_each(|(s, v)| *s += v);
    }
    sum.iter_mut().for_each(|s| *s /= rows.len().max(1) as f64);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn two_blobs_are_told_apart_and_the_seed_decides() {
        let points = array![[0.0, 0.0], [5.0, 5.0], [0.1, 0.0], [5.1, 5.0], [0.0, 0.1]];
        let labels = compact(&fit(&points, 2, 5, 0).labels(&points));
        assert_eq!(labels, [0, 1, 0, 1, 0]);
        assert_eq!(labels, compact(&fit(&points, 2, 5, 0).labels(&points)));
    }

    #[test]
    fn fewer_rows_than_clusters_and_equal_rows_do_not_fail() {
        let same = Array2::<f64>::zeros((4, 3));
        assert_eq!(fit(&same, 3, 5, 1).labels(&same), [0; 4]);
        let one = array![[1.0]];
        assert_eq!(fit(&one, 3, 5, 1).labels(&one), [0]);
        let none = Array2::<f64>::zeros((0, 3));
        assert!(fit(&none, 3, 5, 1).labels(&none).is_empty());
    }

    #[test]
    fn numbers_become_compact() {
        assert_eq!(compact(&[7, 7, 2, 9, 2]), [0, 0, 1, 2, 1]);
        assert_eq!(mean(&array![[1.0, 2.0], [3.0, 6.0]], &[0, 1]), [2.0, 4.0]);
    }
}

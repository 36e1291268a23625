//! How many clusters: the number that comes out again on another sample of the same items.
//!
//! For each k, k-means is fitted to pairs of bootstrap samples, every item gets the cluster of its
//! nearest centroid in both, and the two partitions are compared by the adjusted Rand index
//! (Ben-Hur, Elisseeff and Guyon 2002; Fang and Wang 2012). What the same rows give when every
//! column is shuffled by itself, which keeps the spread of each feature and destroys what they
//! say together, counts as chance and is subtracted.

use std::collections::VecDeque;
use std::ops::Range;

use ndarray::{Array2, Axis};
use rand::RngExt;
use rand::seq::SliceRandom;

use super::features::stream;
use super::kmeans::{compact, fit};
use super::rand_index::adjusted_rand_index;
use super::reduce::principal;
use crate::text::ngrams::mix;

/// Pairs of bootstrap samples per k.
const PAIRS: u64 = 6;

/// The same for a part of a split: looked at once more, chance has had one more try.
const ENOUGH_AGAIN: f64 = 0.8;

/// Pairs after which a k that is far from [`ENOUGH`] is given up.
const FIRST_PAIRS: u64 = 2;

/// How far below [`ENOUGH`] the first pairs must be for that.
const FAR: f64 = 0.25;

/// Rows that the choice of k looks at; more make it slower, not better.
const SAMPLE: usize = 400;

/// Agreement beyond chance that a split must reach, else the items stay together. On texts with
/// one planted topic the best k mostly reaches 0.3 to 0.7, on texts with two 0.85 to 1.
const ENOUGH: f64 = 0.75;

/// Agreement that a smaller k may lack against the best and still be preferred.
const TOLERANCE: f64 = 0.03;

/// Directions that rows are reduced to, at least; as many as clusters where those are more.
const DIRECTIONS: usize = 16;

/// Clusters at most, whatever is asked for: nobody reads more cards of one kind.
const MOST: usize = 64;

/// What bounds the search for k.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Clusters at most.
    pub(super) max: usize,
    /// Items that a cluster should have on average, at least.
    pub(super) min_size: usize,
    /// Restarts of k-means.
    pub(super) runs: usize,
    /// Columns that hold a known structure (the locale), which chance is not to be credited with.
    pub(super) known: Range<usize>,
    /// Decides every draw.
    pub(super) seed: u64,
}

/// A partition of the rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Partition {
    /// Cluster of each row, without gaps, numbered by first row.
    pub(super) labels: Vec<usize>,
    /// Per cluster, how well the bootstrap partitions find it again: the mean over them of the
    /// best Jaccard index (Hennig 2007); 1 where nothing was split.
    pub(super) stability: Vec<f64>,
}

/// Splits the rows, and each part again, as long as a split is stable and clusters are left.
///
/// Once is not enough: where scripts differ, the split by script is the stable one, and the topics
/// within one of them show only when it is looked at by itself. A part of a part is as stable as
/// the less stable of the two.
pub(super) fn partition(points: &Array2<f64>, limits: &Limits) -> Partition {
    let mut done: Vec<(Vec<usize>, f64)> = Vec::new();
    let mut open: VecDeque<(Vec<usize>, f64)> = VecDeque::new();
    open.push_back(((0..points.nrows()).collect(), 1.0));
    while let Some((rows, stability)) = open.pop_front() {
        let left = limits.max.saturating_sub(done.len() + open.len());
        let within = Limits {
            max: left,
            ..limits.clone()
        };
        let enough = if rows.len() == points.nrows() {
            ENOUGH
        } else {
            ENOUGH_AGAIN
        };
        let parts = split_once(&points.select(Axis(0), &rows), enough, &within);
        if parts.stability.len() < 2 {
            done.push((rows, stability));
            continue;
        }
        for (part, own) in parts.stability.iter().enumerate() {
            let places = rows
                .iter()
                .zip(&parts.labels)
                .filter(|&(_, &label)| label == part);
            open.push_back((places.map(|(&row, _)| row).collect(), stability.min(*own)));
        }
    }
    // Numbered by first row.
    done.sort_by(|a, b| a.0.cmp(&b.0));
    let mut labels = vec![0; points.nrows()];
    for (number, (rows, _)) in done.iter().enumerate() {
        rows.iter().for_each(|&row| labels[row] = number);
    }
    Partition {
        labels,
        stability: done.into_iter().map(|(_, stability)| stability).collect(),
    }
}

/// Splits the rows into the smallest number of clusters that is about as stable as the best, or
/// leaves them together where none agrees with itself `enough`.
fn split_once(points: &Array2<f64>, enough: f64, limits: &Limits) -> Partition {
    let whole = Partition {
        labels: vec![0; points.nrows()],
        stability: vec![1.0],
    };
    let most = limits
        .max
        .min(points.nrows() / limits.min_size.max(2))
        .min(MOST);
    if most < 2 {
        return whole;
    }
    let sample = sample(points, limits.seed);
    let directions = DIRECTIONS.max(most);
    let shuffled = shuffle_columns(&sample, &limits.known, limits.seed);
    let shuffled = shuffled.dot(&principal(&shuffled, directions, limits.seed));
    let basis = principal(&sample, directions, limits.seed);
    if basis.ncols() == 0 {
        return whole;
    }
    let (points, sample) = (&points.dot(&basis), sample.dot(&basis));
    let scores: Vec<f64> = (2..=most)
        .map(|k| {
            let mut partitions = bootstrap(&sample, k, 0..FIRST_PAIRS, limits);
            if agreement(&partitions) < enough - FAR {
                return agreement(&partitions);
            }
            partitions.extend(bootstrap(&sample, k, FIRST_PAIRS..PAIRS, limits));
            let found = agreement(&partitions);
            // Chance can only lower it, so what is not enough already need not be compared.
            if found < enough {
                return found;
            }
            let chance = agreement(&bootstrap(&shuffled, k, 0..PAIRS, limits)).clamp(0.0, 0.99);
            (found - chance) / (1.0 - chance)
        })
        .collect();
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if best < enough {
        return whole;
    }
    let Some(k) = scores
        .iter()
        .position(|&s| s >= best - TOLERANCE)
        .map(|at| at + 2)
    else {
        return whole;
    };
    let model = fit(points, k, limits.runs, limits.seed);
    let labels = compact(&model.labels(points));
    let partitions = bootstrap(&sample, k, 0..PAIRS, limits);
    let mine = compact_keep(&model.labels(&sample), &model.labels(points));
    let clusters = labels.iter().max().map_or(0, |&l| l + 1);
    let stability = (0..clusters)
        .map(|c| refound(&mine, c, &partitions))
        .collect();
    Partition { labels, stability }
}

/// The labels of the sample under the numbers that `compact` gives the whole.
fn compact_keep(sample: &[usize], whole: &[usize]) -> Vec<usize> {
    let joined: Vec<usize> = whole.iter().chain(sample).copied().collect();
    compact(&joined).split_off(whole.len())
}

/// Partitions of all rows by models fitted to bootstrap samples, in pairs.
fn bootstrap(
    points: &Array2<f64>,
    k: usize,
    pairs: Range<u64>,
    limits: &Limits,
) -> Vec<Vec<usize>> {
    let n = points.nrows();
    (2 * pairs.start..2 * pairs.end)
        .map(|draw| {
            let mut rng = stream(limits.seed, &format!("bootstrap {k} {draw}"));
            let rows: Vec<usize> = (0..n).map(|_| rng.random_range(0..n)).collect();
            let drawn = points.select(Axis(0), &rows);
            fit(&drawn, k, limits.runs, mix(limits.seed ^ mix(draw))).labels(points)
        })
        .collect()
}

/// Mean adjusted Rand index of the pairs.
fn agreement(partitions: &[Vec<usize>]) -> f64 {
    let pairs = partitions.chunks_exact(2);
    let count = pairs.len().max(1) as f64;
    pairs
        .map(|pair| adjusted_rand_index(&pair[0], &pair[1]))
        .sum::<f64>()
        / count
}

/// Mean over the partitions of the largest Jaccard index of a cluster with one of theirs.
fn refound(labels: &[usize], cluster: usize, partitions: &[Vec<usize>]) -> f64 {
    let size = labels.iter().filter(|&&l| l == cluster).count();
    if size == 0 || partitions.is_empty() {
        return 0.0;
    }
    let best = |other: &Vec<usize>| {
        let width = other.iter().max().map_or(0, |&m| m + 1);
        let (mut shared, mut sizes) = (vec![0usize; width], vec![0usize; width]);
        for (&mine, &theirs) in labels.iter().zip(other) {
            sizes[theirs] += 1;
            shared[theirs] += usize::from(mine == cluster);
        }
        let jaccard = |c: usize| shared[c] as f64 / (size + sizes[c] - shared[c]) as f64;
        (0..width).map(jaccard).fold(0.0, f64::max)
    };
    partitions.iter().map(best).sum::<f64>() / partitions.len() as f64
}

/// At most [`SAMPLE`] rows, in their order.
fn sample(points: &Array2<f64>, seed: u64) -> Array2<f64> {
    if points.nrows() <= SAMPLE {
        return points.clone();
    }
    let mut rows: Vec<usize> = (0..points.nrows()).collect();
    let (drawn, _) = rows.partial_shuffle(&mut stream(seed, "sample"), SAMPLE);
    let mut drawn = drawn.to_vec();
    drawn.sort_unstable();
    points.select(Axis(0), &drawn)
}

/// The same values in every column, in an order of its own; known columns become zero.
fn shuffle_columns(points: &Array2<f64>, known: &Range<usize>, seed: u64) -> Array2<f64> {
    let mut rng = stream(seed, "shuffle columns");
    let mut shuffled = points.clone();
    for (index, mut column) in shuffled.axis_iter_mut(Axis(1)).enumerate() {
        if known.contains(&index) {
            column.fill(0.0);
            continue;
        }
        let mut values = column.to_vec();
        values.shuffle(&mut rng);
        column
            .iter_mut()
            .zip(values)
            .for_each(|(cell, value)| *cell = value);
    }
    shuffled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows around the corners of a simplex, one corner per label.
    fn blobs(labels: &[usize], noise: f64) -> Array2<f64> {
        let mut rng = stream(1, "blobs");
        Array2::from_shape_fn((labels.len(), 8), |(row, column)| {
            f64::from(labels[row] == column) + noise * rng.random_range(-1.0..1.0)
        })
    }

    fn limits(seed: u64) -> Limits {
        Limits {
            max: 6,
            min_size: 3,
            runs: 5,
            known: 0..0,
            seed,
        }
    }

    #[test]
    fn clear_blobs_are_found_and_stable() {
        for k in 2..=5 {
            let truth: Vec<usize> = (0..60).map(|i| i % k).collect();
            let found = partition(&blobs(&truth, 0.1), &limits(0));
            assert_eq!(adjusted_rand_index(&truth, &found.labels), 1.0, "{k} blobs");
            assert!(
                found.stability.iter().all(|&s| s > 0.7),
                "{:?}",
                found.stability
            );
        }
    }

    #[test]
    fn noise_and_few_rows_stay_together() {
        let whole =
            |found: Partition| found.stability == [1.0] && found.labels.iter().all(|&l| l == 0);
        assert!((0..5).all(|seed| whole(partition(&blobs(&[9; 40], 1.0), &limits(seed)))));
        assert!(whole(partition(&Array2::ones((30, 8)), &limits(0))));
        assert!(whole(partition(&blobs(&[0, 1], 0.1), &limits(0))));
        assert!(whole(partition(&Array2::zeros((0, 8)), &limits(0))));
    }

    #[test]
    fn the_number_of_clusters_is_bounded() {
        let truth: Vec<usize> = (0..60).map(|i| i % 5).collect();
        let few = Limits {
            max: 3,
            ..limits(0)
        };
        assert!(partition(&blobs(&truth, 0.1), &few).stability.len() <= 3);
        let none = Limits {
            max: 0,
            ..limits(0)
        };
        assert_eq!(partition(&blobs(&truth, 0.1), &none).stability, [1.0]);
    }

    #[test]
    fn the_best_jaccard_is_the_hand_calculated_one() {
        // Cluster {0, 1, 2}: against {0, 1} and {2, 3} the best is 2/3; against itself 1.
        let partitions = vec![vec![0, 0, 1, 1], vec![5, 5, 5, 2]];
        assert!((refound(&[0, 0, 0, 1], 0, &partitions) - (2.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
    }
}

//! The few directions in which rows differ most.

use ndarray::{Array1, Array2, Axis};
use rand::RngExt;

use super::features::stream;

/// Rounds of subspace iteration: enough for distances, which need the subspace and not its axes.
const ROUNDS: usize = 12;

/// A basis of the leading principal components, one per column; fewer than asked for where the
/// rows differ in fewer directions. Only their span is determined.
///
/// Found by subspace iteration from a seeded start. Clustering a few dozen texts in a few dozen
/// directions instead of hundreds loses what no two of them share, and is many times faster.
pub(super) fn principal(points: &Array2<f64>, count: usize, seed: u64) -> Array2<f64> {
    let (rows, columns) = points.dim();
    let count = count.min(rows).min(columns);
    let mean = points
        .mean_axis(Axis(0))
        .unwrap_or_else(|| Array1::zeros(columns));
    let centred = points - &mean;
    let mut rng = stream(seed, "principal");
    let mut basis = Array2::from_shape_simple_fn((columns, count), || rng.random_range(-1.0..1.0));
    for _ in 0..ROUNDS {
        basis = orthonormal(centred.t().dot(&centred.dot(&basis)));
    }
    basis
}

/// Gram-Schmidt, twice for accuracy; columns that depend on earlier ones are dropped.
fn orthonormal(matrix: Array2<f64>) -> Array2<f64> {
    let largest = matrix.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for column in matrix.axis_iter(Axis(1)) {
        let mut vector = column.to_vec();
        for _ in 0..2 {
            for earlier in &kept {
                let along = dot(&vector, earlier);
                vector
                    .iter_mut()
                    .zip(earlier)
                    .for_each(|(v, e)| *v -= along * e);
            }
        }
        let length = dot(&vector, &vector).sqrt();
        if length > 1e-9 * largest && length.is_finite() {
            vector.iter_mut().for_each(|v| *v /= length);
            kept.push(vector);
        }
    }
    Array2::from_shape_fn((matrix.nrows(), kept.len()), |(row, column)| {
        kept[column][row]
    })
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn distances_survive_when_rows_lie_in_a_plane() {
        // Three rows span two directions, so two components hold all distances.
        let points = array![
            [1.0, 2.0, 3.0, 4.0],
            [0.0, 1.0, 0.0, 1.0],
            [5.0, 5.0, 1.0, 0.0]
        ];
        let basis = principal(&points, 3, 0);
        assert_eq!(basis.ncols(), 2);
        let small = points.dot(&basis);
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let apart = |m: &Array2<f64>| (&m.row(a) - &m.row(b)).mapv(|v| v * v).sum();
            assert!((apart(&points) - apart(&small)).abs() < 1e-9);
        }
    }

    #[test]
    fn the_first_direction_is_the_longest() {
        let points = array![[10.0, 0.0], [-10.0, 0.1], [5.0, -0.1], [-5.0, 0.0]];
        let basis = principal(&points, 1, 7);
        assert!(basis[[0, 0]].abs() > 0.999);
    }

    #[test]
    fn equal_rows_have_no_direction() {
        assert_eq!(principal(&Array2::ones((3, 4)), 2, 0).ncols(), 0);
        assert_eq!(principal(&Array2::zeros((0, 4)), 2, 0).ncols(), 0);
    }
}

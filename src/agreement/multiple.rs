//! Owns corrections for many tests at once. Must not know what was tested.

use super::{Undefined, within};

/// The p-values in ascending order, as their places.
fn order(p: &[f64]) -> Result<Vec<usize>, Undefined> {
    p.iter()
        .try_for_each(|&v| within("p-value", v, 0.0, 1.0).map(|_| ()))?;
    let mut places: Vec<usize> = (0..p.len()).collect();
    places.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    Ok(places)
}

/// Adjusted p-values of Holm (1979), in the order given: rejecting those up to `alpha` makes one
/// false rejection or more with probability at most `alpha`.
///
/// # Errors
/// A p-value outside `[0, 1]`.
pub fn holm(p: &[f64]) -> Result<Vec<f64>, Undefined> {
    let mut adjusted = vec![0.0; p.len()];
    let mut most: f64 = 0.0;
    for (rank, at) in order(p)?.into_iter().enumerate() {
        most = most.max(((p.len() - rank) as f64 * p[at]).min(1.0));
        adjusted[at] = most;
    }
    Ok(adjusted)
}

/// Adjusted p-values of Benjamini and Hochberg (1995), in the order given: among those up to `q`, the
/// expected share of false rejections is at most `q`, for independent tests.
///
/// # Errors
/// A p-value outside `[0, 1]`.
pub fn benjamini_hochberg(p: &[f64]) -> Result<Vec<f64>, Undefined> {
    step_up(p, 1.0)
}

/// As [`benjamini_hochberg`], for tests that depend on each other in any way (Benjamini and
/// Yekutieli 2001).
///
/// # Errors
/// A p-value outside `[0, 1]`.
pub fn benjamini_yekutieli(p: &[f64]) -> Result<Vec<f64>, Undefined> {
    step_up(p, (1..=p.len()).map(|i| 1.0 / i as f64).sum())
}

fn step_up(p: &[f64], factor: f64) -> Result<Vec<f64>, Undefined> {
    let mut adjusted = vec![0.0; p.len()];
    let mut least: f64 = 1.0;
    for (rank, at) in order(p)?.into_iter().enumerate().rev() {
        least = least.min(factor * p.len() as f64 / (rank + 1) as f64 * p[at]);
        adjusted[at] = least;
    }
    Ok(adjusted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let near = |got: Vec<f64>, want: &[f64]| {
            assert!(
                got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-12),
                "{got:?} {want:?}"
            );
        };
        let p = [0.01, 0.04, 0.03, 0.005];
        near(holm(&p).unwrap(), &[0.03, 0.06, 0.06, 0.02]);
        near(benjamini_hochberg(&p).unwrap(), &[0.02, 0.04, 0.04, 0.02]);
        near(benjamini_yekutieli(&[0.01, 0.5]).unwrap(), &[0.03, 0.75]);
        assert_eq!(holm(&[]), Ok(vec![]));
        assert!(holm(&[f64::NAN]).is_err() && benjamini_hochberg(&[1.5]).is_err());
    }
}

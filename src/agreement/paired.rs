//! Owns tests of paired differences: the same items judged twice.
//! Must not know what was judged.

use rayon::prelude::*;

use super::draws::stream;
use super::tail::binomial_at_most;
use super::{Stat, Undefined, all_within, same_length};
use rand_chacha::rand_core::Rng;

/// Exact two-sided McNemar test: `b` items only the first got right, `c` items only the second.
/// Without discordant items the p-value is 1 (McNemar 1947; exact form of the sign test).
pub fn mcnemar_exact(b: u64, c: u64) -> f64 {
    (2.0 * binomial_at_most(b.min(c), b + c, 0.5)).min(1.0)
}

/// Which differences count as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// A mean away from 0 in either direction.
    Both,
    /// A mean above 0.
    Above,
}

/// Two-sided p-value of the sign-flip permutation test for a mean difference of 0: the share
/// `(r + 1) / (draws + 1)` of sign patterns whose mean is as far from 0 as the one seen.
///
/// # Errors
/// No differences, or one that is not finite.
pub fn paired_permutation(diffs: &[f64], draws: usize, seed: u64) -> Stat {
    permutation(diffs, Tail::Both, draws, seed)
}

/// [`paired_permutation`] with a choice of tail. Dependent rows (a group) must be summed first, see
/// [`cluster_sums`].
///
/// # Errors
/// No differences, or one that is not finite.
pub fn permutation(diffs: &[f64], tail: Tail, draws: usize, seed: u64) -> Stat {
    all_within("differences", diffs, f64::MIN, f64::MAX)?;
    let moved: Vec<f64> = diffs.iter().copied().filter(|&d| d != 0.0).collect();
    let fold = |sum: f64| if tail == Tail::Both { sum.abs() } else { sum };
    let seen = fold(moved.iter().sum());
    // Sums of the same numbers in another pattern may differ in the last digits.
    let slack = 1e-12 * moved.iter().map(|d| d.abs()).sum::<f64>();
    let as_far = (0..draws)
        .into_par_iter()
        .filter(|&index| {
            let mut rng = stream(seed, index as u64);
            let mut bits = 0;
            let mut sum = 0.0;
            for (i, d) in moved.iter().enumerate() {
                if i % 64 == 0 {
                    bits = rng.next_u64();
                }
                sum += if bits & 1 == 0 { *d } else { -*d };
                bits >>= 1;
            }
            fold(sum) >= seen - slack
        })
        .count();
    Ok((as_far + 1) as f64 / (draws + 1) as f64)
}

/// Sums of differences per cluster, in the order in which clusters appear: the units whose signs
/// may be flipped when rows of a cluster depend on each other.
///
/// # Errors
/// Inputs of different lengths.
pub fn cluster_sums(diffs: &[f64], cluster: &[usize]) -> Result<Vec<f64>, Undefined> {
    same_length("clusters", cluster.len(), diffs.len())?;
    let mut place = std::collections::HashMap::new();
    let mut sums = Vec::new();
    for (&d, c) in diffs.iter().zip(cluster) {
        let at = *place.entry(c).or_insert_with(|| {
            sums.push(0.0);
            sums.len() - 1
        });
        sums[at] += d;
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_by_hand() {
        // 2 * (1 + 10 + 45) / 2^10.
        assert!((mcnemar_exact(2, 8) - 0.109375).abs() < 1e-12);
        assert_eq!(mcnemar_exact(2, 8), mcnemar_exact(8, 2));
        assert_eq!(mcnemar_exact(0, 0), 1.0);
        assert_eq!(mcnemar_exact(5, 5), 1.0);
        assert!((mcnemar_exact(0, 6) - 0.03125).abs() < 1e-12);
    }

    #[test]
    fn permutation_approaches_the_exact_sign_test() {
        // All 2^8 patterns are as far only when all signs agree: 2/256 two-sided, 1/256 one-sided.
        let p = paired_permutation(&[1.0; 8], 20_000, 3).unwrap();
        assert!((p - 2.0 / 256.0).abs() < 0.002, "{p}");
        let p = permutation(&[1.0; 8], Tail::Above, 20_000, 3).unwrap();
        assert!((p - 1.0 / 256.0).abs() < 0.002, "{p}");
        assert_eq!(paired_permutation(&[0.0; 8], 100, 3), Ok(1.0));
        assert!(paired_permutation(&[], 100, 3).is_err());
        assert!(paired_permutation(&[f64::NAN], 100, 3).is_err());
    }

    #[test]
    fn clusters_are_summed() {
        assert_eq!(
            cluster_sums(&[1.0, 2.0, 4.0], &[9, 3, 9]),
            Ok(vec![5.0, 2.0])
        );
        assert!(cluster_sums(&[1.0], &[]).is_err());
    }
}

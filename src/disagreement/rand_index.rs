//! The adjusted Rand index: how far two partitions of the same things agree beyond chance.

use std::collections::BTreeMap;

/// The adjusted Rand index of Hubert and Arabie (1985), *Comparing partitions*, J. Classification
/// 2: 193-218: 1 for the same partition under any names, about 0 for independent ones, negative
/// for worse than chance.
///
/// Computed from pairs as scikit-learn does; two partitions without a disagreeing pair (also both
/// empty, or both a single cluster) give 1. Where the slices differ in length, the longer one's
/// surplus is ignored.
pub fn adjusted_rand_index(a: &[usize], b: &[usize]) -> f64 {
    let n = a.len().min(b.len());
    let mut cells: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    let mut rows: BTreeMap<usize, u64> = BTreeMap::new();
    let mut columns: BTreeMap<usize, u64> = BTreeMap::new();
    for (&x, &y) in a.iter().zip(b) {
        *cells.entry((x, y)).or_default() += 1;
        *rows.entry(x).or_default() += 1;
        *columns.entry(y).or_default() += 1;
    }
    let both = cells.values().map(|&c| pairs(c)).sum::<f64>();
    let first = rows.values().map(|&c| pairs(c)).sum::<f64>();
    let second = columns.values().map(|&c| pairs(c)).sum::<f64>();
    if first == both && second == both {
        return 1.0;
    }
    // At least two things from here on, and not both partitions trivial in the same way, so the
    // denominator is positive.
    let expected = first * second / pairs(n as u64);
    (both - expected) / ((first + second) / 2.0 - expected)
}

/// Unordered pairs among `count` things.
fn pairs(count: u64) -> f64 {
    let count = count as f64;
    count * (count - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_checked_values() {
        // Pairs together in both: 1; in the first: 1 + 1 = 2; in the second: 1; of 6 in all.
        // (1 - 2*1/6) / (1.5 - 2*1/6) = (2/3) / (7/6) = 4/7.
        let close = |x: f64, y: f64| (x - y).abs() < 1e-12;
        assert!(close(
            adjusted_rand_index(&[0, 0, 1, 1], &[0, 0, 1, 2]),
            4.0 / 7.0
        ));
        // Pairs together: 0 in both; 2 and 2 of 6: (0 - 2/3) / (2 - 2/3) = -1/2.
        assert!(close(
            adjusted_rand_index(&[0, 0, 1, 1], &[0, 1, 0, 1]),
            -0.5
        ));
        // One cluster against singletons: no better than chance.
        assert!(close(adjusted_rand_index(&[0, 0, 0], &[0, 1, 2]), 0.0));
    }

    #[test]
    fn names_do_not_matter_and_trivial_partitions_agree() {
        assert_eq!(adjusted_rand_index(&[0, 0, 1, 2], &[9, 9, 4, 0]), 1.0);
        assert_eq!(adjusted_rand_index(&[], &[]), 1.0);
        assert_eq!(adjusted_rand_index(&[3], &[5]), 1.0);
        assert_eq!(adjusted_rand_index(&[1, 1, 1], &[2, 2, 2]), 1.0);
        assert_eq!(adjusted_rand_index(&[0, 1, 2], &[2, 0, 1]), 1.0);
    }

    #[test]
    fn values_of_scikit_learn() {
        // sklearn.metrics.adjusted_rand_score on the same integer formulas.
        let close = |x: f64, y: f64| assert!((x - y).abs() < 1e-12, "{x} is not {y}");
        close(
            adjusted_rand_index(&[0, 0, 1, 1, 2, 2], &[0, 0, 1, 2, 2, 2]),
            0.4444444444444444,
        );
        let a: Vec<usize> = (0..60).map(|i| (i * i + 3 * i) % 5).collect();
        let b: Vec<usize> = (0..60).map(|i| (i * 7 + i / 3) % 4).collect();
        close(adjusted_rand_index(&a, &b), -0.03711965735700901);
        let a: Vec<usize> = (0..60).map(|i| i / 10).collect();
        let b: Vec<usize> = (0..60).map(|i| ((i + 3) / 12).min(4)).collect();
        close(adjusted_rand_index(&a, &b), 0.6103456367964062);
    }
}

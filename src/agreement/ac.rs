//! Owns Gwet's AC1 and AC2, which stay stable where one label is much more common than the rest.
//! Must not know who the raters are.

use super::kappa::{Weights, beyond_chance, shares};
use super::table::CountTable;
use super::{Stat, Undefined};

/// Gwet's AC1 (2008): chance agreement `Σ π(1-π) / (k-1)` over the labels of the scale, whether or
/// not they were used. Missing ratings as in [`super::kappa::fleiss_kappa`].
///
/// # Errors
/// No item with two ratings; a scale of fewer than two labels.
pub fn gwet_ac1(table: &CountTable) -> Stat {
    gwet_ac2(table, Weights::Nominal)
}

/// Gwet's AC2: AC1 with partial credit for near labels (Gwet 2014, chapter 3).
///
/// # Errors
/// As [`gwet_ac1`]; values that do not fit.
pub fn gwet_ac2(table: &CountTable, weights: Weights) -> Stat {
    let labels = table.labels();
    if labels < 2 {
        return Err(Undefined::OneLabel);
    }
    let shares = shares(table, weights)?;
    let k = labels as f64;
    let spread: f64 = shares.labels.iter().map(|p| p * (1.0 - p)).sum();
    let expected = shares.weights.iter().sum::<f64>() * spread / (k * (k - 1.0));
    beyond_chance(shares.observed, expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // 118 of 125 agree on "no", 2 on "yes", 5 differ (shape of Gwet's 2008 example of high agreement).
        let mut counts = Vec::new();
        counts.extend([2, 0].repeat(118));
        counts.extend([0, 2].repeat(2));
        counts.extend([1, 1].repeat(5));
        let ac1 = gwet_ac1(&CountTable::new(2, counts).unwrap()).unwrap();
        let (observed, share) = (120.0 / 125.0, 241.0 / 250.0);
        let expected = 2.0 * share * (1.0 - share);
        assert!((ac1 - (observed - expected) / (1.0 - expected)).abs() < 1e-12);
    }

    #[test]
    fn one_label_throughout_is_full_agreement() {
        assert_eq!(
            gwet_ac1(&CountTable::new(3, vec![2, 0, 0, 4, 0, 0]).unwrap()),
            Ok(1.0)
        );
        assert_eq!(
            gwet_ac1(&CountTable::new(1, vec![2]).unwrap()),
            Err(Undefined::OneLabel)
        );
        assert_eq!(
            gwet_ac1(&CountTable::new(2, vec![1, 0]).unwrap()),
            Err(Undefined::NoPairs)
        );
        assert!(
            gwet_ac2(
                &CountTable::new(2, vec![2, 0]).unwrap(),
                Weights::LinearValues(&[1.0])
            )
            .is_err()
        );
    }
}

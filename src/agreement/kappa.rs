//! Owns agreement beyond chance for two raters (Cohen, Scott) and for several (Fleiss).
//! Must not know who the raters are.

use super::table::{Confusion, CountTable};
use super::{Stat, Undefined, all_within, same_length};

/// How much two different labels agree with each other, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weights<'a> {
    /// Not at all.
    Nominal,
    /// `1 - |i - j| / (k - 1)` over positions.
    Linear,
    /// `1 - (i - j)² / (k - 1)²` over positions.
    Quadratic,
    /// Linear in the values of the labels.
    LinearValues(&'a [f64]),
    /// Quadratic in the values of the labels.
    QuadraticValues(&'a [f64]),
    /// `1 - C(|i - j| + 1, 2) / C(k, 2)` over positions (Gwet 2014, table 3.5).
    Ordinal,
}

impl Weights<'_> {
    /// The matrix of weights for `k` labels, in row order.
    ///
    /// # Errors
    /// Values that are not finite or not `k` in number, or which are all equal.
    pub(crate) fn matrix(&self, k: usize) -> Result<Vec<f64>, Undefined> {
        let positions: Vec<f64> = (0..k).map(|i| i as f64).collect();
        let values = match *self {
            Weights::LinearValues(values) | Weights::QuadraticValues(values) => {
                same_length("values of the labels", values.len(), k)?;
                values
            }
            _ => &positions,
        };
        all_within("values of the labels", values, f64::MIN, f64::MAX)?;
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if high == low && k > 1 {
            return Err(Undefined::TooFew {
                what: "different values of labels",
                have: 1,
                need: 2,
            });
        }
        let weight = |i: usize, j: usize| {
            let share = if i == j {
                0.0
            } else {
                (values[i] - values[j]).abs() / (high - low)
            };
            match self {
                Weights::Nominal => f64::from(i == j),
                Weights::Linear | Weights::LinearValues(_) => 1.0 - share,
                Weights::Quadratic | Weights::QuadraticValues(_) => 1.0 - share * share,
                Weights::Ordinal if i == j => 1.0,
                Weights::Ordinal => {
                    let steps = i.abs_diff(j) as f64;
                    1.0 - (steps + 1.0) * steps / (k as f64 * (k as f64 - 1.0))
                }
            }
        };
        Ok((0..k * k).map(|at| weight(at / k, at % k)).collect())
    }
}

/// `(observed - expected) / (1 - expected)`, undefined where chance alone agrees fully.
pub(crate) fn beyond_chance(observed: f64, expected: f64) -> Stat {
    // Sums of shares miss 1 by a few units in the last place.
    if 1.0 - expected < 1e-14 {
        Err(Undefined::OneLabel)
    } else {
        Ok((observed - expected) / (1.0 - expected))
    }
}

/// Sum of `weight[i][j] · left[i] · right[j]`.
pub(crate) fn weighted_product(weights: &[f64], left: &[f64], right: &[f64]) -> f64 {
    let row = |i: usize| {
        right
            .iter()
            .zip(&weights[i * right.len()..])
            .map(|(r, w)| r * w)
            .sum::<f64>()
    };
    left.iter()
        .enumerate()
        .filter(|(_, l)| **l != 0.0)
        .map(|(i, l)| l * row(i))
        .sum()
}

fn two_raters(matrix: &Confusion, weights: Weights, pooled: bool) -> Stat {
    let total = matrix.total() as f64;
    if total == 0.0 {
        return Err(Undefined::NoPairs);
    }
    let w = weights.matrix(matrix.labels())?;
    let observed = matrix
        .counts()
        .iter()
        .zip(&w)
        .map(|(&n, w)| n as f64 * w)
        .sum::<f64>()
        / total;
    let (mut rows, mut columns) = (matrix.row_sums(), matrix.column_sums());
    if pooled {
        rows.iter_mut()
            .zip(&columns)
            .for_each(|(r, c)| *r = (*r + c) / 2.0);
        columns.clone_from(&rows);
    }
    beyond_chance(
        observed,
        weighted_product(&w, &rows, &columns) / (total * total),
    )
}

/// Cohen's kappa (1960), weighted (1968) where the weights say so.
///
/// # Errors
/// No pairs; both raters gave one and the same label throughout; values that do not fit.
pub fn cohen_kappa(matrix: &Confusion, weights: Weights) -> Stat {
    two_raters(matrix, weights, false)
}

/// Scott's pi (1955): chance agreement from the labels of both raters together.
///
/// # Errors
/// As [`cohen_kappa`].
pub fn scott_pi(matrix: &Confusion, weights: Weights) -> Stat {
    two_raters(matrix, weights, true)
}

/// What agreement coefficients for several raters are made of (Gwet 2014, chapters 2 and 3).
pub(crate) struct Shares {
    /// Weights in row order.
    pub weights: Vec<f64>,
    /// Weighted agreement of pairs, averaged over the items with two or more ratings.
    pub observed: f64,
    /// Share of each label, averaged over the items with ratings.
    pub labels: Vec<f64>,
}

/// # Errors
/// No item with two ratings; values that do not fit.
pub(crate) fn shares(table: &CountTable, weights: Weights) -> Result<Shares, Undefined> {
    let w = weights.matrix(table.labels())?;
    let mut labels = vec![0.0; table.labels()];
    let (mut agreement, mut paired, mut rated) = (0.0, 0.0, 0.0);
    let mut counts = vec![0.0; table.labels()];
    for item in table.items() {
        counts
            .iter_mut()
            .zip(item)
            .for_each(|(c, &n)| *c = f64::from(n));
        let ratings: f64 = counts.iter().sum();
        if ratings == 0.0 {
            continue;
        }
        rated += 1.0;
        labels
            .iter_mut()
            .zip(&counts)
            .for_each(|(l, c)| *l += c / ratings);
        if ratings >= 2.0 {
            paired += 1.0;
            agreement +=
                (weighted_product(&w, &counts, &counts) - ratings) / (ratings * (ratings - 1.0));
        }
    }
    if paired == 0.0 {
        return Err(Undefined::NoPairs);
    }
    labels.iter_mut().for_each(|l| *l /= rated);
    Ok(Shares {
        weights: w,
        observed: agreement / paired,
        labels,
    })
}

/// Fleiss' kappa (1971); with weights and missing ratings as Gwet (2014) extends it: items with one
/// rating count for the shares of labels but not for agreement.
///
/// # Errors
/// No item with two ratings; one label throughout; values that do not fit.
pub fn fleiss_kappa(table: &CountTable, weights: Weights) -> Stat {
    let shares = shares(table, weights)?;
    beyond_chance(
        shares.observed,
        weighted_product(&shares.weights, &shares.labels, &shares.labels),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Cohen's textbook table: observed .7, expected .5.
        let matrix = Confusion::new(2, vec![20, 5, 10, 15]).unwrap();
        assert!((cohen_kappa(&matrix, Weights::Nominal).unwrap() - 0.4).abs() < 1e-12);
        // Pooled shares .55 and .45: expected .505.
        assert!((scott_pi(&matrix, Weights::Nominal).unwrap() - 0.195 / 0.495).abs() < 1e-12);
        // With two labels every weighting is the same.
        for w in [
            Weights::Linear,
            Weights::Quadratic,
            Weights::Ordinal,
            Weights::LinearValues(&[-3.0, 9.0]),
        ] {
            assert!((cohen_kappa(&matrix, w).unwrap() - 0.4).abs() < 1e-12);
        }
    }

    #[test]
    fn fleiss_1971_example() {
        // The worked example of 14 raters, 10 items and 5 labels: kappa .210.
        let counts = vec![
            0, 0, 0, 0, 14, 0, 2, 6, 4, 2, 0, 0, 3, 5, 6, 0, 3, 9, 2, 0, 2, 2, 8, 1, 1, 7, 7, 0, 0,
            0, 3, 2, 6, 3, 0, 2, 5, 3, 2, 2, 6, 5, 2, 1, 0, 0, 2, 2, 3, 7,
        ];
        let kappa = fleiss_kappa(&CountTable::new(5, counts).unwrap(), Weights::Nominal).unwrap();
        assert!((kappa - 0.20993070442195522).abs() < 1e-12, "{kappa}");
    }

    #[test]
    fn chance_alone_and_nothing() {
        let one = Confusion::new(2, vec![9, 0, 0, 0]).unwrap();
        assert_eq!(
            cohen_kappa(&one, Weights::Nominal),
            Err(Undefined::OneLabel)
        );
        assert_eq!(scott_pi(&one, Weights::Linear), Err(Undefined::OneLabel));
        let none = Confusion::new(3, vec![0; 9]).unwrap();
        assert_eq!(
            cohen_kappa(&none, Weights::Nominal),
            Err(Undefined::NoPairs)
        );
        assert_eq!(
            cohen_kappa(&Confusion::new(1, vec![4]).unwrap(), Weights::Linear),
            Err(Undefined::OneLabel)
        );
        assert!(cohen_kappa(&one, Weights::LinearValues(&[1.0, 1.0])).is_err());
        assert!(cohen_kappa(&one, Weights::LinearValues(&[1.0])).is_err());
        assert!(cohen_kappa(&one, Weights::QuadraticValues(&[f64::NAN, 1.0])).is_err());
        let single = CountTable::new(2, vec![1, 0, 0, 1, 0, 0]).unwrap();
        assert_eq!(
            fleiss_kappa(&single, Weights::Nominal),
            Err(Undefined::NoPairs)
        );
        let same = CountTable::new(2, vec![2, 0, 3, 0]).unwrap();
        assert_eq!(
            fleiss_kappa(&same, Weights::Nominal),
            Err(Undefined::OneLabel)
        );
        assert_eq!(
            fleiss_kappa(&CountTable::new(2, vec![]).unwrap(), Weights::Nominal),
            Err(Undefined::NoPairs)
        );
    }
}

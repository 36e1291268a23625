//! Owns figures that treat one side of a confusion matrix as the truth (people in its rows).
//! Must not know which judge stands in its columns.

use super::table::Confusion;
use super::{Stat, Undefined};

fn total(matrix: &Confusion) -> Stat {
    if matrix.total() == 0 {
        Err(Undefined::Empty("pairs of labels"))
    } else {
        Ok(matrix.total() as f64)
    }
}

fn hits(matrix: &Confusion) -> impl Iterator<Item = f64> + '_ {
    (0..matrix.labels()).map(|l| matrix.count(l, l) as f64)
}

/// Share of items on which both sides agree.
///
/// # Errors
/// No pairs.
pub fn percent_agreement(matrix: &Confusion) -> Stat {
    Ok(hits(matrix).sum::<f64>() / total(matrix)?)
}

/// Matthews correlation (1975), for more than two labels as Gorodkin (2004).
///
/// # Errors
/// No pairs, or a side that used one label throughout: a correlation with a constant does not exist.
pub fn matthews_correlation(matrix: &Confusion) -> Stat {
    let n = total(matrix)?;
    let (rows, columns) = (matrix.row_sums(), matrix.column_sums());
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let spread = (n * n - product(&rows, &rows)) * (n * n - product(&columns, &columns));
    if spread <= 0.0 {
        return Err(Undefined::OneLabel);
    }
    Ok((hits(matrix).sum::<f64>() * n - product(&rows, &columns)) / spread.sqrt())
}

/// Mean of the F1 scores of the labels that occur on either side.
///
/// # Errors
/// No pairs.
pub fn macro_f1(matrix: &Confusion) -> Stat {
    total(matrix)?;
    let sums = matrix
        .row_sums()
        .into_iter()
        .zip(matrix.column_sums())
        .map(|(r, c)| r + c);
    mean(
        hits(matrix)
            .zip(sums)
            .filter(|&(_, sum)| sum > 0.0)
            .map(|(hit, sum)| 2.0 * hit / sum),
    )
}

/// Mean over the labels that people used of the share that the judge found.
///
/// # Errors
/// No pairs.
pub fn balanced_accuracy(matrix: &Confusion) -> Stat {
    total(matrix)?;
    mean(
        hits(matrix)
            .zip(matrix.row_sums())
            .filter(|&(_, sum)| sum > 0.0)
            .map(|(hit, sum)| hit / sum),
    )
}

fn mean(values: impl Iterator<Item = f64>) -> Stat {
    super::mean(&values.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let matrix = Confusion::new(2, vec![20, 5, 10, 15]).unwrap();
        let near = |got: Stat, want: f64| assert!((got.unwrap() - want).abs() < 1e-12);
        near(percent_agreement(&matrix), 0.7);
        // (20*15 - 5*10) / sqrt(25*25*30*20).
        near(matthews_correlation(&matrix), 250.0 / 375_000.0f64.sqrt());
        near(macro_f1(&matrix), (40.0 / 55.0 + 30.0 / 45.0) / 2.0);
        near(balanced_accuracy(&matrix), 0.7);
    }

    #[test]
    fn unused_labels_do_not_count_and_nothing_has_a_reason() {
        let matrix = Confusion::new(3, vec![3, 1, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(balanced_accuracy(&matrix), Ok(0.75));
        assert!((macro_f1(&matrix).unwrap() - (6.0 / 7.0) / 2.0).abs() < 1e-12);
        assert_eq!(matthews_correlation(&matrix), Err(Undefined::OneLabel));
        let none = Confusion::new(2, vec![0; 4]).unwrap();
        for figure in [
            percent_agreement,
            matthews_correlation,
            macro_f1,
            balanced_accuracy,
        ] {
            assert_eq!(figure(&none), Err(Undefined::Empty("pairs of labels")));
        }
    }
}

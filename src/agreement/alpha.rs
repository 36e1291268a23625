//! Owns Krippendorff's alpha for any number of raters, with missing ratings.
//! Must not know who the raters are.

use super::table::CountTable;
use super::{Stat, Undefined, all_within, same_length};

/// What makes two labels far from each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric<'a> {
    /// Being different.
    Nominal,
    /// The number of ratings that lie between them.
    Ordinal,
    /// The squared difference of their values.
    Interval(&'a [f64]),
    /// The squared difference of their values, relative to their sum; values are not negative.
    Ratio(&'a [f64]),
}

/// Krippendorff's alpha (2011, "Computing Krippendorff's alpha-reliability"): 1 less observed over
/// expected disagreement. Items with fewer than two ratings do not count. Works on counts of labels
/// per item, so its cost grows with the number of items, not with its square.
///
/// # Errors
/// No item with two ratings; one label throughout; values that do not fit.
pub fn krippendorff_alpha(table: &CountTable, metric: Metric) -> Stat {
    let labels = table.labels();
    let mut totals = vec![0.0; labels];
    let paired = || {
        table
            .items()
            .filter(|item| item.iter().map(|&n| u64::from(n)).sum::<u64>() >= 2)
    };
    for item in paired() {
        totals
            .iter_mut()
            .zip(item)
            .for_each(|(t, &n)| *t += f64::from(n));
    }
    let all: f64 = totals.iter().sum();
    if all == 0.0 {
        return Err(Undefined::NoPairs);
    }
    let distance = distances(metric, &totals)?;
    let spread = |counts: &[f64]| {
        let used: Vec<usize> = (0..labels).filter(|&l| counts[l] > 0.0).collect();
        let pairs = used
            .iter()
            .enumerate()
            .flat_map(|(at, &a)| used[..at].iter().map(move |&b| (a, b)));
        pairs
            .map(|(a, b)| 2.0 * counts[a] * counts[b] * distance[a * labels + b])
            .sum::<f64>()
    };
    let expected = spread(&totals) / (all - 1.0);
    if expected <= 0.0 {
        return Err(Undefined::OneLabel);
    }
    let mut observed = 0.0;
    let mut counts = vec![0.0; labels];
    for item in paired() {
        counts
            .iter_mut()
            .zip(item)
            .for_each(|(c, &n)| *c = f64::from(n));
        observed += spread(&counts) / (counts.iter().sum::<f64>() - 1.0);
    }
    Ok(1.0 - observed / expected)
}

fn distances(metric: Metric, totals: &[f64]) -> Result<Vec<f64>, Undefined> {
    let labels = totals.len();
    let values = match metric {
        Metric::Interval(values) | Metric::Ratio(values) => {
            same_length("values of the labels", values.len(), labels)?;
            let low = if matches!(metric, Metric::Ratio(_)) {
                0.0
            } else {
                f64::MIN
            };
            all_within("value of a label", values, low, f64::MAX)?;
            values
        }
        Metric::Nominal | Metric::Ordinal => &[],
    };
    let between = |a: usize, b: usize| {
        let (low, high) = (a.min(b), a.max(b));
        totals[low..=high].iter().sum::<f64>() - (totals[low] + totals[high]) / 2.0
    };
    let distance = |a: usize, b: usize| match metric {
        Metric::Nominal => f64::from(a != b),
        Metric::Ordinal => between(a, b) * between(a, b),
        Metric::Interval(_) => (values[a] - values[b]) * (values[a] - values[b]),
        // Two zeros are no distance apart.
        Metric::Ratio(_) if values[a] + values[b] == 0.0 => 0.0,
        Metric::Ratio(_) => ((values[a] - values[b]) / (values[a] + values[b])).powi(2),
    };
    Ok((0..labels * labels)
        .map(|at| distance(at / labels, at % labels))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reliability data of Krippendorff (2011, part C): 4 observers, 12 units, 5 values.
    fn krippendorff_2011() -> CountTable {
        let column = |text: &str| {
            text.bytes()
                .map(|b| b.is_ascii_digit().then(|| usize::from(b - b'1')))
                .collect::<Vec<Option<usize>>>()
        };
        let columns = [
            "123321412...",
            "1233224125.3",
            ".3332342251.",
            "12332441251.",
        ]
        .map(column);
        let columns: Vec<&[Option<usize>]> = columns.iter().map(Vec::as_slice).collect();
        CountTable::from_raters(5, &columns).unwrap()
    }

    #[test]
    fn krippendorffs_own_example() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let table = krippendorff_2011();
        let alpha = |metric| krippendorff_alpha(&table, metric).unwrap();
        // The values that he prints: .743, .815, .849, .797.
        assert!(
            (alpha(Metric::Nominal) - 0.743).abs() < 5e-4,
            "{}",
            alpha(Metric::Nominal)
        );
        assert!(
            (alpha(Metric::Ordinal) - 0.815).abs() < 5e-4,
            "{}",
            alpha(Metric::Ordinal)
        );
        assert!(
            (alpha(Metric::Interval(&values)) - 0.849).abs() < 5e-4,
            "{}",
            alpha(Metric::Interval(&values))
        );
        assert!(
            (alpha(Metric::Ratio(&values)) - 0.797).abs() < 5e-4,
            "{}",
            alpha(Metric::Ratio(&values))
        );
    }

    #[test]
    fn degenerate_tables_have_a_reason() {
        let of = |counts: Vec<u32>, metric| {
            krippendorff_alpha(&CountTable::new(2, counts).unwrap(), metric)
        };
        assert_eq!(
            of(vec![2, 0, 3, 0], Metric::Nominal),
            Err(Undefined::OneLabel)
        );
        assert_eq!(
            of(vec![1, 0, 0, 1], Metric::Nominal),
            Err(Undefined::NoPairs)
        );
        assert_eq!(of(vec![], Metric::Ordinal), Err(Undefined::NoPairs));
        assert_eq!(
            of(vec![1, 1], Metric::Interval(&[2.0, 2.0])),
            Err(Undefined::OneLabel)
        );
        assert!(of(vec![1, 1], Metric::Interval(&[2.0])).is_err());
        assert!(of(vec![1, 1], Metric::Ratio(&[-1.0, 2.0])).is_err());
        assert!(of(vec![1, 1], Metric::Interval(&[f64::NAN, 2.0])).is_err());
        assert_eq!(of(vec![2, 0, 0, 2], Metric::Nominal), Ok(1.0));
    }
}

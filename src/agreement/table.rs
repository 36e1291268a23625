//! Owns the two shapes in which several people's labels arrive: counts per item, and pairs.
//! Must not know what the labels mean.

use super::{Undefined, same_length};

/// Per item, how many raters chose each label. Raters may be missing, and differ between items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTable {
    labels: usize,
    counts: Vec<u32>,
}

impl CountTable {
    /// A table from counts in row order, `labels` per item.
    ///
    /// # Errors
    /// No labels, or counts that do not fill the last row.
    pub fn new(labels: usize, counts: Vec<u32>) -> Result<CountTable, Undefined> {
        if labels == 0 {
            return Err(Undefined::Empty("labels"));
        }
        same_length("last row of counts", counts.len() % labels, 0)?;
        Ok(CountTable { labels, counts })
    }

    /// A table from one column per rater; `None` is a missing rating.
    ///
    /// # Errors
    /// No labels, columns of different lengths, a label beyond `labels`.
    pub fn from_raters(
        labels: usize,
        raters: &[&[Option<usize>]],
    ) -> Result<CountTable, Undefined> {
        let items = raters.first().map_or(0, |column| column.len());
        let mut counts = vec![0; items * labels];
        for column in raters {
            same_length("column of a rater", column.len(), items)?;
            for (item, label) in column.iter().enumerate() {
                let Some(label) = *label else { continue };
                check_label(label, labels)?;
                counts[item * labels + label] += 1;
            }
        }
        CountTable::new(labels, counts)
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The counts of each item.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.counts.chunks_exact(self.labels)
    }

    /// The table of some of its items, repeats allowed (a resample); unknown items are skipped.
    pub fn select(&self, items: &[usize]) -> CountTable {
        let rows = items
            .iter()
            .filter_map(|&i| self.counts.get(i * self.labels..(i + 1) * self.labels));
        CountTable {
            labels: self.labels,
            counts: rows.flatten().copied().collect(),
        }
    }
}

/// How often label `row` of one rater met label `column` of another. With people in the rows and a
/// judge in the columns it is the usual confusion matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    labels: usize,
    counts: Vec<u64>,
}

impl Confusion {
    /// A matrix from counts in row order.
    ///
    /// # Errors
    /// No labels, or a number of counts other than `labels²`.
    pub fn new(labels: usize, counts: Vec<u64>) -> Result<Confusion, Undefined> {
        if labels == 0 {
            return Err(Undefined::Empty("labels"));
        }
        same_length("confusion matrix", counts.len(), labels * labels)?;
        Ok(Confusion { labels, counts })
    }

    /// A matrix from two columns of labels; items that lack either are left out.
    ///
    /// # Errors
    /// No labels, columns of different lengths, a label beyond `labels`.
    pub fn from_pairs(
        labels: usize,
        rows: &[Option<usize>],
        columns: &[Option<usize>],
    ) -> Result<Confusion, Undefined> {
        same_length("second column of labels", columns.len(), rows.len())?;
        let mut matrix = Confusion::new(labels, vec![0; labels * labels])?;
        for (row, column) in rows.iter().zip(columns) {
            if let (Some(row), Some(column)) = (*row, *column) {
                check_label(row, labels)?;
                check_label(column, labels)?;
                matrix.counts[row * labels + column] += 1;
            }
        }
        Ok(matrix)
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How often `row` met `column`; 0 beyond the matrix.
    pub fn count(&self, row: usize, column: usize) -> u64 {
        if column >= self.labels {
            return 0;
        }
        self.counts
            .get(row * self.labels + column)
            .copied()
            .unwrap_or(0)
    }

    /// Number of pairs.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Sums of the rows: how often the first rater used each label.
    pub fn row_sums(&self) -> Vec<f64> {
        self.counts
            .chunks_exact(self.labels)
            .map(|row| row.iter().sum::<u64>() as f64)
            .collect()
    }

    /// Sums of the columns: how often the second rater used each label.
    pub fn column_sums(&self) -> Vec<f64> {
        (0..self.labels)
            .map(|c| (0..self.labels).map(|r| self.count(r, c)).sum::<u64>() as f64)
            .collect()
    }

    /// The matrix with the raters' roles exchanged.
    pub fn transposed(&self) -> Confusion {
        let places = (0..self.labels).flat_map(|c| (0..self.labels).map(move |r| (r, c)));
        Confusion {
            labels: self.labels,
            counts: places.map(|(r, c)| self.count(r, c)).collect(),
        }
    }

    /// All counts, row by row.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

fn check_label(label: usize, labels: usize) -> Result<(), Undefined> {
    if label < labels {
        Ok(())
    } else {
        Err(Undefined::UnknownLabel { label, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_pairs() {
        let a = [Some(0), Some(1), None, Some(1)];
        let b = [Some(0), Some(0), Some(1), Some(1)];
        let table = CountTable::from_raters(2, &[&a, &b]).unwrap();
        assert_eq!(
            table.items().collect::<Vec<_>>(),
            [[2, 0], [1, 1], [0, 1], [0, 2]]
        );
        assert_eq!(
            table.select(&[3, 3, 9]).items().collect::<Vec<_>>(),
            [[0, 2], [0, 2]]
        );
        let matrix = Confusion::from_pairs(2, &a, &b).unwrap();
        assert_eq!(matrix.counts(), [1, 0, 1, 1]);
        assert_eq!(matrix.transposed().counts(), [1, 1, 0, 1]);
        assert_eq!(
            (matrix.row_sums(), matrix.column_sums()),
            (vec![1.0, 2.0], vec![2.0, 1.0])
        );
        assert_eq!(matrix.count(0, 2), 0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(CountTable::new(0, vec![]).is_err() && CountTable::new(2, vec![1]).is_err());
        assert!(CountTable::from_raters(2, &[&[Some(2)]]).is_err());
        assert!(CountTable::from_raters(2, &[&[Some(1)], &[]]).is_err());
        assert!(Confusion::from_pairs(2, &[Some(0)], &[Some(5)]).is_err());
        assert!(Confusion::new(2, vec![1]).is_err());
    }
}

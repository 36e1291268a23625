//! Owns a share of rows and a mean of rows, each with n and an interval. Must not know what is
//! counted.

use serde::Serialize;

use crate::agreement::interval::{clopper_pearson, clustered_share, mean_interval, wilson};

/// Below this number of rows the interval of a share is exact (Clopper and Pearson).
const FEW: usize = 30;

/// A share with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Rows that count.
    pub hits: usize,
    /// All rows.
    pub n: usize,
    /// `hits / n`; absent without rows.
    pub share: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl Share {
    /// A share of independent rows: Wilson's interval, exact below 30 rows.
    pub fn new(hits: usize, n: usize, level: f64) -> Self {
        let interval = if n < FEW {
            clopper_pearson(hits as f64, n, level)
        } else {
            wilson(hits as f64, n, level)
        };
        Self {
            hits,
            n,
            share: (n > 0).then(|| hits as f64 / n as f64),
            low: interval.as_ref().ok().map(|i| i.low),
            high: interval.ok().map(|i| i.high),
        }
    }

    /// A share of rows that depend on each other within a cluster.
    pub fn clustered(hit: &[bool], cluster: &[usize], level: f64) -> Self {
        let hits = hit.iter().filter(|h| **h).count();
        let values: Vec<f64> = hit.iter().map(|h| f64::from(u8::from(*h))).collect();
        let interval = clustered_share(&values, cluster, level);
        Self {
            low: interval.as_ref().ok().map(|i| i.low),
            high: interval.ok().map(|i| i.high),
            ..Self::new(hits, hit.len(), level)
        }
    }
}

/// A mean of values on a scale, with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// Values.
    pub n: usize,
    /// Their mean; absent without values.
    pub mean: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl Mean {
    /// The mean of values between two ends of a scale.
    pub fn new(values: &[f64], ends: (f64, f64), level: f64) -> Self {
        let (from, to) = ends;
        let unit: Vec<f64> = values.iter().map(|v| (v - from) / (to - from)).collect();
        let back = |x: f64| from + x * (to - from);
        let interval = mean_interval(&unit, level).ok();
        Self {
            n: values.len(),
            mean: (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
            low: interval.map(|i| back(i.low)),
            high: interval.map(|i| back(i.high)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_cluster_widen_the_interval() {
        // statsmodels.stats.proportion.proportion_confint(15, 100, method="wilson").
        let apart = Share::new(15, 100, 0.95);
        assert!((apart.low.unwrap() - 0.09305985283656629).abs() < 1e-9);
        let hit: Vec<bool> = (0..100).map(|i| i < 15).collect();
        let whole: Vec<usize> = (0..100).map(|i| i / 15).collect();
        let rows: Vec<usize> = (0..100).collect();
        let together = Share::clustered(&hit, &whole, 0.95);
        assert_eq!((together.hits, together.n), (15, 100));
        assert!(
            together.high.unwrap() > apart.high.unwrap() + 0.1,
            "{together:?}"
        );
        let independent = Share::clustered(&hit, &rows, 0.95);
        assert!((independent.high.unwrap() - apart.high.unwrap()).abs() < 0.02);
    }

    #[test]
    fn nothing_is_no_share() {
        let none = Share::new(0, 0, 0.95);
        assert_eq!((none.share, none.low, none.high), (None, None, None));
        assert_eq!(Share::clustered(&[], &[], 0.95), none);
        assert_eq!(Mean::new(&[], (-1.0, 4.0), 0.95).mean, None);
        // All equal: the mean is the value, the interval has a width.
        let m = Mean::new(&[4.0; 10], (-1.0, 4.0), 0.95);
        assert!(m.mean == Some(4.0) && m.low.unwrap() < 4.0 && m.high == Some(4.0));
    }
}

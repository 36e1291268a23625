//! Owns correlations of two measurements of the same things, with intervals.
//! Must not know what was measured.

use super::tail::normal_quantile;
use super::{Interval, Stat, Undefined, all_within, mean, rate, same_length, within};

/// Fewest pairs that give Fisher's interval a width: its variance is 1 / (n - 3).
pub const LEAST_PAIRS: usize = 4;

/// Pearson's product-moment correlation.
///
/// # Errors
/// Inputs of different lengths, fewer than two pairs, a value that is not finite, or one input that
/// does not vary.
pub fn pearson(x: &[f64], y: &[f64]) -> Stat {
    same_length("y", y.len(), x.len())?;
    all_within("x", x, f64::MIN, f64::MAX)?;
    all_within("y", y, f64::MIN, f64::MAX)?;
    if x.len() < 2 {
        return Err(Undefined::TooFew {
            what: "pairs",
            have: x.len(),
            need: 2,
        });
    }
    let (mx, my) = (mean(x)?, mean(y)?);
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (a, b) in x.iter().zip(y) {
        xy += (a - mx) * (b - my);
        xx += (a - mx) * (a - mx);
        yy += (b - my) * (b - my);
    }
    if xx <= 0.0 || yy <= 0.0 {
        return Err(Undefined::Empty("differences among the values"));
    }
    Ok((xy / (xx.sqrt() * yy.sqrt())).clamp(-1.0, 1.0))
}

/// Spearman's rank correlation: Pearson's of the ranks, tied values sharing the mean of theirs.
///
/// # Errors
/// As [`pearson`].
pub fn spearman(x: &[f64], y: &[f64]) -> Stat {
    same_length("y", y.len(), x.len())?;
    all_within("x", x, f64::MIN, f64::MAX)?;
    all_within("y", y, f64::MIN, f64::MAX)?;
    pearson(&ranks(x), &ranks(y))
}

/// Ranks from 1, ascending; tied values share the mean of the ranks that they take up.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut out = vec![0.0; values.len()];
    let mut at = 0;
    while at < order.len() {
        let same = order[at..]
            .iter()
            .take_while(|&&i| values[i] == values[order[at]])
            .count();
        let shared = at as f64 + (same as f64 + 1.0) / 2.0;
        order[at..at + same].iter().for_each(|&i| out[i] = shared);
        at += same;
    }
    out
}

/// Which correlation an interval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correlation {
    /// [`pearson`].
    Pearson,
    /// [`spearman`].
    Spearman,
}

/// Fisher's interval (1921): `atanh r` has a variance of 1 / (n - 3), and of (1 + r²/2) / (n - 3) for
/// ranks (Bonett and Wright 2000). A correlation of 1 or -1 gives an end at itself alone; its other
/// end is taken at half a step of the n(n-1)/2 orders from it, since `atanh 1` is infinite.
///
/// # Errors
/// Fewer than [`LEAST_PAIRS`] pairs, a correlation outside -1 to 1, a level outside (0, 1).
pub fn fisher(
    r: f64,
    n: usize,
    correlation: Correlation,
    level: f64,
) -> Result<Interval, Undefined> {
    within("correlation", r, -1.0, 1.0)?;
    rate("level", level)?;
    if n < LEAST_PAIRS {
        return Err(Undefined::TooFew {
            what: "pairs for an interval",
            have: n,
            need: LEAST_PAIRS,
        });
    }
    let factor = match correlation {
        Correlation::Pearson => 1.0,
        Correlation::Spearman => 1.0 + r * r / 2.0,
    };
    let half = normal_quantile(0.5 + level / 2.0) * (factor / (n as f64 - 3.0)).sqrt();
    // A perfect correlation, up to rounding.
    let perfect = 1.0 - r.abs() < 1e-9;
    let step = 1.0 / (n as f64 * (n as f64 - 1.0));
    let z = match perfect {
        true => (r.signum() * (1.0 - step)).atanh(),
        false => r.atanh(),
    };
    Ok(Interval {
        low: if perfect && r < 0.0 {
            -1.0
        } else {
            (z - half).tanh()
        },
        high: if perfect && r > 0.0 {
            1.0
        } else {
            (z + half).tanh()
        },
        level,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }

    const X: [f64; 8] = [0.12, 0.4, 0.33, 0.08, 0.61, 0.33, 0.27, 0.5];
    const Y: [f64; 8] = [0.31, 0.2, 0.28, 0.4, 0.05, 0.21, 0.33, 0.2];

    // scipy.stats.pearsonr(X, Y), its confidence_interval(.95), spearmanr(X, Y); see
    // tests/reference/evaluation.py.
    #[test]
    fn against_scipy() {
        let r = pearson(&X, &Y).unwrap();
        near(r, -0.9216695878362886);
        let i = fisher(r, 8, Correlation::Pearson, 0.95).unwrap();
        near(i.low, -0.9859754875225931);
        near(i.high, -0.6190629355619733);
        near(spearman(&X, &Y).unwrap(), -0.9638554216867469);
    }

    #[test]
    fn ties_share_their_ranks_and_what_does_not_vary_has_no_correlation() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert!(pearson(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]).is_err());
        assert!(pearson(&[1.0], &[1.0]).is_err() && pearson(&[1.0], &[]).is_err());
        assert!(fisher(0.5, 3, Correlation::Pearson, 0.95).is_err());
        let perfect = fisher(1.0, 5, Correlation::Spearman, 0.95).unwrap();
        assert!(perfect.high == 1.0 && perfect.low < 0.95, "{perfect:?}");
        let rounded = fisher(1.0 - 4e-16, 5, Correlation::Spearman, 0.95).unwrap();
        near(rounded.low, perfect.low);
        assert_eq!(rounded.high, 1.0);
        // A strong one that is not perfect lies in its own interval.
        let strong = fisher(0.999, 5, Correlation::Pearson, 0.95).unwrap();
        assert!(strong.contains(0.999) && strong.low > 0.98, "{strong:?}");
    }
}

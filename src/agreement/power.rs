//! Owns sample sizes: how many labelled items a claim needs, before any call is paid for.
//! Must not know which claim a run makes.

use super::tail::{binomial_at_most, normal_quantile};
use super::{Undefined, rate, within};

/// The largest number of items that a search goes up to.
pub const MOST_ITEMS: usize = 2_000_000;

/// The smallest number of items with which not a single disagreement certifies "below `threshold`"
/// at error rate `alpha`: `ceil(ln alpha / ln(1 - threshold))`. With fewer, no result can pass.
///
/// # Errors
/// A threshold or an error rate outside (0, 1); more than [`MOST_ITEMS`].
pub fn zero_error_items(threshold: f64, alpha: f64) -> Result<usize, Undefined> {
    rate("threshold", threshold)?;
    rate("alpha", alpha)?;
    // A hair less, so that rounding of an exact ratio does not ask for one more.
    let items = (alpha.ln() / (-threshold).ln_1p() - 1e-9).ceil().max(1.0);
    if items > MOST_ITEMS as f64 {
        Err(Undefined::OutOfReach(MOST_ITEMS))
    } else {
        Ok(items as usize)
    }
}

/// Probability that `n` items with a true rate of `expected` certify "below `threshold`" by the exact
/// one-sided bound of Clopper and Pearson at error rate `alpha`.
///
/// # Errors
/// Rates outside (0, 1) (`expected` may be 0); no items.
pub fn certify_power(
    n: usize,
    threshold: f64,
    expected: f64,
    alpha: f64,
) -> Result<f64, Undefined> {
    rate("threshold", threshold)?;
    rate("alpha", alpha)?;
    within("expected rate", expected, 0.0, 1.0)?;
    if n == 0 {
        return Err(Undefined::Empty("items"));
    }
    let passing = most_misses(n, threshold, alpha)?;
    Ok(passing.map_or(0.0, |misses| binomial_at_most(misses, n as u64, expected)))
}

/// The largest number of disagreements among `n` items that still certifies "below `threshold`" at
/// error rate `alpha`; `None` where not even 0 do.
///
/// # Errors
/// Rates outside (0, 1).
pub fn most_misses(n: usize, threshold: f64, alpha: f64) -> Result<Option<u64>, Undefined> {
    rate("threshold", threshold)?;
    rate("alpha", alpha)?;
    let n = n as u64;
    let passes = |errors: u64| binomial_at_most(errors, n, threshold) <= alpha;
    if n == 0 || !passes(0) {
        return Ok(None);
    }
    let (mut good, mut bad) = (0, n);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if passes(middle) {
            good = middle
        } else {
            bad = middle
        }
    }
    Ok(Some(good))
}

/// Items (per locale) that certify "disagreement below `threshold`" at error rate `alpha` with
/// probability `power`, if the true rate is `expected`. Exact for 0/1 disagreements. More items can be
/// slightly less likely to pass, because counts are whole; the answer is the smallest number from
/// which the next ones up to 5 % more pass as well.
///
/// # Errors
/// Rates outside (0, 1); an expected rate not below the threshold; more than [`MOST_ITEMS`].
pub fn items_to_certify(
    threshold: f64,
    expected: f64,
    alpha: f64,
    power: f64,
) -> Result<usize, Undefined> {
    rate("power", power)?;
    within("expected rate", expected, 0.0, threshold)?;
    let start = zero_error_items(threshold, alpha)?;
    let enough = |n: usize| certify_power(n, threshold, expected, alpha).map(|p| p >= power);
    // Double to a number that is safely enough, then walk back over the saw teeth.
    let mut high = start;
    while !steady(high, &enough)? {
        high *= 2;
        if high > MOST_ITEMS {
            return Err(Undefined::OutOfReach(MOST_ITEMS));
        }
    }
    let mut low = (high / 2).max(start).min(high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if steady(middle, &enough)? {
            high = middle
        } else {
            low = middle
        }
    }
    Ok(if steady(low, &enough)? { low } else { high })
}

/// Whether `n` and up to 40 numbers spread over the next 5 % are all enough.
fn steady(n: usize, enough: &impl Fn(usize) -> Result<bool, Undefined>) -> Result<bool, Undefined> {
    let step = (n / 800).max(1);
    for i in 0..=(n / 20 / step).max(1) {
        if !enough(n + i * step)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Items that detect a gain between two paired judges by McNemar's test, two-sided at `alpha`, with
/// probability `power`: `better` is the share of items that only the new judge gets right, `worse` the
/// share that only the old one does. Formula of Connor (1987):
/// `n = (z_a sqrt(d) + z_b sqrt(d - g²))² / g²` with `d = better + worse`, `g = better - worse`.
///
/// # Errors
/// Shares outside 0 to 1 or with a sum above 1; no gain; rates outside (0, 1).
pub fn items_to_detect(
    better: f64,
    worse: f64,
    alpha: f64,
    power: f64,
) -> Result<usize, Undefined> {
    rate("alpha", alpha)?;
    rate("power", power)?;
    within("share of worse items", worse, 0.0, 1.0)?;
    within("share of better items", better, worse, 1.0)?;
    let (moved, gain) = (better + worse, better - worse);
    within("share of items that change", moved, 0.0, 1.0)?;
    let (za, zb) = (normal_quantile(1.0 - alpha / 2.0), normal_quantile(power));
    let items = ((za * moved.sqrt() + zb * (moved - gain * gain).max(0.0).sqrt()) / gain)
        .powi(2)
        .ceil();
    if items.is_finite() && items <= MOST_ITEMS as f64 {
        Ok(items.max(1.0) as usize)
    } else {
        Err(Undefined::OutOfReach(MOST_ITEMS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wrong_in_59_certifies_5_percent() {
        // The classic number of auditing: .95^59 < .05 < .95^58.
        assert_eq!(zero_error_items(0.05, 0.05), Ok(59));
        assert_eq!(zero_error_items(0.1, 0.05), Ok(29));
        assert_eq!(zero_error_items(0.5, 0.25), Ok(2));
        assert!(zero_error_items(0.0, 0.05).is_err() && zero_error_items(1e-9, 0.05).is_err());
    }

    #[test]
    fn certifying_matches_the_binomial() {
        // 59 items pass only without errors: (1-p)^59.
        assert!((certify_power(59, 0.05, 0.01, 0.05).unwrap() - 0.99f64.powi(59)).abs() < 1e-12);
        assert_eq!(certify_power(58, 0.05, 0.0, 0.05), Ok(0.0));
        assert_eq!(items_to_certify(0.05, 0.0, 0.05, 0.8), Ok(59));
        let n = items_to_certify(0.2, 0.1, 0.05, 0.8).unwrap();
        assert!(certify_power(n, 0.2, 0.1, 0.05).unwrap() >= 0.8);
        assert!((70..110).contains(&n), "{n}");
        assert!(items_to_certify(0.2, 0.2, 0.05, 0.8).is_err());
        assert!(items_to_certify(0.2, 0.3, 0.05, 0.8).is_err());
    }

    #[test]
    fn detecting_a_gain() {
        // d = .3, g = .1: (1.959964 sqrt(.3) + .841621 sqrt(.29))² / .01 = 233.09.
        assert_eq!(items_to_detect(0.2, 0.1, 0.05, 0.8), Ok(234));
        assert!(items_to_detect(0.1, 0.1, 0.05, 0.8).is_err());
        assert!(items_to_detect(0.1, 0.2, 0.05, 0.8).is_err());
        assert!(items_to_detect(0.8, 0.3, 0.05, 0.8).is_err());
    }
}

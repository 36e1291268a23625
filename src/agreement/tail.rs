//! Owns quantiles and tail probabilities, found by bisection where a closed form would lose digits.
//! Must not know what they are used for.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::beta::beta_reg;

/// Finds where an increasing condition turns true between `low` and `high`, to the last bit.
pub(crate) fn bisect(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Probability that a standard normal variable is below `x`.
pub(crate) fn normal_below(x: f64) -> f64 {
    Normal::standard().cdf(x)
}

/// The value below which a standard normal variable falls with probability `p` in (0, 1).
pub(crate) fn normal_quantile(p: f64) -> f64 {
    Normal::standard().inverse_cdf(p)
}

/// Regularised incomplete beta function, for finite `a`, `b` > 0 and `x` in 0..=1.
pub(crate) fn beta_below(a: f64, b: f64, x: f64) -> f64 {
    beta_reg(a, b, x.clamp(0.0, 1.0))
}

/// The value below which a beta variable falls with probability `p`.
pub(crate) fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    bisect(0.0, 1.0, |x| beta_below(a, b, x) >= p)
}

/// Probability of at most `k` successes in `n` trials of probability `p`.
pub(crate) fn binomial_at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n {
        1.0
    } else {
        beta_below((n - k) as f64, k as f64 + 1.0, 1.0 - p)
    }
}

/// Probability that Student's t with `df` degrees of freedom is below `t`.
pub(crate) fn t_below(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 1.0 } else { 0.0 };
    }
    let tail = 0.5 * beta_below(df / 2.0, 0.5, df / (df + t * t));
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The value below which Student's t falls with probability `p` in (0, 1).
pub(crate) fn t_quantile(p: f64, df: f64) -> f64 {
    // Past a million degrees the two distributions agree to six digits, and bisection is slower.
    if df > 1e6 {
        return normal_quantile(p);
    }
    let upper = p.max(1.0 - p);
    let mut bound = 2.0;
    while t_below(bound, df) < upper && bound < 1e300 {
        bound *= 2.0;
    }
    let t = bisect(0.0, bound, |t| t_below(t, df) >= upper);
    if p < 0.5 { -t } else { t }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Values of scipy.stats 1.12 (norm.ppf, beta.ppf, binom.cdf, t.cdf, t.ppf).
    #[test]
    fn against_scipy() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-10, "{a} {b}");
        near(normal_quantile(0.975), 1.959963984540054);
        near(t_quantile(0.975, 9.0), 2.2621571627409915);
        near(t_quantile(0.025, 9.0), -2.2621571627409915);
        near(t_below(1.5, 9.0), 0.9160746719714626);
        near(binomial_at_most(3, 20, 0.2), 0.41144886195656893);
        near(beta_quantile(3.0, 8.0, 0.05), 0.08726443391415033);
    }
}

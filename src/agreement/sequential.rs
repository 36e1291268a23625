//! Owns decisions that are looked at more than once: alpha spending, and a test by betting that
//! stays valid however often one looks. Must not know who looks.

use super::interval::log_mean_exp;
use super::tail::bisect;
use super::{Stat, Undefined, rate, within};

/// The share of an error rate that look number `look` (from 1) may use: `alpha · 6 / (π² look²)`.
/// The shares of all looks, however many, add up to `alpha`. Look 0 gets nothing.
pub fn spend(alpha: f64, look: u32) -> f64 {
    if look == 0 {
        return 0.0;
    }
    let k = f64::from(look);
    alpha * 6.0 / (std::f64::consts::PI * std::f64::consts::PI * k * k)
}

/// Fractions of its wealth that the gambler stakes, from timid to bold.
const STAKES: [f64; 8] = [0.01, 0.03, 0.06, 0.12, 0.2, 0.35, 0.55, 0.85];

/// A gambler who bets that the mean of paired differences in `[-1, 1]` is above 0, one difference
/// at a time (Waudby-Smith and Ramdas 2024). Its wealth has expectation at most 1 if the mean is not
/// above 0, so it ever reaches `1/alpha` with probability at most `alpha`: the test may be read after
/// every difference, and stopped at will, without a correction.
///
/// The bets are a fixed mixture of stakes: against "the mean is at most `m`", wealth is the mean over
/// stakes `s` of `Π (1 + s (d - m) / (1 + m))`.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedBet {
    diffs: Vec<f64>,
    logs: [f64; STAKES.len()],
    best: f64,
}

impl Default for PairedBet {
    fn default() -> Self {
        PairedBet {
            diffs: Vec::new(),
            logs: [0.0; STAKES.len()],
            best: 0.0,
        }
    }
}

impl PairedBet {
    /// A gambler with wealth 1 and no bets so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next difference (positive is a gain).
    ///
    /// # Errors
    /// A difference outside `[-1, 1]`; it is not counted.
    pub fn push(&mut self, diff: f64) -> Result<(), Undefined> {
        within("difference", diff, -1.0, 1.0)?;
        self.diffs.push(diff);
        bet(&mut self.logs, diff, 0.0);
        self.best = self.best.max(log_mean_exp(&self.logs));
        Ok(())
    }

    /// Number of differences so far.
    pub fn len(&self) -> usize {
        self.diffs.len()
    }

    /// Whether no difference was added yet.
    pub fn is_empty(&self) -> bool {
        self.diffs.is_empty()
    }

    /// Wealth now: evidence (an e-value) against "the mean is not above 0".
    pub fn wealth(&self) -> f64 {
        log_mean_exp(&self.logs).exp()
    }

    /// The p-value at this moment, valid at any moment: 1 over the largest wealth so far.
    pub fn p_value(&self) -> f64 {
        (-self.best).exp().min(1.0)
    }

    /// A lower bound for the mean that holds at all moments together with probability `1 - alpha`.
    /// It is -1 before anything is known.
    ///
    /// # Errors
    /// `alpha` outside (0, 1).
    pub fn lower_bound(&self, alpha: f64) -> Stat {
        rate("alpha", alpha)?;
        // Wealth against "at most m" falls as m grows: the bound is where it last reaches 1/alpha.
        let kept = |m: f64| {
            let mut logs = [0.0; STAKES.len()];
            !self.diffs.iter().any(|&d| {
                bet(&mut logs, d, m);
                log_mean_exp(&logs) >= -alpha.ln()
            })
        };
        if kept(-1.0 + 1e-9) {
            return Ok(-1.0);
        }
        Ok(bisect(-1.0 + 1e-9, 1.0, kept).min(1.0))
    }
}

fn bet(logs: &mut [f64; STAKES.len()], diff: f64, m: f64) {
    for (log, stake) in logs.iter_mut().zip(STAKES) {
        *log += (stake * (diff - m) / (1.0 + m)).ln_1p();
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::{stream, unit};
    use super::*;

    #[test]
    fn spending_adds_up() {
        let total: f64 = (1..200_000).map(|k| spend(0.05, k)).sum();
        assert!((total - 0.05).abs() < 1e-6);
        assert!((spend(0.05, 1) - 0.0303963550927).abs() < 1e-12);
        assert_eq!(spend(0.05, 0), 0.0);
    }

    #[test]
    fn wealth_by_hand() {
        let mut gambler = PairedBet::new();
        assert_eq!(
            (gambler.p_value(), gambler.lower_bound(0.05)),
            (1.0, Ok(-1.0))
        );
        gambler.push(1.0).unwrap();
        // Mean of 1 + stake: 1 + 2.17/8.
        assert!((gambler.wealth() - 1.27125).abs() < 1e-12);
        gambler.push(-1.0).unwrap();
        assert!(gambler.wealth() < 1.0);
        assert!((gambler.p_value() - 1.0 / 1.27125).abs() < 1e-12);
        assert!(gambler.push(1.5).is_err() && gambler.push(f64::NAN).is_err());
        assert_eq!(gambler.len(), 2);
    }

    #[test]
    fn a_clear_gain_is_seen_and_bounded() {
        let mut gambler = PairedBet::new();
        for i in 0..200 {
            gambler.push(if i % 2 == 0 { 1.0 } else { 0.0 }).unwrap();
        }
        assert!(gambler.p_value() < 1e-6);
        let low = gambler.lower_bound(0.05).unwrap();
        assert!((0.3..0.5).contains(&low), "{low}");
    }

    #[test]
    fn looking_after_every_difference_keeps_the_error_rate() {
        // 400 streams of 300 fair coin flips: at most 5 % may ever seem a gain.
        let ever = (0..400)
            .filter(|&s| {
                let mut rng = stream(11, s);
                let mut gambler = PairedBet::new();
                for _ in 0..300 {
                    let u = unit(&mut rng);
                    gambler
                        .push(if u < 0.1 {
                            -1.0
                        } else if u < 0.2 {
                            1.0
                        } else {
                            0.0
                        })
                        .unwrap();
                }
                gambler.p_value() <= 0.05
            })
            .count();
        assert!(ever <= 20, "{ever} of 400");
    }
}

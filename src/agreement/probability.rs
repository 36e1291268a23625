//! Owns scores for verdicts with label probabilities, each for one item against a target
//! distribution (one label, or the shares of its votes). Must not know how probabilities were read.

use super::{Stat, Undefined, all_within, same_length, within};

/// How far a sum of probabilities may be from 1 before it is refused.
const SUM_TOLERANCE: f64 = 1e-6;

fn check(probs: &[f64], target: &[f64]) -> Result<(), Undefined> {
    same_length("target distribution", target.len(), probs.len())?;
    for (what, values) in [("probabilities", probs), ("target shares", target)] {
        all_within(what, values, 0.0, 1.0 + SUM_TOLERANCE)?;
        within(
            "sum of probabilities",
            values.iter().sum(),
            1.0 - SUM_TOLERANCE,
            1.0 + SUM_TOLERANCE,
        )?;
    }
    Ok(())
}

/// Cross-entropy `-Σ target ln(prob)` in nats. A probability of 0 counts as the smallest step of a
/// double (2.2e-16, as scikit-learn does), so that one sure miss costs 36 nats and not infinity.
///
/// # Errors
/// Inputs of different lengths, or which are not distributions.
pub fn log_loss(probs: &[f64], target: &[f64]) -> Stat {
    check(probs, target)?;
    let loss: f64 = probs
        .iter()
        .zip(target)
        .map(|(&p, &t)| -t * p.clamp(f64::EPSILON, 1.0).ln())
        .sum();
    Ok(loss.max(0.0))
}

/// Brier's score `Σ (prob - target)²` over all labels, 0 to 2 (Brier 1950). For two labels it is
/// twice the score of the positive label alone.
///
/// # Errors
/// Inputs of different lengths, or which are not distributions.
pub fn brier(probs: &[f64], target: &[f64]) -> Stat {
    check(probs, target)?;
    Ok(probs
        .iter()
        .zip(target)
        .map(|(p, t)| (p - t) * (p - t))
        .sum())
}

/// Ranked probability score for ordered labels: the squared differences of the cumulative
/// distributions, divided by the number of steps, 0 to 1 (Epstein 1969).
///
/// # Errors
/// Inputs of different lengths, which are not distributions, or with fewer than two labels.
pub fn ranked_probability_score(probs: &[f64], target: &[f64]) -> Stat {
    check(probs, target)?;
    if probs.len() < 2 {
        return Err(Undefined::TooFew {
            what: "labels",
            have: probs.len(),
            need: 2,
        });
    }
    let (mut gap, mut sum) = (0.0, 0.0);
    for (p, t) in probs.iter().zip(target).take(probs.len() - 1) {
        gap += p - t;
        sum += gap * gap;
    }
    Ok(sum / (probs.len() - 1) as f64)
}

/// Expected calibration error over items: the mean distance between confidence and correctness
/// in `bins` bins of equal width, weighted by their items (Naeini et al. 2015). `confidence` is the
/// probability of the chosen label, `correct` 0 or 1, or the share of votes for that label. A
/// confidence on an edge belongs to the bin below it.
///
/// # Errors
/// No items, no bins, inputs of different lengths or outside 0 to 1.
pub fn expected_calibration_error(confidence: &[f64], correct: &[f64], bins: usize) -> Stat {
    same_length("correctness", correct.len(), confidence.len())?;
    all_within("confidences", confidence, 0.0, 1.0)?;
    all_within("correctness", correct, 0.0, 1.0)?;
    if bins == 0 {
        return Err(Undefined::Empty("bins"));
    }
    let mut gaps = vec![0.0; bins];
    for (&c, &y) in confidence.iter().zip(correct) {
        let bin = ((c * bins as f64).ceil() as usize).clamp(1, bins) - 1;
        gaps[bin] += c - y;
    }
    Ok(gaps.iter().map(|g| g.abs()).sum::<f64>() / confidence.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert!(
            (log_loss(&[0.25, 0.75], &[0.0, 1.0]).unwrap() - (4.0f64 / 3.0).ln()).abs() < 1e-15
        );
        assert!((brier(&[0.2, 0.3, 0.5], &[0.0, 0.0, 1.0]).unwrap() - 0.38).abs() < 1e-15);
        // Cumulative gaps .2 and .5 over two steps.
        assert!(
            (ranked_probability_score(&[0.2, 0.3, 0.5], &[0.0, 0.0, 1.0]).unwrap() - 0.145).abs()
                < 1e-15
        );
        let ece =
            expected_calibration_error(&[0.9, 0.9, 0.6, 0.6], &[1.0, 0.0, 1.0, 1.0], 10).unwrap();
        assert!((ece - 0.4).abs() < 1e-15);
    }

    #[test]
    fn a_sure_miss_is_finite() {
        let loss = log_loss(&[1.0, 0.0], &[0.0, 1.0]).unwrap();
        assert!((loss - 36.04365338911715).abs() < 1e-9);
        assert_eq!(log_loss(&[1.0, 0.0], &[1.0, 0.0]).unwrap(), 0.0);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        assert!(brier(&[0.5, 0.6], &[0.0, 1.0]).is_err());
        assert!(brier(&[f64::NAN, 0.6], &[0.0, 1.0]).is_err());
        assert!(brier(&[1.0], &[0.0, 1.0]).is_err());
        assert!(brier(&[], &[]).is_err());
        assert!(ranked_probability_score(&[1.0], &[1.0]).is_err());
        assert!(expected_calibration_error(&[], &[], 10).is_err());
        assert!(expected_calibration_error(&[0.5], &[1.0], 0).is_err());
    }
}

//! Owns the distance between one verdict and the votes of its item.
//! Must not know where verdicts and votes come from.
//!
//! # Policy for ties and abstentions
//! An abstention is a vote (or verdict) for a label that the scale marks as abstaining.
//!
//! | measure | votes that count | verdict abstains | tie |
//! |---|---|---|---|
//! | `majority` | all but abstentions | 1 | `1 - 1/k` when the verdict is one of `k` tied labels |
//! | `mean-votes` | all, an abstention is a label like any other | share of other votes | no ties |
//! | `ordinal`, `quadratic` | all but abstentions | 1 | no ties |
//!
//! Where every vote abstains, people have decided that the item cannot be decided: `majority`,
//! `ordinal` and `quadratic` are then 0 for a verdict that abstains and 1 for any other.
//! A failed verdict is at distance 1 under every measure. An item without votes has no distance.

use serde::{Deserialize, Serialize};

use super::{Undefined, same_length};

/// How far a verdict is from the votes of its item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// 0 where the verdict is the label that most people chose.
    Majority,
    /// The share of votes that differ from the verdict.
    MeanVotes,
    /// The mean over votes of the difference in value, in units of the scale's range.
    Ordinal,
    /// The mean over votes of the squared difference in value, in units of the squared range.
    Quadratic,
}

/// What a measure needs to know about the labels of a scale, in the order of their indices.
#[derive(Clone, Copy, Debug)]
pub struct ScaleView<'a> {
    /// Position of each label on its scale.
    pub values: &'a [f64],
    /// Whether each label means that the rater would not decide.
    pub abstain: &'a [bool],
}

/// Distance in `[0, 1]` between a verdict and the votes of its item (`votes[label]` = how many
/// people chose it); see the module's table for ties and abstentions. `None` is a failed verdict.
///
/// # Errors
/// An item without votes, inputs of different lengths, an unknown label, a value that is not finite.
pub fn disagreement(
    measure: Measure,
    scale: ScaleView,
    votes: &[u32],
    label: Option<usize>,
) -> Result<f64, Undefined> {
    same_length("values of the scale", scale.values.len(), votes.len())?;
    same_length("abstentions of the scale", scale.abstain.len(), votes.len())?;
    let total: f64 = votes.iter().map(|&v| f64::from(v)).sum();
    if total == 0.0 {
        return Err(Undefined::Empty("votes"));
    }
    let Some(label) = label else { return Ok(1.0) };
    if label >= votes.len() {
        return Err(Undefined::UnknownLabel {
            label,
            labels: votes.len(),
        });
    }
    if measure == Measure::MeanVotes {
        return Ok(1.0 - f64::from(votes[label]) / total);
    }
    let decided: f64 = counted(votes, scale.abstain).map(|(_, n)| n).sum();
    match (decided == 0.0, scale.abstain[label]) {
        (true, true) => Ok(0.0),
        (true, false) | (false, true) => Ok(1.0),
        (false, false) if measure == Measure::Majority => {
            Ok(from_majority(scale.abstain, votes, label))
        }
        (false, false) => from_values(measure, scale, votes, label, decided),
    }
}

/// The votes that do not abstain, as (label, count).
fn counted<'a>(votes: &'a [u32], abstain: &'a [bool]) -> impl Iterator<Item = (usize, f64)> + 'a {
    votes
        .iter()
        .zip(abstain)
        .enumerate()
        .filter(|(_, (_, abstains))| !**abstains)
        .map(|(l, (&n, _))| (l, f64::from(n)))
}

fn from_majority(abstain: &[bool], votes: &[u32], label: usize) -> f64 {
    let most = counted(votes, abstain).map(|(_, n)| n).fold(0.0, f64::max);
    if f64::from(votes[label]) < most {
        return 1.0;
    }
    let tied = counted(votes, abstain).filter(|&(_, n)| n == most).count();
    1.0 - 1.0 / tied as f64
}

fn from_values(
    measure: Measure,
    scale: ScaleView,
    votes: &[u32],
    label: usize,
    decided: f64,
) -> Result<f64, Undefined> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (&value, _) in scale
        .values
        .iter()
        .zip(scale.abstain)
        .filter(|(_, abstains)| !**abstains)
    {
        super::within("value of a label", value, f64::MIN, f64::MAX)?;
        (low, high) = (low.min(value), high.max(value));
    }
    if high == low {
        return Ok(0.0);
    }
    let mut sum = 0.0;
    for (other, n) in counted(votes, scale.abstain) {
        let distance = (scale.values[other] - scale.values[label]).abs() / (high - low);
        sum += n * if measure == Measure::Quadratic {
            distance * distance
        } else {
            distance
        };
    }
    Ok((sum / decided).clamp(0.0, 1.0))
}

/// The votes as shares; `None` without votes.
pub fn target_distribution(votes: &[u32]) -> Option<Vec<f64>> {
    let total: f64 = votes.iter().map(|&v| f64::from(v)).sum();
    (total > 0.0).then(|| votes.iter().map(|&v| f64::from(v) / total).collect())
}

/// What a probability of each label has to be for the label with the highest to disagree least under
/// a measure: the majority's label under `majority`, in equal parts on a tie; the shares of the
/// votes under the others. A distribution that is fitted to the shares calls an item harmless where
/// two of three people mind it and the model is half sure, so shares are no target for majorities.
/// `None` without votes, or when the two inputs differ in length.
pub fn target_of(measure: Measure, abstain: &[bool], votes: &[u32]) -> Option<Vec<f64>> {
    let shares = target_distribution(votes)?;
    if measure != Measure::Majority {
        return Some(shares);
    }
    let winners = winners(votes, abstain)?;
    let part = 1.0 / winners.len() as f64;
    Some(
        (0..votes.len())
            .map(|l| if winners.contains(&l) { part } else { 0.0 })
            .collect(),
    )
}

/// The one label that most people chose among the votes that do not abstain; where all votes
/// abstain, the abstention with most votes. `None` on a tie, without votes, or when the two
/// inputs differ in length.
pub fn majority(votes: &[u32], abstain: &[bool]) -> Option<usize> {
    match winners(votes, abstain)?.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// The labels that most people chose, among those that do not abstain where anybody decided.
fn winners(votes: &[u32], abstain: &[bool]) -> Option<Vec<usize>> {
    if votes.len() != abstain.len() {
        return None;
    }
    let decided = counted(votes, abstain).any(|(_, n)| n > 0.0);
    let eligible = || (0..votes.len()).filter(|&l| abstain[l] != decided);
    let most = eligible().map(|l| votes[l]).max().filter(|&n| n > 0)?;
    Some(eligible().filter(|&l| votes[l] == most).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    // SeeGULL's offensiveness scale: NO, O1..O4 and unsure.
    const SCALE: ScaleView = ScaleView {
        values: &[-1.0, 1.0, 2.0, 3.0, 4.0, 0.0],
        abstain: &[false, false, false, false, false, true],
    };

    fn of(measure: Measure, votes: &[u32], label: usize) -> f64 {
        disagreement(measure, SCALE, votes, Some(label)).unwrap()
    }

    #[test]
    fn majority_shares_ties_and_ignores_abstentions() {
        assert_eq!(of(Measure::Majority, &[2, 1, 0, 0, 0, 0], 0), 0.0);
        assert_eq!(of(Measure::Majority, &[2, 1, 0, 0, 0, 0], 1), 1.0);
        assert_eq!(of(Measure::Majority, &[1, 1, 0, 0, 0, 1], 1), 0.5);
        assert!((of(Measure::Majority, &[1, 1, 1, 0, 0, 0], 2) - 2.0 / 3.0).abs() < 1e-15);
        assert_eq!(of(Measure::Majority, &[1, 0, 0, 0, 0, 2], 0), 0.0);
        assert_eq!(of(Measure::Majority, &[1, 0, 0, 0, 0, 2], 5), 1.0);
    }

    #[test]
    fn only_abstentions_make_abstaining_right() {
        for measure in [
            Measure::Majority,
            Measure::Ordinal,
            Measure::Quadratic,
            Measure::MeanVotes,
        ] {
            assert_eq!(of(measure, &[0, 0, 0, 0, 0, 3], 5), 0.0, "{measure:?}");
            assert_eq!(of(measure, &[0, 0, 0, 0, 0, 3], 0), 1.0, "{measure:?}");
        }
    }

    #[test]
    fn distances_are_in_units_of_the_range() {
        // |4-3|/5 and |2-3|/5 and |3-3|/5, by hand.
        assert!((of(Measure::Ordinal, &[0, 0, 1, 1, 1, 0], 3) - 2.0 / 15.0).abs() < 1e-15);
        assert!((of(Measure::Quadratic, &[0, 0, 1, 1, 1, 0], 3) - 2.0 / 75.0).abs() < 1e-15);
        assert_eq!(of(Measure::Ordinal, &[3, 0, 0, 0, 0, 0], 4), 1.0);
        assert_eq!(of(Measure::Ordinal, &[1, 0, 0, 0, 0, 2], 0), 0.0);
        assert!((of(Measure::MeanVotes, &[1, 0, 0, 0, 0, 2], 0) - 2.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn failed_verdicts_stay_and_missing_votes_have_no_figure() {
        assert_eq!(
            disagreement(Measure::Ordinal, SCALE, &[1, 0, 0, 0, 0, 0], None),
            Ok(1.0)
        );
        assert_eq!(
            disagreement(Measure::Ordinal, SCALE, &[0; 6], None),
            Err(Undefined::Empty("votes"))
        );
        assert!(disagreement(Measure::Ordinal, SCALE, &[1, 0], Some(0)).is_err());
        assert!(disagreement(Measure::Majority, SCALE, &[1; 6], Some(6)).is_err());
    }

    #[test]
    fn majority_label() {
        let abstain = SCALE.abstain;
        assert_eq!(majority(&[2, 1, 0, 0, 0, 0], abstain), Some(0));
        assert_eq!(majority(&[1, 1, 0, 0, 0, 1], abstain), None);
        assert_eq!(majority(&[1, 0, 0, 0, 0, 2], abstain), Some(0));
        assert_eq!(majority(&[0, 0, 0, 0, 0, 3], abstain), Some(5));
        assert_eq!(majority(&[0; 6], abstain), None);
        assert_eq!(majority(&[], &[]), None);
        assert_eq!(target_distribution(&[1, 3]), Some(vec![0.25, 0.75]));
        assert_eq!(target_distribution(&[0, 0]), None);
    }

    #[test]
    fn what_is_fitted_is_what_is_measured() {
        let of = |measure, votes: &[u32]| target_of(measure, &[false, false, true], votes);
        // Two of three mind: the label is settled, the shares are not; an abstention is no label.
        assert_eq!(of(Measure::Majority, &[1, 2, 0]), Some(vec![0.0, 1.0, 0.0]));
        assert_eq!(of(Measure::Majority, &[1, 1, 1]), Some(vec![0.5, 0.5, 0.0]));
        assert_eq!(of(Measure::Majority, &[0, 0, 3]), Some(vec![0.0, 0.0, 1.0]));
        assert_eq!(
            of(Measure::MeanVotes, &[1, 1, 2]),
            Some(vec![0.25, 0.25, 0.5])
        );
        assert_eq!(of(Measure::Majority, &[0, 0, 0]), None);
        assert_eq!(target_of(Measure::Majority, &[false], &[1, 2]), None);
    }

    #[test]
    fn a_scale_of_one_deciding_label_has_no_distances() {
        let scale = ScaleView {
            values: &[1.0, 0.0],
            abstain: &[false, true],
        };
        assert_eq!(
            disagreement(Measure::Ordinal, scale, &[2, 0], Some(0)),
            Ok(0.0)
        );
        let broken = ScaleView {
            values: &[f64::NAN, 0.0],
            abstain: &[false, false],
        };
        assert!(disagreement(Measure::Ordinal, broken, &[2, 0], Some(0)).is_err());
    }
}

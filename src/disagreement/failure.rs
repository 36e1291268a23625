//! How a verdict misses the people's majority.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::data::Votes;
use crate::judge::FailureKind;
use crate::task::{Criterion, Scale};

/// How a verdict misses. Written as a word: `over-flag`, `off-by-2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FailureMode {
    /// People say the unflagged (lowest) label, the judge a higher one.
    OverFlag,
    /// The judge says the unflagged (lowest) label, people a higher one.
    UnderFlag,
    /// So many steps away on an ordinal scale, without crossing its lowest label.
    OffBy(u8),
    /// Another label than the majority's, where labels have no order.
    WrongLabel,
    /// The judge would not decide where the majority did.
    Abstained,
    /// The answer could not be read.
    Unparsable,
    /// The judge declined to answer.
    Refused,
    /// Labels that contradict each other; set by whoever sees all criteria of a verdict.
    Inconsistent,
    /// The endpoint gave up.
    Failed,
}

impl fmt::Display for FailureMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FailureMode::OverFlag => "over-flag",
            FailureMode::UnderFlag => "under-flag",
            FailureMode::OffBy(steps) => return write!(f, "off-by-{steps}"),
            FailureMode::WrongLabel => "wrong-label",
            FailureMode::Abstained => "abstained",
            FailureMode::Unparsable => "unparsable",
            FailureMode::Refused => "refused",
            FailureMode::Inconsistent => "inconsistent",
            FailureMode::Failed => "failed",
        })
    }
}

/// A text that names no failure mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no failure mode; write over-flag, under-flag, off-by-1, wrong-label, abstained, unparsable, refused, inconsistent or failed"
)]
pub struct UnknownMode(String);

impl FromStr for FailureMode {
    type Err = UnknownMode;
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Ok(match text {
            "over-flag" => FailureMode::OverFlag,
            "under-flag" => FailureMode::UnderFlag,
            "wrong-label" => FailureMode::WrongLabel,
            "abstained" => FailureMode::Abstained,
            "unparsable" => FailureMode::Unparsable,
            "refused" => FailureMode::Refused,
            "inconsistent" => FailureMode::Inconsistent,
            "failed" => FailureMode::Failed,
            other => other
                .strip_prefix("off-by-")
                .and_then(|steps| steps.parse().ok())
                .map(FailureMode::OffBy)
                .ok_or_else(|| UnknownMode(text.chars().take(60).collect()))?,
        })
    }
}

impl TryFrom<String> for FailureMode {
    type Error = UnknownMode;
    fn try_from(text: String) -> Result<Self, UnknownMode> {
        text.parse()
    }
}

impl From<FailureMode> for String {
    fn from(mode: FailureMode) -> String {
        mode.to_string()
    }
}

/// How a verdict misses the people's majority on one criterion; `None` where it agrees.
///
/// The majority is the label with most votes, abstentions included. Where several labels tie, a
/// judge that says any of them agrees, and another is measured against the nearest of them (one
/// that decides before one that abstains). Without votes only a failure is a miss. A label outside
/// the scale, or none without a stated failure, counts as unparsable.
pub fn failure_mode(
    criterion: &Criterion,
    votes: &Votes,
    label: Option<usize>,
    failure: Option<FailureKind>,
) -> Option<FailureMode> {
    match failure {
        Some(FailureKind::Unparsable) => return Some(FailureMode::Unparsable),
        Some(FailureKind::Refused) => return Some(FailureMode::Refused),
        Some(FailureKind::Endpoint) => return Some(FailureMode::Failed),
        None => {}
    }
    let Some(label) = label.filter(|&l| l < criterion.labels.len()) else {
        return Some(FailureMode::Unparsable);
    };
    let tops = majority(votes, criterion.labels.len());
    if tops.is_empty() || tops.contains(&label) {
        return None;
    }
    let abstains = |l: usize| criterion.labels[l].abstain;
    let order = ascending(criterion);
    let rank = |l: usize| order.iter().position(|&o| o == l);
    let Some(mine) = rank(label) else {
        return Some(FailureMode::Abstained);
    };
    let nearest = tops
        .into_iter()
        .filter(|&l| !abstains(l))
        .filter_map(rank)
        .min_by_key(|&theirs| (theirs.abs_diff(mine), theirs));
    let Some(theirs) = nearest else {
        return Some(FailureMode::WrongLabel);
    };
    Some(match criterion.scale {
        Scale::Nominal => FailureMode::WrongLabel,
        Scale::Binary | Scale::Ordinal if theirs == 0 => FailureMode::OverFlag,
        Scale::Binary | Scale::Ordinal if mine == 0 => FailureMode::UnderFlag,
        Scale::Binary => FailureMode::WrongLabel,
        Scale::Ordinal => {
            FailureMode::OffBy(u8::try_from(theirs.abs_diff(mine)).unwrap_or(u8::MAX))
        }
    })
}

/// The labels with most votes; empty without votes.
fn majority(votes: &Votes, labels: usize) -> Vec<usize> {
    let counts = &votes.counts[..votes.counts.len().min(labels)];
    match counts.iter().max() {
        Some(&most) if most > 0 => (0..counts.len()).filter(|&l| counts[l] == most).collect(),
        _ => Vec::new(),
    }
}

/// The deciding labels from lowest to highest: by value on an ordinal scale, else as listed.
fn ascending(criterion: &Criterion) -> Vec<usize> {
    let mut order: Vec<usize> = (0..criterion.labels.len())
        .filter(|&l| !criterion.labels[l].abstain)
        .collect();
    if criterion.scale == Scale::Ordinal {
        let values = criterion.values();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Label;

    fn criterion(scale: Scale, labels: &[(&str, Option<f64>, bool)]) -> Criterion {
        let label = |&(name, value, abstain): &(&str, Option<f64>, bool)| Label {
            name: name.into(),
            word: name.into(),
            meaning: String::new(),
            value,
            abstain,
            aliases: Vec::new(),
        };
        Criterion {
            name: "c".into(),
            question: String::new(),
            scale,
            labels: labels.iter().map(label).collect(),
            word_sets: Vec::new(),
        }
    }

    fn offensiveness() -> Criterion {
        let v = Some;
        criterion(
            Scale::Ordinal,
            &[
                ("NO", v(-1.0), false),
                ("O1", v(1.0), false),
                ("O2", v(2.0), false),
                ("O3", v(3.0), false),
                ("O4", v(4.0), false),
                ("Unsure", None, true),
            ],
        )
    }

    fn mode(c: &Criterion, counts: &[u32], label: usize) -> Option<FailureMode> {
        let votes = Votes {
            counts: counts.to_vec(),
            raters: Vec::new(),
        };
        failure_mode(c, &votes, Some(label), None)
    }

    #[test]
    fn binary_misses_have_a_direction() {
        let c = criterion(
            Scale::Binary,
            &[
                ("Unsure", None, true),
                ("N", None, false),
                ("S", None, false),
            ],
        );
        assert_eq!(mode(&c, &[0, 2, 1], 2), Some(FailureMode::OverFlag));
        assert_eq!(mode(&c, &[0, 1, 2], 1), Some(FailureMode::UnderFlag));
        assert_eq!(mode(&c, &[0, 1, 2], 2), None);
        assert_eq!(mode(&c, &[0, 1, 2], 0), Some(FailureMode::Abstained));
        assert_eq!(mode(&c, &[3, 0, 0], 0), None);
        assert_eq!(mode(&c, &[3, 0, 0], 2), Some(FailureMode::WrongLabel));
        assert_eq!(mode(&c, &[1, 1, 0], 2), Some(FailureMode::OverFlag));
    }

    #[test]
    fn ordinal_misses_flag_only_across_the_lowest_label() {
        let c = offensiveness();
        assert_eq!(
            mode(&c, &[2, 0, 0, 1, 0, 0], 1),
            Some(FailureMode::OverFlag)
        );
        assert_eq!(
            mode(&c, &[0, 0, 0, 3, 0, 0], 0),
            Some(FailureMode::UnderFlag)
        );
        assert_eq!(
            mode(&c, &[0, 0, 0, 0, 3, 0], 1),
            Some(FailureMode::OffBy(3))
        );
        assert_eq!(
            mode(&c, &[0, 3, 0, 0, 0, 0], 2),
            Some(FailureMode::OffBy(1))
        );
        assert_eq!(
            mode(&c, &[0, 3, 0, 0, 0, 0], 5),
            Some(FailureMode::Abstained)
        );
    }

    #[test]
    fn ties_go_to_the_nearest_label() {
        let c = offensiveness();
        assert_eq!(mode(&c, &[0, 1, 1, 1, 0, 0], 2), None);
        assert_eq!(
            mode(&c, &[0, 1, 1, 1, 0, 0], 4),
            Some(FailureMode::OffBy(1))
        );
        assert_eq!(mode(&c, &[0, 0, 0, 0, 0, 0], 4), None);
    }

    #[test]
    fn failures_come_first_and_a_stray_label_is_unparsable() {
        let c = offensiveness();
        let votes = Votes {
            counts: vec![3],
            raters: Vec::new(),
        };
        let of = |label, failure| failure_mode(&c, &votes, label, failure);
        assert_eq!(
            of(Some(0), Some(FailureKind::Refused)),
            Some(FailureMode::Refused)
        );
        assert_eq!(
            of(None, Some(FailureKind::Endpoint)),
            Some(FailureMode::Failed)
        );
        assert_eq!(of(None, None), Some(FailureMode::Unparsable));
        assert_eq!(of(Some(77), None), Some(FailureMode::Unparsable));
        assert_eq!(of(Some(0), None), None);
    }

    #[test]
    fn nominal_misses_are_wrong_labels() {
        let c = criterion(
            Scale::Nominal,
            &[("a", None, false), ("b", None, false), ("c", None, false)],
        );
        assert_eq!(mode(&c, &[2, 0, 1], 2), Some(FailureMode::WrongLabel));
    }

    #[test]
    fn names_go_there_and_back() {
        for (mode, name) in [
            (FailureMode::OffBy(2), "off-by-2"),
            (FailureMode::OverFlag, "over-flag"),
            (FailureMode::Failed, "failed"),
        ] {
            let json = serde_json::to_string(&mode).unwrap();
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<FailureMode>(&json).unwrap(), mode);
        }
        assert!("off-by-x".parse::<FailureMode>().is_err());
    }
}

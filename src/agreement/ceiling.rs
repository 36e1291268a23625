//! Owns people as the yardstick: how far a held-out rater is from the others, and whether a judge
//! could take a rater's place. Must not know how a judge came to its labels.

use super::disagreement::{Measure, ScaleView, disagreement};
use super::multiple::benjamini_yekutieli;
use super::tail::t_below;
use super::{Stat, Undefined, rate, within};

/// Expected disagreement of one rater of an item, drawn at random, with the votes of the others:
/// `Σ votes[l]/n · disagreement(votes without one l, l)`. Exact where raters are exchangeable.
///
/// # Errors
/// An item with fewer than two votes; as [`disagreement`].
pub fn held_out(measure: Measure, scale: ScaleView, votes: &[u32]) -> Stat {
    over_panels(votes, |left, drawn| {
        disagreement(measure, scale, left, Some(drawn))
    })
}

/// Expected disagreement of a judge's label with the votes that remain when one rater, drawn at
/// random, is left out. This compares a judge with people on panels of the same size as
/// [`held_out`] does; a judge measured on all votes has a small advantage.
///
/// # Errors
/// As [`held_out`].
pub fn against_panel(
    measure: Measure,
    scale: ScaleView,
    votes: &[u32],
    label: Option<usize>,
) -> Stat {
    over_panels(votes, |left, _| disagreement(measure, scale, left, label))
}

fn over_panels(votes: &[u32], score: impl Fn(&[u32], usize) -> Stat) -> Stat {
    let total: u64 = votes.iter().map(|&v| u64::from(v)).sum();
    if total < 2 {
        return Err(Undefined::TooFew {
            what: "votes on an item",
            have: total as usize,
            need: 2,
        });
    }
    let mut left = votes.to_vec();
    let mut sum = 0.0;
    for drawn in (0..votes.len()).filter(|&l| votes[l] > 0) {
        left[drawn] -= 1;
        sum += f64::from(votes[drawn]) * score(&left, drawn)?;
        left[drawn] += 1;
    }
    Ok(sum / total as f64)
}

/// One person's label on one item; items and raters are dense numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rating {
    /// Item, from 0.
    pub item: usize,
    /// Rater, from 0.
    pub rater: usize,
    /// Label, an index of the scale.
    pub label: usize,
}

/// A rating against the other ratings of its item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Item.
    pub item: usize,
    /// Rater who was held out.
    pub rater: usize,
    /// Disagreement with the votes of the others, 0 to 1.
    pub distance: f64,
}

/// Votes per item, as counts per label.
fn votes_by_item(ratings: &[Rating], labels: usize) -> Result<Vec<Vec<u32>>, Undefined> {
    let items = ratings
        .iter()
        .map(|r| r.item + 1)
        .max()
        .ok_or(Undefined::Empty("ratings"))?;
    let mut votes = vec![Vec::new(); items];
    for r in ratings {
        if r.label >= labels {
            return Err(Undefined::UnknownLabel {
                label: r.label,
                labels,
            });
        }
        votes[r.item].resize(labels, 0);
        votes[r.item][r.label] += 1;
    }
    Ok(votes)
}

/// Every rating against the others of its item; ratings that stand alone are left out.
///
/// # Errors
/// No ratings, no item with two, an unknown label; as [`disagreement`].
pub fn leave_one_out(
    measure: Measure,
    scale: ScaleView,
    ratings: &[Rating],
) -> Result<Vec<HeldOut>, Undefined> {
    let mut votes = votes_by_item(ratings, scale.values.len())?;
    let mut out = Vec::new();
    for r in ratings {
        let others = &mut votes[r.item];
        others[r.label] -= 1;
        if others.iter().any(|&n| n > 0) {
            let distance = disagreement(measure, scale, others, Some(r.label))?;
            out.push(HeldOut {
                item: r.item,
                rater: r.rater,
                distance,
            });
        }
        others[r.label] += 1;
    }
    if out.is_empty() {
        Err(Undefined::NoPairs)
    } else {
        Ok(out)
    }
}

/// Settings of the alternative annotator test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AltTestPlan {
    /// How much worse than a rater the judge may be, because it is cheaper: 0.2 for experts, 0.15 for
    /// trained raters, 0.1 for crowd workers (Calderon et al. 2025).
    pub epsilon: f64,
    /// False discovery rate over raters, 0.05 in the paper.
    pub q: f64,
    /// Raters with fewer usable items are left out; the paper asks for 30.
    pub least_items: usize,
}

/// A judge against one rater, both scored on the votes of the rater's colleagues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgainstRater {
    /// Rater.
    pub rater: usize,
    /// Items on which both could be scored.
    pub items: usize,
    /// Share of items on which the judge is as close to the others as the rater, or closer.
    pub judge_wins: f64,
    /// Share of items on which the rater is as close to the others as the judge, or closer.
    pub rater_wins: f64,
    /// One-sided p-value of "the judge is worse than the rater by `epsilon` or more".
    pub p_value: f64,
    /// Whether that is refused at the false discovery rate.
    pub won: bool,
}

/// Outcome of the alternative annotator test.
#[derive(Clone, Debug, PartialEq)]
pub struct AltTest {
    /// Share of raters against whom the judge won; half or more passes.
    pub winning_rate: f64,
    /// Mean over raters of `judge_wins`.
    pub advantage: f64,
    /// Per rater, in the order of their numbers.
    pub raters: Vec<AgainstRater>,
    /// Raters with too few items.
    pub left_out: Vec<usize>,
}

impl AltTest {
    /// Whether the judge may stand in for a rater: it won against half of them or more.
    pub fn passed(&self) -> bool {
        self.winning_rate >= 0.5
    }
}

/// The alternative annotator test of Calderon, Reichart and Dror (2025): per rater a paired t-test of
/// `rater_wins - judge_wins < epsilon` over items, corrected over raters by Benjamini and Yekutieli.
/// `judge[item]` is the judge's label; `None` is a failed verdict and counts as full disagreement.
///
/// # Errors
/// No ratings, settings out of range, an item beyond `judge`, no rater with enough items;
/// as [`disagreement`].
pub fn alternative_annotator_test(
    measure: Measure,
    scale: ScaleView,
    ratings: &[Rating],
    judge: &[Option<usize>],
    plan: AltTestPlan,
) -> Result<AltTest, Undefined> {
    within("epsilon", plan.epsilon, 0.0, 1.0)?;
    rate("false discovery rate", plan.q)?;
    let mut votes = votes_by_item(ratings, scale.values.len())?;
    if votes.len() > judge.len() {
        return Err(Undefined::Length {
            what: "verdicts",
            have: judge.len(),
            need: votes.len(),
        });
    }
    // Per rater: items, the judge's wins, the rater's wins, and ties among both.
    let mut tallies = std::collections::BTreeMap::<usize, (usize, usize, usize)>::new();
    for r in ratings {
        let tally = tallies.entry(r.rater).or_default();
        let others = &mut votes[r.item];
        others[r.label] -= 1;
        if others.iter().any(|&n| n > 0) {
            let rater = disagreement(measure, scale, others, Some(r.label))?;
            let judge = disagreement(measure, scale, others, judge[r.item])?;
            tally.0 += 1;
            tally.1 += usize::from(judge <= rater);
            tally.2 += usize::from(rater <= judge);
        }
        others[r.label] += 1;
    }
    let needed = plan.least_items.max(2);
    let left_out = tallies
        .iter()
        .filter(|(_, t)| t.0 < needed)
        .map(|(&rater, _)| rater)
        .collect();
    let enough: Vec<_> = tallies.into_iter().filter(|(_, t)| t.0 >= needed).collect();
    if enough.is_empty() {
        return Err(Undefined::TooFew {
            what: "raters with enough items",
            have: 0,
            need: 1,
        });
    }
    let mut raters: Vec<AgainstRater> = enough
        .into_iter()
        .map(|(rater, t)| against(rater, t, plan.epsilon))
        .collect();
    let adjusted = benjamini_yekutieli(&raters.iter().map(|r| r.p_value).collect::<Vec<_>>())?;
    raters
        .iter_mut()
        .zip(adjusted)
        .for_each(|(r, p)| r.won = p <= plan.q);
    let count = raters.len() as f64;
    Ok(AltTest {
        winning_rate: raters.iter().filter(|r| r.won).count() as f64 / count,
        advantage: raters.iter().map(|r| r.judge_wins).sum::<f64>() / count,
        raters,
        left_out,
    })
}

/// The t-test from tallies: the differences are -1, 0 and 1, so counts are all that it needs.
fn against(
    rater: usize,
    (items, judge, person): (usize, usize, usize),
    epsilon: f64,
) -> AgainstRater {
    let n = items as f64;
    // Both win on a tie, so an item is won outright where the other side does not.
    let (outright_person, outright_judge) = ((items - judge) as f64, (items - person) as f64);
    let mean = (outright_person - outright_judge) / n;
    let squares = outright_person + outright_judge - n * mean * mean;
    let error = (squares.max(0.0) / (n - 1.0) / n).sqrt();
    let p_value = if error > 0.0 {
        t_below((mean - epsilon) / error, n - 1.0)
    } else {
        // Without spread the differences are certain.
        f64::from(mean >= epsilon)
    };
    AgainstRater {
        rater,
        items,
        judge_wins: judge as f64 / n,
        rater_wins: person as f64 / n,
        p_value,
        won: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: ScaleView = ScaleView {
        values: &[0.0, 1.0],
        abstain: &[false, false],
    };

    #[test]
    fn held_out_by_hand() {
        // Two yes, one no: a yes faces a tie (1/2), twice; the no faces two yes (1).
        assert!((held_out(Measure::Majority, BINARY, &[1, 2]).unwrap() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(held_out(Measure::Majority, BINARY, &[0, 3]), Ok(0.0));
        // Two votes that differ: each is wrong about the other.
        assert_eq!(held_out(Measure::MeanVotes, BINARY, &[1, 1]), Ok(1.0));
        // A judge that says yes: panels {yes, no} twice (1/2) and {yes, yes} once (0).
        assert!(
            (against_panel(Measure::Majority, BINARY, &[1, 2], Some(1)).unwrap() - 1.0 / 3.0).abs()
                < 1e-12
        );
        assert_eq!(
            against_panel(Measure::Majority, BINARY, &[1, 2], None),
            Ok(1.0)
        );
        assert!(held_out(Measure::Majority, BINARY, &[1, 0]).is_err());
    }

    #[test]
    fn mean_votes_is_the_share_of_unequal_pairs() {
        // 1 - Σ n(n-1) / N(N-1), the observed disagreement of Fleiss' kappa.
        let got = held_out(Measure::MeanVotes, BINARY, &[2, 5]).unwrap();
        assert!((got - (1.0 - (2.0 + 20.0) / 42.0)).abs() < 1e-12);
    }

    #[test]
    fn leave_one_out_averages_to_the_exchangeable_figure() {
        let ratings: Vec<Rating> = [0, 1, 1]
            .iter()
            .enumerate()
            .map(|(rater, &label)| Rating {
                item: 0,
                rater,
                label,
            })
            .collect();
        let rows = leave_one_out(Measure::Majority, BINARY, &ratings).unwrap();
        assert_eq!(
            rows.iter().map(|r| r.distance).collect::<Vec<_>>(),
            [1.0, 0.5, 0.5]
        );
        assert_eq!(
            leave_one_out(Measure::Majority, BINARY, &ratings[..1]),
            Err(Undefined::NoPairs)
        );
        assert!(leave_one_out(Measure::Majority, BINARY, &[]).is_err());
        assert!(
            leave_one_out(
                Measure::Majority,
                BINARY,
                &[Rating {
                    item: 0,
                    rater: 0,
                    label: 9
                }]
            )
            .is_err()
        );
    }

    #[test]
    fn a_perfect_judge_may_stand_in_and_a_reversed_one_may_not() {
        // Three raters, 60 items; each rater errs on every tenth item, in turn.
        let truth = |item: usize| item % 2;
        let ratings: Vec<Rating> = (0..60)
            .flat_map(|item| {
                (0..3).map(move |rater| Rating {
                    item,
                    rater,
                    label: truth(item) ^ usize::from(item % 10 == rater),
                })
            })
            .collect();
        let plan = AltTestPlan {
            epsilon: 0.1,
            q: 0.05,
            least_items: 30,
        };
        let run = |judge: Vec<Option<usize>>| {
            alternative_annotator_test(Measure::MeanVotes, BINARY, &ratings, &judge, plan).unwrap()
        };
        let good = run((0..60).map(|i| Some(truth(i))).collect());
        assert!(
            good.passed() && good.winning_rate == 1.0 && good.advantage == 1.0,
            "{good:?}"
        );
        let bad = run((0..60).map(|i| Some(1 - truth(i))).collect());
        assert!(!bad.passed() && bad.winning_rate == 0.0, "{bad:?}");
        assert!(!run(vec![None; 60]).passed());
        let few = AltTestPlan {
            least_items: 100,
            ..plan
        };
        let judge = vec![Some(0); 60];
        assert!(
            alternative_annotator_test(Measure::MeanVotes, BINARY, &ratings, &judge, few).is_err()
        );
        assert!(
            alternative_annotator_test(Measure::MeanVotes, BINARY, &ratings, &judge[..9], plan)
                .is_err()
        );
    }
}

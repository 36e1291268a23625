//! Which candidates of a slot are the best. Must not know where they come from.

use std::collections::BTreeMap;

use super::generate::Refused;
use super::{Candidate, Rule, Slot, SlotResult};

/// A kept candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// Its slot.
    pub slot: usize,
    /// Its index among all candidates.
    pub candidate: usize,
    /// 1 for the best of its slot.
    pub rank: usize,
    /// Its mean score.
    pub mean: f64,
}

/// The best candidates of each slot: by mean score, then by their lowest score, then the earlier
/// one, so that ties are broken alike on every machine.
pub(super) fn kept(slots: usize, candidates: &[Candidate], rule: &Rule) -> Vec<Kept> {
    let mut out = Vec::new();
    for slot in 0..slots {
        let mut own: Vec<(usize, f64, f64)> = candidates
            .iter()
            .enumerate()
            .filter(|(_, c)| c.slot == slot)
            .filter_map(|(at, c)| Some((at, c.mean()?, lowest(c))))
            .filter(|(_, mean, _)| rule.at_least.is_none_or(|least| *mean >= least - 1e-9))
            .collect();
        own.sort_by(|a, b| {
            let by_mean = b.1.total_cmp(&a.1);
            by_mean.then(b.2.total_cmp(&a.2)).then(a.0.cmp(&b.0))
        });
        let best = own.into_iter().take(rule.keep).enumerate();
        out.extend(best.map(|(at, (candidate, mean, _))| Kept {
            slot,
            candidate,
            rank: at + 1,
            mean,
        }));
    }
    out
}

fn lowest(candidate: &Candidate) -> f64 {
    let scores = candidate.scores.iter().flatten().copied();
    scores.fold(f64::INFINITY, f64::min)
}

pub(super) fn results(
    slots: &[Slot],
    candidates: &[Candidate],
    kept: &[Kept],
    refused: Vec<BTreeMap<Refused, usize>>,
) -> Vec<SlotResult> {
    let result = |(at, refused): (usize, BTreeMap<Refused, usize>)| {
        let own: Vec<&Candidate> = candidates.iter().filter(|c| c.slot == at).collect();
        let means: Vec<f64> = kept
            .iter()
            .filter(|k| k.slot == at)
            .map(|k| k.mean)
            .collect();
        let judged = own.iter().filter(|c| c.mean().is_some()).count();
        let unpaid = own.iter().filter(|c| c.unpaid).count();
        SlotResult {
            slot: slots[at].label(),
            judged,
            failed: own.len() - judged - unpaid,
            unpaid,
            kept: means.len(),
            mean: (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64),
            lowest: means.last().copied(),
            refused,
        }
    };
    refused.into_iter().enumerate().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(slot: usize, scores: &[Option<f64>]) -> Candidate {
        Candidate {
            record: Default::default(),
            slot,
            round: 0,
            scores: scores.to_vec(),
            unpaid: false,
        }
    }

    fn rule(keep: usize, at_least: Option<f64>) -> Rule {
        Rule {
            by: vec![],
            keep,
            at_least,
            rounds: 0,
        }
    }

    #[test]
    fn the_best_by_mean_then_by_lowest_then_by_order() {
        let of =
            |scores: &[f64]| candidate(0, &scores.iter().map(|s| Some(*s)).collect::<Vec<_>>());
        let all = [
            of(&[4.0, 4.0]),                  // 0: mean 4, lowest 4
            of(&[5.0, 3.0]),                  // 1: mean 4, lowest 3
            of(&[4.0, 4.0]),                  // 2: as 0, later
            of(&[5.0, 4.0]),                  // 3: mean 4.5
            of(&[1.0, 2.0]),                  // 4: mean 1.5
            candidate(0, &[Some(5.0), None]), // 5: no mean
            candidate(1, &[Some(5.0), Some(5.0)]),
        ];
        let order = |keep, least| {
            kept(2, &all, &rule(keep, least))
                .iter()
                .map(|k| (k.slot, k.candidate, k.rank))
                .collect::<Vec<_>>()
        };
        assert_eq!(order(3, None), [(0, 3, 1), (0, 0, 2), (0, 2, 3), (1, 6, 1)]);
        assert_eq!(order(9, Some(4.0)).len(), 5);
        assert_eq!(order(9, None)[3], (0, 1, 4));
        assert_eq!(order(9, None).len(), 6, "what has no mean is never kept");
    }
}

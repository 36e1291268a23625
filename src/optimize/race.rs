//! Racing: a child against its parent on growing minibatches of the same items; dropped early when
//! it does not gain, passed by a paired test on all of `tune`.

use rand::seq::SliceRandom;

use super::bandit::Proposal;
use super::bench::{Bench, TuneError};
use super::candidate::Candidate;
use super::event::Event;
use super::losses::losses;
use super::pool::{Pool, locales, mean};
use crate::agreement;
use crate::disagreement::Card;
use crate::propose::Kind;

/// Draws of the sign-flip test.
const DRAWS: usize = 2_000;

/// How a race ended.
pub(super) struct Raced {
    /// Kind of the proposal, for the bandit.
    pub kind: Kind,
    /// The child, scored on all of `tune`, if it passed.
    pub passed: Option<Candidate>,
}

/// Runs a child against its parent.
pub(super) async fn run(
    bench: &Bench<'_>,
    pool: &mut Pool,
    parent: usize,
    proposal: Proposal,
    cards: &[Card],
) -> Result<Raced, TuneError> {
    let kind = proposal.kind;
    let card = proposal.card.map(|c| &cards[c]);
    let mut child = Candidate {
        parent: Some(parent),
        edit: Some(proposal.edit),
        card: card.map(|c| c.id.clone()),
        ..Candidate::new(proposal.version)
    };
    let order = order(bench, pool, parent, &child, card);
    let mut size = bench.search.first_stage.max(1);
    loop {
        let stage = &order[..size.min(order.len())];
        let last = stage.len() == order.len();
        pool.judge_missing(bench, &mut child, stage).await?;
        let diffs = paired(bench, &pool.candidates[parent], &child, stage);
        let gain = mean(diffs.iter().copied());
        let p = if last && !diffs.is_empty() {
            Some(
                agreement::paired::permutation(
                    &diffs,
                    agreement::paired::Tail::Above,
                    DRAWS,
                    bench.streams.seed_of(pool.step, "gate"),
                )
                .unwrap_or(1.0),
            )
        } else {
            None
        };
        let outcome = if pool.exhausted || diffs.is_empty() || gain <= 0.0 {
            "dropped"
        } else if !last {
            "more"
        } else if p.is_some_and(|p| p < bench.search.gate_alpha) {
            "passed"
        } else {
            "dropped"
        };
        bench.emit(&Event::Raced {
            child: child.version.short(),
            n: diffs.len(),
            gain: if gain.is_finite() { gain } else { 0.0 },
            p,
            outcome: outcome.into(),
        })?;
        match outcome {
            "more" => size *= 2,
            "passed" => {
                return Ok(Raced {
                    kind,
                    passed: Some(child),
                });
            }
            _ => return Ok(Raced { kind, passed: None }),
        }
    }
}

/// Parent's loss less the child's, by item, both calibrated out of fold on the same items.
fn paired(bench: &Bench<'_>, parent: &Candidate, child: &Candidate, items: &[usize]) -> Vec<f64> {
    let both: Vec<usize> = items
        .iter()
        .copied()
        .filter(|i| parent.verdicts.contains_key(i) && child.verdicts.contains_key(i))
        .collect();
    let (old, new) = (losses(bench, parent, &both), losses(bench, child, &both));
    both.iter()
        .filter_map(|i| Some(old.get(i)? - new.get(i)?))
        .collect()
}

/// The order in which items are raced: locales take turns, the card's items come early, and every
/// second place is an anchor on which judge and people agreed, so that a loss there is seen.
/// Demos of either side are left out.
fn order(
    bench: &Bench<'_>,
    pool: &Pool,
    parent: usize,
    child: &Candidate,
    card: Option<&Card>,
) -> Vec<usize> {
    let old = &pool.candidates[parent];
    let mut rng = bench.streams.of(pool.step, "race");
    let usable: Vec<usize> = bench
        .tune
        .iter()
        .copied()
        .filter(|i| old.verdicts.contains_key(i) && !child.version.shows(&bench.items[*i].id))
        .collect();
    let mut queues: Vec<Vec<usize>> = locales(bench, &usable)
        .iter()
        .map(|locale| {
            let mut own: Vec<usize> = usable
                .iter()
                .copied()
                .filter(|&i| bench.items[i].locale == *locale)
                .collect();
            own.shuffle(&mut rng);
            own
        })
        .collect();
    let mut turns = Vec::with_capacity(usable.len());
    while turns.len() < usable.len() {
        turns.extend(queues.iter_mut().filter_map(Vec::pop));
    }
    let Some(card) = card else { return turns };
    let (mut first, rest): (Vec<usize>, Vec<usize>) =
        turns.into_iter().partition(|i| card.items.contains(i));
    let late = first.split_off(first.len().min(bench.search.first_stage / 2));
    let mut rest = rest.into_iter();
    let mut out = Vec::with_capacity(usable.len());
    for i in first {
        out.push(i);
        out.extend(rest.next());
    }
    out.extend(rest);
    out.extend(late);
    out
}

//! Racing: a child against its parent on growing minibatches of the same items. It is dropped as
//! soon as it does not gain, and passed as soon as a paired test says so; items that the parent
//! was never judged on are judged for both, so that nobody pays for a full round before a race.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;

use super::bandit::Proposal;
use super::bench::{Bench, Gate, TuneError};
use super::candidate::Candidate;
use super::event::Event;
use super::losses::losses;
use super::pool::{Pool, locales, mean};
use crate::agreement::paired::{self, Tail};
use crate::agreement::sequential::PairedBet;
use crate::disagreement::Card;
use crate::ledger::Halt;
use crate::propose::{Burden, Kind};

/// Draws of the sign-flip test.
const DRAWS: usize = 2_000;

/// Items at least of the first stage of an edit that answers a card.
const FIRST_OF_CARD: usize = 8;

/// Items of a child's first stage that go ahead of the others: where the model gives no label for
/// any of them, as with a prompt beyond its context, the others are not paid for.
const SCOUTS: usize = 3;

/// How a race ended.
pub(super) struct Raced {
    /// Kind of the proposal, for the bandit.
    pub kind: Kind,
    /// The child, scored as far as the race went, if it passed.
    pub passed: Option<Candidate>,
}

/// Runs a child against its parent; of several children, the one that wins their heat.
pub(super) async fn run(
    bench: &Bench<'_>,
    pool: &mut Pool,
    parent: usize,
    proposal: Proposal,
    cards: &[Card],
) -> Result<Raced, TuneError> {
    let kind = proposal.kind;
    let card = proposal.card.map(|c| &cards[c]);
    let children = proposal
        .children
        .into_iter()
        .map(|(edit, version)| Candidate {
            parent: Some(parent),
            edit: Some(edit),
            card: card.map(|c| c.id.clone()),
            ..Candidate::new(version)
        });
    let Some(mut child) = heat(bench, pool, parent, children.collect()).await? else {
        return Ok(Raced { kind, passed: None });
    };
    let order = order(bench, pool, parent, &child, card);
    // An edit that answers a card shows on the card's items, which come first, whether it does
    // anything; as many anchors beside them are enough to give it up.
    let mut size = card.map_or(usize::MAX, |c| (2 * c.items.len()).max(FIRST_OF_CARD));
    size = size.min(bench.search.first_stage).max(1);
    let mut spent = 0.0;
    loop {
        let stage = &order[..size.min(order.len())];
        let last = stage.len() == order.len();
        if pool.affords_stage(bench, parent, &child, stage) {
            if !answers(bench, pool, &mut child, stage).await? {
                return Ok(Raced { kind, passed: None });
            }
            pool.judge_missing(bench, &mut child, stage).await?;
            pool.extend(bench, parent, stage).await?;
        } else {
            pool.exhausted = true;
        }
        let plain = paired(bench, &pool.candidates[parent], &child, stage);
        let diffs = pool.weigh(parent, &plain);
        // What this stage may spend of the gate's error rate: its share of the items.
        let share = stage.len() as f64 / order.len().max(1) as f64;
        let alpha = bench.search.gate_alpha * share - spent;
        spent = bench.search.gate_alpha * share;
        let burden = kind.burden(&pool.candidates[parent].version);
        let mut verdict = if burden == Burden::Proof {
            verdict(bench, pool, &diffs, alpha, last)
        } else {
            let patient = burden == Burden::Patience && !pool.is_scarce(bench, &child.version);
            let second = size > bench.search.first_stage;
            let enough = bench.search.first_stage.min(order.len());
            presumed(bench, pool, &diffs, enough, last || second, patient)
        };
        if verdict.outcome == "passed" && harms_others(bench, pool, parent, &plain) {
            verdict.outcome = "harms others";
        }
        report(bench, &child, diffs.len(), &verdict)?;
        let passed = match verdict.outcome {
            "more" => {
                size *= 2;
                continue;
            }
            "passed" => {
                child.proof = verdict.p.filter(|_| burden == Burden::Proof);
                Some(child)
            }
            _ => None,
        };
        return Ok(Raced { kind, passed });
    }
}

/// Whether the model gives a label for any of the first items of a stage. Where it gives none, the
/// others are not paid for, and that is written down.
async fn answers(
    bench: &Bench<'_>,
    pool: &mut Pool,
    child: &mut Candidate,
    stage: &[usize],
) -> Result<bool, TuneError> {
    let scouts = &stage[..SCOUTS.min(stage.len())];
    pool.judge_missing(bench, child, scouts).await?;
    let fails = child.fails_on(scouts);
    if fails {
        report(bench, child, scouts.len(), &Verdict::nothing("no answers"))?;
    }
    Ok(!fails)
}

/// The best of several children, all on the same items. What does harm beside the parent is given up
/// after a few of them, half of the rest, the worse half, after each later stage. `None` where nothing
/// is left, or the budget does not pay for it.
async fn heat(
    bench: &Bench<'_>,
    pool: &mut Pool,
    parent: usize,
    mut children: Vec<Candidate>,
) -> Result<Option<Candidate>, TuneError> {
    let Some(first) = children.first() else {
        return Ok(None);
    };
    let order = order(bench, pool, parent, first, None);
    let ranking = (bench.search.first_stage / 2).max(1);
    let mut size = ranking.div_ceil(2);
    while children.len() > 1 {
        let stage = &order[..size.min(order.len())];
        // What the first ranking takes: the few items before it rank nobody.
        let ranked = &order[..size.max(ranking).min(order.len())];
        let calls = children.iter().map(|c| pool.calls(bench, c, ranked)).sum();
        if !pool.affords(bench, calls) {
            pool.exhausted = true;
            return Ok(None);
        }
        let mut ranked = Vec::new();
        for mut child in children {
            if !answers(bench, pool, &mut child, stage).await? {
                continue;
            }
            pool.judge_missing(bench, &mut child, stage).await?;
            if !does_harm(bench, pool, parent, &child, stage)? {
                ranked.push((pool.value(&losses(bench, &child, stage)), child));
            }
        }
        if size >= ranking {
            give_up_half(bench, &mut ranked, stage.len())?;
        }
        children = ranked.into_iter().map(|(_, child)| child).collect();
        size *= 2;
    }
    Ok(children.pop())
}

/// Whether a test says that a child of a heat does harm beside its parent, which is written down.
fn does_harm(
    bench: &Bench<'_>,
    pool: &Pool,
    parent: usize,
    child: &Candidate,
    stage: &[usize],
) -> Result<bool, TuneError> {
    let plain = paired(bench, &pool.candidates[parent], child, stage);
    let diffs = pool.weigh(parent, &plain);
    let seed = bench.streams.seed_of(pool.step, "heat");
    let p = harm(bench, diffs.iter().copied(), seed);
    // Its share of the items of a first stage: a handful by luck is no reason to give up good words.
    let share = stage.len() as f64 / bench.search.first_stage.max(1) as f64;
    let harms = p < bench.search.gate_alpha * share.min(1.0);
    if harms {
        let dropped = Verdict {
            gain: mean(diffs.iter().map(|(_, d)| *d)),
            p: Some(p),
            outcome: "dropped",
        };
        report(bench, child, diffs.len(), &dropped)?;
    }
    Ok(harms)
}

/// Takes the worse half of the children of a heat out, by their losses.
fn give_up_half(
    bench: &Bench<'_>,
    ranked: &mut Vec<(f64, Candidate)>,
    n: usize,
) -> Result<(), TuneError> {
    // Stable, so that equal children keep the order in which they were proposed.
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = ranked.first().map_or(0.0, |(loss, _)| *loss);
    for (loss, child) in ranked.split_off(ranked.len().div_ceil(2)) {
        let beaten = Verdict {
            gain: best - loss,
            ..Verdict::nothing("beaten")
        };
        report(bench, &child, n, &beaten)?;
    }
    Ok(())
}

/// What a stage says of a child that needs no proof: it is dropped early only where a test says that
/// it does harm, and passes with any gain at the last of its stages, which is the last that the
/// budget paid for where that were `enough` items. Without patience, as where calls are scarce, it
/// has to gain from the first stage on.
fn presumed(
    bench: &Bench<'_>,
    pool: &Pool,
    diffs: &[(usize, f64)],
    enough: usize,
    last: bool,
    patient: bool,
) -> Verdict {
    let gain = mean(diffs.iter().map(|(_, d)| *d));
    if diffs.is_empty() || pool.exhausted && diffs.len() < enough {
        return Verdict::nothing("dropped");
    }
    let last = last || pool.exhausted;
    let seed = bench.streams.seed_of(pool.step, "gate");
    let p = harm(bench, diffs.iter().copied(), seed);
    let outcome = match (p < bench.search.gate_alpha, last) {
        (true, _) => "dropped",
        (false, false) if gain > 0.0 || patient => "more",
        (false, true) if gain > 0.0 => "passed",
        _ => "dropped",
    };
    Verdict {
        gain,
        p: Some(p),
        outcome,
    }
}

/// Whether a child that helps the worst locale does harm to the others, as far as a test can tell.
/// Under the mean there are no others.
fn harms_others(bench: &Bench<'_>, pool: &Pool, parent: usize, diffs: &[(usize, f64)]) -> bool {
    let Some(worst) = pool.worst_of(parent) else {
        return false;
    };
    let others = diffs.iter().filter(|(i, _)| !pool.is_of(*i, worst));
    let seed = bench.streams.seed_of(pool.step, "harm");
    harm(bench, others.copied(), seed) < bench.search.gate_alpha
}

/// The one-sided p-value that differences are a loss, by sign flips; 1 where there are none.
pub(super) fn harm(bench: &Bench<'_>, diffs: impl Iterator<Item = (usize, f64)>, seed: u64) -> f64 {
    let losses: Vec<(usize, f64)> = diffs.map(|(i, d)| (i, -d)).collect();
    chance(bench, &losses, seed)
}

/// The one-sided p-value that differences are a gain, by sign flips; 1 where there are none.
pub(super) fn chance(bench: &Bench<'_>, diffs: &[(usize, f64)], seed: u64) -> f64 {
    let sums = by_group(bench, diffs);
    paired::permutation(&sums, Tail::Above, DRAWS, seed).unwrap_or(1.0)
}

/// Writes down what a stage said of a child.
fn report(bench: &Bench<'_>, child: &Candidate, n: usize, verdict: &Verdict) -> Result<(), Halt> {
    bench.emit(&Event::Raced {
        child: child.version.short(),
        n,
        gain: verdict.gain,
        p: verdict.p,
        outcome: verdict.outcome.into(),
    })
}

/// What a stage says of a child.
struct Verdict {
    gain: f64,
    p: Option<f64>,
    outcome: &'static str,
}

impl Verdict {
    /// Without a gain to tell of.
    fn nothing(outcome: &'static str) -> Self {
        Self {
            gain: 0.0,
            p: None,
            outcome,
        }
    }
}

fn verdict(
    bench: &Bench<'_>,
    pool: &Pool,
    diffs: &[(usize, f64)],
    alpha: f64,
    last: bool,
) -> Verdict {
    let gain = mean(diffs.iter().map(|(_, d)| *d));
    if pool.exhausted || diffs.is_empty() {
        return Verdict::nothing("dropped");
    }
    if gain <= 0.0 {
        return Verdict {
            gain,
            p: None,
            outcome: "dropped",
        };
    }
    let (p, alpha) = match bench.search.gate {
        Gate::Permutation => {
            let seed = bench.streams.seed_of(pool.step, "gate");
            (chance(bench, diffs, seed), alpha)
        }
        Gate::Betting => {
            let mut bet = PairedBet::new();
            for (_, d) in diffs {
                // The bet is on differences held within one nat: the bound that it needs, and
                // little less than what telling one label from another is worth.
                let _ = bet.push(d.clamp(-1.0, 1.0));
            }
            (bet.p_value(), bench.search.gate_alpha)
        }
    };
    let outcome = match (p < alpha, last) {
        (true, _) => "passed",
        (false, true) => "dropped",
        (false, false) => "more",
    };
    Verdict {
        gain,
        p: Some(p),
        outcome,
    }
}

/// Differences summed over the items of a group, whose signs may only be flipped together.
pub(super) fn by_group(bench: &Bench<'_>, diffs: &[(usize, f64)]) -> Vec<f64> {
    let mut sums = std::collections::BTreeMap::<&str, f64>::new();
    for (i, d) in diffs {
        *sums.entry(&bench.items[*i].group).or_default() += d;
    }
    sums.into_values().collect()
}

/// Parent's loss less the child's, by item, both calibrated out of fold on the same items.
pub(super) fn paired(
    bench: &Bench<'_>,
    parent: &Candidate,
    child: &Candidate,
    items: &[usize],
) -> Vec<(usize, f64)> {
    let both: Vec<usize> = items
        .iter()
        .copied()
        .filter(|i| parent.verdicts.contains_key(i) && child.verdicts.contains_key(i))
        .collect();
    let (old, new) = (losses(bench, parent, &both), losses(bench, child, &both));
    both.iter()
        .filter_map(|i| Some((*i, old.get(i)? - new.get(i)?)))
        .collect()
}

/// The order in which items are raced. Items that the parent was judged on come first, since they
/// cost one call and not two; within these, locales and then labels take turns. With a card, its
/// items come early and every second place is an anchor on which judge and people agreed, so that
/// a loss there is seen. Demos of either side are left out.
fn order(
    bench: &Bench<'_>,
    pool: &Pool,
    parent: usize,
    child: &Candidate,
    card: Option<&Card>,
) -> Vec<usize> {
    let old = &pool.candidates[parent];
    let mut rng = bench.streams.of(pool.step, "race");
    let shown = |i: &usize| {
        let id = &bench.items[*i].id;
        old.version.shows(id) || child.version.shows(id)
    };
    let usable: Vec<usize> = bench.tune.iter().copied().filter(|i| !shown(i)).collect();
    let (mut known, mut fresh): (Vec<usize>, Vec<usize>) =
        usable.iter().partition(|i| old.verdicts.contains_key(i));
    known.shuffle(&mut rng);
    fresh.shuffle(&mut rng);
    let mut turns = take_turns(bench, known);
    turns.extend(take_turns(bench, fresh));
    // Without a card, what the objective asks to help comes early in its place.
    let early: BTreeSet<usize> = match (card, pool.worst_of(parent)) {
        (Some(card), _) => card.items.iter().copied().collect(),
        (None, Some(worst)) => usable
            .iter()
            .copied()
            .filter(|i| pool.is_of(*i, worst))
            .collect(),
        (None, None) => return turns,
    };
    let (mut first, rest): (Vec<usize>, Vec<usize>) =
        turns.into_iter().partition(|i| early.contains(i));
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

/// The items with locales taking turns, and the labels of a locale taking turns in it, so that
/// every prefix of the list is nearly balanced.
pub(super) fn take_turns(bench: &Bench<'_>, items: Vec<usize>) -> Vec<usize> {
    let total = items.len();
    let mut queues: Vec<Vec<usize>> = locales(bench, &items)
        .iter()
        .map(|locale| {
            let mut own: Vec<Vec<usize>> = Vec::new();
            let mut labels = Vec::new();
            for &i in items.iter().filter(|&&i| bench.items[i].locale == *locale) {
                let label = bench.majority(i);
                let at = labels.iter().position(|l| *l == label).unwrap_or_else(|| {
                    labels.push(label);
                    own.push(Vec::new());
                    labels.len() - 1
                });
                own[at].push(i);
            }
            alternate(own)
        })
        .collect();
    queues.iter_mut().for_each(|q| q.reverse());
    let mut turns = Vec::with_capacity(total);
    // Every second locale begins with its other label, so that one round is balanced too.
    for (k, queue) in queues.iter_mut().enumerate() {
        let n = queue.len();
        if k % 2 == 1 && n > 1 {
            queue.swap(n - 1, n - 2);
        }
    }
    while turns.len() < total {
        turns.extend(queues.iter_mut().filter_map(Vec::pop));
    }
    turns
}

fn alternate(mut lists: Vec<Vec<usize>>) -> Vec<usize> {
    lists.iter_mut().for_each(|l| l.reverse());
    let total = lists.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(total);
    while out.len() < total {
        out.extend(lists.iter_mut().filter_map(Vec::pop));
    }
    out
}

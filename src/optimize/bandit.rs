//! Which kind of edit to try next: Thompson sampling over the kinds, so that those that pay on
//! this task come more often and none is given up.

use std::collections::BTreeMap;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::bench::{Bench, TuneError};
use super::event::Event;
use super::pool::{Pool, kind_name};
use super::streams::Stream;
use crate::disagreement::Card;
use crate::prompt::{Edit, Renderer, Version};
use crate::propose::{self, Kind, Material};

/// What a run opens with, in this order: what the other two are worth shows under demos.
const OPENING: [Kind; 3] = [Kind::CoverDemos, Kind::Words, Kind::GrowDemos];

/// Wins and losses by kind of proposal.
pub(super) struct Arms(BTreeMap<Kind, (u32, u32)>);

/// Children to race, of which one may pass.
pub(super) struct Proposal {
    pub kind: Kind,
    /// Versions with the edits that made them; at least one.
    pub children: Vec<(Edit, Version)>,
    /// Index of the card that they answer.
    pub card: Option<usize>,
}

impl Arms {
    pub fn new() -> Self {
        Self(Kind::ALL.iter().map(|k| (*k, k.prior())).collect())
    }

    pub fn learn(&mut self, kind: Kind, passed: bool) {
        let arm = self.0.entry(kind).or_insert((1, 1));
        if passed {
            arm.0 += 1;
        } else {
            arm.1 += 1;
        }
    }

    /// Whether an edit of the kind was tried and did not pass.
    fn lost(&self, kind: Kind) -> bool {
        self.0
            .get(&kind)
            .is_some_and(|(_, losses)| *losses > kind.prior().1)
    }

    /// The next edit of the opening: the kinds that need no writer and most often help by most, each
    /// of them once, and growth until it does not pass.
    fn opening(&self, kinds: &[Kind]) -> Option<Kind> {
        let opens = |k: &Kind| {
            let (wins, losses) = self.0.get(k).copied().unwrap_or(k.prior());
            let untried = (wins, losses) == k.prior();
            kinds.contains(k) && (untried || *k == Kind::GrowDemos && losses == k.prior().1)
        };
        OPENING.into_iter().find(|k| opens(k))
    }

    /// The kind with the largest draw from what is believed of it.
    fn draw(&self, kinds: &[Kind], rng: &mut Stream) -> Option<Kind> {
        let mut best = None;
        for kind in kinds {
            let (wins, losses) = self.0.get(kind).copied().unwrap_or((1, 1));
            let value = beta(wins, losses, rng);
            if best.is_none_or(|(_, v)| value > v) {
                best = Some((*kind, value));
            }
        }
        best.map(|(kind, _)| kind)
    }
}

/// A draw from Beta(a, b) for whole a, b: the a-th smallest of a + b - 1 uniform draws.
fn beta(a: u32, b: u32, rng: &mut impl Rng) -> f64 {
    let n = (a + b).saturating_sub(1).max(1) as usize;
    let mut draws: Vec<f64> = (0..n).map(|_| rng.random::<f64>()).collect();
    draws.sort_by(f64::total_cmp);
    draws[(a.max(1) as usize - 1).min(n - 1)]
}

/// What comes next; `None` when the proposal was refused, which is written down.
pub(super) async fn next(
    bench: &Bench<'_>,
    pool: &mut Pool,
    parent: usize,
    cards: &[Card],
) -> Result<Option<Proposal>, TuneError> {
    let mut rng = bench.streams.of(pool.step, "propose");
    let version = pool.candidates[parent].version.clone();
    let card = choose_card(&card_weights(pool, parent, cards), &mut rng);
    let others: Vec<&Version> = pool
        .candidates
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != parent)
        .map(|(_, c)| &c.version)
        .collect();
    let material = Material {
        words_alone: pool.arms.lost(Kind::CoverDemos) && pool.pays_for_words(bench, &version),
        ..bench.material(&version, cards, card, &others)
    };
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|k| {
            !bench.search.without.contains(k)
                && !pool.barren.contains(&(parent, *k))
                && !pool.done.contains(k)
                && k.possible(&material, bench.writer.is_some())
        })
        .collect();
    let opening = bench.search.opening.then(|| pool.arms.opening(&kinds));
    let drawn = || match bench.search.bandit {
        true => pool.arms.draw(&kinds, &mut rng),
        false => kinds.choose(&mut rng).copied(),
    };
    let Some(kind) = opening.flatten().or_else(drawn) else {
        pool.fruitless = usize::MAX / 2; // nothing can be proposed at all: patience ends the loop
        return Ok(None);
    };
    let edits = match edits(bench, pool, kind, &material, &mut rng).await? {
        Ok(edits) => edits,
        Err(refusal) => {
            pool.exhausted |= refusal == propose::Refusal::NoBudget;
            pool.refuse(bench, kind, refusal.to_string())?;
            return Ok(None);
        }
    };
    if edits.is_empty() || kind.is_fixed() {
        pool.barren.insert((parent, kind));
    }
    if kind.is_once() {
        pool.done.insert(kind);
    }
    let mut children = Vec::new();
    let mut refused = "nothing to offer".to_owned();
    for edit in edits {
        match check(bench, pool, &version, &edit) {
            Ok(child) => children.push((edit, child)),
            Err(why) => refused = why,
        }
    }
    if children.is_empty() {
        pool.refuse(bench, kind, refused)?;
        return Ok(None);
    }
    let card = card.filter(|_| kind.answers_card());
    for (edit, child) in &children {
        bench.emit(&Event::Proposed {
            step: pool.step,
            parent: version.short(),
            kind: kind_name(kind),
            card: card.map(|c| cards[c].id.clone()),
            edit: edit.clone(),
            child: child.short(),
        })?;
        pool.tried.insert(child.digest());
    }
    Ok(Some(Proposal {
        kind,
        children,
        card,
    }))
}

/// The edits of a kind, or why there is none.
async fn edits(
    bench: &Bench<'_>,
    pool: &Pool,
    kind: Kind,
    material: &Material<'_>,
    rng: &mut Stream,
) -> Result<Result<Vec<Edit>, propose::Refusal>, TuneError> {
    if kind != Kind::Reflect {
        return Ok(Ok(propose::propose(kind, material, rng)));
    }
    let Some(writer) = bench.writer else {
        return Ok(Ok(Vec::new()));
    };
    if !pool.affords(bench, 1) {
        return Ok(Err(propose::Refusal::NoBudget));
    }
    let asked = propose::ask_writer(
        material,
        writer,
        bench.judge.ledger,
        rng.random(),
        pool.step as u32,
    );
    Ok(asked.await?.map(|edit| vec![edit]))
}

/// Weights of cards in the draw: the disagreement in them, counted as the objective has it.
fn card_weights(pool: &Pool, parent: usize, cards: &[Card]) -> Vec<f64> {
    let plain: Vec<f64> = cards.iter().map(|c| c.weight).collect();
    let Some(worst) = pool.worst_of(parent) else {
        return plain;
    };
    let weight = |card: &Card| {
        let own = card.items.iter().filter(|i| pool.is_of(**i, worst)).count();
        let share = own as f64 / card.items.len().max(1) as f64;
        let w = pool.objective.worst();
        card.weight * ((1.0 - w) + w * share)
    };
    let weights: Vec<f64> = cards.iter().map(weight).collect();
    if weights.iter().sum::<f64>() > 0.0 {
        weights
    } else {
        plain
    }
}

/// A card drawn in proportion to the weights.
fn choose_card(weights: &[f64], rng: &mut Stream) -> Option<usize> {
    let mut draw = rng.random::<f64>() * weights.iter().sum::<f64>();
    for (i, weight) in weights.iter().enumerate() {
        if draw < *weight {
            return Some(i);
        }
        draw -= weight;
    }
    weights.len().checked_sub(1)
}

/// Applies an edit and makes sure that the child renders for every locale before it costs a call.
fn check(bench: &Bench<'_>, pool: &Pool, parent: &Version, edit: &Edit) -> Result<Version, String> {
    let child = edit.apply(parent).map_err(|e| e.to_string())?;
    if pool.tried.contains(&child.digest()) {
        return Err("this version was tried before".into());
    }
    let renderer =
        Renderer::new(bench.judge.task, &child, bench.judge.fence).map_err(|e| e.to_string())?;
    let mut seen = std::collections::BTreeSet::new();
    for &i in bench.tune.iter().chain(bench.validation) {
        if seen.insert(&bench.items[i].locale) {
            for c in 0..bench.judge.task.criteria.len() {
                renderer
                    .prompt(&bench.items[i], Some(c))
                    .map_err(|e| e.to_string())?;
            }
        }
    }
    Ok(child)
}

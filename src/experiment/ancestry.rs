//! Where the versions of a run come from: the edit, the card and the race of each.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use crate::optimize::{Candidate, Event, Pool};
use crate::prompt::{Edit, MergePart, Version};
use crate::registry::{Lineage, Race};

/// What the events of a run say of its versions.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Races that were won, in order; the k-th made the k-th version after the seed.
    races: Vec<Race>,
    /// What each card says.
    cards: BTreeMap<String, String>,
}

impl Seen {
    /// Takes note of an event.
    pub(super) fn see(&mut self, event: &Event) {
        match event {
            Event::Raced {
                n,
                gain,
                p,
                outcome,
                ..
            } if outcome == "passed" => self.races.push(Race {
                n: *n,
                gain: *gain,
                p: *p,
            }),
            Event::Clustered { cards, .. } => {
                for card in cards {
                    let place = card.locale.as_deref().unwrap_or("several locales");
                    let terms = card.terms.join(", ");
                    let says = format!("{} in {place}, {} items: {terms}", card.mode, card.n);
                    self.cards.insert(card.id.clone(), says);
                }
            }
            _ => {}
        }
    }
}

/// A version of a run with its origin, and its place in the pool; the starting version has none.
pub(super) struct Ancestor {
    pub(super) version: Version,
    pub(super) lineage: Lineage,
    pub(super) place: Option<usize>,
}

/// The chosen version and all that it was made of, itself last, the starting version first.
pub(super) fn of_best(plan: &Plan, pool: &Pool, seen: &Seen) -> Vec<Ancestor> {
    let best = pool.best();
    let digest = best.version.digest();
    let last = pool
        .candidates
        .iter()
        .position(|c| c.version.digest() == digest)
        .unwrap_or(0);
    let mut wanted = vec![last];
    let mut places = BTreeSet::new();
    while let Some(place) = wanted.pop() {
        if places.insert(place) {
            wanted.extend(made_of(pool, place));
        }
    }
    let run = format!("{}-{}", plan.config.name, plan.config.digest());
    let mut out = Vec::new();
    let start = plan.start.digest();
    if pool.candidates[0].version.digest() != start {
        out.push(Ancestor {
            version: plan.start.clone(),
            lineage: Lineage {
                run: run.clone(),
                ..Lineage::default()
            },
            place: None,
        });
    }
    // A parent stands before its children in the pool.
    for place in places {
        out.push(Ancestor {
            version: pool.candidates[place].version.clone(),
            lineage: lineage(plan, pool, place, seen, &run),
            place: Some(place),
        });
    }
    out
}

fn lineage(plan: &Plan, pool: &Pool, place: usize, seen: &Seen, run: &str) -> Lineage {
    let own = &pool.candidates[place];
    let parents = made_of(pool, place);
    let mut lineage = Lineage {
        parents: parents
            .iter()
            .map(|&p| pool.candidates[p].version.digest())
            .collect(),
        run: run.to_owned(),
        card: own.card.clone(),
        card_says: own.card.as_ref().and_then(|id| seen.cards.get(id).cloned()),
        race: place
            .checked_sub(1)
            .and_then(|k| seen.races.get(k).cloned()),
        edit: own.edit.clone(),
    };
    if place == 0 && own.version != plan.start {
        // The starting version itself has no calibration; this is what `tune` made of it.
        lineage.parents = vec![plan.start.digest()];
        lineage.edit = Some(Edit::Recalibrate {
            calibration: own.version.calibration.clone(),
        });
    }
    lineage
}

/// Places of the versions that one was made of.
fn made_of(pool: &Pool, place: usize) -> Vec<usize> {
    let own = &pool.candidates[place];
    let mut out: Vec<usize> = own.parent.into_iter().collect();
    if let Some(Edit::Merge { other, part }) = &own.edit {
        let before = &pool.candidates[..place];
        let named = before.iter().position(|c| c.version.digest() == *other);
        // It may have been calibrated anew since; its demos and texts are what they were.
        let same = || before.iter().position(|c| has(c, part));
        out.extend(named.or_else(same).filter(|p| !out.contains(p)));
    }
    out
}

fn has(candidate: &Candidate, part: &MergePart) -> bool {
    let version = &candidate.version;
    match part {
        MergePart::Demos(demos) => version.demos == *demos,
        MergePart::Texts { sections, rules } => {
            version.sections == *sections && version.rules == *rules
        }
    }
}

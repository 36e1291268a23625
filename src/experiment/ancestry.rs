//! Where the versions of a run come from: the edit, the card and the race of each.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::Plan;
use crate::optimize::{Candidate, Event, Pool, SearchOptions, StrategyName};
use crate::prompt::{Edit, MergePart, Version};
use crate::registry::{Lineage, Race};

/// What the events of a run say of its versions.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Edits that were proposed, by the digits of the version that each makes.
    proposed: BTreeMap<String, Edit>,
    /// Races that were won, in order, with the edits that won them.
    races: Vec<(Option<Edit>, Race)>,
    /// What each card says.
    cards: BTreeMap<String, String>,
}

impl Seen {
    /// Takes note of an event.
    pub(super) fn see(&mut self, search: &SearchOptions, event: &Event) {
        match event {
            Event::Proposed { edit, child, .. } => {
                self.proposed.insert(child.clone(), edit.clone());
            }
            Event::Raced {
                child,
                n,
                gain,
                p,
                outcome,
            } if outcome == "passed" => {
                // The published searches compare agreement; this program's own compares log loss.
                let own = search.strategy == StrategyName::Pluralis && search.loss;
                let of = if own { "log loss" } else { "disagreement" };
                let race = Race {
                    of: of.to_owned(),
                    n: *n,
                    gain: *gain,
                    p: *p,
                };
                self.races.push((self.proposed.get(child).cloned(), race));
            }
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

impl Seen {
    /// The race that a version of the pool won. Its digest has changed since, with its calibration,
    /// so it is known by its edit; of equal edits the k-th won the k-th race.
    fn race(&self, pool: &Pool, place: usize) -> Option<Race> {
        let edit = pool.candidates[place].edit.as_ref()?;
        let earlier = pool.candidates[..place].iter();
        let nth = earlier.filter(|c| c.edit.as_ref() == Some(edit)).count();
        let mut won = self.races.iter().filter(|(e, _)| e.as_ref() == Some(edit));
        won.nth(nth).map(|(_, race)| race.clone())
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
        race: seen.race(pool, place),
        edit: own.edit.clone(),
    };
    if place == 0 && own.version != plan.start {
        lineage.parents = vec![plan.start.digest()];
        let recalibrated = Edit::Recalibrate {
            calibration: own.version.calibration.clone(),
        };
        // The starting version itself has no calibration; this is what `tune` made of it.
        if recalibrated.apply(&plan.start).as_ref() == Ok(&own.version) {
            lineage.edit = Some(recalibrated);
        }
    }
    lineage
}

/// Places of the versions that one was made of.
fn made_of(pool: &Pool, place: usize) -> Vec<usize> {
    let own = &pool.candidates[place];
    // Some searches put versions together without a parent: all of them begin with the first.
    let first = (place > 0).then_some(0);
    let mut out: Vec<usize> = own.parent.or(first).into_iter().collect();
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

//! Choosing demos from the tuning split.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

use super::Material;
use crate::agreement;
use crate::data::Item;
use crate::disagreement;
use crate::prompt::{Demo, Edit};
use crate::task::Task;

/// The label that an item's votes agree on, on one criterion; `None` on a tie or without votes.
fn label_of(task: &Task, item: &Item, criterion: usize) -> Option<usize> {
    agreement::majority(
        &item.votes[criterion].counts,
        &task.criteria[criterion].abstains(),
    )
}

/// A demo of an item, if its votes agree on every criterion.
pub fn demo_of(task: &Task, item: &Item) -> Option<Demo> {
    let mut answers = BTreeMap::new();
    for (c, criterion) in task.criteria.iter().enumerate() {
        answers.insert(
            criterion.name.clone(),
            criterion.labels[label_of(task, item, c)?].name.clone(),
        );
    }
    let fields = task
        .fields
        .iter()
        .zip(&item.fields)
        .filter(|(_, text)| !text.is_empty())
        .map(|(f, text)| (f.name.clone(), text.clone()));
    Some(Demo {
        source: item.id.clone(),
        locale: item.locale.clone(),
        only_for: None,
        fields: fields.collect(),
        answers,
    })
}

/// Demos that are shown for one locale alone.
const FOR_LOCALE: usize = 4;

/// A set that covers labels, locales and topics, in an order that mixes the labels.
pub(super) fn cover(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let chosen = covering(m, m.demos, &|_| true, rng);
    let demos: Vec<Demo> = chosen
        .iter()
        .filter_map(|&i| demo_of(m.task, &m.items[i]))
        .collect();
    (!demos.is_empty()).then_some(Edit::SetDemos { demos })
}

/// How many demos more a version may get: no more than it has, than the cap allows, and than leave
/// half of the split to score on.
pub(super) fn room(m: &Material<'_>) -> usize {
    let has = m.version.demos.len();
    let usable = m
        .tune
        .iter()
        .filter(|&&i| demo_of(m.task, &m.items[i]).is_some());
    let most = m.max_demos.min(usable.count() / 2);
    has.min(most.saturating_sub(has))
}

/// Doubles the demos; the new ones cover what the split has besides them.
pub(super) fn grow(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let fresh = |item: &Item| !m.version.shows(&item.id);
    let chosen = covering(m, room(m), &fresh, rng);
    let more: Vec<Demo> = chosen
        .iter()
        .filter_map(|&i| demo_of(m.task, &m.items[i]))
        .collect();
    if more.is_empty() {
        return None;
    }
    let mut demos = m.version.demos.clone();
    demos.extend(more);
    demos.shuffle(rng);
    Some(Edit::SetDemos { demos })
}

/// Adds demos from the card's locale, or where it has too few from its nearest relatives (the same
/// language, then the same country), for this locale alone.
pub(super) fn for_locale(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let locale = m.card?.locale.as_ref()?;
    let mut demos = m.version.demos.clone();
    demos.retain(|d| d.only_for.as_ref() != Some(locale));
    let fresh = |item: &Item| !demos.iter().any(|d| d.source == item.id);
    let mut chosen = Vec::new();
    for kinship in (1..=3).rev() {
        let wanted = FOR_LOCALE.saturating_sub(chosen.len());
        let kin = |item: &Item| locale.kinship(&item.locale) == kinship && fresh(item);
        if wanted > 0 {
            chosen.extend(covering(m, wanted, &kin, rng));
        }
    }
    let own = chosen.iter().filter_map(|&i| demo_of(m.task, &m.items[i]));
    let own: Vec<Demo> = own
        .map(|d| Demo {
            only_for: Some(locale.clone()),
            ..d
        })
        .collect();
    if own.is_empty() {
        return None;
    }
    demos.extend(own);
    Some(Edit::SetDemos { demos })
}

/// At most `k` of the tuning items that are wanted, spread over labels, locales and topics, shuffled.
fn covering(
    m: &Material<'_>,
    k: usize,
    wanted: &dyn Fn(&Item) -> bool,
    rng: &mut impl Rng,
) -> Vec<usize> {
    let usable: Vec<(usize, usize)> = m
        .tune
        .iter()
        .filter(|&&i| wanted(&m.items[i]))
        .filter_map(|&i| {
            demo_of(m.task, &m.items[i])
                .and(label_of(m.task, &m.items[i], 0))
                .map(|l| (i, l))
        })
        .collect();
    if usable.is_empty() {
        return Vec::new();
    }
    let texts: Vec<String> = usable
        .iter()
        .map(|&(i, _)| m.items[i].fields.join(" "))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let locales: Vec<_> = usable.iter().map(|&(i, _)| &m.items[i].locale).collect();
    let labels: Vec<_> = usable.iter().map(|&(_, l)| l).collect();
    // Never spend more than half of what there is on demos: the rest must be left to score on.
    let k = k.min(usable.len().div_ceil(2)).max(1);
    let mut chosen = disagreement::cover(&texts, &locales, &labels, k, rng.random());
    chosen.shuffle(rng);
    chosen.iter().map(|&c| usable[c].0).collect()
}

/// A demo from the card, or from what contrasts with it, replaces the one least like it in
/// purpose: another of the same label where there is one, so that the balance stays.
pub(super) fn from_card(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let card = m.card?;
    let mut sources: Vec<usize> = card
        .items
        .iter()
        .chain(card.contrast.iter().take(2))
        .copied()
        .collect();
    sources.retain(|&i| !m.version.shows(&m.items[i].id));
    // The medoid comes first in a card; a later one is taken now and then, so that retries differ.
    let at = (rng.random_range(0..sources.len().max(1)) * rng.random_range(0..2usize))
        .min(sources.len().saturating_sub(1));
    let new = sources
        .iter()
        .skip(at)
        .find_map(|&i| demo_of(m.task, &m.items[i]))?;
    if m.version.demos.len() < m.demos {
        return Some(Edit::AddDemo { demo: new });
    }
    let same: Vec<_> = m
        .version
        .demos
        .iter()
        .filter(|d| d.answers == new.answers)
        .collect();
    let pool: Vec<_> = if same.is_empty() {
        m.version.demos.iter().collect()
    } else {
        same
    };
    let out = pool.get(rng.random_range(0..pool.len().max(1)))?;
    Some(Edit::SwapDemo {
        out: out.source.clone(),
        demo: new,
    })
}

/// Removes one demo.
pub(super) fn drop_one(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let demos = &m.version.demos;
    let out = demos.get(rng.random_range(0..demos.len().max(1)))?;
    Some(Edit::DropDemo {
        source: out.source.clone(),
    })
}

/// Shuffles the demos.
pub(super) fn reorder(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let mut order: Vec<usize> = (0..m.version.demos.len()).collect();
    order.shuffle(rng);
    Some(Edit::ReorderDemos { order })
}

//! Owns the division of items into tune, validation and test: stratified by locale and label,
//! groups kept whole, decided by the seed alone. Must not know what the splits are used for.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::groups::Groups;
use super::load::own_text;
use super::{DataError, Item, Split};
use crate::task::Task;

const SPLITS: [Split; 3] = [Split::Tune, Split::Validation, Split::Test];

/// How items are divided.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitPlan {
    /// Shares of tune, validation and test; only their proportion counts. Where `per_locale` is
    /// given, its counts take their place.
    pub shares: [f64; 3],
    /// Items per locale in tune, validation and test; what is over is in no split.
    pub per_locale: Option<[usize; 3]>,
    /// The same number of items for each label that most raters chose, within each locale and
    /// split. Items that tie, have no votes, or on which most abstained are then in no split.
    pub balance: bool,
    /// Every seed counts, 0 included.
    pub seed: u64,
}

/// What a division gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SplitReport {
    /// Split -> locale -> label of the majority (`tie`, `no votes`) -> items.
    pub counts: BTreeMap<Split, BTreeMap<String, BTreeMap<String, usize>>>,
    /// Items in no split.
    pub left_over: usize,
    /// Groups that were kept whole.
    pub groups: usize,
    /// Where there were fewer items than the plan asks for.
    pub short: Vec<Shortage>,
}

/// Fewer items than asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shortage {
    /// The split.
    pub split: Split,
    /// The locale.
    pub locale: String,
    /// Items asked for.
    pub wanted: usize,
    /// Items there are.
    pub found: usize,
}

/// Locale and label of the first criterion's majority, as an index into the strata.
struct Strata {
    of_item: Vec<usize>,
    /// Locale, label, and whether it counts where a plan balances.
    names: Vec<(String, String, bool)>,
}

/// Divides the items; earlier splits are overwritten. Groups, and items of equal identifying text
/// in any locale, go to one split. Strata are locale x the majority label of the first criterion.
///
/// Groups are taken in an order drawn from (seed, group); each goes to the split that, relative to
/// its target, still lacks most of the group's strata. The order of the items does not count.
///
/// # Errors
/// Shares that are negative, not finite or all zero; a duplicate id.
pub fn split(items: &mut [Item], task: &Task, plan: &SplitPlan) -> Result<SplitReport, DataError> {
    let shares = shares(plan)?;
    items.iter_mut().for_each(|item| item.split = None);
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|&a, &b| items[a].id.cmp(&items[b].id));
    if let Some(pair) = order.windows(2).find(|w| items[w[0]].id == items[w[1]].id) {
        let what = format!("the id `{}` is there twice", items[pair[0]].id);
        return Err(DataError::new(what, "ids are unique; rename or remove one"));
    }
    let strata = strata(items, task);
    let groups = group_items(items, task, &order, plan.seed);
    let assigned = assign(&groups, &strata, shares, plan.seed);
    for (members, split) in groups.iter().zip(assigned) {
        for &i in members {
            items[i].split = Some(SPLITS[split]);
        }
    }
    let mut report = SplitReport {
        groups: groups.len(),
        ..SplitReport::default()
    };
    if plan.balance || plan.per_locale.is_some() {
        thin(items, &strata, plan, &mut report);
    }
    for (item, &s) in items.iter().zip(&strata.of_item) {
        let (locale, label, _) = &strata.names[s];
        match item.split {
            Some(split) => {
                let by_locale = report.counts.entry(split).or_default();
                *by_locale
                    .entry(locale.clone())
                    .or_default()
                    .entry(label.clone())
                    .or_default() += 1;
            }
            None => report.left_over += 1,
        }
    }
    Ok(report)
}

/// The shares, summing to 1.
fn shares(plan: &SplitPlan) -> Result<[f64; 3], DataError> {
    let raw = plan.per_locale.map_or(plan.shares, |n| n.map(|n| n as f64));
    let sum: f64 = raw.iter().sum();
    if raw.iter().any(|s| !s.is_finite() || *s < 0.0) || sum <= 0.0 || !sum.is_finite() {
        let what = format!("the shares {raw:?} are no division");
        return Err(DataError::new(
            what,
            "give three numbers from 0, not all 0, such as 0.4,0.3,0.3",
        ));
    }
    Ok(raw.map(|s| s / sum))
}

fn strata(items: &[Item], task: &Task) -> Strata {
    let name = |item: &Item| {
        let votes = item.votes.first();
        let label = votes
            .and_then(|v| v.majority())
            .and_then(|l| task.criteria.first()?.labels.get(l));
        let (label, counts) = match (label, votes.is_some_and(|v| v.is_tie())) {
            (Some(label), _) => (label.name.clone(), !label.abstain),
            (None, true) => ("tie".to_owned(), false),
            (None, false) => ("no votes".to_owned(), false),
        };
        (item.locale.to_string(), label, counts)
    };
    let names: BTreeSet<_> = items.iter().map(name).collect();
    let names: Vec<_> = names.into_iter().collect();
    // Every name was put in above, so the search finds it.
    let of_item = items
        .iter()
        .map(|i| names.binary_search(&name(i)).unwrap_or_default())
        .collect();
    Strata { of_item, names }
}

/// A number drawn from the seed, a purpose and a text.
fn draw(seed: u64, purpose: &str, text: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(purpose.as_bytes());
    hasher.update(&[0]);
    hasher.update(text.as_bytes());
    *hasher.finalize().as_bytes()
}

/// Members of each group, groups in the order of the draw.
fn group_items(items: &[Item], task: &Task, order: &[usize], seed: u64) -> Vec<Vec<usize>> {
    let mut groups = Groups::default();
    // Names of groups and texts are told apart from each other by a prefix.
    let key = |item: &Item| format!("g{}", item.group);
    for item in items.iter() {
        groups.join(
            &key(item),
            &format!("t{}", own_text(task, &item.fields, &item.id)),
        );
    }
    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for &i in order {
        members
            .entry(groups.name(&key(&items[i])).to_owned())
            .or_default()
            .push(i);
    }
    let mut drawn: Vec<_> = members
        .into_iter()
        .map(|(name, m)| (draw(seed, "group", &name), m))
        .collect();
    drawn.sort();
    drawn.into_iter().map(|(_, m)| m).collect()
}

/// The split of each group: the one that lacks most of what the group has, relative to its target.
fn assign(groups: &[Vec<usize>], strata: &Strata, shares: [f64; 3], seed: u64) -> Vec<usize> {
    let mut total = vec![0.0; strata.names.len()];
    strata.of_item.iter().for_each(|&s| total[s] += 1.0);
    let mut have = vec![[0.0f64; 3]; strata.names.len()];
    let place = |(at, members): (usize, &Vec<usize>)| {
        let mut wants = BTreeMap::new();
        members
            .iter()
            .for_each(|&i| *wants.entry(strata.of_item[i]).or_insert(0.0) += 1.0);
        let lacks = |k: usize| -> f64 {
            let of = |(&s, n): (&usize, &f64)| n * (1.0 - have[s][k] / (total[s] * shares[k]));
            wants.iter().map(of).sum()
        };
        // A tie is broken by the draw: the first split of a turn that differs from group to group.
        let turn = draw(seed, "tie", &at.to_string())[0] as usize;
        let mut best: Option<(f64, usize)> = None;
        for k in (0..3).map(|k| (k + turn) % 3).filter(|&k| shares[k] > 0.0) {
            let lack = lacks(k);
            if best.is_none_or(|(most, _)| lack > most) {
                best = Some((lack, k));
            }
        }
        // Shares sum to 1, so at least one is above 0.
        let k = best.map_or(0, |(_, k)| k);
        wants.iter().for_each(|(&s, n)| have[s][k] += n);
        k
    };
    groups.iter().enumerate().map(place).collect()
}

/// Takes items over the plan's counts out of their split, by an order drawn from (seed, id).
fn thin(items: &mut [Item], strata: &Strata, plan: &SplitPlan, report: &mut SplitReport) {
    let mut pools: BTreeMap<(&str, usize), BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    let locales: BTreeSet<_> = strata
        .names
        .iter()
        .map(|(locale, ..)| locale.as_str())
        .collect();
    for locale in locales {
        (0..3).for_each(|k| _ = pools.insert((locale, k), BTreeMap::new()));
    }
    for (i, item) in items.iter_mut().enumerate() {
        let s = strata.of_item[i];
        let (locale, _, counts) = &strata.names[s];
        if plan.balance && !counts {
            item.split = None;
        }
        if let Some(k) = SPLITS.iter().position(|x| Some(*x) == item.split) {
            pools
                .entry((locale, k))
                .or_default()
                .entry(s)
                .or_default()
                .push(i);
        }
    }
    for ((locale, k), mut pool) in pools {
        for members in pool.values_mut() {
            members.sort_by_cached_key(|&i| draw(plan.seed, "item", &items[i].id));
        }
        let sizes: Vec<_> = pool.values().map(Vec::len).collect();
        let labels = strata
            .names
            .iter()
            .filter(|(l, _, counts)| l == locale && *counts)
            .count();
        let wanted = plan.per_locale.map(|n| n[k]);
        let quotas = if plan.balance {
            equal(&sizes, wanted, labels)
        } else {
            proportional(&sizes, wanted)
        };
        let found = quotas.iter().sum();
        for (members, quota) in pool.values().zip(&quotas) {
            members
                .iter()
                .skip(*quota)
                .for_each(|&i| items[i].split = None);
        }
        if let Some(wanted) = wanted.filter(|w| *w > found) {
            report.short.push(Shortage {
                split: SPLITS[k],
                locale: locale.to_owned(),
                wanted,
                found,
            });
        }
    }
}

/// The same number of each label, as large as the smallest pool allows; none where one of the
/// locale's labels is missing from the split.
fn equal(sizes: &[usize], wanted: Option<usize>, labels: usize) -> Vec<usize> {
    let smallest = if sizes.len() < labels {
        0
    } else {
        sizes.iter().min().copied().unwrap_or(0)
    };
    let each = wanted.map_or(smallest, |w| smallest.min(w / labels.max(1)));
    vec![each; sizes.len()]
}

/// Parts of the wanted number in proportion to the pools (largest remainder), never over a pool.
fn proportional(sizes: &[usize], wanted: Option<usize>) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let wanted = wanted.unwrap_or(total).min(total);
    if total == 0 {
        return vec![0; sizes.len()];
    }
    let mut parts: Vec<usize> = sizes.iter().map(|n| n * wanted / total).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(sizes[i] * wanted % total), i));
    let missing = wanted - parts.iter().sum::<usize>();
    order.into_iter().take(missing).for_each(|i| parts[i] += 1);
    parts
}

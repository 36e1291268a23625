//! Owns the check of an items file before it is used: counts, ties, duplicates, leaking groups and
//! every bad record with its row. Must not change or drop anything.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::load::{duplicate_id, own_text, same_id};
use super::{DataError, Item, ItemRecord, Split, check_record};
use crate::task::Task;

/// A locale with fewer items than this gives no interval worth reading.
const FEW_ITEMS: usize = 20;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckReport {
    /// Records in the file.
    pub records: usize,
    /// Records that are items of the task.
    pub items: usize,
    /// Counts by locale.
    pub locales: BTreeMap<String, LocaleCounts>,
    /// Items by split, where the file says; `none` otherwise.
    pub splits: BTreeMap<String, usize>,
    /// Records that are refused, with row and reason; duplicate ids among them.
    pub problems: Vec<DataError>,
    /// Items of one locale whose identifying text is equal after normalisation.
    pub duplicates: Vec<Duplicate>,
    /// Groups, or equal texts, that are in more than one split.
    pub leaks: Vec<Leak>,
    /// Locales with fewer than 20 items.
    pub few_items: Vec<String>,
}

/// Counts of one locale.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LocaleCounts {
    /// Items.
    pub items: usize,
    /// Distinct groups.
    pub groups: usize,
    /// By criterion.
    pub criteria: BTreeMap<String, CriterionCounts>,
}

/// Counts of one criterion in one locale.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CriterionCounts {
    /// Votes by label, as in the task's order.
    pub votes: BTreeMap<String, u64>,
    /// Items by the label that most raters chose.
    pub majority: BTreeMap<String, usize>,
    /// Items whose most frequent labels tie.
    pub ties: usize,
    /// Items without a vote.
    pub without_votes: usize,
}

/// Items with the same text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicate {
    /// The locale.
    pub locale: String,
    /// The text in normalised form.
    pub text: String,
    /// The items, with their rows.
    pub items: Vec<(usize, String)>,
}

/// A group or text in several splits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leak {
    /// The group or the text.
    pub group: String,
    /// Its items by split.
    pub splits: BTreeMap<Split, Vec<String>>,
}

impl CheckReport {
    /// Whether nothing keeps the file from being used: no bad record, no leak.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty() && self.leaks.is_empty()
    }
}

/// Checks the records of a file (with their rows) against a task. Looks at every record, so that
/// one run shows all that is wrong.
pub fn check(task: &Task, records: &[(usize, ItemRecord)]) -> CheckReport {
    let mut report = CheckReport {
        records: records.len(),
        ..CheckReport::default()
    };
    let mut items: Vec<(usize, Item)> = Vec::with_capacity(records.len());
    let mut ids: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    for (row, record) in records {
        let key = same_id(&record.id);
        if let Some(first) = ids.get(&key) {
            let e = duplicate_id(&record.id, *first);
            report.problems.push(e.at_row(*row).at_column("id"));
            continue;
        }
        ids.insert(key, (*row, &record.id));
        match check_record(task, record, *row) {
            Ok(item) => items.push((*row, item)),
            Err(e) => report.problems.push(e),
        }
    }
    report.items = items.len();
    count(task, &items, &mut report);
    same_texts(task, &items, &mut report);
    let few = report.locales.iter().filter(|(_, c)| c.items < FEW_ITEMS);
    report.few_items = few.map(|(locale, _)| locale.clone()).collect();
    report
}

fn count(task: &Task, items: &[(usize, Item)], report: &mut CheckReport) {
    let mut groups: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (_, item) in items {
        let split = item.split.map_or("none", Split::as_str);
        *report.splits.entry(split.to_owned()).or_default() += 1;
        groups
            .entry(item.locale.to_string())
            .or_default()
            .insert(&item.group);
        let locale = report.locales.entry(item.locale.to_string()).or_default();
        locale.items += 1;
        for (criterion, votes) in task.criteria.iter().zip(&item.votes) {
            let counts = locale.criteria.entry(criterion.name.clone()).or_default();
            for (label, n) in criterion
                .labels
                .iter()
                .zip(&votes.counts)
                .filter(|(_, n)| **n > 0)
            {
                *counts.votes.entry(label.name.clone()).or_default() += u64::from(*n);
            }
            match votes.majority() {
                Some(l) => {
                    *counts
                        .majority
                        .entry(criterion.labels[l].name.clone())
                        .or_default() += 1
                }
                None if votes.is_tie() => counts.ties += 1,
                None => counts.without_votes += 1,
            }
        }
    }
    for (locale, groups) in groups {
        report.locales.entry(locale).or_default().groups = groups.len();
    }
}

fn same_texts(task: &Task, items: &[(usize, Item)], report: &mut CheckReport) {
    let mut by_text: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    let mut by_group: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (i, (_, item)) in items.iter().enumerate() {
        let text = own_text(task, &item.fields, &item.id);
        by_group.entry(item.group.clone()).or_default().insert(i);
        by_group.entry(text.clone()).or_default().insert(i);
        by_text
            .entry((item.locale.to_string(), text))
            .or_default()
            .push(i);
    }
    let equal = by_text.into_iter().filter(|(_, same)| same.len() > 1);
    report.duplicates = equal
        .map(|((locale, text), same)| {
            let items = same
                .iter()
                .map(|&i| (items[i].0, items[i].1.id.clone()))
                .collect();
            Duplicate {
                locale,
                text,
                items,
            }
        })
        .collect();
    for (group, members) in by_group {
        let mut splits: BTreeMap<Split, Vec<String>> = BTreeMap::new();
        for i in members {
            if let Some(split) = items[i].1.split {
                splits.entry(split).or_default().push(items[i].1.id.clone());
            }
        }
        if splits.len() > 1 {
            report.leaks.push(Leak { group, splits });
        }
    }
}

//! Owns the paper's tables of the data: offensive rows per locale, identities by mean
//! offensiveness, and tuples of two countries. Must not know how tables are shown.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::kinds::group_of;
use super::overlap::{Overlap, overlaps};
use super::{Mean, Share, paper};
use crate::data::import::Import;
use crate::data::import::seegull::Kind;
use crate::data::{ItemRecord, normalise};

/// From this mean on a row counts as offensive.
pub const THRESHOLD: f64 = 2.0;
/// Ends of the data set's scale of means: every rater "not offensive", every rater "extremely".
pub const SCALE: (f64, f64) = (-1.0, 4.0);
/// Means in the files have nine decimals.
const SLACK: f64 = 1e-6;

/// How the tables are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Confidence level of the intervals.
    pub level: f64,
    /// An identity needs so many rows with a mean to be ranked.
    pub min_rows: usize,
}

/// The tables of one part of the data set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tables {
    /// `stereotypes` (pairs) or `offensiveness` (attributes).
    pub part: &'static str,
    /// What a row is.
    pub unit: &'static str,
    /// Confidence level of the intervals.
    pub level: f64,
    /// Rows in the files.
    pub rows: usize,
    /// Rows that could not be read and are in no figure.
    pub left_out: usize,
    /// One per locale.
    pub locales: Vec<LocaleTable>,
    /// Identities over all locales, by the group that their English name stands for; empty for
    /// attributes.
    pub identities: Vec<Identity>,
    /// Two countries of one language; empty for attributes.
    pub overlaps: Vec<Overlap>,
    /// Rows whose written mean is not the mean of their own votes, where the part has the votes.
    pub other_means: Option<usize>,
}

/// The rows of one locale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocaleTable {
    /// The locale.
    pub locale: String,
    /// Share of rows with a mean of 2 or more, over all rows.
    pub offensive: Share,
    /// Rows without a mean; they count as not offensive.
    pub without_mean: usize,
    /// Mean offensiveness of the rows that have one.
    pub mean: Mean,
    /// What the paper reports: number and per cent.
    pub paper: Option<Reported>,
    /// Identities of the locale, most offensive first; empty for attributes.
    pub identities: Vec<Identity>,
}

/// A figure of the paper beside ours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reported {
    /// Number of rows.
    pub hits: usize,
    /// Per cent, two decimals.
    pub percent: f64,
    /// Whether ours are the same, to the decimals that are printed.
    pub same: bool,
}

/// An identity with the offensiveness of what it is associated with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Identity {
    /// The identity: as the first row writes it, or the name of the group.
    pub identity: String,
    /// Its English name, where the files have one and the table is of one locale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub english: Option<String>,
    /// Mean of the rows' means, -1 to 4.
    pub offensiveness: Mean,
}

/// Makes the tables of one part.
pub fn tables(import: &Import, kind: Kind, options: &Options) -> Tables {
    let mut by_locale: BTreeMap<&str, Vec<&ItemRecord>> = BTreeMap::new();
    for record in &import.records {
        by_locale.entry(&record.locale).or_default().push(record);
    }
    let pairs = kind == Kind::Stereotypes;
    let locales = by_locale
        .iter()
        .map(|(locale, rows)| locale_table(locale, rows, pairs, options))
        .collect();
    let all: Vec<&ItemRecord> = import.records.iter().collect();
    Tables {
        part: if pairs {
            "stereotypes"
        } else {
            "offensiveness"
        },
        unit: if pairs { "pairs" } else { "attributes" },
        level: options.level,
        rows: import.rows,
        left_out: import.left_out(),
        locales,
        identities: if pairs {
            identities(&all, Named::Group, options)
        } else {
            Vec::new()
        },
        overlaps: if pairs {
            overlaps(&by_locale, options)
        } else {
            Vec::new()
        },
        other_means: (!pairs).then(|| all.iter().filter(|r| !mean_fits(r)).count()),
    }
}

fn locale_table(locale: &str, rows: &[&ItemRecord], pairs: bool, options: &Options) -> LocaleTable {
    let means: Vec<Option<f64>> = rows.iter().map(|r| mean_of(r)).collect();
    let hit: Vec<bool> = means
        .iter()
        .map(|m| m.is_some_and(|m| m >= THRESHOLD - SLACK))
        .collect();
    let known: Vec<f64> = means.iter().copied().flatten().collect();
    // A mean belongs to the attribute: all pairs of an attribute have the same one.
    let clusters = numbered(rows.iter().map(|r| attribute(r)));
    let offensive = Share::clustered(&hit, &clusters, options.level);
    let paper = paper::offensive_pairs(locale).filter(|_| pairs);
    LocaleTable {
        locale: locale.to_owned(),
        paper: paper.map(|(hits, percent)| Reported {
            hits,
            percent,
            same: hits == offensive.hits
                && offensive
                    .share
                    .is_some_and(|s| (100.0 * s - percent).abs() < 0.005),
        }),
        offensive,
        without_mean: rows.len() - known.len(),
        mean: Mean::new(&known, SCALE, options.level),
        identities: if pairs {
            identities(rows, Named::AsWritten, options)
        } else {
            Vec::new()
        },
    }
}

/// The row's mean offensiveness, where it has one.
pub fn mean_of(record: &ItemRecord) -> Option<f64> {
    let mean: f64 = record.meta.get("mean_offensive_score")?.parse().ok()?;
    (SCALE.0 - SLACK..=SCALE.1 + SLACK)
        .contains(&mean)
        .then_some(mean)
}

/// The attribute in the form in which attributes are compared.
pub(super) fn attribute(record: &ItemRecord) -> String {
    normalise(record.fields.get("attribute").map_or("", String::as_str))
}

/// Ids as numbers, equal ids alike.
pub(super) fn numbered(ids: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen = HashMap::new();
    ids.map(|id| {
        let next = seen.len();
        *seen.entry(id).or_insert(next)
    })
    .collect()
}

/// The mean of the votes by the data set's values: -1, 1, 2, 3, 4, and 0 for unsure.
fn mean_fits(record: &ItemRecord) -> bool {
    let Some(votes) = record.votes.get("offensiveness") else {
        return true;
    };
    let value = |label: &str| match label {
        "NO" => -1.0,
        "O1" => 1.0,
        "O2" => 2.0,
        "O3" => 3.0,
        "O4" => 4.0,
        _ => 0.0,
    };
    let n: u32 = votes.values().sum();
    let sum: f64 = votes.iter().map(|(l, &n)| value(l) * f64::from(n)).sum();
    mean_of(record).is_none_or(|m| (m - sum / f64::from(n)).abs() < SLACK)
}

/// By which name rows are one identity.
#[derive(Clone, Copy, PartialEq)]
enum Named {
    /// The identity in the locale's language, normalised.
    AsWritten,
    /// The group that the English name stands for, over languages and forms.
    Group,
}

/// Identities with enough rows, most offensive first; ties by their name.
fn identities(rows: &[&ItemRecord], named: Named, options: &Options) -> Vec<Identity> {
    let mut found: BTreeMap<String, (String, Option<String>, Vec<f64>)> = BTreeMap::new();
    for row in rows {
        let english = row.fields.get("identity_gloss");
        let name = match named {
            Named::AsWritten => row.fields.get("identity").cloned(),
            Named::Group => english.map(|e| group_of(e).0),
        };
        let (Some(name), Some(mean)) = (name, mean_of(row)) else {
            continue;
        };
        let english = english.filter(|_| named == Named::AsWritten).cloned();
        let entry = found
            .entry(normalise(&name))
            .or_insert_with(|| (name, english, Vec::new()));
        entry.2.push(mean);
    }
    let mut list: Vec<Identity> = found
        .into_values()
        .filter(|(.., means)| means.len() >= options.min_rows)
        .map(|(identity, english, means)| Identity {
            identity,
            english,
            offensiveness: Mean::new(&means, SCALE, options.level),
        })
        .collect();
    let key = |i: &Identity| i.offensiveness.mean.unwrap_or(f64::NEG_INFINITY);
    list.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.identity.cmp(&b.identity)));
    list
}

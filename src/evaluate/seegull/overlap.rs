//! Owns tuples that people of two countries of one language annotated, and how many of them are a
//! stereotype in each. Must not know what the paper says beyond the numbers beside ours.

use std::collections::BTreeMap;

use serde::Serialize;

use super::tables::{Options, attribute, numbered};
use super::{Share, paper};
use crate::data::{ItemRecord, normalise};

/// Two locales of one language.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overlap {
    /// The two locales.
    pub locales: [String; 2],
    /// Rows of each.
    pub rows: [usize; 2],
    /// Tuples (identity and attribute, in normalised form) that both files list.
    pub shared: usize,
    /// Rows of each locale that repeat an earlier tuple of it; the first one counts.
    pub repeats: [usize; 2],
    /// Share of the shared tuples that at least 1, 2, 3 raters call a stereotype, by locale.
    pub marked: Vec<Marked>,
    /// Whether every row of both files has at least one vote for "stereotype": then tuples that
    /// nobody marked in one of the countries are missing from its file, not from its annotation.
    pub only_marked_rows: bool,
    /// The paper's figures.
    pub paper: Option<Reported>,
}

/// Shares at one number of raters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Marked {
    /// Raters who say "stereotype".
    pub at_least: u32,
    /// In each locale.
    pub share: [Share; 2],
}

/// What the paper reports, and what the release allows for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reported {
    /// Tuples annotated in both countries.
    pub tuples: usize,
    /// Per cent marked by `at_least` raters, by country.
    pub percent: [f64; 2],
    /// Raters.
    pub at_least: u32,
    /// Per country: smallest and largest per cent of the paper's tuples that the released rows
    /// allow. The smallest: no tuple beyond those that both files list is marked in it.
    pub possible: [[f64; 2]; 2],
    /// Whether the paper's shares lie between those.
    pub within: bool,
}

/// Tuple -> raters who say "stereotype".
type Tuples = BTreeMap<(String, String), u32>;

/// One [`Overlap`] for each two locales of a language.
pub fn overlaps(by_locale: &BTreeMap<&str, Vec<&ItemRecord>>, options: &Options) -> Vec<Overlap> {
    let language = |tag: &str| tag.split('-').next().unwrap_or_default().to_owned();
    let locales: Vec<&str> = by_locale.keys().copied().collect();
    let mut out = Vec::new();
    for (i, first) in locales.iter().enumerate() {
        for second in &locales[i + 1..] {
            if language(first) == language(second) {
                let rows = [&by_locale[first][..], &by_locale[second][..]];
                out.push(overlap([first, second], rows, options));
            }
        }
    }
    out
}

fn overlap(locales: [&str; 2], rows: [&[&ItemRecord]; 2], options: &Options) -> Overlap {
    let tuples = rows.map(tuples);
    let shared: Vec<&(String, String)> = tuples[0]
        .keys()
        .filter(|key| tuples[1].contains_key(*key))
        .collect();
    // Tuples of one attribute resemble each other.
    let clusters = numbered(shared.iter().map(|(_, attribute)| attribute.clone()));
    let marked = (1..=3).map(|at_least| Marked {
        at_least,
        share: [0, 1].map(|side| {
            let hit: Vec<bool> = shared
                .iter()
                .map(|key| tuples[side][*key] >= at_least)
                .collect();
            Share::clustered(&hit, &clusters, options.level)
        }),
    });
    let marked: Vec<Marked> = marked.collect();
    let only_marked_rows = rows.iter().all(|r| r.iter().all(|r| votes(r) > 0));
    let paper = paper::two_countries(locales[0], locales[1])
        .map(|p| reported(&p, shared.len(), &marked, &tuples));
    Overlap {
        locales: locales.map(str::to_owned),
        rows: rows.map(<[_]>::len),
        shared: shared.len(),
        repeats: [0, 1].map(|side| rows[side].len() - tuples[side].len()),
        marked,
        only_marked_rows,
        paper,
    }
}

fn tuples(rows: &[&ItemRecord]) -> Tuples {
    let mut out = Tuples::new();
    for row in rows {
        let identity = normalise(row.fields.get("identity").map_or("", String::as_str));
        out.entry((identity, attribute(row)))
            .or_insert_with(|| votes(row));
    }
    out
}

fn votes(row: &ItemRecord) -> u32 {
    let votes = row.votes.get("stereotype");
    votes.and_then(|v| v.get("S")).copied().unwrap_or(0)
}

/// The paper's tuples include those that nobody marked in one country (which its file leaves out).
/// At least the marked tuples among the shared ones count; at most as many more as are missing, and
/// no more than the country's file holds.
fn reported(
    paper: &paper::TwoCountries,
    shared: usize,
    marked: &[Marked],
    tuples: &[Tuples; 2],
) -> Reported {
    let n = paper.tuples as f64;
    let missing = paper.tuples.saturating_sub(shared);
    let possible = [0, 1].map(|side| {
        let at = marked.iter().find(|m| m.at_least == paper.at_least);
        let hits = at.map_or(0, |m| m.share[side].hits);
        let all = tuples[side]
            .values()
            .filter(|&&v| v >= paper.at_least)
            .count();
        let most = (hits + missing).min(all).max(hits);
        [100.0 * hits as f64 / n, 100.0 * most as f64 / n]
    });
    // The paper rounds to one decimal.
    let within = (0..2).all(|side| {
        let [low, high] = possible[side];
        (low - 0.05..=high + 0.05).contains(&paper.marked[side])
    });
    Reported {
        tuples: paper.tuples,
        percent: paper.marked,
        at_least: paper.at_least,
        possible,
        within,
    }
}

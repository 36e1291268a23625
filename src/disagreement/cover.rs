//! Representative items: few, typical, and spread over labels and locales.

use std::collections::{BTreeMap, HashSet};

use ndarray::Array2;
use rand::seq::SliceRandom;

use super::features::{project, squared, stream};
use super::kmeans::{fit, mean};
use crate::locale::Locale;
use crate::text::ngrams::{Vocabulary, mix, plain};

/// Dimensions of the texts here: medoids need no more.
const DIMENSIONS: usize = 128;

/// Items of a label and locale that are looked at.
const CANDIDATES: usize = 1_000;

/// Restarts of k-means.
const RUNS: usize = 5;

/// Chooses `k` representative items: labels in equal shares as far as there are items, within a
/// label the locales that have fewest so far, and within a label and locale the items nearest to
/// the centroids of k-means. Equal texts are chosen once.
///
/// Positions come label by label in turn, so that a shorter list from the front is balanced too.
/// Fewer than `k` come back where there are fewer different items. Where the slices differ in
/// length, the longer ones' surplus is ignored. The same input and seed give the same answer.
pub fn cover(
    texts: &[&str],
    locales: &[&Locale],
    labels: &[usize],
    k: usize,
    seed: u64,
) -> Vec<usize> {
    let n = texts.len().min(locales.len()).min(labels.len());
    let mut cells: BTreeMap<(usize, &Locale), Vec<usize>> = BTreeMap::new();
    for index in distinct(&texts[..n], locales, labels) {
        cells
            .entry((labels[index], locales[index]))
            .or_default()
            .push(index);
    }
    let slots = share_out(&cells, k);
    let vocabulary = Vocabulary::build(texts[..n].iter().copied(), (2, 4));
    let mut chosen: BTreeMap<(usize, &Locale), std::vec::IntoIter<usize>> = BTreeMap::new();
    for (key, members) in &cells {
        let wanted = slots.iter().filter(|slot| *slot == key).count();
        if wanted > 0 {
            let purpose = format!("cover {} {}", key.0, key.1);
            let found = medoids(texts, members, wanted, &vocabulary, seed, &purpose);
            chosen.insert(*key, found.into_iter());
        }
    }
    slots
        .iter()
        .filter_map(|slot| chosen.get_mut(slot)?.next())
        .collect()
}

/// Positions of different (text, locale, label), in the order of their text.
fn distinct(texts: &[&str], locales: &[&Locale], labels: &[usize]) -> Vec<usize> {
    let same: Vec<String> = texts.iter().map(|t| plain(t)).collect();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    order.sort_by(|&a, &b| same[a].cmp(&same[b]).then(a.cmp(&b)));
    let mut seen = HashSet::new();
    order.retain(|&i| seen.insert((same[i].as_str(), locales[i], labels[i])));
    order
}

/// Which cell each of `k` places goes to: labels in turn, within a label the locale with fewest
/// places so far in all, then the one with most items left.
fn share_out<'a>(
    cells: &BTreeMap<(usize, &'a Locale), Vec<usize>>,
    k: usize,
) -> Vec<(usize, &'a Locale)> {
    let mut left: BTreeMap<(usize, &Locale), usize> = cells
        .iter()
        .map(|(&key, members)| (key, members.len()))
        .collect();
    let mut used: BTreeMap<&Locale, usize> = BTreeMap::new();
    let mut labels: Vec<usize> = cells.keys().map(|key| key.0).collect();
    labels.dedup();
    let mut slots = Vec::new();
    while slots.len() < k && left.values().any(|&l| l > 0) {
        for &label in &labels {
            if slots.len() >= k {
                break;
            }
            let places = |locale: &Locale| used.get(locale).copied().unwrap_or(0);
            let cell = left
                .iter()
                .filter(|&(key, &l)| key.0 == label && l > 0)
                .min_by_key(|&(key, &l)| (places(key.1), std::cmp::Reverse(l), key.1))
                .map(|(&key, _)| key);
            if let Some(key) = cell {
                *used.entry(key.1).or_default() += 1;
                left.entry(key).and_modify(|l| *l -= 1);
                slots.push(key);
            }
        }
    }
    slots
}

/// The `wanted` members nearest to the centroids, largest cluster first; where clusters are too
/// few, the members farthest from those already chosen.
fn medoids(
    texts: &[&str],
    members: &[usize],
    wanted: usize,
    vocabulary: &Vocabulary,
    seed: u64,
    purpose: &str,
) -> Vec<usize> {
    let mut members = members.to_vec();
    if members.len() > CANDIDATES.max(wanted) {
        let keep = CANDIDATES.max(wanted);
        members = members
            .partial_shuffle(&mut stream(seed, purpose), keep)
            .0
            .to_vec();
        members.sort_by(|&a, &b| texts[a].cmp(texts[b]).then(a.cmp(&b)));
    }
    let mut points = Array2::zeros((members.len(), DIMENSIONS));
    for (mut row, &member) in points.outer_iter_mut().zip(&members) {
        let mut cells = vec![0.0; DIMENSIONS];
        project(&vocabulary.vector(texts[member]), mix(seed), &mut cells);
        row.iter_mut()
            .zip(cells)
            .for_each(|(cell, value)| *cell = value);
    }
    let labels = fit(&points, wanted, RUNS, mix(seed)).labels(&points);
    let mut clusters: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    labels
        .iter()
        .enumerate()
        .for_each(|(p, &l)| clusters.entry(l).or_default().push(p));
    let mut clusters: Vec<Vec<usize>> = clusters.into_values().collect();
    clusters.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    let row = |p: usize| points.row(p).to_vec();
    let mut chosen: Vec<usize> = clusters
        .iter()
        .filter_map(|places| {
            let centre = mean(&points, places);
            let near = |p: usize| squared(&row(p), &centre);
            places
                .iter()
                .copied()
                .min_by(|&a, &b| near(a).total_cmp(&near(b)).then(a.cmp(&b)))
        })
        .take(wanted)
        .collect();
    while chosen.len() < wanted.min(members.len()) {
        let apart = |p: usize| {
            chosen
                .iter()
                .map(|&c| squared(&row(p), &row(c)))
                .fold(f64::INFINITY, f64::min)
        };
        let rest = (0..members.len()).filter(|p| !chosen.contains(p));
        let Some(next) = rest.max_by(|&a, &b| apart(a).total_cmp(&apart(b)).then(b.cmp(&a))) else {
            break;
        };
        chosen.push(next);
    }
    chosen.into_iter().map(|p| members[p]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_locales_are_balanced() {
        let (es, th) = (
            Locale::parse("es-MX").unwrap(),
            Locale::parse("th-TH").unwrap(),
        );
        let texts: Vec<String> = (0..40)
            .map(|i| format!("text {} number {i}", i % 7))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        // 30 of the first label, 10 of the second; most of them from one locale.
        let labels: Vec<usize> = (0..40).map(|i| usize::from(i % 4 == 0)).collect();
        let locales: Vec<&Locale> = (0..40).map(|i| if i % 8 < 6 { &es } else { &th }).collect();
        let mut all = cover(&texts, &locales, &labels, 8, 0);
        assert_eq!(all.iter().filter(|&&i| labels[i] == 1).count(), 4);
        assert!(all.iter().filter(|&&i| locales[i] == &th).count() >= 3);
        assert_eq!(all, cover(&texts, &locales, &labels, 8, 0));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8);
    }

    #[test]
    fn each_topic_has_its_representative() {
        let es = Locale::parse("es-MX").unwrap();
        let texts = [
            "comida picante",
            "comida rica",
            "comida cara",
            "música alta",
            "música triste",
            "música vieja",
            "trabajo duro",
            "trabajo lento",
            "trabajo bueno",
        ];
        let chosen = cover(&texts, &[&es; 9], &[0; 9], 3, 7);
        let mut topics: Vec<usize> = chosen.iter().map(|i| i / 3).collect();
        topics.sort_unstable();
        assert_eq!(topics, [0, 1, 2]);
    }

    #[test]
    fn degenerate_input_gives_what_there_is() {
        let es = Locale::parse("es-MX").unwrap();
        assert!(cover(&[], &[], &[], 3, 0).is_empty());
        assert!(cover(&["a"], &[&es], &[0], 0, 0).is_empty());
        assert_eq!(cover(&["a", "A ", "a"], &[&es; 3], &[0; 3], 3, 0), [0]);
        assert_eq!(cover(&["", "b"], &[&es; 2], &[0, 1], 9, u64::MAX).len(), 2);
        assert_eq!(cover(&["x", "y"], &[&es], &[0, 0], 9, 0), [0]);
    }
}

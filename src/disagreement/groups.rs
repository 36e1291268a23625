//! From observations to clusters: groups that are never mixed, split by k-means, small ones merged.

use std::collections::BTreeMap;

use ndarray::Array2;

use super::contrast::Pool;
use super::features::squared;
use super::kmeans::{compact, mean};
use super::rows::{Rows, sorted};
use super::stability::{Limits, partition};
use super::{ByLocale, ClusterOptions, FailureMode, Observation};
use crate::locale::Locale;
use crate::text::ngrams::mix;

/// Disagreements of one criterion and mode (and locale, where locales are split).
pub(super) struct Group {
    pub(super) criterion: usize,
    pub(super) mode: FailureMode,
    /// Positions of observations, in content order.
    pub(super) members: Vec<usize>,
}

/// Some members of a group.
pub(super) struct Cluster {
    pub(super) criterion: usize,
    pub(super) mode: FailureMode,
    /// Positions of observations, nearest to the centroid first.
    pub(super) members: Vec<usize>,
    /// Mean of the members' texts as [`Rows::text`] gives them.
    pub(super) centre: Vec<f64>,
    pub(super) stability: f64,
}

/// The groups that clustering never mixes, in a fixed order.
pub(super) fn groups(observations: &[Observation], options: &ClusterOptions) -> Vec<Group> {
    let mut found: BTreeMap<(usize, FailureMode, Option<&Locale>), Vec<usize>> = BTreeMap::new();
    for index in sorted(observations) {
        let observation = &observations[index];
        let Some(mode) = observation.mode else {
            continue;
        };
        let locale = (options.by_locale == ByLocale::Split).then_some(observation.locale);
        found
            .entry((observation.criterion, mode, locale))
            .or_default()
            .push(index);
    }
    let group = |((criterion, mode, _), members)| Group {
        criterion,
        mode,
        members,
    };
    found.into_iter().map(group).collect()
}

/// The clusters of a group.
pub(super) fn split<'a>(
    observations: &[Observation<'a>],
    rows: &Rows<'a>,
    pool: &Pool<'_, 'a>,
    group: &Group,
    options: &ClusterOptions,
) -> Vec<Cluster> {
    let agreeing = |locale: &'a Locale| pool.agreeing(group.criterion, locale).to_vec();
    let points = rows.matrix(observations, &group.members, &agreeing);
    let limits = Limits {
        max: options.max_clusters,
        min_size: options.min_size,
        runs: options.runs,
        known: rows.locale_columns(),
        seed: mix(options.seed),
    };
    let parts = partition(&points, &limits);
    let locales: Vec<&Locale> = group
        .members
        .iter()
        .map(|&m| observations[m].locale)
        .collect();
    let merged = merge_small(&points, &locales, &parts.labels, options.min_size);
    let count = merged.iter().max().map_or(0, |&l| l + 1);
    (0..count)
        .map(|cluster| {
            let places: Vec<usize> = (0..merged.len())
                .filter(|&p| merged[p] == cluster)
                .collect();
            let centre = mean(&points, &places);
            let mut near: Vec<(f64, usize)> = places
                .iter()
                .map(|&p| (squared(&points.row(p).to_vec(), &centre), p))
                .collect();
            near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            // A merged cluster is as stable as its largest part.
            let largest = largest_part(&places, &parts.labels);
            let members: Vec<usize> = near.iter().map(|&(_, p)| group.members[p]).collect();
            Cluster {
                criterion: group.criterion,
                mode: group.mode,
                centre: rows.centre(observations, &members),
                members,
                stability: parts.stability.get(largest).copied().unwrap_or(0.0),
            }
        })
        .collect()
}

/// The commonest label among some places (the lowest of equals).
fn largest_part(places: &[usize], labels: &[usize]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    places
        .iter()
        .for_each(|&p| *counts.entry(labels[p]).or_default() += 1);
    let most = counts
        .into_iter()
        .max_by_key(|&(label, count)| (count, std::cmp::Reverse(label)));
    most.map_or(0, |(label, _)| label)
}

/// Lets each cluster of fewer than `min_size` members join the nearest other, one that holds its
/// main locale before one that does not; smallest first.
fn merge_small(
    points: &Array2<f64>,
    locales: &[&Locale],
    labels: &[usize],
    min_size: usize,
) -> Vec<usize> {
    let mut labels = compact(labels);
    loop {
        let count = labels.iter().max().map_or(0, |&l| l + 1);
        let members =
            |c: usize| -> Vec<usize> { (0..labels.len()).filter(|&p| labels[p] == c).collect() };
        let all: Vec<Vec<usize>> = (0..count).map(members).collect();
        let small = (0..count).min_by_key(|&c| all[c].len());
        let Some(small) = small.filter(|&c| count > 1 && all[c].len() < min_size) else {
            return labels;
        };
        let home = main_locale(&all[small], locales);
        let centre = mean(points, &all[small]);
        let target = (0..count).filter(|&c| c != small).min_by(|&a, &b| {
            let stranger = |c: usize| !all[c].iter().any(|&p| Some(locales[p]) == home);
            let apart = |c: usize| squared(&mean(points, &all[c]), &centre);
            stranger(a)
                .cmp(&stranger(b))
                .then(apart(a).total_cmp(&apart(b)))
        });
        let Some(target) = target else { return labels };
        labels
            .iter_mut()
            .filter(|l| **l == small)
            .for_each(|l| *l = target);
        labels = compact(&labels);
    }
}

fn main_locale<'a>(places: &[usize], locales: &[&'a Locale]) -> Option<&'a Locale> {
    let mut counts: BTreeMap<&Locale, usize> = BTreeMap::new();
    places
        .iter()
        .for_each(|&p| *counts.entry(locales[p]).or_default() += 1);
    counts
        .into_iter()
        .max_by_key(|&(locale, count)| (count, std::cmp::Reverse(locale)))
        .map(|e| e.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_small_cluster_joins_its_locale_before_its_neighbour() {
        let (es, th) = (
            Locale::parse("es-MX").unwrap(),
            Locale::parse("th-TH").unwrap(),
        );
        let points = array![[0.0], [0.1], [1.0], [9.0], [9.1]];
        // The lone third row is near the first cluster, but of the locale of the second.
        let locales = [&es, &es, &th, &th, &th];
        assert_eq!(
            merge_small(&points, &locales, &[0, 0, 1, 2, 2], 2),
            [0, 0, 1, 1, 1]
        );
        let alike = [&es; 5];
        assert_eq!(
            merge_small(&points, &alike, &[0, 0, 1, 2, 2], 2),
            [0, 0, 0, 1, 1]
        );
    }

    #[test]
    fn one_small_cluster_alone_stays() {
        let es = Locale::parse("es-MX").unwrap();
        assert_eq!(merge_small(&array![[0.0]], &[&es], &[0], 5), [0]);
        assert!(merge_small(&Array2::zeros((0, 1)), &[], &[], 5).is_empty());
    }
}

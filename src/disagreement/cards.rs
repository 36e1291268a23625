//! What a card says of its cluster.

use std::collections::BTreeMap;

use super::contrast::Pool;
use super::groups::Cluster;
use super::terms::marking;
use super::{Card, Observation};
use crate::locale::Locale;

/// Terms per card.
const TERMS: usize = 8;

/// Texts of a cluster, and as many agreeing ones per locale, that terms are taken from.
const TEXTS: usize = 200;

/// Hexadecimal digits of a card's id: no two of a run's cards meet by chance.
const ID_DIGITS: usize = 12;

/// Describes a cluster.
pub(super) fn card<'a>(
    observations: &[Observation<'a>],
    pool: &mut Pool<'_, 'a>,
    cluster: &Cluster,
) -> Card {
    let members: Vec<&Observation<'a>> =
        cluster.members.iter().map(|&m| &observations[m]).collect();
    let locales = by_locale(&members);
    let mut items: Vec<usize> = Vec::with_capacity(members.len());
    let mut seen = std::collections::HashSet::new();
    items.extend(
        members
            .iter()
            .map(|m| m.item)
            .filter(|&item| seen.insert(item)),
    );
    // Summed in content order, so that rounding does not depend on the distance to the centre.
    let mut distances: Vec<f64> = members.iter().map(|m| m.distance).collect();
    distances.sort_by(f64::total_cmp);
    let agreeing: Vec<&str> = locales
        .iter()
        .flat_map(|(locale, _)| pool.agreeing(cluster.criterion, locale).iter().take(TEXTS))
        .map(|&index| observations[index].text)
        .collect();
    Card {
        id: id(cluster, &members),
        criterion: cluster.criterion,
        locale: (locales.len() == 1).then(|| locales[0].0.clone()),
        mode: cluster.mode,
        terms: marking(
            members.iter().take(TEXTS).map(|m| m.text),
            agreeing.into_iter(),
            TERMS,
        ),
        contrast: pool.contrast(cluster),
        weight: distances.iter().sum(),
        stability: cluster.stability,
        items,
        locales: locales
            .into_iter()
            .map(|(locale, count)| (locale.clone(), count))
            .collect(),
    }
}

/// Members by locale, most first.
fn by_locale<'a>(members: &[&Observation<'a>]) -> Vec<(&'a Locale, usize)> {
    let mut counts: BTreeMap<&Locale, usize> = BTreeMap::new();
    members
        .iter()
        .for_each(|m| *counts.entry(m.locale).or_default() += 1);
    let mut counts: Vec<(&Locale, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    counts
}

/// Digest of criterion, mode and the members' items, locales and texts, whatever their order.
fn id(cluster: &Cluster, members: &[&Observation]) -> String {
    let mut parts: Vec<(usize, &str, &str)> = members
        .iter()
        .map(|m| (m.item, m.locale.as_str(), m.text))
        .collect();
    parts.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    add(b"pluralis card 1");
    add(&(cluster.criterion as u64).to_le_bytes());
    add(cluster.mode.to_string().as_bytes());
    for (item, locale, text) in parts {
        add(&(item as u64).to_le_bytes());
        add(locale.as_bytes());
        add(text.as_bytes());
    }
    hasher.finalize().to_hex()[..ID_DIGITS].to_owned()
}

/// Share of members whose cluster's most common language is theirs; 1 for no members.
pub(super) fn language_purity(observations: &[Observation], clusters: &[Vec<usize>]) -> f64 {
    let (mut same, mut all) = (0usize, 0usize);
    for members in clusters {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        members
            .iter()
            .for_each(|&m| *counts.entry(observations[m].locale.language()).or_default() += 1);
        same += counts.values().max().copied().unwrap_or(0);
        all += members.len();
    }
    if all == 0 {
        1.0
    } else {
        same as f64 / all as f64
    }
}

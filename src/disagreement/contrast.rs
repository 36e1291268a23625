//! Items near a card on which judge and people agree: what the judge already gets right beside
//! what it gets wrong.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;

use super::Observation;
use super::features::stream;
use super::groups::Cluster;
use super::rows::{Rows, sorted};
use crate::locale::Locale;
use crate::text::ngrams::plain;

/// Contrasting items per card.
const CONTRASTS: usize = 5;

/// Agreeing items per criterion and locale that are looked at: a search through all would be
/// quadratic in items.
const CANDIDATES: usize = 400;

/// Locales beyond a card's own that are searched where its own have too few agreements.
const NEIGHBOURS: usize = 4;

/// Agreeing items by criterion and locale, sampled, with their vectors made when first needed.
pub(super) struct Pool<'o, 'a> {
    observations: &'o [Observation<'a>],
    rows: &'o Rows<'a>,
    candidates: BTreeMap<(usize, &'a Locale), Vec<usize>>,
    vectors: BTreeMap<(usize, &'a Locale), Vec<Vec<f64>>>,
}

impl<'o, 'a> Pool<'o, 'a> {
    /// Draws the candidates; the draw depends on the seed and on the items alone.
    pub(super) fn new(observations: &'o [Observation<'a>], rows: &'o Rows<'a>, seed: u64) -> Self {
        let mut candidates: BTreeMap<(usize, &Locale), Vec<usize>> = BTreeMap::new();
        for index in sorted(observations) {
            let observation = &observations[index];
            if observation.mode.is_none() {
                let key = (observation.criterion, observation.locale);
                candidates.entry(key).or_default().push(index);
            }
        }
        for ((criterion, locale), found) in &mut candidates {
            if found.len() > CANDIDATES {
                let mut rng = stream(seed, &format!("contrast {criterion} {locale}"));
                let drawn = found.partial_shuffle(&mut rng, CANDIDATES).0.to_vec();
                *found = drawn;
            }
        }
        Self {
            observations,
            rows,
            candidates,
            vectors: BTreeMap::new(),
        }
    }

    /// Sampled agreeing observations of a criterion in a locale.
    pub(super) fn agreeing(&self, criterion: usize, locale: &'a Locale) -> &[usize] {
        self.candidates
            .get(&(criterion, locale))
            .map_or(&[], Vec::as_slice)
    }

    /// Items nearest to the cluster's centre on which judge and people agree, nearest first, its
    /// own locales before those of the same language before others. Items that the cluster holds
    /// itself and texts that are already there are left out.
    pub(super) fn contrast(&mut self, cluster: &Cluster) -> Vec<usize> {
        let own: Vec<&Locale> = self.members_locales(cluster);
        let language = |l: &Locale| own.iter().any(|o| o.language() == l.language());
        let criterion = cluster.criterion;
        let mut others: Vec<&'a Locale> = self
            .candidates
            .keys()
            .filter(|(c, l)| *c == criterion && !own.contains(l))
            .map(|&(_, l)| l)
            .collect();
        others.sort_by_key(|l| !language(l));
        others.truncate(NEIGHBOURS);
        let (near, far): (Vec<&Locale>, Vec<&Locale>) =
            others.into_iter().partition(|l| language(l));
        let mut items: Vec<usize> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        let inside: Vec<usize> = cluster
            .members
            .iter()
            .map(|&m| self.observations[m].item)
            .collect();
        for tier in [own, near, far] {
            for index in self.nearest(cluster, &tier) {
                if items.len() >= CONTRASTS {
                    return items;
                }
                let observation = &self.observations[index];
                let text = plain(observation.text);
                let known = inside.contains(&observation.item) || items.contains(&observation.item);
                if !known && !texts.contains(&text) {
                    items.push(observation.item);
                    texts.push(text);
                }
            }
        }
        items
    }

    fn members_locales(&self, cluster: &Cluster) -> Vec<&'a Locale> {
        let mut own: Vec<&Locale> = cluster
            .members
            .iter()
            .map(|&m| self.observations[m].locale)
            .collect();
        own.sort_unstable();
        own.dedup();
        own
    }

    /// Candidates of some locales by falling cosine with the centre (ties in content order).
    fn nearest(&mut self, cluster: &Cluster, locales: &[&'a Locale]) -> Vec<usize> {
        let mut scored: Vec<(f64, usize)> = Vec::new();
        for &locale in locales {
            let key = (cluster.criterion, locale);
            let Some(found) = self.candidates.get(&key) else {
                continue;
            };
            let vectors = self.vectors.entry(key).or_insert_with(|| {
                found
                    .iter()
                    .map(|&index| self.rows.text(&self.observations[index]))
                    .collect()
            });
            for (&index, vector) in found.iter().zip(vectors.iter()) {
                // Vectors have length one, so the inner product orders as the cosine does.
                let score: f64 = vector.iter().zip(&cluster.centre).map(|(a, b)| a * b).sum();
                scored.push((score, index));
            }
        }
        let item = |index: usize| (self.observations[index].item, self.observations[index].text);
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| item(a.1).cmp(&item(b.1))));
        scored.into_iter().map(|(_, index)| index).collect()
    }
}

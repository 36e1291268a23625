//! Observations as rows of numbers: text (or embedding), centred per locale where that is wanted,
//! then a small block for the locale and one for the judge's confidence.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ndarray::{Array1, Array2, s};

use super::features::{project, project_dense, spread, unit};
use super::terms::log_odds_z;
use super::{ByLocale, ClusterOptions, Observation};
use crate::locale::Locale;
use crate::text::ngrams::{Sparse, Vocabulary, mix};

/// Weight of the locale against a text of length one. Two unrelated texts are at squared distance
/// 2; another locale adds 2 * 0.5^2 = 0.5, so that topic decides first and locale second.
const LOCALE_WEIGHT: f64 = 0.5;

/// Weight of the confidence. From unsure to certain adds 0.3^2 = 0.09: enough to part equal
/// texts, too little to cut a topic in two.
const CONFIDENCE_WEIGHT: f64 = 0.3;

/// Weight of an n-gram that is as frequent where judge and people agree; a telling one has a
/// z-value of 2 to 4. Not zero, so that a topic the judge gets wrong only at times still counts.
const FLOOR: f64 = 0.1;

/// Texts of a locale that can show a pattern; what fewer have in common may be chance, and as
/// outliers they would decide the split of all others.
const PATTERN: usize = 3;

/// Where no probability is known: between a coin flip and certainty.
const UNKNOWN_CONFIDENCE: f64 = 0.75;

/// What turns observations into rows, made once from all of them.
pub(super) struct Rows<'a> {
    vocabulary: Option<Vocabulary>,
    seed: u64,
    dimensions: usize,
    locales: BTreeMap<&'a Locale, usize>,
    means: Vec<Vec<f64>>,
    locale_block: bool,
    note: Option<&'static str>,
}

impl<'a> Rows<'a> {
    /// Counts n-grams (or checks embeddings) and, where wanted, takes each locale's mean over
    /// agreeing and disagreeing items alike.
    pub(super) fn new(observations: &[Observation<'a>], options: &ClusterOptions) -> Self {
        let order = sorted(observations);
        let length = observations
            .first()
            .and_then(|o| o.embedding)
            .map_or(0, <[f32]>::len);
        let usable = |e: &[f32]| e.len() == length && e.iter().all(|v| v.is_finite());
        let embedded = length > 0 && observations.iter().all(|o| o.embedding.is_some_and(usable));
        let any = observations.iter().any(|o| o.embedding.is_some());
        let most = options.dimensions.max(1);
        let texts = observations.iter().map(|o| o.text);
        let mut locales: BTreeMap<&Locale, usize> =
            observations.iter().map(|o| (o.locale, 0)).collect();
        locales
            .values_mut()
            .enumerate()
            .for_each(|(index, place)| *place = index);
        let mut rows = Self {
            vocabulary: (!embedded).then(|| Vocabulary::build(texts, options.ngram)),
            seed: mix(options.seed ^ mix(u64::from(b'p'))),
            dimensions: if embedded { most.min(length) } else { most },
            means: Vec::new(),
            locale_block: options.by_locale == ByLocale::Feature && locales.len() > 1,
            locales,
            note: (any && !embedded).then_some(
                "some items have no usable embedding, so n-grams of their texts were used instead",
            ),
        };
        if options.centre_locales {
            rows.means = rows.locale_means(observations, &order);
        }
        rows
    }

    /// Why the features are not those that were asked for.
    pub(super) fn note(&self) -> Option<&'static str> {
        self.note
    }

    /// The text alone, at length one (or zero).
    pub(super) fn text(&self, observation: &Observation) -> Vec<f64> {
        let mut row = self.raw(observation);
        let place = self.locales.get(observation.locale);
        if let Some(mean) = place.and_then(|&place| self.means.get(place)) {
            row.iter_mut().zip(mean).for_each(|(r, m)| *r -= m);
            unit(&mut row);
        }
        row
    }

    /// Columns of [`Rows::matrix`] that hold the locale; empty where locales are split.
    pub(super) fn locale_columns(&self) -> Range<usize> {
        let block = if self.locale_block {
            self.locales.len()
        } else {
            0
        };
        self.dimensions..self.dimensions + block
    }

    /// Mean of the texts of some observations.
    pub(super) fn centre(&self, observations: &[Observation], members: &[usize]) -> Vec<f64> {
        let mut sum = vec![0.0; self.dimensions];
        for &member in members {
            let text = self.text(&observations[member]);
            sum.iter_mut().zip(text).for_each(|(s, v)| *s += v);
        }
        sum.iter_mut()
            .for_each(|s| *s /= members.len().max(1) as f64);
        sum
    }

    /// The full rows of some observations of one group. `agreeing` names the observations of a
    /// locale on which judge and people agree.
    pub(super) fn matrix(
        &self,
        observations: &[Observation<'a>],
        members: &[usize],
        agreeing: &dyn Fn(&'a Locale) -> Vec<usize>,
    ) -> Array2<f64> {
        let block = if self.locale_block {
            self.locales.len()
        } else {
            0
        };
        let mut matrix = Array2::zeros((members.len(), self.dimensions + block + 1));
        match &self.vocabulary {
            Some(vocabulary) => {
                let texts = self.marked(vocabulary, observations, members, agreeing);
                matrix.slice_mut(s![.., ..self.dimensions]).assign(&texts);
            }
            None => {
                for (mut row, &member) in matrix.outer_iter_mut().zip(members) {
                    let text = self.text(&observations[member]);
                    row.iter_mut()
                        .zip(text)
                        .for_each(|(cell, value)| *cell = value);
                }
            }
        }
        for (mut row, &member) in matrix.outer_iter_mut().zip(members) {
            let observation = &observations[member];
            if let (true, Some(place)) = (self.locale_block, self.locales.get(observation.locale)) {
                row[self.dimensions + place] = LOCALE_WEIGHT;
            }
            let confidence = observation.confidence.filter(|c| c.is_finite());
            row[self.dimensions + block] =
                CONFIDENCE_WEIGHT * confidence.unwrap_or(UNKNOWN_CONFIDENCE).clamp(0.0, 1.0);
        }
        matrix
    }

    /// Rows of the members' n-grams, each weighted by how far it marks the group's items of its
    /// locale against the agreeing ones. Without this the common words of a language, which say
    /// nothing of why a verdict misses, outweigh the topic.
    fn marked(
        &self,
        vocabulary: &Vocabulary,
        observations: &[Observation<'a>],
        members: &[usize],
        agreeing: &dyn Fn(&'a Locale) -> Vec<usize>,
    ) -> Array2<f64> {
        let mut places: BTreeMap<&'a Locale, Vec<usize>> = BTreeMap::new();
        for (place, &member) in members.iter().enumerate() {
            places
                .entry(observations[member].locale)
                .or_default()
                .push(place);
        }
        let vectors = |indices: &[usize]| -> Vec<Sparse> {
            indices
                .iter()
                .map(|&i| vocabulary.vector(observations[i].text))
                .collect()
        };
        let mut matrix = Array2::zeros((members.len(), self.dimensions));
        for (locale, places) in places {
            let own: Vec<usize> = places.iter().map(|&p| members[p]).collect();
            let (inside, outside) = (vectors(&own), vectors(&agreeing(locale)));
            let weights = marks(&inside, &outside);
            let row = |vector: &Sparse| {
                let weight = |gram| weights.get(&gram).copied().unwrap_or(0.0);
                let marked: Sparse = vector.iter().map(|&(g, w)| (g, w * weight(g))).collect();
                let mut row = vec![0.0; self.dimensions];
                spread(&marked, self.seed, &mut row);
                Array1::from_vec(row)
            };
            let mut middle = Array1::zeros(self.dimensions);
            if !self.means.is_empty() {
                inside
                    .iter()
                    .chain(&outside)
                    .for_each(|v| middle += &row(v));
                middle /= (inside.len() + outside.len()) as f64;
            }
            for (place, vector) in places.into_iter().zip(&inside) {
                matrix.row_mut(place).assign(&(row(vector) - &middle));
            }
        }
        even_out(&mut matrix);
        matrix
    }

    fn raw(&self, observation: &Observation) -> Vec<f64> {
        let mut row = vec![0.0; self.dimensions];
        match (&self.vocabulary, observation.embedding) {
            (Some(vocabulary), _) => {
                project(&vocabulary.vector(observation.text), self.seed, &mut row)
            }
            (None, Some(embedding)) => project_dense(embedding, self.seed, &mut row),
            (None, None) => {}
        }
        row
    }

    fn locale_means(&self, observations: &[Observation], order: &[usize]) -> Vec<Vec<f64>> {
        let mut sums = vec![(vec![0.0; self.dimensions], 0usize); self.locales.len()];
        // In sorted order, so that rounding does not depend on the order of the input.
        for &index in order {
            let observation = &observations[index];
            let Some(&place) = self.locales.get(observation.locale) else {
                continue;
            };
            let (sum, count) = &mut sums[place];
            sum.iter_mut()
                .zip(self.raw(observation))
                .for_each(|(s, v)| *s += v);
            *count += 1;
        }
        let mean = |(sum, count): (Vec<f64>, usize)| -> Vec<f64> {
            sum.into_iter().map(|s| s / count.max(1) as f64).collect()
        };
        sums.into_iter().map(mean).collect()
    }
}

/// Brings rows to length one, but those shorter than the median only by the median's factor: an
/// item with nothing telling stays near the middle instead of becoming a direction of its own.
fn even_out(matrix: &mut Array2<f64>) {
    let lengths: Vec<f64> = matrix
        .outer_iter()
        .map(|row| row.dot(&row).sqrt())
        .collect();
    let mut sorted: Vec<f64> = lengths.iter().copied().filter(|&l| l > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(&median) = sorted.get(sorted.len() / 2) else {
        return;
    };
    for (mut row, length) in matrix.outer_iter_mut().zip(lengths) {
        row /= length.max(median);
    }
}

/// Weights of the n-grams that occur in two of the inside texts (or in the only one): the z-value
/// of their log odds against the outside texts, where positive, plus [`FLOOR`].
fn marks(inside: &[Sparse], outside: &[Sparse]) -> HashMap<u64, f32> {
    let mut counts: HashMap<u64, (usize, usize)> = HashMap::new();
    for (gram, _) in inside.iter().flatten() {
        counts.entry(*gram).or_default().0 += 1;
    }
    for (gram, _) in outside.iter().flatten() {
        if let Some(count) = counts.get_mut(gram) {
            count.1 += 1;
        }
    }
    let least = inside.len().min(2);
    counts.retain(|_, count| count.0 >= least);
    let weight = |(found, other): (usize, usize)| {
        if inside.len() < PATTERN {
            return FLOOR as f32;
        }
        if outside.is_empty() {
            return 1.0;
        }
        (FLOOR + log_odds_z(found, inside.len(), other, outside.len()).max(0.0)) as f32
    };
    counts
        .into_iter()
        .map(|(gram, count)| (gram, weight(count)))
        .collect()
}

/// Positions of the observations in an order that depends on their content alone.
pub(super) fn sorted(observations: &[Observation]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..observations.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&observations[a], &observations[b]);
        (a.criterion, a.item, a.locale, a.text, a.mode)
            .cmp(&(b.criterion, b.item, b.locale, b.text, b.mode))
            .then(a.distance.total_cmp(&b.distance))
            .then_with(|| {
                a.confidence
                    .unwrap_or(-1.0)
                    .total_cmp(&b.confidence.unwrap_or(-1.0))
            })
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(
        locale: &'a Locale,
        text: &'a str,
        embedding: Option<&'a [f32]>,
    ) -> Observation<'a> {
        Observation {
            item: 0,
            locale,
            text,
            mode: None,
            confidence: None,
            distance: 0.0,
            embedding,
            criterion: 0,
        }
    }

    #[test]
    fn centring_removes_what_a_locale_has_in_common() {
        let (es, th) = (
            Locale::parse("es-MX").unwrap(),
            Locale::parse("th-TH").unwrap(),
        );
        // The first coordinate is the language, the second the topic.
        let data = [
            seen(&es, "", Some(&[10.0, 1.0])),
            seen(&es, "", Some(&[10.0, -1.0])),
            seen(&th, "", Some(&[-10.0, 1.0])),
            seen(&th, "", Some(&[-10.0, -1.0])),
        ];
        let options = ClusterOptions {
            centre_locales: true,
            ..ClusterOptions::default()
        };
        let rows = Rows::new(&data, &options);
        for (observation, topic) in data.iter().zip([1.0, -1.0, 1.0, -1.0]) {
            let row = rows.text(observation);
            assert!(
                row[0].abs() < 1e-9 && (row[1] - topic).abs() < 1e-9,
                "{row:?}"
            );
        }
    }

    #[test]
    fn a_missing_embedding_is_said_and_n_grams_stand_in() {
        let es = Locale::parse("es-MX").unwrap();
        let data = [seen(&es, "uno", Some(&[1.0, 0.0])), seen(&es, "dos", None)];
        let rows = Rows::new(&data, &ClusterOptions::default());
        assert!(rows.note().is_some());
        assert_eq!(rows.text(&data[1]).len(), 256);
    }

    #[test]
    fn unknown_and_broken_confidence_are_in_the_middle() {
        let es = Locale::parse("es-MX").unwrap();
        let mut data = vec![seen(&es, "", None); 3];
        data[1].confidence = Some(f64::NAN);
        data[2].confidence = Some(7.0);
        let matrix =
            Rows::new(&data, &ClusterOptions::default()).matrix(&data, &[0, 1, 2], &|_| Vec::new());
        let column = matrix.column(256);
        let want = [0.225, 0.225, 0.3];
        assert!(
            column.iter().zip(want).all(|(c, w)| (c - w).abs() < 1e-12),
            "{column}"
        );
    }
}

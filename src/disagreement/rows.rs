//! Observations as rows of numbers: text (or embedding), centred per locale where that is wanted,
//! then a small block for the locale and one for the judge's confidence.

use std::collections::BTreeMap;

use ndarray::Array2;

use super::features::{Vocabulary, mix, project, project_dense, unit};
use super::{ByLocale, ClusterOptions, Observation};
use crate::locale::Locale;

/// Weight of the locale against a text of length one. Two unrelated texts are at squared distance
/// 2; another locale adds 2 * 0.5^2 = 0.5, so that topic decides first and locale second.
const LOCALE_WEIGHT: f64 = 0.5;

/// Weight of the confidence. From unsure to certain adds 0.3^2 = 0.09: enough to part equal
/// texts, too little to cut a topic in two.
const CONFIDENCE_WEIGHT: f64 = 0.3;

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

    /// Number of leading columns of [`Rows::matrix`] that hold the text.
    pub(super) fn text_columns(&self) -> usize {
        self.dimensions
    }

    /// The full rows of some observations.
    pub(super) fn matrix(&self, observations: &[Observation], members: &[usize]) -> Array2<f64> {
        let block = if self.locale_block {
            self.locales.len()
        } else {
            0
        };
        let mut matrix = Array2::zeros((members.len(), self.dimensions + block + 1));
        for (mut row, &member) in matrix.outer_iter_mut().zip(members) {
            let observation = &observations[member];
            row.iter_mut()
                .zip(self.text(observation))
                .for_each(|(cell, value)| *cell = value);
            if let (true, Some(place)) = (self.locale_block, self.locales.get(observation.locale)) {
                row[self.dimensions + place] = LOCALE_WEIGHT;
            }
            let confidence = observation.confidence.filter(|c| c.is_finite());
            row[self.dimensions + block] =
                CONFIDENCE_WEIGHT * confidence.unwrap_or(UNKNOWN_CONFIDENCE).clamp(0.0, 1.0);
        }
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
        let matrix = Rows::new(&data, &ClusterOptions::default()).matrix(&data, &[0, 1, 2]);
        let column = matrix.column(256);
        let want = [0.225, 0.225, 0.3];
        assert!(
            column.iter().zip(want).all(|(c, w)| (c - w).abs() < 1e-12),
            "{column}"
        );
    }
}

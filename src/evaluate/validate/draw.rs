//! The stratified sample: so many responses of each country, balanced over models and categories.

use std::collections::BTreeMap;

use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::agreement::draws::{below, stream};
use crate::evaluate::benchmark::{Kind, Line};
use crate::locale::Locale;

/// One response that people label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// As the sheet names it; says nothing of the model.
    pub row: String,
    /// Whose response it is; not in the sheet.
    pub model: String,
    /// Which country's prompt.
    pub locale: Locale,
    /// The prompt's id; not in the sheet.
    pub prompt: String,
    /// How many responses it stands for.
    pub weight: f64,
    /// Digest of the texts that the sheet shows, in the form in which texts are compared.
    #[serde(default)]
    pub texts: String,
}

/// `sample.json`: the key of the sheets. Whoever labels must not see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Format of this record; 1.
    pub format: u32,
    /// Which part of the benchmark.
    pub kind: Kind,
    /// Digest of the evaluation that it was drawn from.
    pub run: String,
    /// Seed of the draw.
    pub seed: u64,
    /// How many of each country were wanted.
    pub per_country: usize,
    /// The responses, in the order of the sheets.
    pub rows: Vec<Drawn>,
}

/// Draws so many responses of each country, over its models and categories as evenly as they have
/// them. Only responses with text that were judged can be drawn. The weight of a response is the size
/// of its stratum by the number that was to be expected from it, so that weighted shares of the
/// sample estimate those of the country.
pub fn draw(lines: &[Line], per_country: usize, seed: u64) -> Vec<Drawn> {
    let mut countries: BTreeMap<&Locale, BTreeMap<(&str, &str), Vec<&Line>>> = BTreeMap::new();
    for line in lines.iter().filter(|l| drawable(l)) {
        let strata = countries.entry(&line.locale).or_default();
        let stratum = (line.model.as_str(), line.category.as_str());
        strata.entry(stratum).or_default().push(line);
    }
    let mut out = Vec::new();
    for (locale, strata) in countries {
        let mut rng = stream(seed, key(locale.as_str()));
        let strata: Vec<Vec<&Line>> = strata
            .into_values()
            .map(|mut own| {
                shuffle(&mut own, &mut rng);
                own
            })
            .collect();
        let expected = shares(
            &strata.iter().map(Vec::len).collect::<Vec<_>>(),
            per_country,
        );
        let mut picked = pick(&strata, per_country, &mut rng);
        // Rows of one model or category must not stand together.
        shuffle(&mut picked, &mut rng);
        let width = picked.len().to_string().len().max(3);
        for (i, (s, line)) in picked.into_iter().enumerate() {
            out.push(Drawn {
                row: format!("{locale}-{:0width$}", i + 1),
                model: line.model.clone(),
                locale: locale.clone(),
                prompt: line.prompt.clone(),
                weight: strata[s].len() as f64 / expected[s],
                texts: String::new(),
            });
        }
    }
    out
}

/// Whether people can label it, and a judge has.
pub(super) fn drawable(line: &Line) -> bool {
    !line.unpaid && line.reply.text().is_some() && !line.reply.is_blank()
}

/// How many of each stratum are to be expected: one of each in turn, and in the last turn those that
/// are left, whichever they are.
fn shares(sizes: &[usize], wanted: usize) -> Vec<f64> {
    let mut out = vec![0.0; sizes.len()];
    let mut left = wanted.min(sizes.iter().sum());
    let mut round = 0;
    while left > 0 {
        let active: Vec<usize> = (0..sizes.len()).filter(|&s| sizes[s] > round).collect();
        let each = (left as f64 / active.len() as f64).min(1.0);
        active.iter().for_each(|&s| out[s] += each);
        left -= left.min(active.len());
        round += 1;
    }
    out
}

fn pick<'a>(strata: &[Vec<&'a Line>], wanted: usize, rng: &mut impl Rng) -> Vec<(usize, &'a Line)> {
    let mut out = Vec::new();
    let mut round = 0;
    while out.len() < wanted {
        let mut active: Vec<usize> = (0..strata.len())
            .filter(|&s| strata[s].len() > round)
            .collect();
        if active.is_empty() {
            break;
        }
        shuffle(&mut active, rng);
        active.truncate(wanted - out.len());
        out.extend(active.into_iter().map(|s| (s, strata[s][round])));
        round += 1;
    }
    out
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i + 1));
    }
}

/// A number of a text: each country has its own stream, whichever others there are.
fn key(text: &str) -> u64 {
    let digest = blake3::hash(text.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_up_evenly() {
        assert_eq!(shares(&[10, 10, 10], 6), [2.0, 2.0, 2.0]);
        assert_eq!(shares(&[10, 10, 10, 10], 2), [0.5; 4]);
        assert_eq!(shares(&[1, 10, 10], 7), [1.0, 3.0, 3.0]);
        assert_eq!(shares(&[1, 2], 9), [1.0, 2.0]);
    }
}

//! Texts and embeddings as points of a fixed number of dimensions, by seeded random projection.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::text::ngrams::{Sparse, mix};

/// Dimensions that one n-gram is spread over. One would make two n-grams that meet in a dimension
/// indistinguishable; with four (sparse Johnson-Lindenstrauss, Kane and Nelson 2014) they are not.
const SPREAD: u64 = 4;

/// A stream of random numbers that depends on the seed and on what it is for, on nothing else.
pub(super) fn stream(seed: u64, purpose: &str) -> ChaCha8Rng {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"pluralis disagreement stream\0");
    hasher.update(&seed.to_le_bytes());
    hasher.update(purpose.as_bytes());
    ChaCha8Rng::from_seed(*hasher.finalize().as_bytes())
}

/// A sparse vector in `out.len()` dimensions, at length one unless it is empty: see [`spread`].
pub(super) fn project(vector: &Sparse, seed: u64, out: &mut [f64]) {
    out.fill(0.0);
    spread(vector, seed, out);
    unit(out);
}

/// Adds a sparse vector to `out` by seeded signed hashing: inner products are kept in expectation
/// (up to one common factor), with a standard deviation of about `1 / sqrt(dimensions)`.
pub(super) fn spread(vector: &Sparse, seed: u64, out: &mut [f64]) {
    if out.is_empty() {
        return;
    }
    for &(gram, weight) in vector {
        for copy in 0..SPREAD {
            let draw = mix(gram ^ mix(seed ^ copy));
            let sign = if draw >> 63 == 0 { 1.0 } else { -1.0 };
            out[(draw % out.len() as u64) as usize] += sign * f64::from(weight);
        }
    }
}

/// A dense vector in `out.len()` dimensions, at length one: copied where it fits, else projected
/// with seeded random signs (Achlioptas 2003).
pub(super) fn project_dense(vector: &[f32], seed: u64, out: &mut [f64]) {
    out.fill(0.0);
    if vector.len() <= out.len() {
        out.iter_mut()
            .zip(vector)
            .for_each(|(o, &v)| *o = f64::from(v));
        return unit(out);
    }
    for (i, &value) in vector.iter().enumerate() {
        // One random word gives the signs of 64 dimensions.
        for (block, cells) in out.chunks_mut(64).enumerate() {
            let signs = mix(mix(seed ^ i as u64) ^ block as u64);
            for (bit, cell) in cells.iter_mut().enumerate() {
                *cell += if signs >> bit & 1 == 0 {
                    f64::from(value)
                } else {
                    -f64::from(value)
                };
            }
        }
    }
    unit(out);
}

/// Scales to length one; a zero (or not finite) vector becomes zero.
pub(super) fn unit(vector: &mut [f64]) {
    let norm = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
    // Below this a centred vector is rounding noise, which scaling would turn into a direction.
    if norm > 1e-9 && norm.is_finite() {
        vector.iter_mut().for_each(|v| *v /= norm);
    } else {
        vector.fill(0.0);
    }
}

/// Squared Euclidean distance.
pub(super) fn squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::text::ngrams::Vocabulary;

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn projection_keeps_likeness_and_depends_on_the_seed() {
        let texts = [
            "spicy food every day",
            "spicy food all day",
            "loud music at night",
        ];
        let v = Vocabulary::build(texts, (2, 4));
        let rows = |seed| {
            texts.map(|t| {
                let mut row = vec![0.0; 256];
                project(&v.vector(t), seed, &mut row);
                row
            })
        };
        let exact = |a: usize, b: usize| -> f64 {
            let other: HashMap<u64, f32> = v.vector(texts[b]).into_iter().collect();
            let shared = v.vector(texts[a]);
            shared
                .iter()
                .filter_map(|(g, w)| other.get(g).map(|o| f64::from(w * o)))
                .sum()
        };
        let [a, b, c] = rows(0);
        assert!((dot(&a, &b) - exact(0, 1)).abs() < 0.25);
        assert!((dot(&a, &c) - exact(0, 2)).abs() < 0.25);
        assert!(dot(&a, &b) > dot(&a, &c));
        assert_eq!(rows(0), rows(0));
        assert_ne!(rows(0), rows(u64::MAX));
    }

    #[test]
    fn embeddings_are_copied_or_projected_and_bad_ones_are_zero() {
        let mut out = vec![0.0; 4];
        project_dense(&[3.0, 4.0], 0, &mut out);
        assert_eq!(out, [0.6, 0.8, 0.0, 0.0]);
        project_dense(&[1.0; 9], 0, &mut out);
        assert!((dot(&out, &out) - 1.0).abs() < 1e-12);
        project_dense(&[f32::NAN, 1.0], 0, &mut out);
        assert_eq!(out, [0.0; 4]);
    }
}

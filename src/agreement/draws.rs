//! Owns random draws that depend on a seed and an index only, never on threads or crate versions.
//! Must not know what is drawn.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The generator of one resample: the same for every order in which resamples are computed.
pub(crate) fn stream(seed: u64, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    rng
}

/// A number in `0..n`, for `n` of at least 1. The bias of this reduction is below n / 2^64.
pub(crate) fn below(rng: &mut impl Rng, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// A number in [0, 1).
#[cfg(test)]
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

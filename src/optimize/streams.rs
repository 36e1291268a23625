//! Random draws keyed by (run seed, step, purpose), so that neither concurrency nor resuming
//! changes a draw.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A source of draws for one purpose of one step.
pub type Stream = ChaCha8Rng;

/// All streams of a run.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// Streams of a run seed; every value counts, 0 included.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream of a step and a purpose.
    pub fn of(&self, step: usize, purpose: &str) -> Stream {
        let mut hasher = blake3::Hasher::new_derive_key("pluralis random stream 1");
        hasher
            .update(&self.seed.to_le_bytes())
            .update(&(step as u64).to_le_bytes())
            .update(purpose.as_bytes());
        ChaCha8Rng::from_seed(*hasher.finalize().as_bytes())
    }

    /// A seed for a library that takes a number.
    pub fn seed_of(&self, step: usize, purpose: &str) -> u64 {
        use rand::RngExt;
        self.of(step, purpose).random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_step_and_purpose_counts() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in [0, 1, u64::MAX] {
            for step in [0, 1] {
                for purpose in ["race", "parent"] {
                    assert_eq!(
                        Streams::new(seed).seed_of(step, purpose),
                        Streams::new(seed).seed_of(step, purpose)
                    );
                    seen.insert(Streams::new(seed).seed_of(step, purpose));
                }
            }
        }
        assert_eq!(seen.len(), 12);
    }
}

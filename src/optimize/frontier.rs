//! Which version leads, which is handed over, and which is edited next.

use rand::RngExt;

use super::bench::Bench;
use super::candidate::Candidate;
use super::pool::{Pool, locales, mean};

impl Pool {
    /// Position of the candidate with the least loss on `tune`.
    pub fn leader(&self) -> usize {
        let loss = |i: usize| mean(self.candidates[i].losses.values().copied());
        (0..self.candidates.len()).fold(0, |best, i| if loss(i) < loss(best) { i } else { best })
    }

    /// The candidate to hand over: least loss on validation among those looked at; the leader on
    /// `tune` where validation was never paid for.
    pub fn best(&self) -> &Candidate {
        let looked = self
            .candidates
            .iter()
            .filter(|c| c.validation_loss.is_some());
        looked
            .min_by(|a, b| {
                a.validation_loss
                    .partial_cmp(&b.validation_loss)
                    .unwrap_or(std::cmp::Ordering::Equal)
            })
            .unwrap_or(&self.candidates[self.leader()])
    }

    /// Draws a parent in proportion to the number of locales for which it is the best.
    pub(super) fn choose_parent(&mut self, bench: &Bench<'_>) -> usize {
        self.step += 1;
        let mut held = vec![0u32; self.candidates.len()];
        held[self.leader()] += 1;
        for locale in locales(bench, bench.tune) {
            let loss = |c: &Candidate| {
                mean(
                    c.losses
                        .iter()
                        .filter(|(i, _)| bench.items[**i].locale == locale)
                        .map(|(_, l)| *l),
                )
            };
            let best = (0..self.candidates.len()).fold(0, |best, i| {
                if loss(&self.candidates[i]) < loss(&self.candidates[best]) {
                    i
                } else {
                    best
                }
            });
            held[best] += 1;
        }
        let mut draw = bench
            .streams
            .of(self.step, "parent")
            .random_range(0..held.iter().sum::<u32>());
        for (i, h) in held.iter().enumerate() {
            if draw < *h {
                return i;
            }
            draw -= h;
        }
        0
    }
}

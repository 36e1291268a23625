//! Which version leads, which is handed over, and which is edited next.

use std::cmp::Ordering;

use rand::RngExt;

use super::bench::Bench;
use super::candidate::Candidate;
use super::pool::{Pool, locales, mean};

/// Weight, in items, of a candidate's overall loss in its loss by locale: few items of a locale say
/// little about it.
const SHRINKAGE: f64 = 4.0;

impl Pool {
    /// Position of the candidate with the least loss on `tune`. Candidates were judged on
    /// different parts of it, so two of them are compared on the items that both have.
    pub fn leader(&self) -> usize {
        (1..self.candidates.len()).fold(0, |best, i| {
            if ahead(&self.candidates[i], &self.candidates[best]) {
                i
            } else {
                best
            }
        })
    }

    /// The candidate to hand over: least loss on validation among those looked at; the leader on
    /// `tune` where validation was never paid for.
    pub fn best(&self) -> &Candidate {
        let looked = self
            .candidates
            .iter()
            .filter_map(|c| Some((c, c.validation_loss?)));
        looked
            .min_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(Ordering::Equal))
            .map_or(&self.candidates[self.leader()], |(c, _)| c)
    }

    /// Draws a parent: the leader half of the time, else one of the frontier in proportion to the
    /// number of locales for which it is the best.
    pub(super) fn choose_parent(&mut self, bench: &Bench<'_>) -> usize {
        self.step += 1;
        let locales = locales(bench, bench.tune);
        let mut held = vec![0usize; self.candidates.len()];
        held[self.leader()] += locales.len();
        for locale in &locales {
            let losses: Vec<f64> = self
                .candidates
                .iter()
                .map(|c| {
                    let own = c
                        .losses
                        .iter()
                        .filter(|(i, _)| bench.items[**i].locale == *locale);
                    let (n, sum) = own.fold((0.0, 0.0), |(n, sum), (_, l)| (n + 1.0, sum + l));
                    let overall = mean(c.losses.values().copied());
                    (sum + SHRINKAGE * overall) / (n + SHRINKAGE)
                })
                .collect();
            let best = (0..losses.len()).fold(0, |b, i| if losses[i] < losses[b] { i } else { b });
            held[best] += 1;
        }
        let mut draw = bench
            .streams
            .of(self.step, "parent")
            .random_range(0..held.iter().sum::<usize>().max(1));
        for (i, h) in held.iter().enumerate() {
            if draw < *h {
                return i;
            }
            draw -= h;
        }
        0
    }
}

/// Whether `a` has less loss than `b` on the items that both have.
fn ahead(a: &Candidate, b: &Candidate) -> bool {
    let diffs = a
        .losses
        .iter()
        .filter_map(|(i, loss)| Some(loss - b.losses.get(i)?));
    let diff = mean(diffs);
    diff.is_finite() && diff < 0.0
}

//! Which version leads, which is handed over, and which is edited next.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;

use super::bench::{Bench, Frontier};
use super::candidate::Candidate;
use super::objective::{by_locale, worst_locale};
use super::pool::{Pool, ample, mean};

impl Pool {
    /// Position of the candidate with the least loss on `tune`, as the objective has it. Candidates
    /// were judged on different parts of it, so two of them are compared on the items that both have.
    pub fn leader(&self) -> usize {
        (1..self.candidates.len()).fold(0, |best, i| {
            if self.ahead(&self.candidates[i], &self.candidates[best]) {
                i
            } else {
                best
            }
        })
    }

    /// The candidate to hand over: the one that was settled on; else least loss on validation among
    /// those looked at; the leader on `tune` where validation was never paid for.
    pub fn best(&self) -> &Candidate {
        if let Some(settled) = self.settled {
            return &self.candidates[settled];
        }
        let looked = self
            .candidates
            .iter()
            .filter_map(|c| Some((c, c.validation_loss?)));
        looked
            .min_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(Ordering::Equal))
            .map_or(&self.candidates[self.leader()], |(c, _)| c)
    }

    /// Draws a parent: the leader half of the time, else one of the frontier in proportion to the
    /// number of locales, or items, for which it is the best. Where what is left of the budget is not
    /// ample, always the leader: a child that beats another parent may still be behind it.
    pub(super) fn choose_parent(&mut self, bench: &Bench<'_>) -> usize {
        self.step += 1;
        let leader = self.leader();
        if !ample(bench, &self.candidates[leader].version) {
            return leader;
        }
        let winners = match bench.search.frontier {
            Frontier::Locales => self.best_by_locale(),
            Frontier::Items => self.best_by_item(),
        };
        let mut held = vec![0usize; self.candidates.len()];
        held[leader] += winners.len();
        for winner in winners {
            held[winner] += 1;
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

    /// The candidate with the least loss in each locale of `tune`.
    fn best_by_locale(&self) -> Vec<usize> {
        let by_locale: Vec<_> = self
            .candidates
            .iter()
            .map(|c| {
                (
                    by_locale(&self.placed(&c.losses)),
                    mean(c.losses.values().copied()),
                )
            })
            .collect();
        let best = |locale: usize| {
            let losses = by_locale
                .iter()
                .map(|(own, overall)| own.get(&locale).copied().unwrap_or(*overall));
            first_least(losses.enumerate())
        };
        (0..self.locales.len()).filter_map(best).collect()
    }

    /// The candidate with the least loss on each item that any was judged on.
    fn best_by_item(&self) -> Vec<usize> {
        let items: BTreeSet<usize> = self
            .candidates
            .iter()
            .flat_map(|c| c.losses.keys().copied())
            .collect();
        let best = |item: usize| {
            let losses = self.candidates.iter().enumerate();
            first_least(losses.filter_map(|(i, c)| Some((i, *c.losses.get(&item)?))))
        };
        items.into_iter().filter_map(best).collect()
    }

    /// Whether `a` has less loss than `b` on the items that both have.
    fn ahead(&self, a: &Candidate, b: &Candidate) -> bool {
        let both = a
            .losses
            .iter()
            .filter_map(|(i, loss)| Some((self.place(*i), *loss, *b.losses.get(i)?)));
        let diff = if self.objective.is_mean() {
            mean(both.map(|(_, a, b)| a - b))
        } else {
            let (a, b): (Vec<_>, Vec<_>) = both.map(|(l, a, b)| ((l, a), (l, b))).unzip();
            self.objective.of(&a) - self.objective.of(&b)
        };
        diff.is_finite() && diff < 0.0
    }

    /// What losses by item are worth to the objective; less is better.
    pub(super) fn value(&self, losses: &BTreeMap<usize, f64>) -> f64 {
        self.objective.of(&self.placed(losses))
    }

    /// The number of an item's locale; 0 for every item where locales do not matter.
    fn place(&self, item: usize) -> usize {
        self.locale_of.get(&item).copied().unwrap_or_default()
    }

    /// Losses with the number of their item's locale.
    fn placed(&self, losses: &BTreeMap<usize, f64>) -> Vec<(usize, f64)> {
        let losses = losses.iter();
        losses.map(|(i, loss)| (self.place(*i), *loss)).collect()
    }

    /// The locale that the objective asks to help first: the candidate's worst, unless only the
    /// mean counts.
    pub(super) fn worst_of(&self, candidate: usize) -> Option<usize> {
        if self.objective.is_mean() {
            return None;
        }
        worst_locale(&self.placed(&self.candidates[candidate].losses))
    }

    /// Whether an item is of a locale.
    pub(super) fn is_of(&self, item: usize, locale: usize) -> bool {
        self.place(item) == locale
    }

    /// Paired differences with the weights that make their mean the gain in the objective.
    pub(super) fn weigh(&self, parent: usize, diffs: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let locales: Vec<usize> = diffs.iter().map(|(i, _)| self.place(*i)).collect();
        let weights = self.objective.weights(&locales, self.worst_of(parent));
        let pairs = diffs.iter().zip(weights);
        pairs.map(|((i, d), w)| (*i, d * w)).collect()
    }
}

/// The first of those with the least loss.
fn first_least(losses: impl Iterator<Item = (usize, f64)>) -> Option<usize> {
    losses
        .reduce(|best, next| if next.1 < best.1 { next } else { best })
        .map(|(i, _)| i)
}

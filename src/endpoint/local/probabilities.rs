//! Logits to log probabilities. Must not know which texts they belong to.

use llama_cpp_2::token::LlamaToken;

/// Logits and what normalises them: log P(token) = logit - log(sum of exp(logits)).
pub(super) struct LogProbabilities<'a> {
    logits: &'a [f32],
    normaliser: f64,
}

impl<'a> LogProbabilities<'a> {
    pub fn of(logits: &'a [f32]) -> Self {
        let top = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        let sum: f64 = logits
            .iter()
            .map(|logit| (f64::from(*logit) - top).exp())
            .sum();
        Self {
            logits,
            normaliser: top + sum.ln(),
        }
    }

    /// Minus infinity for a number that is no token.
    pub fn get(&self, token: LlamaToken) -> f64 {
        let logit = usize::try_from(token.0)
            .ok()
            .and_then(|place| self.logits.get(place));
        logit.map_or(f64::NEG_INFINITY, |logit| {
            f64::from(*logit) - self.normaliser
        })
    }

    /// The `count` most probable tokens, best first; ties by token number.
    pub fn best(&self, count: usize) -> Vec<LlamaToken> {
        let mut order: Vec<(i32, f32)> = (0_i32..).zip(self.logits.iter().copied()).collect();
        let better = |a: &(i32, f32), b: &(i32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if count < order.len() {
            order.select_nth_unstable_by(count, better);
            order.truncate(count);
        }
        order.sort_by(better);
        order
            .into_iter()
            .map(|(number, _)| LlamaToken::new(number))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_probabilities_are_a_softmax() {
        // softmax(ln 1, ln 2, ln 5) = 1/8, 2/8, 5/8; a shift of all logits changes nothing.
        for shift in [0.0_f32, 900.0, -900.0] {
            let logits = [1.0_f32, 2.0, 5.0].map(|weight| weight.ln() + shift);
            let all = LogProbabilities::of(&logits);
            for (token, share) in [(0, 0.125_f64), (1, 0.25), (2, 0.625)] {
                assert!((all.get(LlamaToken::new(token)).exp() - share).abs() < 1e-4);
            }
            assert_eq!(all.get(LlamaToken::new(3)), f64::NEG_INFINITY);
        }
    }

    #[test]
    fn the_best_come_first_and_ties_by_number() {
        let all = LogProbabilities::of(&[0.0, 3.0, 1.0, 3.0]);
        let best = |count| {
            all.best(count)
                .into_iter()
                .map(|token| token.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(best(3), [1, 3, 2]);
        assert_eq!(best(9), [1, 3, 2, 0]);
        assert!(best(0).is_empty());
    }
}

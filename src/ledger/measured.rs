//! What calls really use of their upper bounds, by endpoint: the bound of a prompt is its bytes, and
//! holding back or showing bytes as tokens would be three or four times too much.

use std::collections::HashMap;

use crate::endpoint::{Identity, Usage};

/// Answers after which the shares that were seen are believed.
const ENOUGH: u64 = 8;
/// Until then a token is taken to be two bytes: more tokens than most scripts need.
const ASSUMED: Share = Share {
    prompt: 500,
    completion: 1_000,
};

/// The largest share of a bound that a call used, in thousandths, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    prompt: u64,
    completion: u64,
}

/// Shares by endpoint. They grow with every answer and do not depend on the order of arrival.
#[derive(Debug, Default)]
pub(super) struct Measured(HashMap<String, (u64, Share)>);

impl Measured {
    /// Takes what a call used of its bound.
    pub(super) fn see(&mut self, endpoint: &Identity, used: Usage, bound: Usage) {
        let (seen, most) = self.0.entry(key(endpoint)).or_default();
        *seen += 1;
        most.prompt = most
            .prompt
            .max(share(used.prompt_tokens, bound.prompt_tokens));
        most.completion = most
            .completion
            .max(share(used.completion_tokens, bound.completion_tokens));
    }

    /// Whether enough answers were seen.
    pub(super) fn knows(&self, endpoint: &Identity) -> bool {
        self.0.get(&key(endpoint)).is_some_and(|m| m.0 >= ENOUGH)
    }

    /// What a call with this bound will use at most, going by the calls before it.
    pub(super) fn likely(&self, endpoint: &Identity, bound: Usage) -> Usage {
        let share = self
            .0
            .get(&key(endpoint))
            .filter(|m| m.0 >= ENOUGH)
            .map_or(ASSUMED, |m| m.1);
        let part = |n: u64, thousandths: u64| n.saturating_mul(thousandths).div_ceil(1_000);
        Usage {
            prompt_tokens: part(bound.prompt_tokens, share.prompt),
            completion_tokens: part(bound.completion_tokens, share.completion),
        }
    }
}

fn key(endpoint: &Identity) -> String {
    format!(
        "{}\n{}\n{}",
        endpoint.kind, endpoint.model, endpoint.settings
    )
}

fn share(used: u64, bound: u64) -> u64 {
    match bound {
        0 => 0,
        _ => used.saturating_mul(1_000).div_ceil(bound),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_largest_seen_and_believed_after_eight_answers() {
        let endpoint = Identity {
            kind: "openai".into(),
            model: "m".into(),
            settings: String::new(),
        };
        let tokens = |prompt_tokens, completion_tokens| Usage {
            prompt_tokens,
            completion_tokens,
        };
        let mut measured = Measured::default();
        for n in 0..8 {
            assert!(!measured.knows(&endpoint));
            assert_eq!(measured.likely(&endpoint, tokens(400, 16)), tokens(200, 16));
            // The largest share is 130 of 400 and 3 of 16 tokens.
            let used = if n == 3 { 130 } else { 100 };
            measured.see(&endpoint, tokens(used, 3), tokens(400, 16));
        }
        assert!(measured.knows(&endpoint));
        // 325/1000 of 800, and ceil(187.5)/1000 of 16 rounded up.
        assert_eq!(measured.likely(&endpoint, tokens(800, 16)), tokens(260, 4));
    }
}

//! From `[budget]` to caps and prices, and what is held back for the reading of `test`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, PoisonError};

use super::config::BudgetConfig;
use crate::data::Item;
use crate::endpoint::Usage;
use crate::judge::Judge;
use crate::ledger::{Amount, Caps, Money, PriceTable, Prices};
use crate::prompt::{RenderError, Version};

/// The caps of a budget.
pub(super) fn caps(budget: &BudgetConfig) -> Caps {
    Caps {
        calls: budget.calls,
        prompt_tokens: budget.prompt_tokens,
        completion_tokens: budget.completion_tokens,
        money: budget.money.map(|cap| micro(cap, Round::Down)),
    }
}

/// The price table of a budget.
pub(super) fn prices(budget: &BudgetConfig) -> PriceTable {
    let models = budget.prices.iter().map(|(model, [prompt, completion])| {
        (
            model.clone(),
            Prices {
                prompt_per_million: micro(*prompt, Round::Up),
                completion_per_million: micro(*completion, Round::Up),
            },
        )
    });
    PriceTable {
        models: models.collect(),
        otherwise: None,
    }
}

/// Which way a seventh decimal goes.
#[derive(Clone, Copy)]
enum Round {
    Down,
    Up,
}

/// Money in millionths, so that sums are exact. The number is taken by its decimal digits, as it
/// was written: in binary, 2.01 times a million is less than 2,010,000. What is finer than a
/// millionth makes a cap smaller and a price higher, so that rounding never lets a cap be passed.
/// The config refuses what is negative or no number.
fn micro(amount: f64, round: Round) -> Money {
    // Rust prints the shortest digits that read back, and never an exponent.
    let text = format!("{}", amount.max(0.0));
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let (kept, rest) = decimals.split_at(decimals.len().min(6));
    let (Ok(whole), Ok(kept)) = (whole.parse::<u64>(), format!("{kept:0<6}").parse::<u64>()) else {
        return Money(u64::MAX);
    };
    let up = matches!(round, Round::Up) && rest.bytes().any(|digit| digit != b'0');
    Money(
        whole
            .saturating_mul(1_000_000)
            .saturating_add(kept)
            .saturating_add(u64::from(up)),
    )
}

/// What must be left for reading `test` with the seed version and with the dearest version judged
/// so far, any of which may be the one that is chosen.
pub(super) struct HoldBack<'a> {
    judge: &'a Judge<'a>,
    test: &'a [&'a Item],
    seed: Vec<Usage>,
    /// Bounds of the requests, by the digest of the version.
    seen: Mutex<BTreeMap<String, Vec<Usage>>>,
}

impl<'a> HoldBack<'a> {
    /// For a run that starts from `seed`.
    pub(super) fn new(
        judge: &'a Judge<'a>,
        seed: &Version,
        test: &'a [&'a Item],
    ) -> Result<Self, RenderError> {
        Ok(Self {
            judge,
            test,
            seed: bounds(judge, seed, test)?,
            seen: Mutex::default(),
        })
    }

    /// The amount to hold back while `version` is judged.
    pub(super) fn amount(&self, version: &Version) -> Result<Amount, RenderError> {
        // A panic elsewhere leaves the map as it was between two entries.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Vacant(free) = seen.entry(version.digest()) {
            free.insert(bounds(self.judge, version, self.test)?);
        }
        let takes = |bounds: &[Usage]| self.judge.ledger.takes(self.judge.endpoint, bounds);
        let dearest = seen
            .values()
            .map(|bounds| takes(bounds))
            .fold(Amount::default(), Amount::most);
        Ok(takes(&self.seed).plus(dearest))
    }
}

fn bounds(judge: &Judge<'_>, version: &Version, test: &[&Item]) -> Result<Vec<Usage>, RenderError> {
    let requests = judge.requests(version, test)?;
    Ok(requests.iter().map(|r| judge.endpoint.bound(r)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_rounded_down_and_prices_up_by_their_decimal_digits() {
        for (amount, down, up) in [
            (0.29, 290_000, 290_000),
            (2.5, 2_500_000, 2_500_000),
            (0.000_000_5, 0, 1),
            (1.000_000_4, 1_000_000, 1_000_001),
            // 2.01 * 1e6 is 2009999.9999999998 in binary.
            (2.01, 2_010_000, 2_010_000),
            (0.0, 0, 0),
            (1e-9, 0, 1),
            (1e18, u64::MAX, u64::MAX),
        ] {
            assert_eq!(micro(amount, Round::Down), Money(down), "{amount}");
            assert_eq!(micro(amount, Round::Up), Money(up), "{amount}");
        }
    }
}

//! Hard caps on calls, tokens and money: reserved by upper bounds before a call, settled by what
//! it really used afterwards.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::money::{Money, Prices};
use crate::endpoint::Usage;

/// The most that a run may use; `None` is no cap, 0 is nothing at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Caps {
    /// Attempts that reach the endpoint, repeated ones included.
    pub calls: Option<u64>,
    /// Tokens read.
    pub prompt_tokens: Option<u64>,
    /// Tokens generated.
    pub completion_tokens: Option<u64>,
    /// By the price table.
    pub money: Option<Money>,
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Attempts that reached the endpoint.
    pub calls: u64,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
    /// By the price table.
    pub money: Money,
    /// Requests answered without a call: from the cache, or because this run had asked before.
    pub cached: u64,
}

/// Calls with their tokens and cost: what is reserved and what is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Attempts.
    pub calls: u64,
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
    /// Micro-units.
    pub money: Money,
}

impl Amount {
    /// One call that uses these tokens at these prices.
    pub fn of_call(usage: Usage, prices: &Prices) -> Self {
        Self {
            calls: 1,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            money: prices.cost(usage),
        }
    }

    /// The same `n` times; saturates.
    pub fn times(self, n: u64) -> Self {
        self.by_field(Self::default(), |a, _| a.saturating_mul(n))
    }

    /// Field by field; saturates.
    pub fn plus(self, other: Self) -> Self {
        self.by_field(other, u64::saturating_add)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.by_field(other, u64::saturating_sub)
    }

    /// The larger of each field.
    pub fn most(self, other: Self) -> Self {
        self.by_field(other, u64::max)
    }

    fn by_field(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            calls: f(self.calls, other.calls),
            prompt_tokens: f(self.prompt_tokens, other.prompt_tokens),
            completion_tokens: f(self.completion_tokens, other.completion_tokens),
            money: Money(f(self.money.0, other.money.0)),
        }
    }
}

/// Part of a budget that is set aside for calls to come.
#[derive(Debug, Default)]
#[must_use = "a reservation is settled or released"]
pub struct Reservation {
    left: Amount,
}

impl Reservation {
    /// Whether another call with this bound is covered.
    pub fn covers(&self, bound: &Amount) -> bool {
        self.left.calls >= bound.calls
    }
}

/// A cap that leaves no room for a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Exhausted {
    /// `calls`, `prompt tokens`, `completion tokens` or `money`.
    pub what: &'static str,
    /// The cap; micro-units for money.
    pub cap: u64,
    /// Used so far.
    pub used: u64,
    /// What the next call may need.
    pub needed: u64,
    /// Set aside for the reading of `test`.
    pub held: u64,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |n: u64| match self.what {
            "money" => Money(n).to_string(),
            _ => n.to_string(),
        };
        write!(
            f,
            "the budget is used up: {} of {} {} are spent, ",
            shown(self.used),
            shown(self.cap),
            self.what
        )?;
        if self.held > 0 {
            write!(f, "{} are held back for reading test, ", shown(self.held))?;
        }
        write!(f, "and the next call may need {}", shown(self.needed))
    }
}

/// Caps with what is spent and reserved. Spent plus reserved never passes a cap as long as no
/// call uses more than its bound.
#[derive(Debug, Default)]
pub struct Budget {
    caps: Caps,
    spent: Spent,
    reserved: Amount,
    held: Amount,
}

impl Budget {
    /// Nothing spent yet.
    pub fn new(caps: Caps) -> Self {
        Self {
            caps,
            ..Self::default()
        }
    }

    /// Sets `bound` aside.
    ///
    /// # Errors
    /// The first cap that spent, reserved, held back and `bound` would pass; nothing is set aside
    /// then.
    pub fn reserve(&mut self, bound: Amount) -> Result<Reservation, Exhausted> {
        let taken = self.spent_amount().plus(self.reserved);
        let checks = [
            (
                "calls",
                self.caps.calls,
                taken.calls,
                bound.calls,
                self.held.calls,
            ),
            (
                "prompt tokens",
                self.caps.prompt_tokens,
                taken.prompt_tokens,
                bound.prompt_tokens,
                self.held.prompt_tokens,
            ),
            (
                "completion tokens",
                self.caps.completion_tokens,
                taken.completion_tokens,
                bound.completion_tokens,
                self.held.completion_tokens,
            ),
            (
                "money",
                self.caps.money.map(|m| m.0),
                taken.money.0,
                bound.money.0,
                self.held.money.0,
            ),
        ];
        for (what, cap, used, needed, held) in checks {
            if let Some(cap) = cap
                && used
                    .checked_add(needed)
                    .and_then(|sum| sum.checked_add(held))
                    .is_none_or(|sum| sum > cap)
            {
                return Err(Exhausted {
                    what,
                    cap,
                    used,
                    needed,
                    held,
                });
            }
        }
        self.reserved = self.reserved.plus(bound);
        Ok(Reservation { left: bound })
    }

    /// Charges one call, and gives back what was set aside for it.
    pub fn settle(&mut self, reservation: &mut Reservation, bound: Amount, actual: Amount) {
        reservation.left = reservation.left.minus(bound);
        self.reserved = self.reserved.minus(bound);
        self.charge(actual);
    }

    /// Gives back what is left.
    pub fn release(&mut self, reservation: Reservation) {
        self.reserved = self.reserved.minus(reservation.left);
    }

    /// Charges what was used without a reservation: a recorded call of a resumed run.
    pub fn charge(&mut self, actual: Amount) {
        let spent = self.spent_amount().plus(actual);
        self.spent = Spent {
            calls: spent.calls,
            prompt_tokens: spent.prompt_tokens,
            completion_tokens: spent.completion_tokens,
            money: spent.money,
            cached: self.spent.cached,
        };
    }

    /// What reservations must leave under the caps from now on.
    pub fn hold_back(&mut self, amount: Amount) {
        self.held = amount;
    }

    /// Whether anything is held back.
    pub fn holds_back(&self) -> bool {
        self.held != Amount::default()
    }

    /// Whether anything but calls is capped.
    pub fn caps_more_than_calls(&self) -> bool {
        let caps = &self.caps;
        caps.prompt_tokens.is_some() || caps.completion_tokens.is_some() || caps.money.is_some()
    }

    /// Counts a request that cost nothing.
    pub fn count_cached(&mut self) {
        self.spent.cached += 1;
    }

    /// Forgets reservations whose calls were dropped before they ended.
    pub(super) fn forget_reservations(&mut self) {
        self.reserved = Amount::default();
    }

    /// So far.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Calls that are neither spent nor reserved; `None` without a cap.
    pub fn remaining_calls(&self) -> Option<u64> {
        let taken = self.spent.calls.saturating_add(self.reserved.calls);
        self.caps.calls.map(|cap| cap.saturating_sub(taken))
    }

    fn spent_amount(&self) -> Amount {
        Amount {
            calls: self.spent.calls,
            prompt_tokens: self.spent.prompt_tokens,
            completion_tokens: self.spent.completion_tokens,
            money: self.spent.money,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(calls: u64, prompt_tokens: u64) -> Amount {
        Amount {
            calls,
            prompt_tokens,
            ..Amount::default()
        }
    }

    #[test]
    fn a_cap_holds_to_the_last_token() {
        let mut budget = Budget::new(Caps {
            prompt_tokens: Some(10),
            ..Caps::default()
        });
        let mut first = budget.reserve(tokens(1, 6)).unwrap();
        let refused = budget.reserve(tokens(1, 5)).unwrap_err();
        assert_eq!(
            (refused.what, refused.used, refused.needed),
            ("prompt tokens", 6, 5)
        );
        budget.settle(&mut first, tokens(1, 6), tokens(1, 5));
        let second = budget.reserve(tokens(1, 5)).unwrap();
        assert!(budget.reserve(tokens(1, 1)).is_err());
        budget.release(second);
        assert_eq!(budget.spent().prompt_tokens, 5);
    }

    #[test]
    fn what_is_held_back_stays_until_it_is_released() {
        let mut budget = Budget::new(Caps {
            prompt_tokens: Some(10),
            ..Caps::default()
        });
        budget.hold_back(tokens(5, 4));
        budget.charge(tokens(1, 3));
        let kept = budget.reserve(tokens(1, 3)).unwrap();
        let refused = budget.reserve(tokens(1, 1)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the budget is used up: 6 of 10 prompt tokens are spent, 4 are held back for reading \
             test, and the next call may need 1"
        );
        budget.release(kept);
        budget.hold_back(Amount::default());
        assert!(budget.reserve(tokens(1, 7)).is_ok());
    }

    #[test]
    fn no_cap_and_cap_zero_are_different() {
        assert!(
            Budget::default()
                .reserve(tokens(u64::MAX, u64::MAX))
                .is_ok()
        );
        let mut none = Budget::new(Caps {
            calls: Some(0),
            ..Caps::default()
        });
        assert!(none.reserve(tokens(1, 0)).is_err());
        assert_eq!(none.remaining_calls(), Some(0));
        let mut money = Budget::new(Caps {
            money: Some(Money(0)),
            ..Caps::default()
        });
        assert!(
            money.reserve(tokens(1, 1)).is_ok(),
            "free calls need no money"
        );
    }

    #[test]
    fn sums_do_not_wrap() {
        let mut budget = Budget::new(Caps {
            calls: Some(u64::MAX),
            ..Caps::default()
        });
        budget.charge(tokens(u64::MAX, 0));
        assert!(budget.reserve(tokens(1, 0)).is_err());
    }

    #[test]
    fn the_message_shows_money_as_money() {
        let mut budget = Budget::new(Caps {
            money: Some(Money(1_500_000)),
            ..Caps::default()
        });
        let refused = budget
            .reserve(Amount {
                money: Money(2_000_000),
                ..Amount::default()
            })
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the budget is used up: 0.00 of 1.50 money are spent, and the next call may need 2.00"
        );
    }
}

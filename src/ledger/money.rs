//! Money as whole micro-units, so that sums are exact, and prices per token.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::endpoint::{Identity, Usage};

const MICRO: u64 = 1_000_000;

/// An amount in millionths of the unit that the price table is written in.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub u64);

impl fmt::Display for Money {
    /// `1.50`, with as many of the six decimals as are needed and at least two.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = format!("{:06}", self.0 % MICRO);
        let kept = decimals.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", self.0 / MICRO, &decimals[..kept])
    }
}

/// An amount that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no amount: write digits with at most six decimals, such as 2.50")]
pub struct NotMoney(String);

impl FromStr for Money {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let wrong = || NotMoney(text.to_owned());
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 6 {
            return Err(wrong());
        }
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        let micro: u64 = format!("{decimals:0<6}").parse().map_err(|_| wrong())?;
        whole
            .checked_mul(MICRO)
            .and_then(|w| w.checked_add(micro))
            .map(Money)
            .ok_or_else(wrong)
    }
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// For a million tokens read.
    pub prompt_per_million: Money,
    /// For a million tokens generated.
    pub completion_per_million: Money,
}

impl Prices {
    /// The cost of one call, rounded up to a whole micro-unit. It grows with the usage, so the
    /// cost of an upper bound is an upper bound of the cost.
    pub fn cost(&self, usage: Usage) -> Money {
        let part = |tokens: u64, price: Money| u128::from(tokens) * u128::from(price.0);
        let millionths = part(usage.prompt_tokens, self.prompt_per_million)
            .saturating_add(part(usage.completion_tokens, self.completion_per_million));
        Money(u64::try_from(millionths.div_ceil(u128::from(MICRO))).unwrap_or(u64::MAX))
    }
}

/// Prices by model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// By the model name of the endpoint.
    #[serde(default)]
    pub models: BTreeMap<String, Prices>,
    /// For models that are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Prices>,
}

impl PriceTable {
    /// The prices of an endpoint. What is not an HTTP server costs nothing unless it is listed;
    /// an unlisted server without `otherwise` has no known price.
    pub fn of(&self, identity: &Identity) -> Option<Prices> {
        let free = (identity.kind != "openai").then(Prices::default);
        self.models
            .get(&identity.model)
            .copied()
            .or(free)
            .or(self.otherwise)
    }
}

impl From<Prices> for PriceTable {
    fn from(prices: Prices) -> Self {
        Self {
            models: BTreeMap::new(),
            otherwise: Some(prices),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn costs_are_those_of_a_price_list() {
        // 0.15 and 0.60 per million: 1,000 read and 500 written cost 0.00015 + 0.0003.
        let prices = Prices {
            prompt_per_million: "0.15".parse().unwrap(),
            completion_per_million: "0.60".parse().unwrap(),
        };
        let usage = |prompt_tokens, completion_tokens| Usage {
            prompt_tokens,
            completion_tokens,
        };
        assert_eq!(prices.cost(usage(1_000, 500)), Money(450));
        assert_eq!(
            prices.cost(usage(1, 0)),
            Money(1),
            "0.15 micro-units round up"
        );
        assert_eq!(prices.cost(usage(0, 0)), Money(0));
        assert_eq!(
            prices.cost(usage(u64::MAX, u64::MAX)),
            Money(13_835_058_055_282_163_712)
        );
    }

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        assert_eq!("2.50".parse(), Ok(Money(2_500_000)));
        assert_eq!("0.000001".parse(), Ok(Money(1)));
        assert_eq!("7".parse(), Ok(Money(7_000_000)));
        for bad in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "1e3",
            "0.0000001",
            "1,5",
            "99999999999999999999",
        ] {
            assert!(bad.parse::<Money>().is_err(), "{bad}");
        }
        assert_eq!(Money(2_500_000).to_string(), "2.50");
        assert_eq!(Money(1).to_string(), "0.000001");
    }

    #[test]
    fn only_a_server_needs_a_price() {
        let identity = |kind: &str| Identity {
            kind: kind.into(),
            model: "m".into(),
            settings: String::new(),
        };
        assert_eq!(PriceTable::default().of(&identity("openai")), None);
        assert_eq!(
            PriceTable::default().of(&identity("local")),
            Some(Prices::default())
        );
        let prices = Prices {
            prompt_per_million: Money(5),
            ..Prices::default()
        };
        assert_eq!(
            PriceTable::from(prices).of(&identity("openai")),
            Some(prices)
        );
    }

    proptest! {
        #[test]
        fn amounts_read_back(micro: u64) {
            prop_assert_eq!(Money(micro).to_string().parse(), Ok(Money(micro)));
        }
    }
}

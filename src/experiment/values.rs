//! Values of an experiment file that TOML's own numbers do not fit: seeds and amounts.

/// A seed: TOML integers end at 9223372036854775807, so larger seeds are written as text,
/// `seed = "18446744073709551615"`. A seed below that may be written either way.
pub(super) mod seed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(i64),
        Text(String),
        Other(toml::Value),
    }

    pub fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        match i64::try_from(*seed) {
            Ok(seed) => seed.serialize(serializer),
            Err(_) => seed.to_string().serialize(serializer),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let read = match Written::deserialize(deserializer)? {
            Written::Number(n) => u64::try_from(n).map_err(|_| n.to_string()),
            Written::Text(text) => text.parse().map_err(|_| format!("\"{text}\"")),
            Written::Other(value) => Err(value.to_string()),
        };
        read.map_err(|given| {
            D::Error::custom(format!(
                "a seed is a whole number from 0 to 18446744073709551615, not {given}; above \
                 9223372036854775807 it is written as text, in quotes"
            ))
        })
    }

    /// The same where it may be absent.
    pub mod option {
        use super::{Deserialize, Deserializer, Serializer};

        #[derive(Deserialize)]
        struct Wrapped(#[serde(with = "super")] u64);

        pub fn serialize<S: Serializer>(
            seed: &Option<u64>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match seed {
                Some(seed) => super::serialize(seed, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<u64>, D::Error> {
            Ok(Option::<Wrapped>::deserialize(deserializer)?.map(|w| w.0))
        }
    }
}

/// An amount of money: a number that is not negative and not infinite.
pub(super) mod amount {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, de::Error};

    fn checked<E: Error>(amount: f64) -> Result<f64, E> {
        if amount.is_finite() && amount >= 0.0 {
            return Ok(amount);
        }
        Err(E::custom(format!(
            "an amount of money is 0 or more, not {amount}; write it as in 2.50"
        )))
    }

    pub fn option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        let amount = Option::<f64>::deserialize(deserializer)?;
        amount.map(checked).transpose()
    }

    pub fn prices<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, [f64; 2]>, D::Error> {
        let prices = BTreeMap::<String, [f64; 2]>::deserialize(deserializer)?;
        for price in prices.values().flatten() {
            checked::<D::Error>(*price)?;
        }
        Ok(prices)
    }
}

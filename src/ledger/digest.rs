//! The digest of a request: everything that decides an answer, and nothing else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::endpoint::{Identity, Request, Style, Want};

/// Changing what is hashed below means changing this too: old digests must then match nothing.
const DOMAIN: &str = "pluralis request 1";

/// Names a request to an endpoint: equal digests mean that the same answer serves both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestDigest(pub(super) [u8; 32]);

impl RequestDigest {
    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for RequestDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A digest that is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 hexadecimal digits")]
pub struct NotADigest;

impl FromStr for RequestDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        blake3::Hash::from_hex(text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| NotADigest)
    }
}

impl Serialize for RequestDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// blake3 over the endpoint's identity and the whole request. Every field has its length before
/// it, so that no two requests run together; numbers are hashed as bits, never as they print.
pub fn request_digest(identity: &Identity, request: &Request) -> RequestDigest {
    let mut fields = Fields(blake3::Hasher::new());
    fields.text(DOMAIN);
    fields.text(&identity.kind);
    fields.text(&identity.model);
    fields.text(&identity.settings);
    fields.tag(match request.prompt.style {
        Style::Chat => 0,
        Style::Completion => 1,
    });
    fields.text(&request.prompt.prefix);
    fields.text(&request.prompt.suffix);
    match &request.want {
        Want::Scores { options } => {
            fields.tag(0);
            fields.number(options.len() as u64);
            options.iter().for_each(|option| fields.text(option));
        }
        Want::Text {
            max_tokens,
            temperature,
            json_schema,
            top_logprobs,
        } => {
            fields.tag(1);
            fields.number(u64::from(*max_tokens));
            fields.number(u64::from(temperature.to_bits()));
            fields.option(json_schema.as_ref(), Fields::json);
            fields.tag(*top_logprobs);
        }
        Want::Embedding => fields.tag(2),
    }
    fields.option(request.seed, Fields::number);
    fields.number(u64::from(request.repeat));
    RequestDigest(*fields.0.finalize().as_bytes())
}

struct Fields(blake3::Hasher);

impl Fields {
    fn tag(&mut self, tag: u8) {
        self.0.update(&[tag]);
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.tag(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    /// Keys are sorted, so the digest does not depend on the order in which they were written.
    fn json(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(0),
            Value::Bool(value) => {
                self.tag(1);
                self.tag(u8::from(*value));
            }
            Value::Number(number) => {
                if let Some(number) = number.as_u64() {
                    self.tag(2);
                    self.number(number);
                } else if let Some(number) = number.as_i64() {
                    self.tag(3);
                    self.number(number.cast_unsigned());
                } else {
                    self.tag(4);
                    self.number(number.as_f64().unwrap_or(f64::NAN).to_bits());
                }
            }
            Value::String(text) => {
                self.tag(5);
                self.text(text);
            }
            Value::Array(values) => {
                self.tag(6);
                self.number(values.len() as u64);
                values.iter().for_each(|value| self.json(value));
            }
            Value::Object(members) => {
                self.tag(7);
                self.number(members.len() as u64);
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(key, _)| *key);
                for (key, value) in members {
                    self.text(key);
                    self.json(value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::PromptText;
    use proptest::prelude::*;
    use serde_json::json;

    fn identity() -> Identity {
        Identity {
            kind: "openai".into(),
            model: "m".into(),
            settings: "http://a/v1".into(),
        }
    }

    fn request(prefix: &str, suffix: &str) -> Request {
        Request {
            prompt: PromptText {
                style: Style::Chat,
                prefix: prefix.into(),
                suffix: suffix.into(),
            },
            want: Want::Text {
                max_tokens: 8,
                temperature: 0.0,
                json_schema: None,
                top_logprobs: 0,
            },
            seed: None,
            repeat: 0,
        }
    }

    #[test]
    fn every_field_that_decides_an_answer_changes_the_digest() {
        let base = request("system", "item");
        let text = |max_tokens, temperature, json_schema, top_logprobs| Request {
            want: Want::Text {
                max_tokens,
                temperature,
                json_schema,
                top_logprobs,
            },
            ..base.clone()
        };
        let scores = |options: &[&str]| Request {
            want: Want::Scores {
                options: options.iter().map(|&o| o.into()).collect(),
            },
            ..base.clone()
        };
        let requests = [
            base.clone(),
            request("systemi", "tem"),
            request("", "systemitem"),
            Request {
                prompt: PromptText {
                    style: Style::Completion,
                    ..base.prompt.clone()
                },
                ..base.clone()
            },
            Request {
                seed: Some(0),
                ..base.clone()
            },
            Request {
                seed: Some(u64::MAX),
                ..base.clone()
            },
            Request {
                repeat: 1,
                ..base.clone()
            },
            Request {
                want: Want::Embedding,
                ..base.clone()
            },
            text(9, 0.0, None, 0),
            text(8, f32::MIN_POSITIVE, None, 0),
            text(8, 0.0, Some(Value::Null), 0),
            text(8, 0.0, Some(json!({"a": 1})), 0),
            text(8, 0.0, Some(json!({"a": 1.0})), 0),
            text(8, 0.0, Some(json!({"a": -1})), 0),
            text(8, 0.0, Some(json!({"a": "1"})), 0),
            text(8, 0.0, Some(json!({"a": [1]})), 0),
            text(8, 0.0, None, 1),
            scores(&[]),
            scores(&["ab"]),
            scores(&["a", "b"]),
            scores(&["b", "a"]),
        ];
        let mut digests: Vec<_> = requests
            .iter()
            .map(|r| request_digest(&identity(), r))
            .collect();
        for changed in [
            Identity {
                kind: "local".into(),
                ..identity()
            },
            Identity {
                model: "n".into(),
                ..identity()
            },
            Identity {
                settings: "http://b/v1".into(),
                ..identity()
            },
            Identity {
                model: "mh".into(),
                settings: "ttp://a/v1".into(),
                ..identity()
            },
        ] {
            digests.push(request_digest(&changed, &base));
        }
        let asked = digests.len();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), asked);
    }

    #[test]
    fn the_order_of_schema_keys_does_not_count() {
        let with = |schema: &str| {
            let schema = serde_json::from_str(schema).unwrap();
            let want = Want::Text {
                max_tokens: 1,
                temperature: 0.5,
                json_schema: Some(schema),
                top_logprobs: 0,
            };
            request_digest(
                &identity(),
                &Request {
                    want,
                    ..request("", "")
                },
            )
        };
        assert_eq!(
            with(r#"{"a":1,"b":{"d":2,"c":3}}"#),
            with(r#"{"b":{"c":3,"d":2},"a":1}"#)
        );
    }

    #[test]
    fn a_digest_reads_back_from_its_hex() {
        let digest = request_digest(&identity(), &request("a", "b"));
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json.len(), 66);
        assert_eq!(
            serde_json::from_str::<RequestDigest>(&json).unwrap(),
            digest
        );
        assert!(serde_json::from_str::<RequestDigest>("\"00\"").is_err());
        assert_eq!("zz".parse::<RequestDigest>(), Err(NotADigest));
    }

    proptest! {
        /// Text moved over the border of two fields is another request.
        #[test]
        fn equal_digests_mean_equal_requests(
            a in "[ab]{0,3}", b in "[ab]{0,3}", c in "[ab]{0,3}", d in "[ab]{0,3}"
        ) {
            let one = request_digest(&identity(), &request(&a, &b));
            let two = request_digest(&identity(), &request(&c, &d));
            prop_assert_eq!(one == two, (a, b) == (c, d));
        }
    }
}

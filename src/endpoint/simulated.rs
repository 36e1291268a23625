//! A deterministic judge with planted failure modes, whose errors depend on what the prompt says.
//!
//! It ships with the product so that whole runs can be tried and tested in seconds: the experiment
//! names what the right answer looks like, which kinds of item it gets wrong, and which words in
//! the instructions or demos on that kind of item mend it. Asked as a writer, it proposes the
//! mending words for the planted mode that the shown examples belong to.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::{
    Capabilities, Endpoint, EndpointError, ErrorClass, Identity, Request, Response, Usage, Want,
};

/// How the simulated judge behaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedConfig {
    /// Seed of its noise.
    #[serde(default)]
    pub seed: u64,
    /// Answer word -> marks in the item text that call for it. Words must be those of the version.
    pub lexicon: BTreeMap<String, Vec<String>>,
    /// Answer where no mark occurs.
    pub default: String,
    /// What it gets wrong.
    #[serde(default)]
    pub failures: Vec<Planted>,
    /// Probability that an answer is replaced by another label at random, keyed by the request, so
    /// that another prompt for the same item flips anew.
    #[serde(default)]
    pub flip: f64,
    /// Probability given to the answer; the rest is shared by the others. Default .85.
    #[serde(default)]
    pub confidence: Option<f64>,
    /// Share of requests that fail for good, keyed by the item text.
    #[serde(default)]
    pub broken: f64,
    /// Milliseconds that an answer takes at most, to watch progress bars and interrupts; each takes
    /// between half of them and all, so that answers overtake each other.
    #[serde(default)]
    pub latency_ms: u64,
}

/// One planted failure mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// Name, for tests.
    pub name: String,
    /// The item text must contain each of these (a country and a topic, say).
    pub when: Vec<String>,
    /// The wrong answer that it then gives.
    pub answer: String,
    /// Instruction words that mend it; a writer proposes them.
    pub mended_by: String,
    /// Number of times that the last of `when` must occur in the prefix (in demos or notes) to
    /// mend it without the words; 0 for never.
    #[serde(default)]
    pub mended_by_demos: usize,
}

/// The simulated endpoint.
pub struct SimulatedEndpoint {
    config: SimulatedConfig,
    identity: Identity,
    concurrency: usize,
}

impl SimulatedEndpoint {
    /// A judge that behaves as configured.
    pub fn new(config: SimulatedConfig) -> Self {
        let settings = serde_json::to_string(&config).unwrap_or_default();
        let identity = Identity {
            kind: "simulated".into(),
            model: "simulated".into(),
            settings,
        };
        Self {
            config,
            identity,
            concurrency: 8,
        }
    }

    /// With so many requests in flight at most; decides no answer.
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency.max(1);
        self
    }

    /// The name of the planted mode that an item text falls under with a given prefix, if any.
    pub fn planted(&self, prefix: &str, suffix: &str) -> Option<&Planted> {
        self.config.failures.iter().find(|f| {
            let hit = f.when.iter().all(|w| suffix.contains(w.as_str()));
            let told = prefix.contains(&f.mended_by);
            let shown = f.mended_by_demos > 0
                && f.when.last().is_some_and(|topic| {
                    prefix.matches(topic.as_str()).count() >= f.mended_by_demos
                });
            hit && !told && !shown
        })
    }

    fn word(&self, request: &Request) -> &str {
        let (prefix, suffix) = (&request.prompt.prefix, &request.prompt.suffix);
        if let Some(failure) = self.planted(prefix, suffix) {
            return &failure.answer;
        }
        let marked = self
            .config
            .lexicon
            .iter()
            .find(|(_, marks)| marks.iter().any(|m| suffix.contains(m.as_str())));
        marked.map_or(&self.config.default, |(word, _)| word)
    }

    /// A number in [0, 1) that depends on the parts and the seed alone.
    fn chance(&self, purpose: &str, parts: &[&str]) -> f64 {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(&self.config.seed.to_le_bytes())
            .update(purpose.as_bytes());
        for part in parts {
            hasher
                .update(&(part.len() as u64).to_le_bytes())
                .update(part.as_bytes());
        }
        let bytes = hasher.finalize();
        let mut first = [0u8; 8];
        first.copy_from_slice(&bytes.as_bytes()[..8]);
        (u64::from_le_bytes(first) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn distribution(&self, request: &Request, options: &[String]) -> Vec<f64> {
        let (prefix, suffix) = (
            request.prompt.prefix.as_str(),
            request.prompt.suffix.as_str(),
        );
        let word = self.word(request);
        let mut chosen = options.iter().position(|o| o.trim() == word).unwrap_or(0);
        let repeat = request.repeat.to_string();
        if options.len() > 1 && self.chance("flip", &[prefix, suffix, &repeat]) < self.config.flip {
            let step = 1
                + (self.chance("other", &[prefix, suffix, &repeat]) * (options.len() - 1) as f64)
                    as usize;
            chosen = (chosen + step) % options.len();
        }
        let top = self.config.confidence.unwrap_or(0.85).clamp(0.0, 1.0);
        // A little spread, keyed by the item, so that confidences are not all equal.
        let top = (top - 0.1 * self.chance("spread", &[suffix])).clamp(0.01, 0.999);
        let rest = (1.0 - top) / (options.len().max(2) - 1) as f64;
        (0..options.len())
            .map(|i| if i == chosen { top } else { rest })
            .collect()
    }

    /// The mending words of the planted mode that most of the shown examples belong to.
    fn write(&self, request: &Request) -> String {
        let text = format!("{}{}", request.prompt.prefix, request.prompt.suffix);
        let best = self
            .config
            .failures
            .iter()
            .filter(|f| !text.contains(&f.mended_by))
            .max_by_key(|f| {
                f.when
                    .iter()
                    .map(|w| text.matches(w.as_str()).count())
                    .min()
                    .unwrap_or(0)
            });
        match best {
            Some(f) => serde_json::json!({"edit": "add-rule", "text": f.mended_by}).to_string(),
            None => serde_json::json!({"edit": "add-rule", "text": "Answer as a careful annotator would."}).to_string(),
        }
    }

    fn respond(&self, request: &Request) -> Result<Response, EndpointError> {
        let prompt = &request.prompt;
        let usage = Usage {
            prompt_tokens: (prompt.prefix.len() + prompt.suffix.len()).div_ceil(4) as u64,
            completion_tokens: 0,
        };
        if self.chance("broken", &[&prompt.suffix]) < self.config.broken {
            return Err(EndpointError {
                class: ErrorClass::GiveUp,
                cause: "simulated".into(),
                message: "the simulated judge fails on this item".into(),
                retry_after_ms: None,
                usage,
            });
        }
        match &request.want {
            Want::Scores { options } => Ok(Response {
                scores: self
                    .distribution(request, options)
                    .iter()
                    .map(|p| p.ln())
                    .collect(),
                usage,
                ..Response::default()
            }),
            Want::Text {
                json_schema: None,
                top_logprobs: 0,
                max_tokens,
                ..
            } if *max_tokens > 100 => Ok(Response {
                text: self.write(request),
                usage: Usage {
                    completion_tokens: 40,
                    ..usage
                },
                ..Response::default()
            }),
            Want::Text { .. } => Ok(Response {
                text: self.word(request).to_owned(),
                usage: Usage {
                    completion_tokens: 3,
                    ..usage
                },
                ..Response::default()
            }),
            Want::Embedding => Err(EndpointError {
                class: ErrorClass::GiveUp,
                cause: "unsupported".into(),
                message: "the simulated judge has no embeddings".into(),
                retry_after_ms: None,
                usage: Usage::default(),
            }),
        }
    }
}

impl Endpoint for SimulatedEndpoint {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scores: true,
            embeddings: false,
            concurrency: self.concurrency,
        }
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<Response, EndpointError>> {
        async move {
            if self.config.latency_ms > 0 {
                let prompt = &request.prompt;
                let draw = self.chance("latency", &[&prompt.prefix, &prompt.suffix]);
                let most = Duration::from_millis(self.config.latency_ms);
                tokio::time::sleep(most.mul_f64(0.5 + 0.5 * draw)).await;
            }
            self.respond(request)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{PromptText, Style};

    fn endpoint() -> SimulatedEndpoint {
        SimulatedEndpoint::new(SimulatedConfig {
            lexicon: BTreeMap::from([("offensive".into(), vec!["bad".into()])]),
            default: "harmless".into(),
            failures: vec![Planted {
                name: "food".into(),
                when: vec!["Mexico".into(), "food".into()],
                answer: "offensive".into(),
                mended_by: "Talk of food is harmless.".into(),
                mended_by_demos: 2,
            }],
            ..SimulatedConfig::default()
        })
    }

    fn top(prefix: &str, suffix: &str) -> usize {
        let prompt = PromptText {
            style: Style::Completion,
            prefix: prefix.into(),
            suffix: suffix.into(),
        };
        let request = Request {
            prompt,
            want: Want::Scores {
                options: vec![" harmless".into(), " offensive".into()],
            },
            seed: None,
            repeat: 0,
        };
        let scores = endpoint().respond(&request).unwrap().scores;
        usize::from(scores[1] > scores[0])
    }

    #[test]
    fn errors_depend_on_what_the_prompt_says() {
        assert_eq!(top("", "Mexico: food lovers"), 1);
        assert_eq!(top("", "Spain: food lovers"), 0);
        assert_eq!(top("Talk of food is harmless.", "Mexico: food lovers"), 0);
        assert_eq!(top("demo food, demo food", "Mexico: food lovers"), 0);
        assert_eq!(top("", "Spain: bad"), 1);
    }
}

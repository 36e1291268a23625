//! Owns models that answer requests: the trait [`Endpoint`] and its implementations.
//! Must not know tasks, items or labels: it sees prompt text and asks for text or for
//! the probabilities of given continuations.

pub mod openai;
pub mod simulated;
#[cfg(feature = "local")]
pub mod local;
pub mod model_file;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

pub use crate::prompt::{PromptText, Style};

/// One thing to ask a model. Everything in it decides the answer, so all of it is in the digest
/// under which the answer is cached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// What the model reads.
    pub prompt: PromptText,
    /// What is wanted of it.
    pub want: Want,
    /// Sampling seed, where the endpoint takes one.
    pub seed: Option<u64>,
    /// 0 for the first time; repeats of the same question differ here.
    pub repeat: u32,
}

/// What is wanted of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Want {
    /// log P(option | prompt) for each option (needs [`Capabilities::scores`]).
    Scores {
        /// Continuations to score; for completion style each starts with its own space if wanted.
        options: Vec<String>,
    },
    /// Generated text.
    Text {
        /// Most tokens to generate.
        max_tokens: u32,
        /// 0 is greedy.
        temperature: f32,
        /// JSON schema that the answer must follow, where the endpoint can enforce one.
        json_schema: Option<serde_json::Value>,
        /// Number of alternatives to report for each generated token; 0 for none.
        top_logprobs: u8,
    },
    /// A vector for the whole text (needs [`Capabilities::embeddings`]); `prompt.suffix` is embedded.
    Embedding,
}

/// A whole, successful answer. What it means is not known here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Generated text; empty for scores and embeddings.
    pub text: String,
    /// Natural-log probabilities by option, for [`Want::Scores`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<f64>,
    /// Per generated token the alternatives (text, natural log probability), best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub top_logprobs: Vec<Vec<(String, f64)>>,
    /// For [`Want::Embedding`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embedding: Vec<f32>,
    /// Why generation ended.
    pub finish: Finish,
    /// Tokens used, as the endpoint says (estimated where it does not).
    pub usage: Usage,
}

/// Why generation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The model was done.
    #[default]
    Stop,
    /// The token limit cut it.
    Length,
    /// The provider withheld it.
    ContentFilter,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
}

/// What decides an endpoint's answers besides the request: base URL and model; or model file
/// digest, engine version, threads and context settings. Part of the cache key. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `openai`, `local` or `simulated`.
    pub kind: String,
    /// Model name, for reports.
    pub model: String,
    /// Everything else that decides an answer, as canonical text.
    pub settings: String,
}

/// What an endpoint can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Answers [`Want::Scores`].
    pub scores: bool,
    /// Answers [`Want::Embedding`].
    pub embeddings: bool,
    /// Requests worth having in flight at once.
    pub concurrency: usize,
}

/// What the caller should do about a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// Ask again later: 429, 5xx, a reset connection, a body cut short.
    Retry,
    /// This request cannot succeed; others may: too long, refused by a filter, malformed answer.
    GiveUp,
    /// No request can succeed: wrong key, unknown model, no such host.
    Stop,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct EndpointError {
    /// What to do about it.
    pub class: ErrorClass,
    /// Short stable name of the cause: `rate-limited`, `unauthorized`, `cut-body`.
    pub cause: String,
    /// What happened and what to do, for people; never holds a key.
    pub message: String,
    /// How long the server asked to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Tokens that were charged although the call failed, where the server says so.
    #[serde(default)]
    pub usage: Usage,
}

/// A model that answers requests. One call of [`answer`](Endpoint::answer) is one attempt: retries,
/// caching and budgets belong to the ledger.
pub trait Endpoint: Send + Sync {
    /// What decides the answers; part of the cache key.
    fn identity(&self) -> &Identity;
    /// What it can do.
    fn capabilities(&self) -> Capabilities;
    /// One attempt.
    fn answer<'a>(&'a self, request: &'a Request)
    -> BoxFuture<'a, Result<Response, EndpointError>>;
    /// An upper bound of the tokens that the request can use, reserved before it is sent.
    /// A token is at least one byte, so bytes bound tokens from above.
    fn bound(&self, request: &Request) -> Usage {
        let bytes = request.prompt.prefix.len() + request.prompt.suffix.len() + 64;
        let completion = match &request.want {
            Want::Text { max_tokens, .. } => u64::from(*max_tokens),
            Want::Scores { .. } | Want::Embedding => 0,
        };
        Usage {
            prompt_tokens: bytes as u64,
            completion_tokens: completion,
        }
    }
}

//! Owns the shapes on the wire: a request as JSON, and an answer's JSON as a [`Response`].
//! Must not know about connections, statuses or limits.

use serde::Serialize;
use serde_json::Value;

use super::classify::{self, Asked, Reply, failure};
use super::complaint::Complaint;
use super::{EndpointError, ErrorClass, Request, Response, Style, Usage, Want};
use crate::endpoint::Finish;

/// What decides a body besides the request.
pub(super) struct Options<'a> {
    pub(super) model: &'a str,
    /// Send JSON schemas.
    pub(super) schema: bool,
    /// Send seeds.
    pub(super) seed: bool,
    /// Say `max_completion_tokens` instead of `max_tokens`.
    pub(super) new_token_limit: bool,
}

/// A request, ready to be sent.
pub(super) struct Call {
    /// Appended to the base URL.
    pub(super) path: &'static str,
    /// JSON.
    pub(super) body: String,
    /// The body holds a JSON schema.
    pub(super) has_schema: bool,
    /// The body holds `max_tokens`.
    pub(super) has_old_token_limit: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    temperature: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    /// `true` for chat, a number for completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<&'a Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Serialize)]
struct EmbeddingBody<'a> {
    model: &'a str,
    input: &'a str,
}

impl Call {
    /// # Errors
    /// Class [`ErrorClass::GiveUp`] for [`Want::Scores`], which this interface cannot answer.
    pub(super) fn new(request: &Request, options: &Options<'_>) -> Result<Self, EndpointError> {
        match &request.want {
            Want::Scores { .. } => Err(failure(
                ErrorClass::GiveUp,
                "unsupported",
                "an OpenAI-compatible server cannot score given continuations: ask for text with \
                 top_logprobs"
                    .to_owned(),
            )),
            Want::Embedding => {
                let body = EmbeddingBody {
                    model: options.model,
                    input: &request.prompt.suffix,
                };
                Ok(Self {
                    path: "/embeddings",
                    body: json(&body)?,
                    has_schema: false,
                    has_old_token_limit: false,
                })
            }
            Want::Text {
                max_tokens,
                temperature,
                json_schema,
                top_logprobs,
            } => {
                let schema = json_schema.as_ref().filter(|_| options.schema);
                let body = Body {
                    model: options.model,
                    messages: Vec::new(),
                    prompt: None,
                    max_tokens: (!options.new_token_limit).then_some(*max_tokens),
                    max_completion_tokens: options.new_token_limit.then_some(*max_tokens),
                    temperature: *temperature,
                    seed: request.seed.filter(|_| options.seed).map(short_seed),
                    logprobs: None,
                    top_logprobs: None,
                    response_format: schema.map(strict),
                    json_schema: None,
                };
                let wanted = Some(*top_logprobs).filter(|n| *n > 0);
                let (path, body) = fill(body, request, schema, wanted);
                Ok(Self {
                    path,
                    body: json(&body)?,
                    has_schema: schema.is_some(),
                    has_old_token_limit: !options.new_token_limit,
                })
            }
        }
    }
}

/// The fields in which the two styles differ.
fn fill<'a>(
    body: Body<'a>,
    request: &'a Request,
    schema: Option<&'a Value>,
    top_logprobs: Option<u8>,
) -> (&'static str, Body<'a>) {
    let prompt = &request.prompt;
    match prompt.style {
        Style::Chat => {
            let system = Message {
                role: "system",
                content: &prompt.prefix,
            };
            let user = Message {
                role: "user",
                content: &prompt.suffix,
            };
            let messages = if prompt.prefix.is_empty() {
                vec![user]
            } else {
                vec![system, user]
            };
            let logprobs = top_logprobs.map(|_| Value::Bool(true));
            (
                "/chat/completions",
                Body {
                    messages,
                    logprobs,
                    top_logprobs,
                    ..body
                },
            )
        }
        Style::Completion => {
            let prompt = Some(format!("{}{}", prompt.prefix, prompt.suffix));
            let logprobs = top_logprobs.map(Value::from);
            // Here llama.cpp's server passes over `response_format` without a word, and reads
            // `json_schema`; vLLM reads the former.
            (
                "/completions",
                Body {
                    prompt,
                    logprobs,
                    json_schema: schema,
                    ..body
                },
            )
        }
    }
}

fn json(body: &impl Serialize) -> Result<String, EndpointError> {
    serde_json::to_string(body).map_err(|e| {
        let message = format!("the request cannot be written as JSON: {e}");
        failure(ErrorClass::GiveUp, "bad-request", message)
    })
}

fn strict(schema: &Value) -> Value {
    serde_json::json!({
        "type": "json_schema",
        "json_schema": { "name": "answer", "strict": true, "schema": schema },
    })
}

/// Servers read seeds as 32 or 64 bits, signed or not, and take some values for "random"
/// (llama.cpp: 4294967295). Seeds below 2^31 go out as they are; larger ones are mixed down
/// (finaliser of SplitMix64, Steele et al. 2014) so that each of their bits counts.
fn short_seed(seed: u64) -> u32 {
    if let Ok(small) = i32::try_from(seed) {
        return small.unsigned_abs();
    }
    let mut z = seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    // 33 bits are dropped, so 31 remain.
    (z >> 33) as u32
}

/// Tokens that a request will probably use: a token is about three bytes of text (more in
/// English, fewer in scripts that a model's vocabulary covers thinly).
pub(super) fn estimate(request: &Request) -> Usage {
    let completion_tokens = match &request.want {
        Want::Text { max_tokens, .. } => u64::from(*max_tokens),
        Want::Scores { .. } | Want::Embedding => 0,
    };
    Usage {
        prompt_tokens: tokens(read_bytes(request)),
        completion_tokens,
    }
}

fn read_bytes(request: &Request) -> usize {
    match request.want {
        Want::Embedding => request.prompt.suffix.len(),
        _ => request.prompt.prefix.len() + request.prompt.suffix.len(),
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(3) as u64
}

/// Reads an answer whose status is 2xx.
///
/// # Errors
/// A page instead of JSON, a body cut short, an error object, an answer without content.
pub(super) fn read(
    request: &Request,
    asked: &Asked<'_>,
    reply: &Reply<'_>,
) -> Result<Response, EndpointError> {
    let body = parse(asked, reply.body)?;
    if let Some(complaint) = Complaint::find(&body) {
        return Err(classify::hidden(asked, reply, &complaint));
    }
    let malformed = |cause: &str, what: &str| EndpointError {
        usage: said_usage(&body).unwrap_or_default(),
        ..failure(
            ErrorClass::GiveUp,
            cause,
            format!(
                "the answer of {} {what}: {}",
                asked.url,
                asked.quote(reply.body)
            ),
        )
    };
    if request.want == Want::Embedding {
        let embedding = embedding(&body["data"][0]["embedding"])
            .ok_or_else(|| malformed("malformed", "holds no embedding"))?;
        let usage = usage(&body, request, "");
        return Ok(Response {
            embedding,
            usage,
            ..Response::default()
        });
    }
    let choice = body["choices"]
        .get(0)
        .ok_or_else(|| malformed("no-choices", "holds no choices"))?;
    if let Some(complaint) = Complaint::find(choice) {
        return Err(classify::hidden(asked, reply, &complaint));
    }
    let text = text(choice).ok_or_else(|| malformed("malformed", "holds no text"))?;
    let finish = match choice["finish_reason"].as_str() {
        Some("length" | "max_tokens") => Finish::Length,
        Some("content_filter") => Finish::ContentFilter,
        Some("error") => {
            let complaint = Complaint::default();
            return Err(classify::hidden(asked, reply, &complaint));
        }
        _ => Finish::Stop,
    };
    Ok(Response {
        top_logprobs: top_logprobs(&choice["logprobs"]),
        usage: usage(&body, request, &text),
        text,
        finish,
        ..Response::default()
    })
}

fn parse(asked: &Asked<'_>, body: &str) -> Result<Value, EndpointError> {
    let body = body.trim_start_matches('\u{feff}').trim();
    let url = asked.url;
    if body.is_empty() {
        let message = format!("the answer of {url} is empty");
        return Err(failure(ErrorClass::Retry, "cut-body", message));
    }
    if !body.starts_with('{') {
        let message = format!(
            "the answer of {url} is not JSON; it looks like the page of a proxy, or the base URL \
             is wrong: {}",
            asked.quote(body)
        );
        return Err(failure(ErrorClass::Retry, "not-json", message));
    }
    serde_json::from_str(body).map_err(|e| {
        let (class, cause) = if e.is_eof() {
            (ErrorClass::Retry, "cut-body")
        } else {
            (ErrorClass::GiveUp, "malformed")
        };
        failure(
            class,
            cause,
            format!(
                "the answer of {url} is not JSON ({e}): {}",
                asked.quote(body)
            ),
        )
    })
}

/// `message.content` as text or parts, else the model's refusal; `text` for completions. An answer
/// without content (all tokens went into reasoning) is empty text.
fn text(choice: &Value) -> Option<String> {
    if let Some(text) = choice["text"].as_str() {
        return Some(text.to_owned());
    }
    let message = choice["message"].as_object()?;
    match message.get("content") {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(parts)) => Some(
            parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect(),
        ),
        _ => Some(
            message
                .get("refusal")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        ),
    }
}

fn embedding(numbers: &Value) -> Option<Vec<f32>> {
    let numbers = numbers.as_array().filter(|numbers| !numbers.is_empty())?;
    numbers
        .iter()
        // Beyond the range of f32 there is no number that could be kept and read again.
        .map(|number| Some(number.as_f64()? as f32).filter(|n| n.is_finite()))
        .collect()
}

/// Both shapes: `content` (chat; also completions of llama.cpp's server) and the older
/// `{tokens, token_logprobs, top_logprobs: [{token: logprob}]}`. Empty when there are none:
/// llama.cpp leaves them out where the first token is part of a character.
fn top_logprobs(logprobs: &Value) -> Vec<Vec<(String, f64)>> {
    if let Some(content) = logprobs["content"].as_array() {
        return content
            .iter()
            .map(|token| listed(&token["top_logprobs"]))
            .collect();
    }
    let positions = logprobs["top_logprobs"].as_array();
    positions.into_iter().flatten().map(mapped).collect()
}

fn listed(alternatives: &Value) -> Vec<(String, f64)> {
    let mut found: Vec<(String, f64)> = alternatives
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| Some((token_text(one)?, one["logprob"].as_f64()?)))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

/// Older shape. A JSON object has no order, so ties are ordered by text.
fn mapped(alternatives: &Value) -> Vec<(String, f64)> {
    let mut found: Vec<(String, f64)> = alternatives
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(token, logprob)| Some((token.clone(), logprob.as_f64()?)))
        .collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found
}

/// The bytes come first: llama.cpp writes a token of a space and half an emoji as " ", which would
/// pass for the token that is only a space.
fn token_text(token: &Value) -> Option<String> {
    let bytes: Option<Vec<u8>> = token["bytes"].as_array().and_then(|bytes| {
        bytes
            .iter()
            .map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
            .collect()
    });
    match bytes {
        Some(bytes) if !bytes.is_empty() => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => Some(token["token"].as_str()?.to_owned()),
    }
}

fn said_usage(body: &Value) -> Option<Usage> {
    let said = body.get("usage").filter(|usage| usage.is_object())?;
    let count = |name: &str| said[name].as_u64();
    Some(Usage {
        prompt_tokens: count("prompt_tokens")?,
        completion_tokens: count("completion_tokens").unwrap_or(0),
    })
}

/// As the server says, else estimated from bytes.
fn usage(body: &Value, request: &Request, text: &str) -> Usage {
    let estimated = Usage {
        prompt_tokens: tokens(read_bytes(request)),
        completion_tokens: tokens(text.len()),
    };
    let said = said_usage(body).unwrap_or(estimated);
    // An answer with text used at least a token, whatever an incomplete count says.
    let silent = body["usage"]["completion_tokens"].as_u64().is_none();
    let completion_tokens = if silent {
        estimated.completion_tokens
    } else {
        said.completion_tokens
    };
    Usage {
        completion_tokens,
        ..said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn small_seeds_go_out_as_they_are_and_every_large_one_counts() {
        assert_eq!(
            [0, 1, 42, 0x7fff_ffff].map(short_seed),
            [0, 1, 42, 0x7fff_ffff]
        );
        let large = (0..64)
            .map(|bit| u64::MAX ^ (1 << bit))
            .chain([u64::MAX, 1 << 31, 1 << 63]);
        let short: std::collections::HashSet<u32> = large.map(short_seed).collect();
        assert_eq!(short.len(), 67);
        assert!(short.iter().all(|seed| *seed <= 0x7fff_ffff));
    }

    #[test]
    fn both_shapes_of_logprobs_are_read_best_first() {
        let older = json!({"tokens": [" a"], "token_logprobs": [-0.5], "top_logprobs":
            [{" c": -2.0, " a": -0.5, " b": -2.0}, null, {"x": null}]});
        let expected = [(" a", -0.5), (" b", -2.0), (" c", -2.0)].map(|(t, p)| (t.to_owned(), p));
        assert_eq!(top_logprobs(&older), [expected.to_vec(), vec![], vec![]]);
        let newer = json!({"content": [{"token": "A", "top_logprobs":
            [{"token": "B", "logprob": -3}, {"token": "A", "logprob": -0.1}]}, {"token": ""}]});
        let expected = [("A", -0.1), ("B", -3.0)].map(|(t, p)| (t.to_owned(), p));
        assert_eq!(top_logprobs(&newer), [expected.to_vec(), vec![]]);
        for none in [
            json!(null),
            json!({"content": null}),
            json!({"content": []}),
            json!(7),
        ] {
            assert!(top_logprobs(&none).is_empty());
        }
    }

    /// Recorded from llama.cpp's server: three tokens that it writes alike or wrongly.
    #[test]
    fn a_token_that_is_part_of_a_character_does_not_pass_for_a_whole_one() {
        let recorded = json!([
            {"id": 220, "token": " ", "bytes": [32], "logprob": -1.07},
            {"id": 11162, "token": " ", "bytes": [32, 240, 159], "logprob": -3.68},
            {"id": 151645, "token": "", "bytes": [], "logprob": -4.0},
        ]);
        let texts: Vec<String> = listed(&recorded)
            .into_iter()
            .map(|(text, _)| text)
            .collect();
        assert_eq!(texts, [" ", " \u{fffd}", ""]);
    }
}

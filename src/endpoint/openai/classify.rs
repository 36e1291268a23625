//! Owns the reading of failures: what went wrong with a call, whether to ask again, and what a
//! person should do about it. Must not know how requests are built or answers are read.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use super::complaint::{Complaint, excerpt};
use super::{EndpointError, ErrorClass, Usage};

/// Cause of a 429; the endpoint then sends fewer requests at once.
pub(super) const RATE_LIMITED: &str = "rate-limited";
/// Cause of a refused JSON schema; the next attempt asks without.
pub(super) const SCHEMA_REFUSED: &str = "schema-refused";
/// Cause of a refused `max_tokens`; the next attempt says `max_completion_tokens`.
pub(super) const OLD_TOKEN_LIMIT: &str = "old-token-limit";

/// What was asked of whom, for messages.
pub(super) struct Asked<'a> {
    pub(super) url: &'a str,
    pub(super) model: &'a str,
    pub(super) key_env: Option<&'a str>,
    pub(super) timeout: Duration,
    /// The request held a JSON schema.
    pub(super) schema: bool,
    /// The request held `max_tokens`.
    pub(super) old_token_limit: bool,
    /// Sent with the request; a server may repeat it, and no message may.
    pub(super) key: Option<&'a str>,
}

impl Asked<'_> {
    /// The beginning of a server's text, for messages. The key goes before the text is cut, lest
    /// half of it remain.
    pub(super) fn quote(&self, text: &str) -> String {
        match self.key {
            Some(key) => excerpt(&text.replace(key, "(key)")),
            None => excerpt(text),
        }
    }
}

/// What came back.
pub(super) struct Reply<'a> {
    pub(super) status: u16,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) location: Option<&'a str>,
    pub(super) body: &'a str,
}

pub(super) fn failure(class: ErrorClass, cause: &str, message: String) -> EndpointError {
    EndpointError {
        class,
        cause: cause.to_owned(),
        message,
        retry_after_ms: None,
        usage: Usage::default(),
    }
}

/// No answer at all.
pub(super) fn transport(asked: &Asked<'_>, error: &reqwest::Error) -> EndpointError {
    let url = asked.url;
    let why = chain(asked, error);
    if why.to_lowercase().contains("certificate") {
        let message = format!("the certificate of {url} is not trusted ({why})");
        return failure(ErrorClass::Stop, "certificate", message);
    }
    if error.is_builder() {
        let message = format!("no request can be made to {url} ({why}): check the base URL");
        return failure(ErrorClass::Stop, "bad-config", message);
    }
    if error.is_connect() {
        let message = format!(
            "{url} cannot be reached ({why}): check the base URL, and whether a server runs there"
        );
        return failure(ErrorClass::Retry, "unreachable", message);
    }
    if error.is_timeout() {
        return timeout(asked);
    }
    let message = format!("{url} closed the connection before it answered ({why})");
    failure(ErrorClass::Retry, "connection-lost", message)
}

/// An answer that broke off.
pub(super) fn cut(asked: &Asked<'_>, error: &reqwest::Error) -> EndpointError {
    if error.is_timeout() {
        return timeout(asked);
    }
    let message = format!(
        "the answer of {} broke off ({})",
        asked.url,
        chain(asked, error)
    );
    failure(ErrorClass::Retry, "cut-body", message)
}

fn timeout(asked: &Asked<'_>) -> EndpointError {
    let message = format!(
        "{} did not answer in full within {} s: raise the timeout if it is only slow",
        asked.url,
        asked.timeout.as_secs_f64()
    );
    failure(ErrorClass::Retry, "timeout", message)
}

/// The innermost causes say what happened; the outermost only repeats the URL.
fn chain(asked: &Asked<'_>, error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(source) = next {
        let text = source.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
        next = source.source();
    }
    asked.quote(&parts.join(": "))
}

/// How long the server asks to wait, in milliseconds: `retry-after-ms`, or `Retry-After` in
/// seconds or as an HTTP date (RFC 9110, section 10.2.3). A date that has passed is 0.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let number = |text: &str, unit: f64| {
        let value = text
            .parse::<f64>()
            .ok()
            .filter(|v| v.is_finite() && *v >= 0.0)?;
        Some((value * unit).ceil() as u64)
    };
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .map(str::trim)
    };
    if let Some(wait) = text("retry-after-ms").and_then(|t| number(t, 1.0)) {
        return Some(wait);
    }
    let header = text(RETRY_AFTER.as_str())?;
    number(header, 1_000.0).or_else(|| {
        let until = httpdate::parse_http_date(header).ok()?;
        let wait = until.duration_since(now).unwrap_or_default();
        Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    })
}

/// An answer whose status is not 2xx.
pub(super) fn refusal(asked: &Asked<'_>, reply: &Reply<'_>) -> EndpointError {
    let complaint = serde_json::from_str::<Value>(reply.body)
        .ok()
        .and_then(|body| Complaint::find(&body))
        .unwrap_or_else(|| Complaint {
            words: reply.body.to_lowercase(),
            message: reply.body.to_owned(),
            ..Complaint::default()
        });
    let mut error = judge(asked, reply, reply.status, &complaint);
    error.retry_after_ms = error.retry_after_ms.or(reply.retry_after_ms);
    error
}

/// An error inside an answer whose status says that all is well; its code says what it is.
pub(super) fn hidden(asked: &Asked<'_>, reply: &Reply<'_>, complaint: &Complaint) -> EndpointError {
    let status = complaint.status.unwrap_or_else(|| {
        if complaint.has(&["rate_limit", "rate limit", "too many requests"]) {
            429
        } else if complaint.has(&["invalid_request", "bad_request", "badrequest"]) {
            400
        } else {
            // Unknown: as a server's own trouble, which may pass.
            500
        }
    });
    let mut error = judge(asked, reply, status, complaint);
    error.retry_after_ms = error.retry_after_ms.or(reply.retry_after_ms);
    error
}

/// The order matters: a few causes hide behind several statuses (no credit behind 429, an unknown
/// model behind 400, a prompt that is too long behind 500), so words come before statuses there.
fn judge(asked: &Asked<'_>, reply: &Reply<'_>, status: u16, said: &Complaint) -> EndpointError {
    use ErrorClass::{GiveUp, Retry, Stop};
    let (url, model) = (asked.url, asked.model);
    let quote = format!("{url} said {status}: {}", asked.quote(&said.message));
    let with = |advice: &str| format!("{quote}; {advice}");
    let broke = [
        "insufficient_quota",
        "billing_hard_limit",
        "billing_not_active",
    ];
    if status == 402 || said.is(&broke) || (status == 429 && said.has(&broke)) {
        return failure(
            Stop,
            "no-credit",
            with("the account has no credit or quota left"),
        );
    }
    if status == 403 && said.has(&["moderation", "flagged", "content policy", "content_policy"]) {
        return failure(
            GiveUp,
            "content-filter",
            with("the provider refuses this text"),
        );
    }
    if matches!(status, 401 | 403) || said.is(&["invalid_api_key"]) {
        let advice = match asked.key_env {
            Some(variable) => {
                format!("check the key in variable {variable} and what it may be used for")
            }
            None => "the server wants a key: name the variable that holds it (key_env)".to_owned(),
        };
        return failure(Stop, "unauthorized", with(&advice));
    }
    if matches!(status, 400 | 404 | 422) && said.means_unknown_model(model) {
        let advice = format!("check the model name {}", asked.quote(model));
        return failure(Stop, "unknown-model", with(&advice));
    }
    if said.means_too_long() && status != 429 {
        return failure(
            GiveUp,
            "too-long",
            with("the prompt is too long for the model"),
        );
    }
    match status {
        300..=399 => {
            let to = asked.quote(reply.location.unwrap_or("elsewhere"));
            let message =
                format!("{url} sends on to {to}: use that as the base URL if it is yours");
            failure(Stop, "redirected", message)
        }
        404 | 405 => {
            let advice = "the base URL (up to and including /v1) or the model name is wrong, or \
                          the server does not offer this";
            failure(Stop, "not-found", with(advice))
        }
        429 => failure(Retry, RATE_LIMITED, with("too many requests")),
        408 | 409 | 425 => failure(Retry, "server-busy", quote),
        501 => failure(GiveUp, "unsupported", with("the server cannot do this")),
        500.. => failure(Retry, "server-error", quote),
        _ => bad_request(asked, said, &with, quote.clone()),
    }
}

/// 400, 422 and the like.
fn bad_request(
    asked: &Asked<'_>,
    said: &Complaint,
    with: &dyn Fn(&str) -> String,
    quote: String,
) -> EndpointError {
    use ErrorClass::{GiveUp, Retry};
    let again = |cause, advice: &str| EndpointError {
        retry_after_ms: Some(0),
        ..failure(Retry, cause, with(advice))
    };
    if asked.old_token_limit && said.has(&["max_completion_tokens"]) {
        return again(
            OLD_TOKEN_LIMIT,
            "from now on the limit is sent under that name",
        );
    }
    let schema = ["response_format", "json_schema", "json schema", "grammar"];
    if asked.schema && said.has(&schema) {
        return again(
            SCHEMA_REFUSED,
            "from now on it is asked without a JSON schema",
        );
    }
    if said.has(&[
        "content_filter",
        "content filter",
        "content_policy",
        "content management",
    ]) {
        return failure(
            GiveUp,
            "content-filter",
            with("the provider refuses this text"),
        );
    }
    failure(GiveUp, "bad-request", quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;
    use serde_json::json;

    fn wait(name: &'static str, value: &str, now: SystemTime) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        retry_after(&headers, now)
    }

    #[test]
    fn waits_are_read_in_all_their_forms() {
        // RFC 9110's own example date, 784111777 s after the epoch.
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 90);
        assert_eq!(wait("retry-after", date, now), Some(90_000));
        assert_eq!(
            wait("retry-after", date, now + Duration::from_secs(91)),
            Some(0)
        );
        assert_eq!(wait("retry-after", " 120 ", now), Some(120_000));
        assert_eq!(wait("retry-after", "0.25", now), Some(250));
        assert_eq!(wait("retry-after-ms", "17", now), Some(17));
        for nonsense in ["", "-1", "soon", "NaN", "inf"] {
            assert_eq!(wait("retry-after", nonsense, now), None, "{nonsense}");
        }
        assert_eq!(wait("retry-after", "1e300", now), Some(u64::MAX));
    }

    /// Bodies as servers send them (the llama.cpp ones were recorded).
    #[test]
    fn causes_are_told_apart_by_words_and_statuses() {
        let cases = [
            (
                400,
                json!({"error": {"code": 400, "type": "exceed_context_size_error", "message":
                "request (20001 tokens) exceeds the available context size (16384 tokens), try increasing it"}}),
                ErrorClass::GiveUp,
                "too-long",
            ),
            (
                501,
                json!({"error": {"code": 501, "type": "not_supported_error", "message":
                "This server does not support embeddings. Start it with `--embeddings`"}}),
                ErrorClass::GiveUp,
                "unsupported",
            ),
            (
                404,
                json!({"error": {"message": "File Not Found", "type": "not_found_error", "code": 404}}),
                ErrorClass::Stop,
                "not-found",
            ),
            (
                400,
                json!({"error": {"code": 400, "type": "invalid_request_error", "message":
                "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #: unrecognized type banana"}}),
                ErrorClass::Retry,
                "schema-refused",
            ),
            (
                404,
                json!({"object": "error", "message": "The model `xyz` does not exist.", "type": "NotFoundError", "code": 404}),
                ErrorClass::Stop,
                "unknown-model",
            ),
            (
                404,
                json!({"error": "model 'xyz' not found"}),
                ErrorClass::Stop,
                "unknown-model",
            ),
            (
                400,
                json!({"error": {"code": "unsupported_parameter", "message":
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}),
                ErrorClass::Retry,
                "old-token-limit",
            ),
            (
                422,
                json!({"detail": [{"msg": "field required"}]}),
                ErrorClass::GiveUp,
                "bad-request",
            ),
            (
                503,
                json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
                ErrorClass::Retry,
                "server-error",
            ),
            (
                403,
                json!({"error": {"code": 403, "message": "Your input was flagged"}}),
                ErrorClass::GiveUp,
                "content-filter",
            ),
            // The item's text, repeated by the server, must not stop the run.
            (
                422,
                json!({"detail": "cannot read: the insufficient_quota of a model was not found"}),
                ErrorClass::GiveUp,
                "bad-request",
            ),
        ];
        let asked = Asked {
            url: "http://h/v1/chat/completions",
            model: "xyz",
            key_env: None,
            timeout: Duration::from_secs(1),
            schema: true,
            old_token_limit: true,
            key: None,
        };
        for (status, body, class, cause) in cases {
            let body = body.to_string();
            let reply = Reply {
                status,
                retry_after_ms: None,
                location: None,
                body: &body,
            };
            let error = refusal(&asked, &reply);
            assert_eq!(
                (error.class, error.cause.as_str()),
                (class, cause),
                "{body}"
            );
            assert!(error.message.starts_with(asked.url), "{}", error.message);
        }
    }
}

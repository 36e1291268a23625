//! Owns the endpoint for any server that speaks OpenAI's HTTP interface: OpenAI, vLLM, llama.cpp's
//! server, Ollama and most providers. Must not know what the text means, nor retry: one call of
//! [`Endpoint::answer`] sends one request.

mod classify;
mod complaint;
mod limits;
mod wire;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};

use super::{
    Capabilities, Endpoint, EndpointError, ErrorClass, Identity, Request, Response, Style, Usage,
    Want,
};
use classify::{Asked, Reply, failure};
use limits::Limits;

/// Most bytes of a body that are read. The longest honest answer is far smaller: 20 alternatives
/// for each of 4,000 tokens are about 8 MB.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Longest wait for a connection; a server that is there answers within milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where an OpenAI-compatible server is and how to talk to it. Holds the name of the variable that
/// has the key, never the key.
#[derive(Clone, Debug)]
pub struct OpenAiConfig {
    /// The URL up to and including `/v1` (`https://api.openai.com/v1`, `http://localhost:8080/v1`),
    /// with or without a slash at its end; `/chat/completions` and the like are appended to it.
    /// Credentials and a query are refused.
    pub base_url: String,
    /// Model name as the server knows it.
    pub model: String,
    /// Environment variable that holds the key; none for a server without keys.
    pub key_env: Option<String>,
    /// Longest time from sending a request to the end of its answer. Waiting for the limits below
    /// does not count.
    pub timeout: Duration,
    /// Most requests in flight; 0 is read as 1. Halved when the server says 429, then slowly raised.
    pub concurrency: usize,
    /// Most requests in any minute.
    pub requests_per_minute: Option<u32>,
    /// Most tokens (read and generated) in any minute, estimated before a request is sent and
    /// corrected by what the server says it used.
    pub tokens_per_minute: Option<u32>,
    /// Ask the server to enforce the request's JSON schema. When it refuses to, the process
    /// goes on without.
    pub json_schema: bool,
    /// Send the request's seed.
    pub send_seed: bool,
}

/// A model behind an OpenAI-compatible server. See [`OpenAiConfig`].
pub struct OpenAiEndpoint {
    config: OpenAiConfig,
    base: Url,
    identity: Identity,
    client: reqwest::Client,
    key: Option<String>,
    limits: Limits,
    learned: Learned,
}

/// What the server turned out to refuse, kept for the life of the process.
#[derive(Debug, Default)]
struct Learned {
    /// A schema with messages.
    no_chat_schema: AtomicBool,
    /// A schema with plain text to continue.
    no_completion_schema: AtomicBool,
    /// `max_tokens`; it wants `max_completion_tokens` (OpenAI's reasoning models).
    new_token_limit: AtomicBool,
}

impl Learned {
    fn schema_refused(&self, style: Style) -> &AtomicBool {
        match style {
            Style::Chat => &self.no_chat_schema,
            Style::Completion => &self.no_completion_schema,
        }
    }
}

impl std::fmt::Debug for OpenAiEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiEndpoint")
            .field("config", &self.config)
            .field("identity", &self.identity)
            .field("key", &self.key.as_ref().map(|_| "(hidden)"))
            .finish_non_exhaustive()
    }
}

impl OpenAiEndpoint {
    /// Checks the configuration and reads the key; sends nothing.
    ///
    /// # Errors
    /// Class [`ErrorClass::Stop`]: a base URL that is none or holds credentials or a query, a limit
    /// of zero, a variable that is not set.
    pub fn new(config: OpenAiConfig) -> Result<Self, EndpointError> {
        let base = base_url(&config.base_url)?;
        for (name, zero) in [
            ("timeout", config.timeout.is_zero()),
            ("requests_per_minute", config.requests_per_minute == Some(0)),
            ("tokens_per_minute", config.tokens_per_minute == Some(0)),
        ] {
            if zero {
                return Err(invalid(format!(
                    "{name} is 0, so no request could ever be sent"
                )));
            }
        }
        let key = config.key_env.as_deref().map(read_key).transpose()?;
        let client = client(&config, &base, key.as_deref())?;
        let identity = Identity {
            kind: "openai".to_owned(),
            model: config.model.clone(),
            // Both switches change what the server is asked, and so its answers.
            settings: format!(
                "{} json-schema={} seed={}",
                shown(&base),
                config.json_schema,
                config.send_seed
            ),
        };
        let limits = Limits::new(
            config.concurrency,
            config.requests_per_minute,
            config.tokens_per_minute,
        );
        Ok(Self {
            config,
            base,
            identity,
            client,
            key,
            limits,
            learned: Learned::default(),
        })
    }

    /// One request, after waiting for its turn.
    async fn attempt(&self, request: &Request) -> Result<Response, EndpointError> {
        let options = wire::Options {
            model: &self.config.model,
            schema: self.config.json_schema
                && !self
                    .learned
                    .schema_refused(request.prompt.style)
                    .load(Ordering::Relaxed),
            seed: self.config.send_seed,
            new_token_limit: self.learned.new_token_limit.load(Ordering::Relaxed),
        };
        let call = wire::Call::new(request, &options)?;
        let url = format!("{}{}", shown(&self.base), call.path);
        let turn = self.limits.turn(wire::estimate(request)).await;
        let outcome = self.exchange(request, &call, &url).await;
        match &outcome {
            Ok(response) => turn.answered(&response.usage),
            Err(error) if error.cause == classify::RATE_LIMITED => turn.refused(),
            Err(_) => drop(turn),
        }
        outcome
    }

    async fn exchange(
        &self,
        request: &Request,
        call: &wire::Call,
        url: &str,
    ) -> Result<Response, EndpointError> {
        let asked = Asked {
            url,
            model: &self.config.model,
            key_env: self.config.key_env.as_deref(),
            timeout: self.config.timeout,
            schema: call.has_schema,
            old_token_limit: call.has_old_token_limit,
            key: self.key.as_deref(),
        };
        let sent = self
            .client
            .post(url)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(call.body.clone())
            .send()
            .await;
        let mut reply = sent.map_err(|e| classify::transport(&asked, &e))?;
        let body = read_body(&asked, &mut reply).await?;
        let body = String::from_utf8_lossy(&body);
        let body = match self.key.as_deref() {
            Some(key) => without_key(&body, key),
            None => body,
        };
        let headers = reply.headers();
        let reply = Reply {
            status: reply.status().as_u16(),
            retry_after_ms: classify::retry_after(headers, SystemTime::now()),
            location: headers.get(LOCATION).and_then(|v| v.to_str().ok()),
            body: &body,
        };
        let outcome = if (200..300).contains(&reply.status) {
            wire::read(request, &asked, &reply)
        } else {
            Err(classify::refusal(&asked, &reply))
        };
        outcome.inspect_err(|error| self.learn(request, error))
    }

    /// Remembers what the server refuses, so that the next attempt asks without.
    fn learn(&self, request: &Request, error: &EndpointError) {
        match error.cause.as_str() {
            classify::SCHEMA_REFUSED => {
                self.learned
                    .schema_refused(request.prompt.style)
                    .store(true, Ordering::Relaxed);
            }
            classify::OLD_TOKEN_LIMIT => {
                self.learned.new_token_limit.store(true, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

impl Endpoint for OpenAiEndpoint {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scores: false,
            embeddings: true,
            concurrency: self.config.concurrency.max(1),
        }
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<Response, EndpointError>> {
        Box::pin(self.attempt(request))
    }

    /// As the trait's, and the schema, which some providers write into the prompt.
    fn bound(&self, request: &Request) -> Usage {
        let text = request.prompt.prefix.len() + request.prompt.suffix.len() + 64;
        let (schema, completion_tokens) = match &request.want {
            Want::Text {
                max_tokens,
                json_schema,
                ..
            } => (
                json_schema
                    .as_ref()
                    .map_or(0, |schema| schema.to_string().len()),
                u64::from(*max_tokens),
            ),
            Want::Scores { .. } | Want::Embedding => (0, 0),
        };
        Usage {
            prompt_tokens: (text + schema) as u64,
            completion_tokens,
        }
    }
}

/// A key shorter than this many bytes is no secret but a word such as `ollama`, and may stand in
/// an honest answer.
const SECRET: usize = 12;

/// A body in which the key, as a server may repeat it, is struck out: as it is, as JSON writes it,
/// and with escaped slashes. What is kept of answers and errors is read from this text.
fn without_key<'a>(body: &'a str, key: &str) -> Cow<'a, str> {
    if key.len() < SECRET {
        return body.into();
    }
    let json = serde_json::to_string(key).unwrap_or_default();
    let json = json.trim_matches('"').to_owned();
    let slashes = json.replace('/', "\\/");
    let mut out = Cow::from(body);
    for form in [key, &json, &slashes] {
        if !form.is_empty() && out.contains(form) {
            out = out.replace(form, "(key)").into();
        }
    }
    out
}

/// What the body of a 2xx answer means for a request, without a connection: for tests and tools
/// that read recorded answers.
///
/// # Errors
/// As one attempt of the endpoint.
pub fn read_answer(request: &Request, body: &str) -> Result<Response, EndpointError> {
    let asked = Asked {
        url: "(recorded)",
        model: "",
        key_env: None,
        timeout: CONNECT_TIMEOUT,
        schema: false,
        old_token_limit: false,
        key: None,
    };
    let reply = Reply {
        status: 200,
        retry_after_ms: None,
        location: None,
        body,
    };
    wire::read(request, &asked, &reply)
}

/// Reads the body up to [`MAX_BODY`].
async fn read_body(
    asked: &Asked<'_>,
    reply: &mut reqwest::Response,
) -> Result<Vec<u8>, EndpointError> {
    let mut body = Vec::new();
    while let Some(chunk) = reply.chunk().await.map_err(|e| classify::cut(asked, &e))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(failure(
                ErrorClass::GiveUp,
                "too-large",
                format!(
                    "the answer of {} is larger than 16 MB and was not read",
                    asked.url
                ),
            ));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn invalid(message: String) -> EndpointError {
    failure(ErrorClass::Stop, "bad-config", message)
}

/// The base URL in one canonical form: lower-case host, no default port, no slash at its end.
/// No message repeats the text: it may hold a password.
fn base_url(text: &str) -> Result<Url, EndpointError> {
    let example = "it should look like http://localhost:8080/v1";
    let mut url = Url::parse(text.trim())
        .map_err(|e| invalid(format!("the base URL cannot be read ({e}): {example}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid(format!(
            "the base URL is not an http or https address: {example}"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(invalid(
            "the base URL holds a user name, a password or a query: remove them, and name the \
             environment variable that holds the key instead"
                .to_owned(),
        ));
    }
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    if let Some(tail) = ["/completions", "/embeddings"]
        .into_iter()
        .find(|tail| path.ends_with(tail))
    {
        return Err(invalid(format!(
            "the base URL ends in {tail}: give it up to and including /v1, the rest is appended"
        )));
    }
    url.set_path(&path);
    Ok(url)
}

/// The URL without a slash at its end, ready for a path.
fn shown(base: &Url) -> &str {
    base.as_str().trim_end_matches('/')
}

fn read_key(variable: &str) -> Result<String, EndpointError> {
    let set = format!("set it to the key of the server (export {variable}=...)");
    let key = std::env::var(variable).map_err(|e| match e {
        std::env::VarError::NotPresent => failure(
            ErrorClass::Stop,
            "no-key",
            format!("variable {variable} is not set: {set}"),
        ),
        std::env::VarError::NotUnicode(_) => failure(
            ErrorClass::Stop,
            "no-key",
            format!("variable {variable} does not hold a key: {set}"),
        ),
    })?;
    let key = key.trim();
    if key.is_empty() {
        let message = format!("variable {variable} is empty: {set}");
        return Err(failure(ErrorClass::Stop, "no-key", message));
    }
    Ok(key.to_owned())
}

fn client(
    config: &OpenAiConfig,
    base: &Url,
    key: Option<&str>,
) -> Result<reqwest::Client, EndpointError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = key {
        let variable = config.key_env.as_deref().unwrap_or_default();
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            let message =
                format!("variable {variable} holds characters that no key has: check its value");
            failure(ErrorClass::Stop, "no-key", message)
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("pluralis/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .timeout(config.timeout)
        .connect_timeout(config.timeout.min(CONNECT_TIMEOUT))
        // A redirected POST becomes a GET, or takes the key elsewhere: say so instead.
        .redirect(reqwest::redirect::Policy::none())
        // One call is one request: the ledger decides on another.
        .retry(reqwest::retry::never());
    if is_this_machine(base) {
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|e| invalid(format!("no HTTP client could be made: {e}")))
}

/// A proxy cannot reach a server on this machine.
fn is_this_machine(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

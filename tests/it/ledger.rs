//! The ledger under a scripted endpoint: caps, arrival order, faults, kills and shared caches.

mod budget;
mod faults;
mod resume;
mod shared;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use pluralis::endpoint::{
    Capabilities, Endpoint, EndpointError, ErrorClass, Identity, PromptText, Request, Response,
    Style, Usage, Want,
};
use pluralis::ledger::{
    Answer, Cache, Caps, Halt, Ledger, LedgerError, LedgerOptions, Money, Prices, RequestDigest,
    RetryPolicy, RunLock, Spent, request_digest,
};

type Script = dyn Fn(&str, u32) -> Result<Response, EndpointError> + Send + Sync;

/// Answers by the item's text and the number of the try, after some turns that scramble the arrivals.
struct Scripted {
    identity: Identity,
    concurrency: usize,
    script: Box<Script>,
    tries: Mutex<HashMap<String, u32>>,
    calls: AtomicUsize,
}

impl Scripted {
    fn new(
        concurrency: usize,
        script: impl Fn(&str, u32) -> Result<Response, EndpointError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            identity: Identity {
                kind: "openai".into(),
                model: "m".into(),
                settings: "http://one/v1".into(),
            },
            concurrency,
            script: Box::new(script),
            tries: Mutex::default(),
            calls: AtomicUsize::new(0),
        }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Endpoint for Scripted {
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
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let text = &request.prompt.suffix;
            let number = {
                let mut tries = self.tries.lock().unwrap();
                let number = tries.entry(text.clone()).or_default();
                *number += 1;
                *number
            };
            for _ in 0..digest(self, request).as_bytes()[0] % 8 {
                tokio::task::yield_now().await;
            }
            (self.script)(text, number)
        })
    }
}

fn digest(endpoint: &Scripted, request: &Request) -> RequestDigest {
    request_digest(&endpoint.identity, request)
}

fn request(text: &str) -> Request {
    Request {
        prompt: PromptText {
            style: Style::Chat,
            prefix: "judge".into(),
            suffix: text.into(),
        },
        want: Want::Text {
            max_tokens: 20,
            temperature: 0.0,
            json_schema: None,
            top_logprobs: 0,
        },
        seed: Some(0),
        repeat: 0,
    }
}

fn requests(range: std::ops::Range<u32>) -> Vec<Request> {
    range.map(|n| request(&format!("item {n}"))).collect()
}

/// Uses between 10 and 40 tokens read and up to 20 written, by the text alone.
fn answer(text: &str) -> Response {
    let draw = blake3::hash(text.as_bytes());
    Response {
        text: format!("answer to {text}"),
        usage: Usage {
            prompt_tokens: 10 + u64::from(draw.as_bytes()[0] % 31),
            completion_tokens: u64::from(draw.as_bytes()[1] % 21),
        },
        ..Response::default()
    }
}

fn error(class: ErrorClass, cause: &str) -> EndpointError {
    EndpointError {
        class,
        cause: cause.into(),
        message: cause.into(),
        retry_after_ms: None,
        usage: Usage {
            prompt_tokens: 3,
            completion_tokens: 0,
        },
    }
}

fn number(text: &str) -> u32 {
    text.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Every fifth fails once, every eleventh always, every seventh is refused.
fn troubled(text: &str, tries: u32) -> Result<Response, EndpointError> {
    match number(text) {
        n if n % 11 == 10 => Err(error(ErrorClass::Retry, "server-error")),
        n if n % 7 == 6 => Err(error(ErrorClass::GiveUp, "content-filter")),
        n if n % 5 == 4 && tries == 1 => Err(error(ErrorClass::Retry, "rate-limited")),
        _ => Ok(answer(text)),
    }
}

fn smooth(text: &str, _: u32) -> Result<Response, EndpointError> {
    Ok(answer(text))
}

fn quick() -> RetryPolicy {
    RetryPolicy {
        max_tries: 3,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(4),
        patience: Duration::from_secs(20),
    }
}

fn options(caps: Caps) -> LedgerOptions {
    let prices = Prices {
        prompt_per_million: "0.15".parse().unwrap(),
        completion_per_million: "0.60".parse().unwrap(),
    };
    LedgerOptions {
        caps,
        prices: prices.into(),
        retries: quick(),
        ..LedgerOptions::default()
    }
}

fn in_dir(dir: &Path, caps: Caps) -> LedgerOptions {
    LedgerOptions {
        dir: Some(dir.to_owned()),
        ..options(caps)
    }
}

fn with_cache(path: &Path) -> LedgerOptions {
    LedgerOptions {
        cache: Some(path.to_owned()),
        ..options(Caps::default())
    }
}

fn got(answers: &[Answer]) -> usize {
    answers
        .iter()
        .filter(|answer| matches!(answer, Answer::Got(_)))
        .count()
}

/// Answers and spending after each of three batches, the last of which overlaps.
async fn course(ledger: &Ledger, endpoint: &Scripted) -> Vec<(Vec<Answer>, Spent, bool)> {
    let mut course = Vec::new();
    for range in [0..12, 12..25, 5..30] {
        let free = ledger.is_free(endpoint, &request("item 7"));
        let answers = ledger.ask(endpoint, &requests(range)).await.unwrap();
        course.push((answers, ledger.spent(), free));
    }
    course
}

/// An endpoint that goes on where a log ends.
fn after(log: &str, concurrency: usize) -> Scripted {
    let endpoint = Scripted::new(concurrency, troubled);
    let names: HashMap<String, String> = (0..30)
        .map(|n| format!("item {n}"))
        .map(|text| (digest(&endpoint, &request(&text)).to_string(), text))
        .collect();
    for line in log.lines() {
        if let Ok(line) = serde_json::from_str::<serde_json::Value>(line) {
            let text = names[line["digest"].as_str().unwrap()].clone();
            *endpoint.tries.lock().unwrap().entry(text).or_default() += 1;
        }
    }
    endpoint
}

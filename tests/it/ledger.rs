//! The ledger under a scripted endpoint: caps, arrival order, faults, kills and shared caches.

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

#[tokio::test]
async fn a_cap_of_calls_is_used_to_the_last_and_never_passed() {
    const V: u64 = 24;
    for cap in [0, 1, 8, V - 1, V, V + 1] {
        for concurrency in [1, 4, 16] {
            for retried in [false, true] {
                let endpoint = Scripted::new(concurrency, move |text, tries| {
                    if retried && number(text) % 4 == 1 && tries == 1 {
                        return Err(error(ErrorClass::Retry, "rate-limited"));
                    }
                    smooth(text, tries)
                });
                let caps = Caps {
                    calls: Some(cap),
                    ..Caps::default()
                };
                let ledger = Ledger::open(options(caps)).unwrap();
                let answers = ledger.ask(&endpoint, &requests(0..V as u32)).await.unwrap();
                let needed = if retried { V + V / 4 } else { V };
                assert_eq!(
                    endpoint.calls() as u64,
                    cap.min(needed),
                    "{cap} {concurrency}"
                );
                assert_eq!(ledger.spent().calls, cap.min(needed));
                assert_eq!(ledger.remaining_calls(), Some(cap.saturating_sub(needed)));
                assert_eq!(ledger.exhausted().is_some(), cap < needed);
                if !retried {
                    assert_eq!(got(&answers) as u64, cap.min(V));
                }
                let first = answers.iter().position(|a| *a == Answer::NoBudget);
                let rest = first.map_or(&[][..], |first| &answers[first..]);
                assert!(
                    rest.iter().all(|a| *a == Answer::NoBudget),
                    "what fits comes first"
                );
            }
        }
    }
}

async fn two_batches(concurrency: usize, caps: Caps) -> (Vec<Answer>, Spent, usize) {
    let endpoint = Scripted::new(concurrency, troubled);
    let ledger = Ledger::open(options(caps)).unwrap();
    let mut answers = ledger.ask(&endpoint, &requests(0..30)).await.unwrap();
    answers.extend(ledger.ask(&endpoint, &requests(20..45)).await.unwrap());
    (answers, ledger.spent(), endpoint.calls())
}

#[tokio::test]
async fn concurrency_decides_neither_answers_nor_spending() {
    let mut all = vec![Caps::default()];
    for step in 0..12 {
        all.push(Caps {
            calls: Some(step * 5),
            ..Caps::default()
        });
        all.push(Caps {
            prompt_tokens: Some(step * 131),
            ..Caps::default()
        });
        all.push(Caps {
            completion_tokens: Some(step * 53),
            ..Caps::default()
        });
        all.push(Caps {
            money: Some(Money(step * 47)),
            ..Caps::default()
        });
    }
    for caps in all {
        let one = two_batches(1, caps).await;
        for concurrency in [4, 16] {
            assert_eq!(
                two_batches(concurrency, caps).await,
                one,
                "{concurrency}, {caps:?}"
            );
        }
        let spent = one.1;
        assert!(spent.calls <= caps.calls.unwrap_or(u64::MAX));
        assert!(spent.prompt_tokens <= caps.prompt_tokens.unwrap_or(u64::MAX));
        assert!(spent.completion_tokens <= caps.completion_tokens.unwrap_or(u64::MAX));
        assert!(spent.money <= caps.money.unwrap_or(Money(u64::MAX)));
    }
}

#[tokio::test]
async fn a_failure_is_retried_and_never_cached() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache.sqlite");
    let endpoint = Scripted::new(4, troubled);
    let ledger = Ledger::open(with_cache(&cache)).unwrap();
    let answers = ledger.ask(&endpoint, &requests(0..12)).await.unwrap();
    assert_eq!(
        answers[4],
        Answer::Got(answer("item 4")),
        "the second try succeeds"
    );
    assert!(matches!(&answers[6], Answer::Failed(e) if e.cause == "content-filter"));
    assert!(matches!(&answers[10], Answer::Failed(e) if e.cause == "server-error"));
    // 12 first tries, one more each for items 4 and 9, two more for item 10.
    assert_eq!(endpoint.calls(), 16);
    assert_eq!(ledger.cache().unwrap().stats().unwrap().answers, 10);

    let repaired = Scripted::new(4, smooth);
    let ledger = Ledger::open(with_cache(&cache)).unwrap();
    assert!(ledger.is_free(&repaired, &request("item 4")));
    assert!(!ledger.is_free(&repaired, &request("item 10")));
    assert_eq!(
        got(&ledger.ask(&repaired, &requests(0..12)).await.unwrap()),
        12
    );
    assert_eq!(repaired.calls(), 2, "only what failed is asked again");
    assert_eq!((ledger.spent().calls, ledger.spent().cached), (2, 10));
}

#[tokio::test]
async fn endpoints_that_differ_in_settings_share_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(with_cache(&dir.path().join("deep/cache.sqlite"))).unwrap();
    let one = Scripted::new(1, smooth);
    let mut two = Scripted::new(1, |_, _| Ok(answer("another")));
    two.identity.settings = "http://two/v1".into();
    let first = ledger.ask(&one, &requests(0..3)).await.unwrap();
    let second = ledger.ask(&two, &requests(0..3)).await.unwrap();
    assert_ne!(first, second);
    assert_eq!((one.calls(), two.calls()), (3, 3));
}

#[tokio::test]
async fn equal_requests_are_asked_once_wherever_they_stand() {
    let endpoint = Scripted::new(8, smooth);
    let ledger = Ledger::open(options(Caps::default())).unwrap();
    let tune = [request("item 1"), request("item 2"), request("item 1")];
    let validation = [
        request("item 2"),
        Request {
            repeat: 1,
            ..request("item 2")
        },
    ];
    let quote = ledger.quote(&endpoint, &tune);
    assert_eq!(
        (quote.calls, quote.cached, quote.completion_tokens),
        (2, 0, 40)
    );
    let answers = ledger.ask(&endpoint, &tune).await.unwrap();
    assert_eq!(answers[0], answers[2]);
    assert_eq!(endpoint.calls(), 2);
    ledger.ask(&endpoint, &validation).await.unwrap();
    assert_eq!(endpoint.calls(), 3, "a repeat is another question");
    assert_eq!(ledger.spent().cached, 1);
    assert_eq!(*ledger.progress().borrow(), ledger.spent());
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

#[tokio::test]
async fn a_run_cut_at_any_byte_resumes_to_the_same_end() {
    // Without caps, and with caps that end the run in the middle, once within a retry.
    for caps in [
        Caps::default(),
        Caps {
            calls: Some(30),
            ..Caps::default()
        },
        Caps {
            prompt_tokens: Some(500),
            ..Caps::default()
        },
        Caps {
            calls: Some(12),
            ..Caps::default()
        },
    ] {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = Scripted::new(5, troubled);
        let ledger = Ledger::open(in_dir(dir.path(), caps)).unwrap();
        let expected = course(&ledger, &endpoint).await;
        drop(ledger);
        let whole = std::fs::read_to_string(dir.path().join("attempts.jsonl")).unwrap();
        let all = whole.lines().count();
        assert_eq!(all, endpoint.calls());

        let mut cuts: Vec<_> = (0..=60).map(|k| whole.len() * k / 60).collect();
        let ends = whole.match_indices('\n').map(|(at, _)| at);
        cuts.extend(ends.flat_map(|at| [at - 1, at, at + 1]));
        for cut in cuts {
            let dir = tempfile::tempdir().unwrap();
            let kept = &whole[..cut];
            std::fs::write(dir.path().join("attempts.jsonl"), kept).unwrap();
            let endpoint = after(kept, 3);
            // A cache, empty or absent, changes nothing.
            let cache = (cut % 4 == 0).then(|| dir.path().join("cache.sqlite"));
            let options = LedgerOptions {
                cache,
                ..in_dir(dir.path(), caps)
            };
            let ledger = Ledger::open(options).unwrap();
            assert_eq!(
                course(&ledger, &endpoint).await,
                expected,
                "cut at {cut}, {caps:?}"
            );
            let recorded: u32 = after(kept, 1).tries.into_inner().unwrap().values().sum();
            assert_eq!(
                endpoint.calls(),
                all - recorded as usize,
                "nothing is paid twice"
            );
            let torn = kept.rsplit('\n').next().unwrap();
            let dropped = serde_json::from_str::<serde_json::Value>(torn).is_err();
            let told = ledger
                .notes()
                .iter()
                .any(|note| note.contains("was dropped"));
            assert_eq!(told, dropped && !torn.is_empty());
        }
    }
}

#[tokio::test]
async fn a_damaged_line_in_the_middle_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempts.jsonl");
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    ledger
        .ask(&Scripted::new(1, smooth), &requests(0..4))
        .await
        .unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let damaged = [lines[0], &lines[1][..50], lines[2], ""].join("\n");
    std::fs::write(&path, &damaged).unwrap();
    let error = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap_err();
    assert!(
        matches!(error, LedgerError::BadLine { line: 2, .. }),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        damaged,
        "the file is left alone"
    );
}

#[tokio::test]
async fn an_interrupt_lets_calls_in_flight_end_and_loses_nothing() {
    let whole = Ledger::open(options(Caps::default())).unwrap();
    let expected = whole
        .ask(&Scripted::new(1, troubled), &requests(0..30))
        .await
        .unwrap();
    for stop_after in [0, 1, 7, 20] {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
        let endpoint = Scripted::new(4, troubled);
        let all = requests(0..30);
        let interrupt = async {
            while endpoint.calls() < stop_after {
                tokio::task::yield_now().await;
            }
            ledger.interrupt();
            endpoint.calls()
        };
        let (at, answers) = tokio::join!(biased; interrupt, ledger.ask(&endpoint, &all));
        assert!(matches!(answers, Err(Halt::Interrupted)), "{answers:?}");
        assert_eq!(endpoint.calls(), at, "no call starts after the interrupt");
        let log = std::fs::read_to_string(dir.path().join("attempts.jsonl")).unwrap();
        assert_eq!(log.lines().count(), at, "every call in flight is recorded");
        assert!(matches!(
            ledger.ask(&endpoint, &all).await,
            Err(Halt::Interrupted)
        ));
        drop(ledger);

        let rest = after(&log, 16);
        let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
        assert_eq!(ledger.ask(&rest, &all).await.unwrap(), expected);
        assert_eq!(ledger.spent(), whole.spent());
        assert_eq!(rest.calls() as u64, whole.spent().calls - at as u64);
    }
}

#[tokio::test]
async fn a_wait_between_tries_is_cut_short_by_an_interrupt() {
    let mut options = options(Caps::default());
    options.retries.base = Duration::from_secs(600);
    options.retries.cap = Duration::from_secs(600);
    let ledger = Ledger::open(options).unwrap();
    let endpoint = Scripted::new(1, |_, _| Err(error(ErrorClass::Retry, "server-error")));
    let all = requests(0..1);
    let interrupt = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        ledger.interrupt();
    };
    let (answers, ()) = tokio::join!(ledger.ask(&endpoint, &all), interrupt);
    assert!(matches!(answers, Err(Halt::Interrupted)));
}

#[tokio::test]
async fn a_wrong_key_stops_the_run_and_keeps_what_was_paid() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let endpoint = Scripted::new(4, |text, tries| match number(text) {
        9 => Err(error(ErrorClass::Stop, "unauthorized")),
        _ => smooth(text, tries),
    });
    let halt = ledger.ask(&endpoint, &requests(0..40)).await.unwrap_err();
    assert!(
        matches!(&halt, Halt::Stop(e) if e.cause == "unauthorized"),
        "{halt}"
    );
    assert!(endpoint.calls() < 20, "nobody is asked after the stop");
    let log = std::fs::read_to_string(dir.path().join("attempts.jsonl")).unwrap();
    assert_eq!(log.lines().count(), endpoint.calls());

    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let repaired = Scripted::new(4, smooth);
    assert_eq!(
        got(&ledger.ask(&repaired, &requests(0..40)).await.unwrap()),
        40
    );
    assert_eq!(repaired.calls(), 40 - (endpoint.calls() - 1));
}

#[tokio::test]
async fn a_server_that_is_away_for_a_while_costs_nothing() {
    let back = Instant::now() + Duration::from_millis(150);
    let endpoint = Scripted::new(4, move |text, tries| {
        if number(text) >= 5 && Instant::now() < back {
            let class = ErrorClass::Retry;
            return Err(EndpointError {
                usage: Usage::default(),
                ..error(class, "unreachable")
            });
        }
        smooth(text, tries)
    });
    // The cap leaves room for the answers alone.
    let caps = Caps {
        calls: Some(20),
        ..Caps::default()
    };
    let ledger = Ledger::open(options(caps)).unwrap();
    let answers = ledger.ask(&endpoint, &requests(0..20)).await.unwrap();
    assert_eq!(got(&answers), 20);
    assert_eq!(ledger.spent().calls, 20);
    assert!(endpoint.calls() > 20);
}

#[tokio::test]
async fn a_server_that_stays_away_stops_the_run_for_resuming() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = in_dir(dir.path(), Caps::default());
    options.retries.patience = Duration::from_millis(40);
    let ledger = Ledger::open(options).unwrap();
    let endpoint = Scripted::new(2, |text, tries| match number(text) {
        0..5 => smooth(text, tries),
        _ => Err(error(ErrorClass::Retry, "unreachable")),
    });
    let halt = ledger.ask(&endpoint, &requests(0..20)).await.unwrap_err();
    assert!(
        matches!(&halt, Halt::Stop(e) if e.cause == "unreachable"),
        "{halt}"
    );
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let back = Scripted::new(2, smooth);
    assert_eq!(got(&ledger.ask(&back, &requests(0..20)).await.unwrap()), 20);
    assert_eq!((back.calls(), ledger.spent().calls), (15, 20));
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_waited_for() {
    let ask_for = |ms| {
        Scripted::new(1, move |text, tries| match tries {
            1 => Err(EndpointError {
                retry_after_ms: Some(ms),
                ..error(ErrorClass::Retry, "rate-limited")
            }),
            _ => smooth(text, tries),
        })
    };
    let ledger = Ledger::open(options(Caps::default())).unwrap();
    let clock = Instant::now();
    assert_eq!(
        got(&ledger.ask(&ask_for(80), &requests(0..1)).await.unwrap()),
        1
    );
    assert!(clock.elapsed() >= Duration::from_millis(80));
    // An hour is beyond the patience: the run stops instead of hanging.
    let halt = ledger
        .ask(&ask_for(3_600_000), &requests(1..2))
        .await
        .unwrap_err();
    assert!(matches!(halt, Halt::Stop(e) if e.cause == "rate-limited"));
}

#[tokio::test]
async fn offline_nothing_is_asked_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let caps = Caps {
        calls: Some(12),
        ..Caps::default()
    };
    let ledger = Ledger::open(in_dir(dir.path(), caps)).unwrap();
    let endpoint = Scripted::new(4, troubled);
    let expected = course(&ledger, &endpoint).await;
    drop(ledger);
    let before = std::fs::read(dir.path().join("attempts.jsonl")).unwrap();

    let cache = Some(dir.path().join("no.sqlite"));
    let offline = |caps| LedgerOptions {
        offline: true,
        cache: cache.clone(),
        ..in_dir(dir.path(), caps)
    };
    let silent = Scripted::new(4, |_, _| panic!("no call may be made"));
    let ledger = Ledger::open(offline(caps)).unwrap();
    assert_eq!(
        course(&ledger, &silent).await,
        expected,
        "the end of the budget is replayed too"
    );
    let ledger = Ledger::open(offline(Caps::default())).unwrap();
    let answers = ledger.ask(&silent, &requests(29..30)).await.unwrap();
    assert!(matches!(&answers[0], Answer::Failed(e) if e.cause == "not-in-cache"));
    assert_eq!(
        std::fs::read(dir.path().join("attempts.jsonl")).unwrap(),
        before
    );
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no file is made"
    );
}

#[tokio::test]
async fn what_was_paid_is_kept_under_a_lower_cap() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    ledger
        .ask(&Scripted::new(4, smooth), &requests(0..10))
        .await
        .unwrap();
    let caps = Caps {
        calls: Some(4),
        ..Caps::default()
    };
    let ledger = Ledger::open(in_dir(dir.path(), caps)).unwrap();
    let endpoint = Scripted::new(4, smooth);
    let answers = ledger.ask(&endpoint, &requests(0..12)).await.unwrap();
    assert_eq!((got(&answers), endpoint.calls()), (10, 0));
    assert_eq!(answers[10..], [Answer::NoBudget, Answer::NoBudget]);
}

#[tokio::test]
async fn an_answer_that_missed_the_cache_is_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let endpoint = Scripted::new(4, troubled);
    ledger.ask(&endpoint, &requests(0..12)).await.unwrap();
    let path = dir.path().join("cache.sqlite");
    let options = LedgerOptions {
        cache: Some(path.clone()),
        ..in_dir(dir.path(), Caps::default())
    };
    drop(Ledger::open(options).unwrap());
    let cache = Cache::open(&path).unwrap();
    assert_eq!(cache.stats().unwrap().answers, 10, "failures stay out");
    assert_eq!(cache.stats().unwrap().models, [("m".to_owned(), 10)]);
    let found = cache.get(&digest(&endpoint, &request("item 3"))).unwrap();
    assert_eq!(found, Some(answer("item 3")));
}

#[tokio::test]
async fn numbers_come_back_as_they_went_in() {
    let scores = vec![f64::NEG_INFINITY, -0.1, -1e-300, -std::f64::consts::PI, 0.0];
    let endpoint = Scripted::new(1, move |text, _| match number(text) {
        0 => Ok(Response {
            scores: scores.clone(),
            embedding: vec![0.1, -3e-39],
            ..answer(text)
        }),
        _ => Ok(Response {
            scores: vec![f64::NAN],
            ..answer(text)
        }),
    });
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let first = ledger.ask(&endpoint, &requests(0..2)).await.unwrap();
    let Answer::Got(response) = &first[0] else {
        panic!("{first:?}")
    };
    assert_eq!(response.scores[0].exp(), 0.0);
    assert_eq!(response.scores[3], -std::f64::consts::PI);
    assert!(matches!(&first[1], Answer::Failed(e) if e.cause == "not-a-number"));
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    assert_eq!(ledger.ask(&endpoint, &requests(0..2)).await.unwrap(), first);
    assert_eq!(endpoint.calls(), 2);
}

#[tokio::test]
async fn capped_money_needs_a_price() {
    let caps = Caps {
        money: Some(Money(1)),
        ..Caps::default()
    };
    let ledger = Ledger::open(LedgerOptions {
        caps,
        ..LedgerOptions::default()
    })
    .unwrap();
    let endpoint = Scripted::new(1, smooth);
    let halt = ledger.ask(&endpoint, &requests(0..1)).await.unwrap_err();
    assert!(
        matches!(halt, Halt::Io(LedgerError::NoPrice { .. })),
        "{halt}"
    );
    assert_eq!(endpoint.calls(), 0);
}

#[tokio::test]
async fn a_dropped_batch_gives_its_reservations_back() {
    let caps = Caps {
        calls: Some(3),
        ..Caps::default()
    };
    let ledger = Ledger::open(options(caps)).unwrap();
    let stuck = Scripted::new(1, |_, _| {
        Err(EndpointError {
            retry_after_ms: Some(10_000),
            ..error(ErrorClass::Retry, "rate-limited")
        })
    });
    let all = requests(0..1);
    let wait = tokio::time::timeout(Duration::from_millis(30), ledger.ask(&stuck, &all));
    assert!(wait.await.is_err());
    let answers = ledger
        .ask(&Scripted::new(1, smooth), &requests(1..3))
        .await
        .unwrap();
    assert_eq!(got(&answers), 2);
}

#[test]
fn two_runs_share_a_cache_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache.sqlite");
    let run = |name: &str| {
        let options = LedgerOptions {
            dir: Some(dir.path().join(name)),
            ..with_cache(&path)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let ledger = Ledger::open(options).unwrap();
            let endpoint = Scripted::new(8, smooth);
            let answers = ledger.ask(&endpoint, &requests(0..60)).await.unwrap();
            assert_eq!(ledger.notes(), Vec::<String>::new());
            (answers, endpoint.calls() as u64, ledger.spent())
        })
    };
    let runs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = ["a", "b", "c", "d"]
            .map(|name| scope.spawn(move || run(name)))
            .into();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for (answers, calls, spent) in &runs {
        assert_eq!(answers, &runs[0].0);
        assert_eq!((spent.calls, spent.calls + spent.cached), (*calls, 60));
    }
    assert_eq!(Cache::open(&path).unwrap().stats().unwrap().answers, 60);
}

#[test]
fn a_run_folder_belongs_to_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = RunLock::acquire(dir.path()).unwrap();
    let refused = RunLock::acquire(dir.path()).unwrap_err();
    let LedgerError::Locked { pid, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(
        refused
            .to_string()
            .contains(&std::process::id().to_string())
    );
    drop(first);
    assert_eq!(std::fs::read(dir.path().join("lock")).unwrap(), b"");
    // What a killed process leaves behind keeps nobody out.
    std::fs::write(dir.path().join("lock"), "4194304\n").unwrap();
    let _again = RunLock::acquire(dir.path()).unwrap();
    let text = std::fs::read_to_string(dir.path().join("lock")).unwrap();
    assert_eq!(text.trim(), std::process::id().to_string());
}

#[test]
fn a_cache_is_exported_imported_and_pruned() {
    let dir = tempfile::tempdir().unwrap();
    let one = Cache::open(&dir.path().join("one.sqlite")).unwrap();
    let endpoint = Scripted::new(1, smooth);
    let key = |n: u32| digest(&endpoint, &request(&format!("item {n}")));
    for n in 0..5 {
        let model = if n < 2 { "small" } else { "large" };
        one.put(&key(n), model, &answer(&format!("ข้อ {n}")))
            .unwrap();
    }
    one.put(&key(0), "small", &answer("later")).unwrap();
    assert_eq!(
        one.get(&key(0)).unwrap(),
        Some(answer("ข้อ 0")),
        "the first answer stays"
    );
    let stats = one.stats().unwrap();
    assert_eq!(
        stats.models,
        [("large".to_owned(), 3), ("small".to_owned(), 2)]
    );
    assert!(stats.bytes > 0 && stats.oldest.is_some());
    let mut text = Vec::new();
    assert_eq!(one.export(&mut text).unwrap(), 5);

    let two = Cache::open(&dir.path().join("two.sqlite")).unwrap();
    two.put(&key(4), "large", &answer("another")).unwrap();
    let name = Path::new("export.jsonl");
    let torn = &text[..text.len() - 20];
    let error = two.import(&mut &torn[..], name).unwrap_err();
    assert!(
        matches!(error, LedgerError::BadLine { line: 5, .. }),
        "{error}"
    );
    assert_eq!(two.stats().unwrap().answers, 1, "all or nothing");
    let done = two.import(&mut &text[..], name).unwrap();
    assert_eq!((done.added, done.present, done.different), (4, 0, 1));
    let done = two.import(&mut &text[..], name).unwrap();
    assert_eq!((done.added, done.present, done.different), (0, 4, 1));
    assert_eq!(two.get(&key(4)).unwrap(), Some(answer("another")));

    assert_eq!(
        two.prune(Some(jiff::Timestamp::from_second(1_000).unwrap()), None)
            .unwrap(),
        0
    );
    assert_eq!(two.prune(None, Some("small")).unwrap(), 2);
    assert_eq!(two.prune(None, None).unwrap(), 3);
    std::fs::write(
        dir.path().join("three.sqlite"),
        "no database, but long enough to be read",
    )
    .unwrap();
    assert!(Cache::open(&dir.path().join("three.sqlite")).is_err());
}

//! The OpenAI-compatible endpoint against scripted servers: one test for each way in which a
//! server or the way to it can fail, and for the shapes of what is sent and read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pluralis::endpoint::openai::{OpenAiConfig, OpenAiEndpoint};
use pluralis::endpoint::{
    Endpoint, EndpointError, ErrorClass, Finish, PromptText, Request, Response, Style, Usage, Want,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// A variable that is set wherever cargo runs a test; its value plays the key.
const KEY: &str = "CARGO_MANIFEST_DIR";

fn config(base_url: &str) -> OpenAiConfig {
    OpenAiConfig {
        base_url: base_url.to_owned(),
        model: "judge-1".to_owned(),
        key_env: None,
        timeout: Duration::from_secs(20),
        concurrency: 4,
        requests_per_minute: None,
        tokens_per_minute: None,
        json_schema: true,
        send_seed: true,
    }
}

fn text_want() -> Want {
    Want::Text {
        max_tokens: 5,
        temperature: 0.7,
        json_schema: None,
        top_logprobs: 0,
    }
}

fn request(style: Style, want: Want) -> Request {
    let (prefix, suffix) = ("Rules. ".to_owned(), "Item é".to_owned());
    Request {
        prompt: PromptText {
            style,
            prefix,
            suffix,
        },
        want,
        seed: Some(0),
        repeat: 0,
    }
}

fn chat() -> Request {
    request(Style::Chat, text_want())
}

fn answer_body(content: &str) -> Value {
    json!({
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": content}}],
        "usage": {"prompt_tokens": 31, "completion_tokens": 2, "total_tokens": 33},
    })
}

async fn serve(template: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(template)
        .mount(&server)
        .await;
    server
}

async fn ask(template: ResponseTemplate) -> Result<Response, EndpointError> {
    let server = serve(template).await;
    let config = OpenAiConfig {
        key_env: Some(KEY.to_owned()),
        ..config(&server.uri())
    };
    let endpoint = OpenAiEndpoint::new(config).unwrap();
    let answer = endpoint.answer(&chat()).await;
    let sent = server.received_requests().await.unwrap_or_default().len();
    assert_eq!(sent, 1, "one call of answer is one request");
    answer
}

async fn fails(template: ResponseTemplate, class: ErrorClass, cause: &str) -> EndpointError {
    let error = ask(template).await.unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (class, cause),
        "{}",
        error.message
    );
    error
}

fn status(code: u16, body: Value) -> ResponseTemplate {
    ResponseTemplate::new(code).set_body_json(body)
}

fn refuse(code: u16, kind: &str, message: &str) -> ResponseTemplate {
    status(
        code,
        json!({"error": {"message": message, "type": kind, "code": kind}}),
    )
}

// What is sent

#[tokio::test]
async fn chat_sends_both_messages_and_every_setting() {
    let server = MockServer::start().await;
    let key = std::env::var(KEY).unwrap();
    let schema = json!({"type": "object", "properties": {"label": {"enum": ["a", "b"]}}});
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {key}")))
        .respond_with(status(200, answer_body("a")))
        .mount(&server)
        .await;
    // A slash at the end changes nothing.
    let base = format!("{}/v1/", server.uri());
    let config = OpenAiConfig {
        key_env: Some(KEY.to_owned()),
        ..config(&base)
    };
    let endpoint = OpenAiEndpoint::new(config).unwrap();
    let want = Want::Text {
        max_tokens: 5,
        temperature: 0.7,
        json_schema: Some(schema.clone()),
        top_logprobs: 3,
    };
    let response = endpoint.answer(&request(Style::Chat, want)).await.unwrap();
    assert_eq!(response.text, "a");
    assert_eq!(
        response.usage,
        Usage {
            prompt_tokens: 31,
            completion_tokens: 2
        }
    );
    let sent: Value = server.received_requests().await.unwrap()[0]
        .body_json()
        .unwrap();
    let expected = json!({
        "model": "judge-1",
        "messages": [{"role": "system", "content": "Rules. "}, {"role": "user", "content": "Item é"}],
        "max_tokens": 5, "temperature": 0.7, "seed": 0, "logprobs": true, "top_logprobs": 3,
        "response_format": {"type": "json_schema",
            "json_schema": {"name": "answer", "strict": true, "schema": schema}},
    });
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn an_empty_prefix_sends_no_system_message_and_switches_are_kept() {
    let server = serve(status(200, answer_body("a"))).await;
    let config = OpenAiConfig {
        json_schema: false,
        send_seed: false,
        ..config(&server.uri())
    };
    let endpoint = OpenAiEndpoint::new(config).unwrap();
    let want = Want::Text {
        max_tokens: 1,
        temperature: 0.0,
        json_schema: Some(json!({"type": "object"})),
        top_logprobs: 0,
    };
    let mut request = request(Style::Chat, want);
    request.prompt.prefix.clear();
    endpoint.answer(&request).await.unwrap();
    let sent = &server.received_requests().await.unwrap()[0];
    let body: Value = sent.body_json().unwrap();
    let expected = json!({"model": "judge-1", "messages": [{"role": "user", "content": "Item é"}],
        "max_tokens": 1, "temperature": 0.0});
    assert_eq!(body, expected);
    assert!(!sent.headers.contains_key("authorization"));
}

#[tokio::test]
async fn completion_joins_prefix_and_suffix_and_reads_llama_logprobs() {
    // Recorded from llama.cpp's server, shortened.
    let body = json!({"choices": [{"text": " Paris", "index": 0, "finish_reason": "length",
        "logprobs": {"content": [{"id": 12095, "token": " Paris", "bytes": [32, 80, 97, 114, 105, 115],
            "logprob": -0.0996, "top_logprobs": [
                {"id": 12095, "token": " Paris", "bytes": [32, 80, 97, 114, 105, 115], "logprob": -0.0996},
                {"id": 7148, "token": " London", "bytes": [32, 76, 111, 110, 100, 111, 110], "logprob": -4.31}]}]}}],
        "usage": {"completion_tokens": 1, "prompt_tokens": 5, "total_tokens": 6}});
    let server = serve(status(200, body)).await;
    let endpoint = OpenAiEndpoint::new(config(&server.uri())).unwrap();
    let want = Want::Text {
        max_tokens: 1,
        temperature: 0.0,
        json_schema: None,
        top_logprobs: 2,
    };
    let response = endpoint
        .answer(&request(Style::Completion, want))
        .await
        .unwrap();
    let expected = Response {
        text: " Paris".to_owned(),
        top_logprobs: vec![vec![
            (" Paris".to_owned(), -0.0996),
            (" London".to_owned(), -4.31),
        ]],
        finish: Finish::Length,
        usage: Usage {
            prompt_tokens: 5,
            completion_tokens: 1,
        },
        ..Response::default()
    };
    assert_eq!(response, expected);
    let sent = &server.received_requests().await.unwrap()[0];
    assert_eq!(sent.url.path(), "/completions");
    let body: Value = sent.body_json().unwrap();
    assert_eq!(body["prompt"], "Rules. Item é");
    assert_eq!(body["logprobs"], 2);
}

#[tokio::test]
async fn embeddings_are_asked_for_the_suffix() {
    let server = MockServer::start().await;
    Mock::given(path("/embeddings"))
        .and(body_partial_json(
            json!({"model": "judge-1", "input": "Item é"}),
        ))
        .respond_with(status(
            200,
            json!({"data": [{"embedding": [0.5, -1, 2e-3]}],
            "usage": {"prompt_tokens": 4, "total_tokens": 4}}),
        ))
        .mount(&server)
        .await;
    let endpoint = OpenAiEndpoint::new(config(&server.uri())).unwrap();
    let response = endpoint
        .answer(&request(Style::Chat, Want::Embedding))
        .await
        .unwrap();
    assert_eq!(response.embedding, [0.5, -1.0, 0.002]);
    assert_eq!(
        response.usage,
        Usage {
            prompt_tokens: 4,
            completion_tokens: 0
        }
    );
}

#[tokio::test]
async fn scores_are_declined_without_a_request() {
    let endpoint = OpenAiEndpoint::new(config("http://127.0.0.1:9/v1")).unwrap();
    assert!(!endpoint.capabilities().scores);
    let want = Want::Scores {
        options: vec!["a".to_owned()],
    };
    let error = endpoint
        .answer(&request(Style::Chat, want))
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::GiveUp, "unsupported")
    );
}

// Configuration

#[test]
fn the_identity_is_canonical_and_bad_configurations_stop() {
    let identity =
        |url: &str| OpenAiEndpoint::new(config(url)).map(|endpoint| endpoint.identity().clone());
    let first = identity("https://API.example.com:443/v1/").unwrap();
    assert_eq!(first, identity(" https://api.example.com/v1 ").unwrap());
    assert_eq!(
        (first.kind.as_str(), first.model.as_str()),
        ("openai", "judge-1")
    );
    assert!(
        first.settings.starts_with("https://api.example.com/v1 "),
        "{}",
        first.settings
    );
    assert_ne!(first, identity("https://api.example.com/v2").unwrap());
    for bad in [
        "",
        "localhost:8080/v1",
        "ftp://h/v1",
        "http://user:hunter2@h/v1",
        "http://h/v1?api-key=hunter2",
        "http://h/v1/chat/completions",
    ] {
        let error = identity(bad).unwrap_err();
        assert_eq!(
            (error.class, error.cause.as_str()),
            (ErrorClass::Stop, "bad-config"),
            "{bad}"
        );
        assert!(!error.message.contains("hunter2"), "{}", error.message);
    }
    let zero = OpenAiConfig {
        requests_per_minute: Some(0),
        ..config("http://h/v1")
    };
    assert!(
        OpenAiEndpoint::new(zero)
            .unwrap_err()
            .message
            .contains("requests_per_minute")
    );
}

#[test]
fn a_missing_key_stops_and_names_its_variable() {
    let variable = "PLURALIS_TEST_NO_SUCH_KEY";
    let config = OpenAiConfig {
        key_env: Some(variable.to_owned()),
        ..config("http://h/v1")
    };
    let error = OpenAiEndpoint::new(config).unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::Stop, "no-key")
    );
    assert!(error.message.contains(variable), "{}", error.message);
}

#[tokio::test]
async fn the_key_is_in_no_message_debug_text_or_identity() {
    let key = std::env::var(KEY).unwrap();
    let body = json!({"error": {"message": format!("Incorrect API key provided: {key}"),
        "code": "invalid_api_key"}});
    let server = serve(status(401, body)).await;
    let config = OpenAiConfig {
        key_env: Some(KEY.to_owned()),
        ..config(&server.uri())
    };
    let endpoint = OpenAiEndpoint::new(config).unwrap();
    let error = endpoint.answer(&chat()).await.unwrap_err();
    let identity = serde_json::to_string(endpoint.identity()).unwrap();
    for text in [
        error.message.clone(),
        format!("{error:?} {endpoint:?}"),
        identity,
    ] {
        assert!(!text.contains(&key), "{text}");
    }
    assert!(
        error.message.contains("(key)") && error.message.contains(KEY),
        "{}",
        error.message
    );
}

// Limits and waits

#[tokio::test]
async fn a_429_waits_as_long_as_the_server_says() {
    let plain = || refuse(429, "rate_limit_exceeded", "slow down");
    let error = fails(plain(), ErrorClass::Retry, "rate-limited").await;
    assert_eq!(error.retry_after_ms, None);
    let seconds = plain().insert_header("retry-after", "3");
    let error = fails(seconds, ErrorClass::Retry, "rate-limited").await;
    assert_eq!(error.retry_after_ms, Some(3_000));
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3_600));
    let dated = plain().insert_header("retry-after", date.as_str());
    let wait = fails(dated, ErrorClass::Retry, "rate-limited")
        .await
        .retry_after_ms
        .unwrap();
    assert!((3_500_000..=3_600_000).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_429_halves_what_is_in_flight_and_answers_raise_it_again() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(refuse(429, "rate_limit_exceeded", "slow down"))
        .up_to_n_times(8)
        .with_priority(1)
        .mount(&server)
        .await;
    let answered = status(200, answer_body("a")).set_delay(Duration::from_millis(150));
    Mock::given(method("POST"))
        .respond_with(answered)
        .mount(&server)
        .await;
    let config = OpenAiConfig {
        concurrency: 8,
        ..config(&server.uri())
    };
    let endpoint = OpenAiEndpoint::new(config).unwrap();
    assert_eq!(endpoint.capabilities().concurrency, 8);
    let request = chat();
    let ask_many =
        |n: usize| futures_util::future::join_all((0..n).map(|_| endpoint.answer(&request)));
    // One volley, one halving: 8 -> 4.
    assert!(ask_many(8).await.iter().all(Result::is_err));
    let start = Instant::now();
    assert!(ask_many(8).await.iter().all(Result::is_ok));
    // Eight answers of 150 ms, four or five at once, need two rounds.
    assert!(
        start.elapsed() >= Duration::from_millis(300),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn requests_per_minute_hold_back_what_is_too_much() {
    let server = serve(status(200, answer_body("a"))).await;
    // A burst of 60, then 541/60 a second: the 63rd of them goes after at least 0.33 s.
    let config = OpenAiConfig {
        requests_per_minute: Some(600),
        ..config(&server.uri())
    };
    let endpoint = OpenAiEndpoint::new(config).unwrap();
    let request = chat();
    let start = Instant::now();
    for answer in futures_util::future::join_all((0..63).map(|_| endpoint.answer(&request))).await {
        answer.unwrap();
    }
    assert!(
        start.elapsed() >= Duration::from_millis(330),
        "{:?}",
        start.elapsed()
    );
}

// Refusals

#[tokio::test]
async fn no_credit_stops() {
    let quota = refuse(429, "insufficient_quota", "You exceeded your current quota");
    fails(quota, ErrorClass::Stop, "no-credit").await;
    fails(
        refuse(402, "payment", "Insufficient credits"),
        ErrorClass::Stop,
        "no-credit",
    )
    .await;
}

#[tokio::test]
async fn server_trouble_is_retried() {
    for code in [500, 502, 503, 504, 529] {
        let html =
            ResponseTemplate::new(code).set_body_string("<html>\u{1b}[31mBad gateway</html>");
        let error = fails(html, ErrorClass::Retry, "server-error").await;
        assert!(!error.message.contains('\u{1b}'), "{}", error.message);
    }
    fails(ResponseTemplate::new(408), ErrorClass::Retry, "server-busy").await;
}

#[tokio::test]
async fn a_refused_or_expired_key_stops_and_names_the_variable() {
    for (code, message) in [
        (401, "Incorrect API key"),
        (401, "The key has expired"),
        (403, "No"),
    ] {
        let error = fails(
            refuse(code, "invalid", message),
            ErrorClass::Stop,
            "unauthorized",
        )
        .await;
        assert!(error.message.contains(KEY), "{}", error.message);
    }
}

#[tokio::test]
async fn a_wrong_url_or_model_stops() {
    let error = fails(ResponseTemplate::new(404), ErrorClass::Stop, "not-found").await;
    assert!(
        error.message.contains("http://127.0.0.1"),
        "{}",
        error.message
    );
    for code in [400, 404] {
        let model = refuse(
            code,
            "model_not_found",
            "The model `judge-1` does not exist",
        );
        let error = fails(model, ErrorClass::Stop, "unknown-model").await;
        assert!(error.message.contains("judge-1"), "{}", error.message);
    }
    let moved = ResponseTemplate::new(308).insert_header("location", "https://elsewhere/v1");
    let error = fails(moved, ErrorClass::Stop, "redirected").await;
    assert!(
        error.message.contains("https://elsewhere/v1"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_request_that_cannot_succeed_is_given_up() {
    let long = refuse(
        400,
        "context_length_exceeded",
        "maximum context length is 8192 tokens",
    );
    fails(long, ErrorClass::GiveUp, "too-long").await;
    let filtered = refuse(400, "content_filter", "The response was filtered");
    fails(filtered, ErrorClass::GiveUp, "content-filter").await;
    fails(
        refuse(400, "invalid", "no"),
        ErrorClass::GiveUp,
        "bad-request",
    )
    .await;
    fails(
        refuse(422, "invalid", "no"),
        ErrorClass::GiveUp,
        "bad-request",
    )
    .await;
}

#[tokio::test]
async fn a_refused_schema_is_left_out_from_the_next_attempt_on() {
    let server = MockServer::start().await;
    let message = "Invalid parameter: 'response_format' of type 'json_schema' is not supported";
    Mock::given(body_partial_json(
        json!({"response_format": {"type": "json_schema"}}),
    ))
    .respond_with(refuse(400, "invalid_request_error", message))
    .expect(1)
    .with_priority(1)
    .mount(&server)
    .await;
    Mock::given(method("POST"))
        .respond_with(status(200, answer_body("a")))
        .expect(2)
        .mount(&server)
        .await;
    let endpoint = OpenAiEndpoint::new(config(&server.uri())).unwrap();
    let json_schema = Some(json!({"type": "object"}));
    let want = Want::Text {
        max_tokens: 5,
        temperature: 0.0,
        json_schema,
        top_logprobs: 0,
    };
    let request = request(Style::Chat, want);
    let error = endpoint.answer(&request).await.unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::Retry, "schema-refused")
    );
    assert_eq!(error.retry_after_ms, Some(0));
    for _ in 0..2 {
        assert_eq!(endpoint.answer(&request).await.unwrap().text, "a");
    }
}

#[tokio::test]
async fn a_model_that_wants_the_newer_token_limit_gets_it() {
    let server = MockServer::start().await;
    let message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.";
    Mock::given(body_partial_json(json!({"max_tokens": 5})))
        .respond_with(refuse(400, "unsupported_parameter", message))
        .mount(&server)
        .await;
    Mock::given(body_partial_json(json!({"max_completion_tokens": 5})))
        .respond_with(status(200, answer_body("a")))
        .mount(&server)
        .await;
    let endpoint = OpenAiEndpoint::new(config(&server.uri())).unwrap();
    assert_eq!(
        endpoint.answer(&chat()).await.unwrap_err().class,
        ErrorClass::Retry
    );
    assert_eq!(endpoint.answer(&chat()).await.unwrap().text, "a");
}

// Answers that are none, or not whole

#[tokio::test]
async fn a_page_instead_of_an_answer_is_retried_and_explained() {
    let page = ResponseTemplate::new(200)
        .set_body_raw("<!doctype html><title>Sign in</title>", "text/html");
    let error = fails(page, ErrorClass::Retry, "not-json").await;
    assert!(error.message.contains("proxy") && error.message.contains("base URL"));
    fails(ResponseTemplate::new(200), ErrorClass::Retry, "cut-body").await;
}

#[tokio::test]
async fn an_error_inside_a_200_counts_by_its_code() {
    let inside = |error: Value| status(200, json!({ "error": error }));
    let cases = [
        (
            json!({"code": 429, "message": "slow"}),
            ErrorClass::Retry,
            "rate-limited",
        ),
        (
            json!({"code": 502, "message": "upstream"}),
            ErrorClass::Retry,
            "server-error",
        ),
        (
            json!({"code": 401, "message": "no"}),
            ErrorClass::Stop,
            "unauthorized",
        ),
        (
            json!({"code": "insufficient_quota"}),
            ErrorClass::Stop,
            "no-credit",
        ),
        (
            json!({"type": "invalid_request_error"}),
            ErrorClass::GiveUp,
            "bad-request",
        ),
        (
            json!("something went wrong"),
            ErrorClass::Retry,
            "server-error",
        ),
    ];
    for (error, class, cause) in cases {
        fails(inside(error), class, cause).await;
    }
    let choice = json!({"choices": [{"error": {"code": 503, "message": "overloaded"}}]});
    fails(status(200, choice), ErrorClass::Retry, "server-error").await;
}

#[tokio::test]
async fn empty_choices_are_given_up_and_what_they_cost_is_kept() {
    let body = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}});
    let error = fails(status(200, body), ErrorClass::GiveUp, "no-choices").await;
    assert_eq!(
        error.usage,
        Usage {
            prompt_tokens: 9,
            completion_tokens: 1
        }
    );
    fails(status(200, json!({})), ErrorClass::GiveUp, "no-choices").await;
    fails(
        status(200, json!({"choices": [{}]})),
        ErrorClass::GiveUp,
        "malformed",
    )
    .await;
    let broken = ResponseTemplate::new(200).set_body_string("{\"choices\": [}");
    fails(broken, ErrorClass::GiveUp, "malformed").await;
}

#[tokio::test]
async fn length_and_content_filter_are_finishes() {
    for (reason, finish) in [
        ("length", Finish::Length),
        ("content_filter", Finish::ContentFilter),
    ] {
        let body = json!({"choices": [{"finish_reason": reason, "message": {"content": null}}]});
        let response = ask(status(200, body)).await.unwrap();
        assert_eq!((response.finish, response.text.as_str()), (finish, ""));
    }
}

#[tokio::test]
async fn missing_usage_is_estimated_from_bytes() {
    let body = json!({"choices": [{"message": {"content": "четыре"}}]});
    let response = ask(status(200, body)).await.unwrap();
    // "Rules. " is 7 bytes and "Item é" 7: ceil(14/3) = 5; six Cyrillic letters: 12/3 = 4.
    assert_eq!(
        response.usage,
        Usage {
            prompt_tokens: 5,
            completion_tokens: 4
        }
    );
}

#[tokio::test]
async fn missing_logprobs_are_no_error() {
    let server = serve(status(200, answer_body("é"))).await;
    let endpoint = OpenAiEndpoint::new(config(&server.uri())).unwrap();
    let want = Want::Text {
        max_tokens: 1,
        temperature: 0.0,
        json_schema: None,
        top_logprobs: 5,
    };
    let response = endpoint.answer(&request(Style::Chat, want)).await.unwrap();
    assert!(response.top_logprobs.is_empty());
}

#[tokio::test]
async fn a_huge_body_is_given_up() {
    let huge = ResponseTemplate::new(200).set_body_string(" ".repeat(16 * 1024 * 1024 + 1));
    fails(huge, ErrorClass::GiveUp, "too-large").await;
}

#[tokio::test]
async fn a_slow_body_times_out_and_is_retried() {
    let slow = status(200, answer_body("a")).set_delay(Duration::from_secs(30));
    let server = serve(slow).await;
    let config = OpenAiConfig {
        timeout: Duration::from_millis(300),
        ..config(&server.uri())
    };
    let error = OpenAiEndpoint::new(config)
        .unwrap()
        .answer(&chat())
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::Retry, "timeout")
    );
    assert!(error.message.contains("0.3 s"), "{}", error.message);
}

// Connections that break

/// Reads each request to the end of its headers, writes `bytes` and, after a pause, hangs up; with a
/// reset where `reset`. Counts connections.
async fn raw_server(
    bytes: &'static [u8],
    reset: bool,
    pause: Duration,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            if reset {
                // Closing with unread bytes in the buffer resets the connection.
                let _ = stream.readable().await;
                continue;
            }
            let mut buffer = [0; 16_384];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(bytes).await;
            tokio::time::sleep(pause).await;
        }
    });
    (url, count)
}

async fn breaks(bytes: &'static [u8], reset: bool, cause: &str) {
    let (url, count) = raw_server(bytes, reset, Duration::ZERO).await;
    let error = OpenAiEndpoint::new(config(&url))
        .unwrap()
        .answer(&chat())
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::Retry, cause),
        "{}",
        error.message
    );
    assert!(error.message.contains(&url), "{}", error.message);
    assert_eq!(
        count.load(Ordering::SeqCst),
        1,
        "one call of answer is one request"
    );
}

#[tokio::test]
async fn a_reset_or_closed_connection_is_retried() {
    breaks(b"", true, "connection-lost").await;
    breaks(b"", false, "connection-lost").await;
    breaks(b"HTTP/1.1 200 OK\r\ncontent-le", false, "connection-lost").await;
}

#[tokio::test]
async fn a_body_cut_in_the_middle_is_retried() {
    let announced = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\": [{\"mess";
    breaks(announced, false, "cut-body").await;
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"cho\r\n";
    breaks(chunked, false, "cut-body").await;
    let until_close = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\": [{\"mess";
    breaks(until_close, false, "cut-body").await;
}

#[tokio::test]
async fn a_body_that_stops_flowing_times_out() {
    let start = b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\"";
    let (url, _) = raw_server(start, false, Duration::from_secs(30)).await;
    let config = OpenAiConfig {
        timeout: Duration::from_millis(300),
        ..config(&url)
    };
    let error = OpenAiEndpoint::new(config)
        .unwrap()
        .answer(&chat())
        .await
        .unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::Retry, "timeout")
    );
}

#[tokio::test]
async fn no_server_or_no_such_host_is_retried_and_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    // RFC 2606 keeps `.invalid` free of hosts.
    for url in [refused.as_str(), "http://no-such-host.invalid/v1"] {
        let error = OpenAiEndpoint::new(config(url))
            .unwrap()
            .answer(&chat())
            .await
            .unwrap_err();
        let found = (error.class, error.cause.as_str());
        assert_eq!(
            found,
            (ErrorClass::Retry, "unreachable"),
            "{}",
            error.message
        );
        assert!(error.message.contains(url), "{}", error.message);
        assert!(
            error.message.contains("whether a server runs there"),
            "{}",
            error.message
        );
    }
}

#[tokio::test]
async fn a_server_that_dies_and_returns_is_answered_by_the_same_endpoint() {
    let body = answer_body("a").to_string();
    let length = body.len();
    let answer =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    let start = async |address: std::net::SocketAddr| {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, answer) = (listener.local_addr().unwrap(), answer.clone());
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut buffer = [0; 16_384];
                let _ = stream.read(&mut buffer).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (address, task)
    };
    let (address, task) = start(([127, 0, 0, 1], 0).into()).await;
    let endpoint = OpenAiEndpoint::new(config(&format!("http://{address}/v1"))).unwrap();
    assert_eq!(endpoint.answer(&chat()).await.unwrap().text, "a");
    task.abort();
    let _ = task.await;
    for _ in 0..3 {
        assert_eq!(
            endpoint.answer(&chat()).await.unwrap_err().class,
            ErrorClass::Retry
        );
    }
    let _server = start(address).await;
    assert_eq!(endpoint.answer(&chat()).await.unwrap().text, "a");
}

// A real server

/// Runs against the server whose base URL is in PLURALIS_SERVER (model name in
/// PLURALIS_SERVER_MODEL, where it matters).
#[tokio::test]
async fn a_real_server_answers_in_the_shapes_that_are_read() {
    let Ok(base) = std::env::var("PLURALIS_SERVER") else {
        eprintln!("skipped: PLURALIS_SERVER (a base URL up to and including /v1) is not set");
        return;
    };
    let model = std::env::var("PLURALIS_SERVER_MODEL").unwrap_or_else(|_| "default".to_owned());
    let timeout = Duration::from_secs(120);
    let endpoint = OpenAiEndpoint::new(OpenAiConfig {
        model,
        timeout,
        ..config(&base)
    })
    .unwrap();
    let want = |max_tokens, json_schema, top_logprobs, temperature| Want::Text {
        max_tokens,
        temperature,
        json_schema,
        top_logprobs,
    };
    for style in [Style::Chat, Style::Completion] {
        let response = endpoint
            .answer(&request(style, want(3, None, 4, 0.0)))
            .await
            .unwrap();
        assert!(response.usage.prompt_tokens > 0 && !response.text.is_empty());
        assert!(!response.top_logprobs.is_empty());
        for alternatives in &response.top_logprobs {
            assert!(!alternatives.is_empty() && alternatives.len() <= 5);
            assert!(alternatives.windows(2).all(|pair| pair[0].1 >= pair[1].1));
            let mass: f64 = alternatives.iter().map(|(_, p)| p.exp()).sum();
            assert!(mass > 0.0 && mass < 1.0 + 1e-6, "{mass}");
        }
        eprintln!("{style:?}: {response:?}");
        let schema = json!({"type": "object", "required": ["label"], "additionalProperties": false,
            "properties": {"label": {"type": "string", "enum": ["mild", "severe"]}}});
        let response = endpoint
            .answer(&request(style, want(40, Some(schema), 0, 0.0)))
            .await
            .unwrap();
        let label: Value = serde_json::from_str(response.text.trim()).unwrap();
        assert!(
            ["mild", "severe"]
                .iter()
                .any(|known| label["label"] == *known),
            "{label}"
        );
        eprintln!("{style:?} with a schema: {}", response.text);
    }
    let mut texts = Vec::new();
    for seed in [7, 7, 8, u64::MAX, u64::MAX] {
        let mut request = request(Style::Completion, want(12, None, 0, 1.5));
        request.seed = Some(seed);
        texts.push(endpoint.answer(&request).await.unwrap().text);
    }
    assert_eq!((&texts[0], &texts[3]), (&texts[1], &texts[4]));
    assert!(texts[0] != texts[2] && texts[0] != texts[3], "{texts:?}");
    let mut long = chat();
    long.prompt.suffix = "word ".repeat(200_000);
    let error = endpoint.answer(&long).await.unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::GiveUp, "too-long")
    );
}

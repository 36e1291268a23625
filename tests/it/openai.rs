//! The OpenAI-compatible endpoint against scripted servers: one test for each way in which a
//! server or the way to it can fail, and for the shapes of what is sent and read.

mod connections;
mod refusals;

use std::time::{Duration, Instant, SystemTime};

use pluralis::endpoint::openai::{OpenAiConfig, OpenAiEndpoint};
use pluralis::endpoint::{
    Endpoint, EndpointError, ErrorClass, Finish, PromptText, Request, Response, Style, Usage, Want,
};
use serde_json::{Value, json};
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
    // Long enough that the message ends within the second one.
    let said = format!("Incorrect API key: {key} {} {key}", "x".repeat(150));
    let body = json!({"error": {"message": said, "code": "invalid_api_key"}});
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
        assert!(!text.contains(key.get(..5).unwrap_or(&key)), "{text}");
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

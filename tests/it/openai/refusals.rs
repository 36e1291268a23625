//! Refusals, and answers that are none or not whole.

use super::*;

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

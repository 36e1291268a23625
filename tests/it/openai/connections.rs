//! Connections that break, and a real server where there is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

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

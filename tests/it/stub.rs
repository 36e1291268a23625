//! A chat server that answers as a closure says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

/// What the server does with a request.
pub enum Say {
    /// An answer.
    Text(String),
    /// A whole answer that the provider withheld.
    Filtered,
    /// A status without an answer.
    Status(u16),
}

/// Gone when it is dropped.
pub struct Stub {
    server: MockServer,
    // Dropped after the server.
    _runtime: tokio::runtime::Runtime,
    count: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Stub {
    /// Answers by the text of all messages.
    pub fn start(answer: impl Fn(&str) -> Say + Send + Sync + 'static) -> Self {
        Self::models(move |_, text| answer(text))
    }

    /// Answers by the name of the model and the text of all messages.
    pub fn models(answer: impl Fn(&str, &str) -> Say + Send + Sync + 'static) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (count, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::default()));
        let (counted, kept) = (Arc::clone(&count), Arc::clone(&seen));
        let server = runtime.block_on(async {
            let server = MockServer::start().await;
            let respond = move |request: &Request| {
                counted.fetch_add(1, Ordering::SeqCst);
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                let messages = body["messages"].as_array().unwrap().iter();
                let text: Vec<&str> = messages.filter_map(|m| m["content"].as_str()).collect();
                let said = answer(body["model"].as_str().unwrap(), &text.join("\n"));
                Vec::push(&mut kept.lock().unwrap(), body);
                let (text, finish) = match said {
                    Say::Text(text) => (text, "stop"),
                    Say::Filtered => (String::new(), "content_filter"),
                    Say::Status(status) => {
                        return ResponseTemplate::new(status)
                            .set_body_json(json!({"error": {"message": "told to"}}));
                    }
                };
                ResponseTemplate::new(200).set_body_json(json!({
                    "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
                    "usage": {"prompt_tokens": 5, "completion_tokens": 2},
                }))
            };
            Mock::given(method("POST"))
                .respond_with(respond)
                .mount(&server)
                .await;
            server
        });
        Self {
            server,
            _runtime: runtime,
            count,
            seen,
        }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("{}/v1", self.server.uri())
    }

    /// The file that names it.
    pub fn toml(&self, model: &str) -> String {
        format!(
            "endpoint = \"openai\"\nbase_url = \"{}\"\nmodel = \"{model}\"\n",
            self.url()
        )
    }

    /// Requests so far.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Their bodies.
    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }
}

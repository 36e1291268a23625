//! Owns asking target models for free text: through the ledger, so that answers are cached, capped,
//! logged and resumed, and a failure is data. Must not know what is asked, or how it is judged.

use serde::{Deserialize, Serialize};

use crate::endpoint::{Endpoint, Finish, PromptText, Request, Response, Style, Usage, Want};
use crate::ledger::{Amount, Answer, Halt, Ledger, Spent};
use crate::text::is_invisible;

/// How a target is asked. All of it decides the answer, so all of it is part of the cache key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Asking {
    /// System message; empty sends none, as people use a model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// Most tokens of an answer.
    pub max_tokens: u32,
    /// 0 is greedy.
    pub temperature: f32,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            system: String::new(),
            max_tokens: 512,
            temperature: 0.0,
        }
    }
}

/// What came of one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Reply {
    /// The target's text; it may be blank.
    Text {
        /// As the target wrote it.
        text: String,
        /// Whether the token limit cut it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// The provider withheld the answer (a content filter), which is not the target's own refusal.
    Withheld {
        /// What the provider said.
        message: String,
    },
    /// The call failed for good.
    Failed {
        /// Short stable name of the cause: `too-long`.
        cause: String,
        /// What happened.
        message: String,
    },
    /// Not asked, because the budget did not allow it. Not a reply at all.
    Unpaid,
}

impl Reply {
    /// The text, where there is one; blank texts included.
    pub fn text(&self) -> Option<&str> {
        match self {
            Reply::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether the target answered with nothing that can be read.
    pub fn is_blank(&self) -> bool {
        self.text()
            .is_some_and(|t| t.chars().all(|c| c.is_whitespace() || is_invisible(c)))
    }

    fn of(answer: Answer) -> Self {
        match answer {
            Answer::Got(Response {
                finish: Finish::ContentFilter,
                ..
            }) => Reply::Withheld {
                message: "the provider withheld the answer".into(),
            },
            Answer::Got(response) => Reply::Text {
                cut: response.finish == Finish::Length,
                text: response.text,
            },
            Answer::Failed(e) if e.cause == "content-filter" => {
                Reply::Withheld { message: e.message }
            }
            Answer::Failed(e) => Reply::Failed {
                cause: e.cause,
                message: e.message,
            },
            Answer::NoBudget => Reply::Unpaid,
        }
    }
}

/// A target with everything that is needed to ask it.
pub struct Target<'a> {
    /// The model.
    pub endpoint: &'a dyn Endpoint,
    /// Where calls are paid, cached and recorded. Several targets and the judge may share one.
    pub ledger: &'a Ledger,
    /// How it is asked.
    pub asking: &'a Asking,
    /// Sampling seed to send; `None` sends none.
    pub seed: Option<u64>,
}

impl Target<'_> {
    /// The requests for some questions, each the whole user message, in their order. `repeat`
    /// numbers the times that the same question is asked; 0 is the first.
    pub fn requests(&self, questions: &[&str], repeat: u32) -> Vec<Request> {
        let request = |question: &&str| Request {
            prompt: PromptText {
                style: Style::Chat,
                prefix: self.asking.system.clone(),
                suffix: (*question).to_owned(),
            },
            want: Want::Text {
                max_tokens: self.asking.max_tokens,
                temperature: self.asking.temperature,
                json_schema: None,
                top_logprobs: 0,
            },
            seed: self.seed,
            repeat,
        };
        questions.iter().map(request).collect()
    }

    /// Asks questions; one reply per question, in order. What failed, was withheld or was not paid
    /// for is a reply, not an error.
    ///
    /// # Errors
    /// [`Halt`] when the run has to stop; what was answered is recorded, and asking again goes on.
    pub async fn ask(&self, questions: &[&str], repeat: u32) -> Result<Vec<Reply>, Halt> {
        let requests = self.requests(questions, repeat);
        let answers = self.ledger.ask(self.endpoint, &requests).await?;
        Ok(answers.into_iter().map(Reply::of).collect())
    }

    /// The most that asking takes, and how many of the answers are there already.
    pub fn quote(&self, questions: &[&str], repeat: u32) -> Spent {
        let requests = self.requests(questions, repeat);
        self.ledger.quote(self.endpoint, &requests)
    }

    /// What asking takes as bounds of its calls, to hold it back.
    pub fn takes(&self, questions: &[&str], repeat: u32) -> Amount {
        let requests = self.requests(questions, repeat);
        let bounds: Vec<Usage> = requests.iter().map(|r| self.endpoint.bound(r)).collect();
        self.ledger.takes(self.endpoint, &bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{Capabilities, EndpointError, ErrorClass, Identity};
    use crate::ledger::{Caps, LedgerOptions};
    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Repeats the question; fails where it is told to.
    struct Parrot {
        identity: Identity,
        calls: AtomicUsize,
    }

    impl Parrot {
        fn new() -> Self {
            Self {
                identity: Identity {
                    kind: "test".into(),
                    model: "parrot".into(),
                    settings: String::new(),
                },
                calls: AtomicUsize::new(0),
            }
        }
    }

    impl Endpoint for Parrot {
        fn identity(&self) -> &Identity {
            &self.identity
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities {
                scores: false,
                embeddings: false,
                concurrency: 4,
            }
        }

        fn answer<'a>(&'a self, r: &'a Request) -> BoxFuture<'a, Result<Response, EndpointError>> {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let error = |cause: &str| EndpointError {
                class: ErrorClass::GiveUp,
                cause: cause.into(),
                message: "told to".into(),
                retry_after_ms: None,
                usage: Usage::default(),
            };
            let text = r.prompt.suffix.as_str();
            let finish = match text {
                "filtered" => Finish::ContentFilter,
                "long" => Finish::Length,
                _ => Finish::Stop,
            };
            let done = match text {
                "refused" => Err(error("content-filter")),
                "broken" => Err(error("too-long")),
                _ => Ok(Response {
                    text: format!("{}{text}", r.prompt.prefix),
                    finish,
                    usage: Usage {
                        prompt_tokens: 3,
                        completion_tokens: 2,
                    },
                    ..Response::default()
                }),
            };
            async move { done }.boxed()
        }
    }

    fn replies(ledger: &Ledger, endpoint: &Parrot, questions: &[&str]) -> Vec<Reply> {
        let target = Target {
            endpoint,
            ledger,
            asking: &Asking::default(),
            seed: Some(1),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(target.ask(questions, 0)).unwrap()
    }

    #[test]
    fn failures_are_replies() {
        let (ledger, parrot) = (
            Ledger::open(LedgerOptions::default()).unwrap(),
            Parrot::new(),
        );
        let asked = [
            "hallo",
            "filtered",
            "refused",
            "broken",
            "long",
            "\u{200b} ",
        ];
        let got = replies(&ledger, &parrot, &asked);
        assert_eq!(got[0].text(), Some("hallo"));
        assert!(matches!(got[1], Reply::Withheld { .. }));
        assert!(matches!(got[2], Reply::Withheld { .. }));
        assert!(matches!(&got[3], Reply::Failed { cause, .. } if cause == "too-long"));
        assert!(matches!(got[4], Reply::Text { cut: true, .. }));
        assert!(got[5].is_blank() && !got[0].is_blank() && !got[1].is_blank());
    }

    #[test]
    fn a_cap_is_a_cap_and_a_resumed_run_pays_nothing_twice() {
        let dir = tempfile::tempdir().unwrap();
        let options = |calls| LedgerOptions {
            dir: Some(dir.path().to_owned()),
            caps: Caps {
                calls: Some(calls),
                ..Caps::default()
            },
            ..LedgerOptions::default()
        };
        let parrot = Parrot::new();
        let first = replies(
            &Ledger::open(options(2)).unwrap(),
            &parrot,
            &["a", "b", "c"],
        );
        assert_eq!(first[2], Reply::Unpaid);
        assert_eq!(parrot.calls.load(Ordering::SeqCst), 2);
        let second = replies(
            &Ledger::open(options(3)).unwrap(),
            &parrot,
            &["a", "b", "c"],
        );
        assert_eq!(parrot.calls.load(Ordering::SeqCst), 3);
        assert_eq!((&second[..2], second[2].text()), (&first[..2], Some("c")));
    }
}

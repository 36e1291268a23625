//! The one thread that owns a model's context (contexts must not be made or used from several) and
//! the order in which waiting requests are answered. Must not know how they are evaluated.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;

use super::engine::Engine;
use super::tokens::{PromptTokens, Tokenizer};
use super::{EndpointError, Job, LocalConfig, gone, stop};
use crate::endpoint::Want;

/// A job with its prompt in tokens.
struct Waiting {
    job: Job,
    prompt: PromptTokens,
}

/// Starts the thread; returns when its context is made.
pub(super) fn start(
    backend: &'static LlamaBackend,
    model: Arc<LlamaModel>,
    tokenizer: Arc<Tokenizer>,
    config: &LocalConfig,
) -> Result<(mpsc::Sender<Job>, JoinHandle<()>), EndpointError> {
    let (jobs, inbox) = mpsc::channel();
    let (ready, started) = mpsc::channel();
    let config = config.clone();
    let body = move || match Engine::new(backend, &model, &tokenizer, &config) {
        Ok(engine) => {
            // Nobody waits for this only if the opening thread is gone.
            let _ = ready.send(Ok(()));
            serve(engine, &tokenizer, &inbox, config.batch);
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    };
    let thread = std::thread::Builder::new()
        .name("local-model".to_owned())
        .spawn(body)
        .map_err(|error| stop("engine", format!("no thread could be started: {error}")))?;
    match started.recv() {
        Ok(Ok(())) => Ok((jobs, thread)),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(gone()),
    }
}

fn serve(mut engine: Engine<'_>, tokenizer: &Tokenizer, inbox: &mpsc::Receiver<Job>, batch: usize) {
    let mut queue = VecDeque::new();
    loop {
        if queue.is_empty() {
            match inbox.recv() {
                Ok(job) => admit(job, tokenizer, &mut queue),
                Err(_) => return,
            }
        }
        while let Ok(job) = inbox.try_recv() {
            admit(job, tokenizer, &mut queue);
        }
        for waiting in next_group(&mut queue, batch) {
            run(&mut engine, waiting);
        }
    }
}

fn admit(job: Job, tokenizer: &Tokenizer, queue: &mut VecDeque<Waiting>) {
    let prompt = match job.request.want {
        Want::Embedding => Ok(PromptTokens {
            prefix: Vec::new(),
            suffix: Vec::new(),
        }),
        Want::Scores { .. } | Want::Text { .. } => tokenizer.prompt(&job.request.prompt),
    };
    match prompt {
        Ok(prompt) => queue.push_back(Waiting { job, prompt }),
        Err(error) => {
            let _ = job.reply.send(Err(error));
        }
    }
}

/// The oldest request and up to `most - 1` others with its prefix, in order of arrival. The limit
/// keeps one busy prefix from starving the rest.
fn next_group(queue: &mut VecDeque<Waiting>, most: usize) -> Vec<Waiting> {
    let mut group: Vec<Waiting> = queue.pop_front().into_iter().collect();
    let mut rest = VecDeque::with_capacity(queue.len());
    for waiting in queue.drain(..) {
        let same = group
            .first()
            .is_some_and(|first| first.prompt.prefix == waiting.prompt.prefix);
        if same && group.len() < most {
            group.push(waiting);
        } else {
            rest.push_back(waiting);
        }
    }
    *queue = rest;
    group
}

fn run(engine: &mut Engine<'_>, Waiting { job, prompt }: Waiting) {
    if job.reply.is_closed() {
        return;
    }
    let answer = catch_unwind(AssertUnwindSafe(|| engine.answer(&job.request, &prompt)));
    let answer = answer.unwrap_or_else(|_| {
        engine.reset();
        Err(stop(
            "engine",
            "llama.cpp gave no result for this model; use a text-generating GGUF model".to_owned(),
        ))
    });
    // The asker may have gone away; the answer is lost then, as with any endpoint.
    let _ = job.reply.send(answer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{PromptText, Request, Style};
    use llama_cpp_2::token::LlamaToken;

    fn waiting(prefix: i32, name: &str) -> Waiting {
        let prompt = PromptText {
            style: Style::Completion,
            prefix: String::new(),
            suffix: name.to_owned(),
        };
        let request = Request {
            prompt,
            want: Want::Embedding,
            seed: None,
            repeat: 0,
        };
        let (reply, _) = tokio::sync::oneshot::channel();
        let tokens = PromptTokens {
            prefix: vec![LlamaToken::new(prefix)],
            suffix: Vec::new(),
        };
        Waiting {
            job: Job { request, reply },
            prompt: tokens,
        }
    }

    #[test]
    fn groups_share_a_prefix_keep_their_order_and_starve_nobody() {
        let arrivals = [(1, "a"), (2, "b"), (1, "c"), (1, "d"), (2, "e"), (1, "f")];
        let mut queue = arrivals.into_iter().map(|(p, n)| waiting(p, n)).collect();
        let mut seen = Vec::new();
        loop {
            let group = next_group(&mut queue, 3);
            if group.is_empty() {
                break;
            }
            let names = group.iter().map(|w| w.job.request.prompt.suffix.as_str());
            seen.push(names.collect::<String>());
        }
        assert_eq!(seen, ["acd", "be", "f"]);
    }
}

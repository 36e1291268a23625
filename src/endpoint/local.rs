//! Owns the embedded judge: a GGUF model through llama.cpp, behind one thread that alone touches it.
//! Must not know tasks, items or labels.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaChatMessage, LlamaModel};
use llama_cpp_2::token::LlamaToken;
use tokio::sync::oneshot;

use super::{
    Capabilities, Endpoint, EndpointError, ErrorClass, Finish, Identity, PromptText, Request,
    Response, Style, Usage, Want, model_file,
};

/// Version of the engine in the identity; goes up when scoring changes.
const ENGINE: &str = "llama-cpp-2 0.1.160, prefix then suffix, one sequence";
/// Stand-ins for the contents while the chat template is split at them.
const SYSTEM_MARK: &str = "\u{e000}pluralis-system\u{e000}";
const USER_MARK: &str = "\u{e000}pluralis-user\u{e000}";

/// How a model is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// A GGUF file.
    pub model: PathBuf,
    /// Threads; part of the identity, since generation differs by it in the last digits.
    pub threads: usize,
    /// Tokens of the longest prompt with its answer.
    pub context: u32,
    /// Requests kept waiting at the owner thread, so that those with one prefix follow each other.
    pub batch: usize,
    /// Layers to put on a GPU, where the build has one.
    pub gpu_layers: u32,
}

/// The embedded model.
pub struct LocalEndpoint {
    identity: Identity,
    concurrency: usize,
    jobs: mpsc::Sender<Job>,
}

struct Job {
    request: Request,
    answer: oneshot::Sender<Result<Response, EndpointError>>,
}

fn failure(class: ErrorClass, cause: &str, message: String) -> EndpointError {
    EndpointError {
        class,
        cause: cause.into(),
        message,
        retry_after_ms: None,
        usage: Usage::default(),
    }
}

impl LocalEndpoint {
    /// Reads the model and starts its thread.
    ///
    /// # Errors
    /// A file that is missing or is no model that llama.cpp can read.
    pub fn open(config: LocalConfig) -> Result<Self, EndpointError> {
        let stop = |message: String| failure(ErrorClass::Stop, "no-model", message);
        let digest = model_file::sha256(&config.model)
            .map_err(|e| stop(format!("cannot read {}: {e}", config.model.display())))?;
        let name = config
            .model
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let settings = format!(
            "{ENGINE}; sha256 {digest}; threads {}; context {}; {}",
            config.threads,
            config.context,
            cpu_features()
        );
        let identity = Identity {
            kind: "local".into(),
            model: name,
            settings,
        };
        let (jobs, inbox) = mpsc::channel();
        let (ready, opened) = mpsc::channel();
        let concurrency = config.batch.max(1);
        thread::Builder::new()
            .name("pluralis-local".into())
            .spawn(move || owner(&config, &inbox, &ready))
            .map_err(|e| stop(format!("cannot start the model's thread: {e}")))?;
        opened
            .recv()
            .map_err(|_| stop("the model's thread ended while it opened the model".into()))??;
        Ok(Self {
            identity,
            concurrency,
            jobs,
        })
    }
}

impl Endpoint for LocalEndpoint {
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
        async move {
            let gone = || {
                failure(
                    ErrorClass::Stop,
                    "no-model",
                    "the model's thread has ended".into(),
                )
            };
            let (answer, result) = oneshot::channel();
            self.jobs
                .send(Job {
                    request: request.clone(),
                    answer,
                })
                .map_err(|_| gone())?;
            result.await.map_err(|_| gone())?
        }
        .boxed()
    }
}

/// The instruction sets that decide which kernels run.
fn cpu_features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let has = [
            ("avx2", is_x86_feature_detected!("avx2")),
            ("fma", is_x86_feature_detected!("fma")),
            ("f16c", is_x86_feature_detected!("f16c")),
        ];
        has.iter()
            .filter(|h| h.1)
            .map(|h| h.0)
            .collect::<Vec<_>>()
            .join("+")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        std::env::consts::ARCH.into()
    }
}

/// The thread that owns the model: opens it, says how that went, and answers until nobody asks.
fn owner(
    config: &LocalConfig,
    inbox: &mpsc::Receiver<Job>,
    ready: &mpsc::Sender<Result<(), EndpointError>>,
) {
    let stop = |message: String| failure(ErrorClass::Stop, "no-model", message);
    llama_cpp_2::send_logs_to_tracing(llama_cpp_2::LogOptions::default().with_logs_enabled(false));
    let mut backend = match LlamaBackend::init() {
        Ok(backend) => backend,
        Err(e) => {
            return drop(ready.send(Err(stop(format!(
                "cannot start llama.cpp: {e}; one embedded model can be open at a time"
            )))));
        }
    };
    backend.void_logs();
    let model = match LlamaModel::load_from_file(
        &backend,
        &config.model,
        &LlamaModelParams::default().with_n_gpu_layers(config.gpu_layers),
    ) {
        Ok(model) => model,
        Err(e) => {
            return drop(ready.send(Err(stop(format!(
                "{} is no model that llama.cpp can read: {e}",
                config.model.display()
            )))));
        }
    };
    let threads = i32::try_from(config.threads).unwrap_or(2);
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(config.context))
        .with_n_batch(config.context)
        .with_n_ubatch(512)
        .with_n_seq_max(1)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_kv_unified(false)
        .with_swa_full(true)
        .with_no_perf(true);
    let context = match model.new_context(&backend, params) {
        Ok(context) => context,
        Err(e) => {
            return drop(ready.send(Err(stop(format!(
                "cannot make a context of {} tokens: {e}",
                config.context
            )))));
        }
    };
    let mut engine = Engine {
        model: &model,
        context,
        limit: config.context as usize,
        held: Vec::new(),
    };
    if ready.send(Ok(())).is_err() {
        return;
    }
    while let Ok(job) = inbox.recv() {
        // The caller may have gone away; its answer is then nobody's.
        let _ = job.answer.send(engine.answer(&job.request));
    }
}

/// The model with what its context holds.
struct Engine<'m> {
    model: &'m LlamaModel,
    context: LlamaContext<'m>,
    /// Tokens that fit.
    limit: usize,
    /// Tokens of the prefix that was evaluated last; only whole prefixes are used again, so that an
    /// answer never depends on what was asked before.
    held: Vec<LlamaToken>,
}

impl Engine<'_> {
    fn answer(&mut self, request: &Request) -> Result<Response, EndpointError> {
        let (prefix, suffix) = self.tokens(&request.prompt)?;
        let extra = match &request.want {
            Want::Scores { .. } => 32,
            Want::Text { max_tokens, .. } => *max_tokens as usize,
            Want::Embedding => {
                return Err(failure(
                    ErrorClass::GiveUp,
                    "unsupported",
                    "the embedded judge gives no embeddings".into(),
                ));
            }
        };
        let used = prefix.len() + suffix.len();
        if used + extra > self.limit {
            return Err(failure(
                ErrorClass::GiveUp,
                "too-long",
                format!(
                    "the prompt has {used} tokens and its answer up to {extra}; the context holds {}: raise `context` in the config",
                    self.limit
                ),
            ));
        }
        self.hold(prefix)?;
        let start = self.held.len();
        let last = self.extend(&suffix, start, false)?;
        let usage = Usage {
            prompt_tokens: used as u64,
            completion_tokens: 0,
        };
        let response = match &request.want {
            Want::Scores { options } => {
                self.scores(options, &last[0], used).map(|scores| Response {
                    scores,
                    usage,
                    ..Response::default()
                })
            }
            Want::Text {
                max_tokens,
                temperature,
                json_schema,
                top_logprobs,
            } => {
                if json_schema.is_some() {
                    Err(failure(ErrorClass::GiveUp, "unsupported", "the embedded judge enforces no JSON schema; use the answer format `logprobs` or `label`".into()))
                } else {
                    self.generate(
                        &last[0],
                        used,
                        *max_tokens,
                        *temperature,
                        request,
                        *top_logprobs,
                    )
                    .map(|r| Response {
                        usage: Usage {
                            completion_tokens: r.1,
                            ..usage
                        },
                        ..r.0
                    })
                }
            }
            Want::Embedding => unreachable!("refused above"),
        };
        self.rewind(start)?;
        response
    }

    /// Tokens of prefix and suffix. Text from people or models is never parsed for control tokens.
    fn tokens(
        &self,
        prompt: &PromptText,
    ) -> Result<(Vec<LlamaToken>, Vec<LlamaToken>), EndpointError> {
        let vocab = self.model.vocab();
        let plain = |text: &str, bos: bool| vocab.tokenize(text.as_bytes(), bos, false);
        if prompt.style == Style::Completion {
            // White space at the end of the prefix belongs to the suffix's first token in training,
            // but a cut between lines is where it harms least; templates end a prefix with a line.
            return Ok((plain(&prompt.prefix, true), plain(&prompt.suffix, false)));
        }
        let no_template = |e: String| {
            failure(
                ErrorClass::Stop,
                "no-chat-template",
                format!("the model has no usable chat template ({e}); use a `completion` skeleton"),
            )
        };
        let template = self
            .model
            .chat_template(None)
            .map_err(|e| no_template(e.to_string()))?;
        let mut chat = Vec::new();
        if !prompt.prefix.is_empty() {
            chat.push(
                LlamaChatMessage::new("system".into(), SYSTEM_MARK.into())
                    .map_err(|e| no_template(e.to_string()))?,
            );
        }
        chat.push(
            LlamaChatMessage::new("user".into(), USER_MARK.into())
                .map_err(|e| no_template(e.to_string()))?,
        );
        let frame = self
            .model
            .apply_chat_template(&template, &chat, true)
            .map_err(|e| no_template(e.to_string()))?;
        let (before, after) = frame
            .split_once(USER_MARK)
            .ok_or_else(|| no_template("it drops the user's message".into()))?;
        let control = |text: &str, bos: bool| vocab.tokenize(text.as_bytes(), bos, true);
        let mut prefix = Vec::new();
        match before.split_once(SYSTEM_MARK) {
            Some((open, close)) => {
                prefix.extend(control(open, true));
                prefix.extend(plain(&prompt.prefix, false));
                prefix.extend(control(close, false));
            }
            None => prefix.extend(control(before, true)),
        }
        let mut suffix = plain(&prompt.suffix, false);
        suffix.extend(control(after, false));
        Ok((prefix, suffix))
    }

    /// Makes the context hold exactly this prefix; evaluates it unless it is the one held.
    fn hold(&mut self, prefix: Vec<LlamaToken>) -> Result<(), EndpointError> {
        if prefix != self.held || prefix.is_empty() {
            self.held.clear();
            self.context.clear_kv_cache();
            if !prefix.is_empty() {
                self.extend(&prefix, 0, false)?;
            }
            self.held = prefix;
        }
        Ok(())
    }

    /// Evaluates tokens from a position on and gives the log probabilities over the vocabulary
    /// after the last of them, or after each.
    fn extend(
        &mut self,
        tokens: &[LlamaToken],
        at: usize,
        each: bool,
    ) -> Result<Vec<Vec<f64>>, EndpointError> {
        let broken = |what: String| {
            failure(
                ErrorClass::GiveUp,
                "engine",
                format!("llama.cpp could not evaluate the prompt: {what}"),
            )
        };
        if tokens.is_empty() {
            return Err(broken("it is empty".into()));
        }
        let mut batch = LlamaBatch::new(tokens.len(), 1);
        for (i, token) in tokens.iter().enumerate() {
            let position = i32::try_from(at + i).map_err(|e| broken(e.to_string()))?;
            batch
                .add(*token, position, &[0], each || i + 1 == tokens.len())
                .map_err(|e| broken(e.to_string()))?;
        }
        if let Err(e) = self.context.decode(&mut batch) {
            self.held.clear();
            return Err(broken(e.to_string()));
        }
        let wanted = if each {
            0..tokens.len()
        } else {
            tokens.len() - 1..tokens.len()
        };
        Ok(wanted
            .map(|i| log_softmax(self.context.get_logits_ith(i as i32)))
            .collect())
    }

    /// Takes everything from a position on out of the context.
    fn rewind(&mut self, to: usize) -> Result<(), EndpointError> {
        let from = u32::try_from(to).unwrap_or(u32::MAX);
        if !matches!(
            self.context.clear_kv_cache_seq(Some(0), Some(from), None),
            Ok(true)
        ) {
            self.held.clear();
            self.context.clear_kv_cache();
        }
        Ok(())
    }

    /// log P(option | prompt): the sum over the option's tokens.
    fn scores(
        &mut self,
        options: &[String],
        first: &[f64],
        at: usize,
    ) -> Result<Vec<f64>, EndpointError> {
        let mut out = Vec::with_capacity(options.len());
        for option in options {
            let tokens = self.model.vocab().tokenize(option.as_bytes(), false, false);
            let Some((head, rest)) = tokens.split_first() else {
                return Err(failure(
                    ErrorClass::GiveUp,
                    "empty-option",
                    "a label's word has no token".into(),
                ));
            };
            let mut score = first[head.0 as usize];
            if !rest.is_empty() {
                let after = self.extend(&tokens[..tokens.len() - 1], at, true)?;
                score += rest
                    .iter()
                    .zip(&after)
                    .map(|(token, logprobs)| logprobs[token.0 as usize])
                    .sum::<f64>();
                self.rewind(at)?;
            }
            out.push(score);
        }
        Ok(out)
    }

    /// Greedy or sampled text, with the alternatives of each token where they are asked for.
    fn generate(
        &mut self,
        first: &[f64],
        at: usize,
        max_tokens: u32,
        temperature: f32,
        request: &Request,
        top: u8,
    ) -> Result<(Response, u64), EndpointError> {
        let mut logprobs = first.to_vec();
        let (mut bytes, mut alternatives, mut finish, mut n) =
            (Vec::new(), Vec::new(), Finish::Length, 0);
        while n < max_tokens as usize {
            let token = pick(&logprobs, temperature, request, n);
            if top > 0 {
                alternatives.push(self.alternatives(&logprobs, top));
            }
            if self.model.vocab().is_eog(token) {
                finish = Finish::Stop;
                break;
            }
            bytes.extend(self.piece(token));
            n += 1;
            if n < max_tokens as usize {
                logprobs = self.extend(&[token], at + n - 1, false)?.swap_remove(0);
            }
        }
        Ok((
            Response {
                text: String::from_utf8_lossy(&bytes).into_owned(),
                top_logprobs: alternatives,
                finish,
                ..Response::default()
            },
            n as u64,
        ))
    }

    fn piece(&self, token: LlamaToken) -> Vec<u8> {
        self.model.vocab().token_to_piece(token, false, None)
    }

    fn alternatives(&self, logprobs: &[f64], top: u8) -> Vec<(String, f64)> {
        let mut order: Vec<usize> = (0..logprobs.len()).collect();
        order.sort_by(|a, b| logprobs[*b].total_cmp(&logprobs[*a]).then(a.cmp(b)));
        order
            .iter()
            .take(usize::from(top))
            .map(|&t| {
                (
                    String::from_utf8_lossy(&self.piece(LlamaToken(t as i32))).into_owned(),
                    logprobs[t],
                )
            })
            .collect()
    }
}

/// The most likely token, or a draw keyed by the request, so that it is the same on every machine.
fn pick(logprobs: &[f64], temperature: f32, request: &Request, step: usize) -> LlamaToken {
    let best = |key: &dyn Fn(usize) -> f64| {
        (0..logprobs.len()).fold(0, |b, t| if key(t) > key(b) { t } else { b })
    };
    if temperature <= 0.0 {
        return LlamaToken(best(&|t| logprobs[t]) as i32);
    }
    use rand::{RngExt, SeedableRng};
    let mut key = request.seed.unwrap_or(0).to_le_bytes().to_vec();
    key.extend(request.repeat.to_le_bytes());
    key.extend((step as u64).to_le_bytes());
    let mut rng = rand_chacha::ChaCha8Rng::from_seed(*blake3::hash(&key).as_bytes());
    // Gumbel noise turns an argmax into a draw from the tempered distribution.
    let noise: Vec<f64> = logprobs
        .iter()
        .map(|_| -(-(rng.random::<f64>().max(1e-300)).ln()).ln())
        .collect();
    LlamaToken(best(&|t| logprobs[t] / f64::from(temperature) + noise[t]) as i32)
}

fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let norm = logits
        .iter()
        .map(|l| f64::from(l - top).exp())
        .sum::<f64>()
        .ln();
    logits.iter().map(|l| f64::from(l - top) - norm).collect()
}

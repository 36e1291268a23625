//! One model context: loads prefixes, scores options, generates text, embeds. Must not know where
//! requests come from.

use std::num::NonZeroU32;
use std::sync::Arc;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{LlamaContextParams, LlamaPoolingType};
use llama_cpp_2::context::session::{LlamaStateSeqFlags, SeqState};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;

use super::probabilities::LogProbabilities;
use super::tokens::{PromptTokens, Tokenizer};
use super::{EndpointError, LocalConfig, context_size, give_up, stop};
use crate::endpoint::{Finish, Request, Response, Usage, Want};

/// Most tokens of one decode. Part of the identity: where a text is cut into decodes moves the last
/// digits of what follows.
pub(super) const CHUNK: u32 = 512;

/// Memory for evaluated prefixes, in bytes. Items of several locales come interleaved and each
/// locale may have a prefix of its own; putting one back takes milliseconds.
const KEPT_BYTES: usize = 512 << 20;

/// Which tokens of an evaluation the next-token probabilities are wanted after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    None,
    Last,
    All,
}

/// An evaluated prefix.
struct Kept {
    tokens: Arc<[LlamaToken]>,
    state: SeqState,
}

pub(super) struct Engine<'m> {
    backend: &'static LlamaBackend,
    model: &'m LlamaModel,
    tokenizer: &'m Tokenizer,
    context: LlamaContext<'m>,
    embedder: Option<LlamaContext<'m>>,
    batch: LlamaBatch<'static>,
    threads: i32,
    /// Most tokens of a request.
    limit: usize,
    /// The prefix at the start of the context, if all of it is there.
    loaded: Option<Arc<[LlamaToken]>>,
    /// Least recently used first.
    kept: Vec<Kept>,
}

impl<'m> Engine<'m> {
    pub fn new(
        backend: &'static LlamaBackend,
        model: &'m LlamaModel,
        tokenizer: &'m Tokenizer,
        config: &LocalConfig,
    ) -> Result<Self, EndpointError> {
        let trained = model.n_ctx_train();
        if config.context > trained {
            let context = config.context;
            return Err(stop(
                "local-settings",
                format!(
                    "context is {context} tokens, but the model was trained on at most {trained}; give at most that"
                ),
            ));
        }
        // `check` keeps threads below 1025.
        let threads = config.threads as i32;
        let parameters = parameters(context_size(config), threads)
            .with_n_batch(CHUNK)
            .with_n_ubatch(CHUNK);
        let context = model.new_context(backend, parameters).map_err(|error| {
            stop("engine", format!("no context of {} tokens could be made ({error}); give a smaller context or free memory", config.context))
        })?;
        Ok(Self {
            backend,
            model,
            tokenizer,
            context,
            embedder: None,
            batch: LlamaBatch::new(CHUNK as usize, 1),
            threads,
            limit: config.context as usize,
            loaded: None,
            kept: Vec::new(),
        })
    }

    /// Answers a request whose prompt was made into `prompt`.
    pub fn answer(
        &mut self,
        request: &Request,
        prompt: &PromptTokens,
    ) -> Result<Response, EndpointError> {
        let mut response = match &request.want {
            Want::Scores { options } => self.scores(prompt, options)?,
            Want::Text { .. } => self.text(request, prompt)?,
            Want::Embedding => return self.embedding(&request.prompt.suffix),
        };
        response.usage.prompt_tokens = prompt.len() as u64;
        Ok(response)
    }

    /// Forgets what is loaded; called after an evaluation was broken off.
    pub fn reset(&mut self) {
        self.loaded = None;
        self.context.clear_kv_cache();
    }

    /// log P(option | prompt), summed over the tokens of each option: the chain rule.
    fn scores(
        &mut self,
        prompt: &PromptTokens,
        options: &[String],
    ) -> Result<Response, EndpointError> {
        let options: Vec<Vec<LlamaToken>> = options
            .iter()
            .map(|option| self.tokenizer.text(option))
            .collect();
        if options.is_empty() || options.iter().any(Vec::is_empty) {
            return Err(give_up(
                "empty-option",
                "an option to score is empty, or there is none; give each option some text"
                    .to_owned(),
            ));
        }
        let longest = options.iter().map(Vec::len).max().unwrap_or(0);
        if longest > CHUNK as usize {
            return Err(give_up(
                "too-long",
                format!("an option has {longest} tokens; the limit is {CHUNK}. Use shorter labels"),
            ));
        }
        self.check_length(prompt, longest - 1)?;
        let row = self.begin(prompt)?;
        let first = LogProbabilities::of(self.context.get_logits_ith(row));
        let mut scores: Vec<f64> = options.iter().map(|option| first.get(option[0])).collect();
        for (score, option) in scores.iter_mut().zip(&options) {
            let read = &option[..option.len() - 1];
            if read.is_empty() {
                continue;
            }
            self.evaluate(read, prompt.len(), Rows::All)?;
            for (row, token) in (0_i32..).zip(&option[1..]) {
                *score += LogProbabilities::of(self.context.get_logits_ith(row)).get(*token);
            }
            if !self.rewind(prompt.len()) {
                self.begin(prompt)?;
            }
        }
        Ok(Response {
            scores,
            ..Response::default()
        })
    }

    fn text(
        &mut self,
        request: &Request,
        prompt: &PromptTokens,
    ) -> Result<Response, EndpointError> {
        let Want::Text {
            max_tokens,
            temperature,
            json_schema,
            top_logprobs,
        } = &request.want
        else {
            return Ok(Response::default());
        };
        self.check_length(prompt, 0)?;
        let mut grammar = json_schema
            .as_ref()
            .map(|schema| self.grammar(schema))
            .transpose()?;
        let mut picker = picker(*temperature, request);
        let mut response = Response {
            finish: Finish::Length,
            ..Response::default()
        };
        let mut bytes = Vec::new();
        let mut row = self.begin(prompt)?;
        let mut position = prompt.len();
        while response.usage.completion_tokens < u64::from(*max_tokens) {
            let mut candidates = self.context.token_data_array_ith(row);
            if let Some(grammar) = &mut grammar {
                grammar.apply(&mut candidates);
            }
            candidates.apply_sampler(&mut picker);
            let token = candidates.selected_token().ok_or_else(|| {
                give_up(
                    "no-token",
                    "the sampler chose no token; use another temperature".to_owned(),
                )
            })?;
            if self.model.vocab().is_eog(token) {
                response.finish = Finish::Stop;
                break;
            }
            if let Some(grammar) = &mut grammar {
                grammar.try_accept(token).map_err(|error| {
                    give_up(
                        "json-schema",
                        format!("the answer left the JSON schema ({error}); simplify the schema"),
                    )
                })?;
            }
            if *top_logprobs > 0 {
                response
                    .top_logprobs
                    .push(self.alternatives(row, *top_logprobs));
            }
            response.usage.completion_tokens += 1;
            bytes.extend(self.tokenizer.piece(token));
            if position == self.limit {
                break;
            }
            row = self.evaluate(&[token], position, Rows::Last)?;
            position += 1;
        }
        response.text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(response)
    }

    fn alternatives(&self, row: i32, count: u8) -> Vec<(String, f64)> {
        let all = LogProbabilities::of(self.context.get_logits_ith(row));
        let named = |token| String::from_utf8_lossy(&self.tokenizer.piece(token)).into_owned();
        all.best(usize::from(count))
            .into_iter()
            .map(|token| (named(token), all.get(token)))
            .collect()
    }

    /// The schema's properties come in the order in which the schema holds them.
    fn grammar(&self, schema: &serde_json::Value) -> Result<LlamaSampler, EndpointError> {
        let fail = |error: String| {
            give_up(
                "json-schema",
                format!(
                    "the JSON schema cannot be made into a grammar ({error}); simplify it or ask for plain text"
                ),
            )
        };
        let grammar = llama_cpp_2::json_schema_to_grammar(&schema.to_string())
            .map_err(|error| fail(error.to_string()))?;
        LlamaSampler::grammar(self.model, &grammar, "root").map_err(|error| fail(error.to_string()))
    }

    /// Mean over the last layer's vectors of all tokens, as the model gives it (not normalised).
    fn embedding(&mut self, text: &str) -> Result<Response, EndpointError> {
        let tokens = self.tokenizer.embedding(text);
        if tokens.is_empty() {
            return Err(give_up(
                "empty-prompt",
                "the text to embed is empty".to_owned(),
            ));
        }
        if tokens.len() > self.limit {
            return Err(too_long(tokens.len(), self.limit));
        }
        let limit = self.limit as u32;
        if self.embedder.is_none() {
            let parameters = parameters(NonZeroU32::new(limit), self.threads)
                .with_embeddings(true)
                .with_pooling_type(LlamaPoolingType::Mean)
                // A mean is taken within one decode, so all of a text must fit in one.
                .with_n_batch(limit)
                .with_n_ubatch(limit);
            let context = self
                .model
                .new_context(self.backend, parameters)
                .map_err(|error| {
                    stop(
                        "engine",
                        format!("no context for embeddings could be made: {error}"),
                    )
                })?;
            self.embedder = Some(context);
        }
        let fail =
            |error: String| give_up("engine", format!("the text cannot be embedded: {error}"));
        let Some(context) = &mut self.embedder else {
            return Err(fail("no context".to_owned()));
        };
        context.clear_kv_cache();
        let mut batch = LlamaBatch::new(tokens.len(), 1);
        batch
            .add_sequence(&tokens, 0, true)
            .map_err(|error| fail(error.to_string()))?;
        context
            .decode(&mut batch)
            .map_err(|error| fail(error.to_string()))?;
        let embedding = context
            .embeddings_seq_ith(0)
            .map_err(|error| fail(error.to_string()))?
            .to_vec();
        let usage = Usage {
            prompt_tokens: tokens.len() as u64,
            completion_tokens: 0,
        };
        Ok(Response {
            embedding,
            usage,
            ..Response::default()
        })
    }

    fn check_length(&self, prompt: &PromptTokens, extra: usize) -> Result<(), EndpointError> {
        let length = prompt.len() + extra;
        if length > self.limit {
            Err(too_long(length, self.limit))
        } else {
            Ok(())
        }
    }

    /// Evaluates a prompt; gives the row of its last token.
    fn begin(&mut self, prompt: &PromptTokens) -> Result<i32, EndpointError> {
        self.load(&prompt.prefix)?;
        self.evaluate(&prompt.suffix, prompt.prefix.len(), Rows::Last)
    }

    /// Leaves exactly `prefix` in the context. Only a whole prefix is ever used again: a shared
    /// beginning of two prefixes would be cut into other decodes than the same text alone.
    fn load(&mut self, prefix: &[LlamaToken]) -> Result<(), EndpointError> {
        if self.loaded.as_deref() == Some(prefix) && self.rewind(prefix.len()) {
            return Ok(());
        }
        self.reset();
        if let Some(place) = self.kept.iter().position(|kept| *kept.tokens == *prefix) {
            let kept = self.kept.remove(place);
            if self.context.state_seq_set(&kept.state, 0).is_ok() {
                self.loaded = Some(Arc::clone(&kept.tokens));
                self.kept.push(kept);
                return Ok(());
            }
            self.reset();
        }
        self.evaluate(prefix, 0, Rows::None)?;
        let tokens: Arc<[LlamaToken]> = Arc::from(prefix);
        self.loaded = Some(Arc::clone(&tokens));
        if !prefix.is_empty() {
            self.keep(tokens);
        }
        Ok(())
    }

    fn keep(&mut self, tokens: Arc<[LlamaToken]>) {
        // A state that cannot be read is evaluated again when it is wanted.
        let Ok(state) = self.context.state_seq_get(0, LlamaStateSeqFlags::empty()) else {
            return;
        };
        self.kept.push(Kept { tokens, state });
        let mut bytes: usize = self.kept.iter().map(|kept| kept.state.byte_len()).sum();
        while bytes > KEPT_BYTES && self.kept.len() > 1 {
            bytes -= self.kept.remove(0).state.byte_len();
        }
    }

    /// Takes away all that follows the first `length` tokens. False where the model cannot do that
    /// (recurrent models keep no history); nothing is loaded then.
    fn rewind(&mut self, length: usize) -> bool {
        let start = u32::try_from(length).ok();
        let done = matches!(
            self.context.clear_kv_cache_seq(Some(0), start, None),
            Ok(true)
        );
        if !done {
            self.reset();
        }
        done
    }

    /// Evaluates tokens from a position on; gives the row of the last one.
    fn evaluate(
        &mut self,
        tokens: &[LlamaToken],
        start: usize,
        rows: Rows,
    ) -> Result<i32, EndpointError> {
        let fail = |error: String| {
            give_up(
                "engine",
                format!(
                    "llama.cpp could not evaluate {} tokens from {start} on: {error}",
                    tokens.len()
                ),
            )
        };
        let mut place = start;
        for chunk in tokens.chunks(CHUNK as usize) {
            self.batch.clear();
            for token in chunk {
                let last = place + 1 == start + tokens.len();
                let wanted = rows == Rows::All || (rows == Rows::Last && last);
                // The limit of a context, and with it every position, is far below i32::MAX.
                self.batch
                    .add(*token, place as i32, &[0], wanted)
                    .map_err(|error| fail(error.to_string()))?;
                place += 1;
            }
            if let Err(error) = self.context.decode(&mut self.batch) {
                self.reset();
                return Err(fail(error.to_string()));
            }
        }
        Ok(self.batch.n_tokens() - 1)
    }
}

fn parameters(context: Option<NonZeroU32>, threads: i32) -> LlamaContextParams {
    LlamaContextParams::default()
        .with_n_ctx(context)
        .with_n_seq_max(1)
        .with_n_threads(threads)
        .with_n_threads_batch(threads)
        .with_kv_unified(false)
        // Models with a sliding window can be rewound only if all of the history is kept.
        .with_swa_full(true)
        .with_no_perf(true)
}

/// Greedy, or drawn with a seed made of the request's seed and repeat, so that every bit of both
/// counts.
fn picker(temperature: f32, request: &Request) -> LlamaSampler {
    if temperature <= 0.0 || temperature.is_nan() {
        return LlamaSampler::greedy();
    }
    let mut hash = blake3::Hasher::new();
    hash.update(&request.seed.unwrap_or(0).to_le_bytes());
    hash.update(&request.repeat.to_le_bytes());
    let digest = hash.finalize();
    let [a, b, c, d, ..] = *digest.as_bytes();
    let seed = u32::from_le_bytes([a, b, c, d]);
    LlamaSampler::chain_simple([LlamaSampler::temp(temperature), LlamaSampler::dist(seed)])
}

fn too_long(tokens: usize, limit: usize) -> EndpointError {
    give_up(
        "too-long",
        format!(
            "the request has {tokens} tokens and the limit is {limit}; shorten the prompt, use fewer demos, or give the local model a larger context"
        ),
    )
}

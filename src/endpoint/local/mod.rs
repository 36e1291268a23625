//! An embedded GGUF model, through llama.cpp. Owns the model, the one thread that runs it and the
//! queue in front of it; must not know what the text it evaluates is about.
//!
//! Every prompt is evaluated as prefix, then suffix, each alone in its decode, in one sequence.
//! Several items in one decode would be somewhat quicker, but then their numbers depend on their
//! neighbours: kernels handle the last rows of a block otherwise than the rest, so that 6 of 8
//! equally long items changed on a Q4_K_M model, and 2 of 8 unequal ones on a Q4_1 model. The large
//! saving, a shared prefix that is evaluated once, is kept.
//!
//! On a machine that does other work too, set `OMP_WAIT_POLICY=passive` before the program starts:
//! otherwise threads that wait for each other spin. The OpenMP library reads it when it is loaded,
//! so it cannot be set from here.

mod engine;
mod probabilities;
mod tokens;
mod worker;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use futures_util::future::BoxFuture;
use llama_cpp_2::LogOptions;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use tokio::sync::oneshot;

use self::tokens::Tokenizer;
use super::{
    Capabilities, Endpoint, EndpointError, ErrorClass, Identity, Request, Response, Usage, Want,
    model_file,
};

/// The engine, as it stands in the lock file (a test compares the two). Kernels change between
/// versions and with them the last digits of a score.
const ENGINE: &str = "llama-cpp-2 0.1.160, llama-cpp-sys-2 0.1.161";

/// How to run a model file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// The GGUF file.
    pub model: PathBuf,
    /// Threads that compute. The last digits of generated text's numbers depend on it.
    pub threads: usize,
    /// Most tokens of one request: prefix, suffix and what is generated.
    pub context: u32,
    /// Requests worth having in flight at once. Those that wait and share a prefix are answered
    /// one after another, so that the prefix stays in place. Decides no answer.
    pub batch: usize,
    /// Layers kept on a graphics card, where the engine was built for one.
    pub gpu_layers: u32,
}

impl LocalConfig {
    /// The usual settings for a file: all cores up to 8, 2048 tokens, 16 in flight, no graphics card.
    #[must_use]
    pub fn new(model: impl Into<PathBuf>) -> Self {
        Self {
            model: model.into(),
            threads: std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8)),
            context: 2048,
            batch: 16,
            gpu_layers: 0,
        }
    }
}

/// A GGUF model in this process.
#[derive(Debug)]
pub struct LocalEndpoint {
    identity: Identity,
    capabilities: Capabilities,
    tokenizer: Arc<Tokenizer>,
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// A request on its way to the thread that owns the model.
#[derive(Debug)]
struct Job {
    request: Request,
    reply: oneshot::Sender<Result<Response, EndpointError>>,
}

impl LocalEndpoint {
    /// Loads a model and starts its thread. Reads the whole file once for its digest.
    ///
    /// # Errors
    /// Class `Stop`: settings out of range, a file that is missing or no model, too little memory.
    pub fn open(config: LocalConfig) -> Result<Self, EndpointError> {
        check(&config)?;
        let path = config.model.to_string_lossy();
        // A name from a config would be looked up by the caller; here only the bytes are checked.
        let path =
            model_file::find(&path).map_err(|error| stop("model-file", error.to_string()))?;
        let digest = model_file::sha256_file(&path)
            .map_err(|error| stop("model-file", error.to_string()))?;
        let backend = backend()?;
        let parameters = LlamaModelParams::default().with_n_gpu_layers(config.gpu_layers);
        let model = LlamaModel::load_from_file(backend, &path, &parameters).map_err(|error| {
            let shown = path.display();
            stop("model-file", format!("{shown} cannot be loaded as a model ({error}); fetch it again or use a GGUF file that this version of llama.cpp knows"))
        })?;
        let model = Arc::new(model);
        let tokenizer = Arc::new(Tokenizer::new(Arc::clone(&model)));
        let name = path
            .file_stem()
            .unwrap_or(path.as_os_str())
            .to_string_lossy()
            .into_owned();
        let identity = Identity {
            kind: "local".to_owned(),
            model: name,
            settings: settings(&config, &digest),
        };
        let capabilities = Capabilities {
            scores: true,
            embeddings: true,
            concurrency: config.batch,
        };
        let (jobs, thread) = worker::start(backend, model, Arc::clone(&tokenizer), &config)?;
        Ok(Self {
            identity,
            capabilities,
            tokenizer,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Tokens of a prompt as the model reads it: (prefix, suffix).
    ///
    /// # Errors
    /// Class `GiveUp` where the prompt cannot be put into the model's form.
    pub fn count_tokens(
        &self,
        prompt: &super::PromptText,
    ) -> Result<(usize, usize), EndpointError> {
        self.tokenizer
            .prompt(prompt)
            .map(|tokens| (tokens.prefix.len(), tokens.suffix.len()))
    }
}

impl Endpoint for LocalEndpoint {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<Response, EndpointError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let job = Job {
                request: request.clone(),
                reply,
            };
            let sent = self
                .jobs
                .as_ref()
                .is_some_and(|jobs| jobs.send(job).is_ok());
            if !sent {
                return Err(gone());
            }
            answer.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    fn bound(&self, request: &Request) -> Usage {
        let prompt = &request.prompt;
        let prompt_tokens = match &request.want {
            Want::Embedding => Ok(self.tokenizer.embedding(&prompt.suffix).len()),
            Want::Scores { .. } | Want::Text { .. } => {
                self.tokenizer.prompt(prompt).map(|tokens| tokens.len())
            }
        };
        let bytes = prompt.prefix.len() + prompt.suffix.len() + 64;
        let completion_tokens = match &request.want {
            Want::Text { max_tokens, .. } => u64::from(*max_tokens),
            Want::Scores { .. } | Want::Embedding => 0,
        };
        Usage {
            prompt_tokens: prompt_tokens.unwrap_or(bytes) as u64,
            completion_tokens,
        }
    }
}

impl Drop for LocalEndpoint {
    fn drop(&mut self) {
        // Closing the channel ends the thread, which frees the context before the model goes.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn check(config: &LocalConfig) -> Result<(), EndpointError> {
    let problem = if !(1..=1024).contains(&config.threads) {
        format!("threads is {}; give 1 to 1024", config.threads)
    } else if !(16..=1 << 20).contains(&config.context) {
        format!("context is {} tokens; give 16 to 1048576", config.context)
    } else if !(1..=4096).contains(&config.batch) {
        format!("batch is {}; give 1 to 4096", config.batch)
    } else {
        return Ok(());
    };
    Err(stop("local-settings", problem))
}

/// Canonical text of all that decides an answer besides the request.
fn settings(config: &LocalConfig, digest: &str) -> String {
    format!(
        "sha256={digest}; engine={ENGINE}; threads={}; context={}; ubatch={}; kv=f16, not unified; \
         flash-attention=auto; gpu-layers={}; cpu={}",
        config.threads,
        config.context,
        engine::CHUNK,
        config.gpu_layers,
        cpu_features()
    )
}

/// What of the processor may lead llama.cpp to other kernels.
fn cpu_features() -> String {
    let mut features = vec![std::env::consts::ARCH];
    #[cfg(target_arch = "x86_64")]
    {
        for (name, found) in [
            ("avx2", std::arch::is_x86_feature_detected!("avx2")),
            ("fma", std::arch::is_x86_feature_detected!("fma")),
            ("f16c", std::arch::is_x86_feature_detected!("f16c")),
            ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
            ("avx512bw", std::arch::is_x86_feature_detected!("avx512bw")),
            (
                "avx512vnni",
                std::arch::is_x86_feature_detected!("avx512vnni"),
            ),
        ] {
            if found {
                features.push(name);
            }
        }
    }
    features.join("+")
}

/// llama.cpp's process-wide state, started by the first model and kept until the process ends.
fn backend() -> Result<&'static LlamaBackend, EndpointError> {
    static BACKEND: OnceLock<LlamaBackend> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    // A thread that panicked here left no half-made backend, so a poisoned lock is no harm.
    let _guard = STARTING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(backend) = BACKEND.get() {
        return Ok(backend);
    }
    llama_cpp_2::send_logs_to_tracing(LogOptions::default().with_logs_enabled(false));
    let backend = LlamaBackend::init()
        .map_err(|error| stop("engine", format!("llama.cpp could not be started: {error}")))?;
    Ok(BACKEND.get_or_init(|| backend))
}

/// The context size as the engine wants it; `check` has refused 0.
fn context_size(config: &LocalConfig) -> Option<NonZeroU32> {
    NonZeroU32::new(config.context)
}

fn error(class: ErrorClass, cause: &str, message: String) -> EndpointError {
    EndpointError {
        class,
        cause: cause.to_owned(),
        message,
        retry_after_ms: None,
        usage: Usage::default(),
    }
}

fn stop(cause: &str, message: String) -> EndpointError {
    error(ErrorClass::Stop, cause, message)
}

fn give_up(cause: &str, message: String) -> EndpointError {
    error(ErrorClass::GiveUp, cause, message)
}

fn gone() -> EndpointError {
    stop(
        "engine",
        "the thread that runs the local model has ended; start the program again".to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_the_one_in_the_lock_file() {
        let lock = include_str!("../../../Cargo.lock");
        for part in ENGINE.split(", ") {
            let (name, version) = part.split_once(' ').unwrap();
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"");
            assert!(
                lock.replace('\r', "").contains(&entry),
                "{name} is no longer {version}"
            );
        }
    }

    #[test]
    fn settings_name_all_that_decides_an_answer_and_not_the_batch() {
        let config = LocalConfig {
            threads: 3,
            ..LocalConfig::new("m.gguf")
        };
        let text = settings(&config, "abc");
        for part in [
            "sha256=abc",
            "threads=3",
            "context=2048",
            "gpu-layers=0",
            ENGINE,
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let other = LocalConfig { batch: 1, ..config };
        assert_eq!(settings(&other, "abc"), text);
    }

    #[test]
    fn bad_settings_and_files_are_refused_before_anything_is_loaded() {
        for (threads, context, batch) in [(0, 2048, 16), (2, 0, 16), (2, 2048, 0)] {
            let config = LocalConfig {
                threads,
                context,
                batch,
                ..LocalConfig::new("m.gguf")
            };
            assert_eq!(check(&config).unwrap_err().class, ErrorClass::Stop);
        }
        let error = LocalEndpoint::open(LocalConfig::new("/no/such.gguf")).unwrap_err();
        assert_eq!(error.class, ErrorClass::Stop);
        assert!(error.message.contains("/no/such.gguf"), "{}", error.message);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken.gguf");
        std::fs::write(&path, b"GGUF\x03\0\0\0 and nothing more").unwrap();
        let error = LocalEndpoint::open(LocalConfig::new(path)).unwrap_err();
        assert_eq!(
            (error.class, error.cause.as_str()),
            (ErrorClass::Stop, "model-file")
        );
    }
}

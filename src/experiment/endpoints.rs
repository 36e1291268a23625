//! From an endpoint's config to the endpoint.

use std::time::Duration;

use futures_util::future::BoxFuture;

use super::config::EndpointConfig;
use super::folder::{Origin, Recorded};
use crate::endpoint::openai::{OpenAiConfig, OpenAiEndpoint};
use crate::endpoint::simulated::SimulatedEndpoint;
use crate::endpoint::{
    Capabilities, Endpoint, EndpointError, ErrorClass, Identity, Request, Response, Usage,
};

/// A judge and, where there is one, a writer.
pub(super) type Opened = (Box<dyn Endpoint>, Option<Box<dyn Endpoint>>);

/// Stands in for an endpoint that nobody asks: it has the identity, the abilities and the bounds,
/// and needs neither key nor server nor model file.
struct Unasked {
    identity: Identity,
    capabilities: Capabilities,
}

impl Endpoint for Unasked {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn answer<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Response, EndpointError>> {
        Box::pin(async {
            Err(EndpointError {
                class: ErrorClass::Stop,
                cause: "unasked".into(),
                message: "no call may be made".into(),
                retry_after_ms: None,
                usage: Usage::default(),
            })
        })
    }
}

/// The judge and the writer as stand-ins that are never asked. Which embedded model answered is
/// known only from what a run recorded; without that its answers are not found.
///
/// # Errors
/// A base URL that is none.
pub(super) fn unasked(
    judge: &EndpointConfig,
    writer: Option<&EndpointConfig>,
    origin: Option<&Origin>,
) -> Result<Opened, EndpointError> {
    let writer = writer.map(|w| stand_in(w, origin.and_then(|o| o.writer.as_ref())));
    let judge = stand_in(judge, origin.map(|o| &o.judge))?;
    Ok((judge, writer.transpose()?))
}

/// One of them.
///
/// # Errors
/// A base URL that is none.
pub(super) fn stand_in(
    config: &EndpointConfig,
    recorded: Option<&Recorded>,
) -> Result<Box<dyn Endpoint>, EndpointError> {
    let mut keyless = config.clone();
    match &mut keyless {
        EndpointConfig::Simulated(_) => {}
        EndpointConfig::Openai { key_env, .. } => *key_env = None,
        EndpointConfig::Local { model, .. } => {
            let unknown = Identity {
                kind: "local".into(),
                model: model.clone(),
                settings: String::new(),
            };
            return Ok(Box::new(Unasked {
                identity: recorded.map_or(unknown, |r| r.identity.clone()),
                capabilities: Capabilities {
                    scores: recorded.is_none_or(|r| r.scores),
                    embeddings: recorded.is_none_or(|r| r.embeddings),
                    concurrency: 1,
                },
            }));
        }
    }
    open(&keyless)
}

/// Opens an endpoint.
///
/// # Errors
/// [`EndpointError`] that says what is missing: a key, a model file, the feature `local`.
pub fn open(config: &EndpointConfig) -> Result<Box<dyn Endpoint>, EndpointError> {
    open_with(config, None)
}

/// The same with so many requests in flight at most, in place of what the config says. An embedded
/// model keeps its own batch.
pub(super) fn open_with(
    config: &EndpointConfig,
    flying: Option<usize>,
) -> Result<Box<dyn Endpoint>, EndpointError> {
    match config {
        EndpointConfig::Openai {
            base_url,
            model,
            key_env,
            timeout_seconds,
            concurrency,
            requests_per_minute,
            tokens_per_minute,
        } => Ok(Box::new(OpenAiEndpoint::new(OpenAiConfig {
            base_url: base_url.clone(),
            model: model.clone(),
            key_env: key_env.clone(),
            timeout: Duration::from_secs(*timeout_seconds),
            concurrency: flying.unwrap_or(*concurrency),
            requests_per_minute: *requests_per_minute,
            tokens_per_minute: *tokens_per_minute,
            json_schema: true,
            send_seed: true,
        })?)),
        EndpointConfig::Local {
            model,
            threads,
            context,
            batch,
        } => open_local(model, *threads, *context, *batch),
        EndpointConfig::Simulated(config) => {
            let endpoint = SimulatedEndpoint::new(config.clone());
            Ok(Box::new(match flying {
                Some(n) => endpoint.with_concurrency(n),
                None => endpoint,
            }))
        }
    }
}

#[cfg(feature = "local")]
fn open_local(
    model: &str,
    threads: Option<usize>,
    context: u32,
    batch: usize,
) -> Result<Box<dyn Endpoint>, EndpointError> {
    use crate::endpoint::local::{LocalConfig, LocalEndpoint};
    use crate::endpoint::model_file;
    let path = model_file::find(model).map_err(|e| EndpointError {
        class: ErrorClass::Stop,
        cause: "no-model-file".into(),
        message: e.to_string(),
        retry_after_ms: None,
        usage: Usage::default(),
    })?;
    let threads =
        threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    Ok(Box::new(LocalEndpoint::open(LocalConfig {
        model: path,
        threads,
        context,
        batch,
        gpu_layers: 0,
    })?))
}

#[cfg(not(feature = "local"))]
fn open_local(
    _model: &str,
    _threads: Option<usize>,
    _context: u32,
    _batch: usize,
) -> Result<Box<dyn Endpoint>, EndpointError> {
    Err(EndpointError {
        class: ErrorClass::Stop,
        cause: "no-local".into(),
        message: "this program was built without the embedded judge; build it with `cargo build --release --features local` (needs cmake and clang)".into(),
        retry_after_ms: None,
        usage: Usage::default(),
    })
}

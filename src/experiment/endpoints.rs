//! From an endpoint's config to the endpoint.

use std::time::Duration;

use super::config::EndpointConfig;
use crate::endpoint::openai::{OpenAiConfig, OpenAiEndpoint};
use crate::endpoint::simulated::SimulatedEndpoint;
use crate::endpoint::{Endpoint, EndpointError};

/// Opens an endpoint.
///
/// # Errors
/// [`EndpointError`] that says what is missing: a key, a model file, the feature `local`.
pub fn open(config: &EndpointConfig) -> Result<Box<dyn Endpoint>, EndpointError> {
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
            concurrency: *concurrency,
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
        EndpointConfig::Simulated(config) => Ok(Box::new(SimulatedEndpoint::new(config.clone()))),
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
    use crate::endpoint::{ErrorClass, Usage, model_file};
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
    use crate::endpoint::{ErrorClass, Usage};
    Err(EndpointError {
        class: ErrorClass::Stop,
        cause: "no-local".into(),
        message: "this program was built without the embedded judge; build it with `cargo build --release --features local` (needs cmake and clang)".into(),
        retry_after_ms: None,
        usage: Usage::default(),
    })
}

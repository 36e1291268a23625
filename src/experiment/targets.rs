//! Models that are named by a file each and no experiment: targets that are asked questions, a
//! generator, a judge.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ConfigError;
use super::config::{EndpointConfig, pasted_key};
use super::endpoints::{open_with, stand_in};
use super::run::{Progress, RunError, watch};
use super::settings::read_text;
use crate::endpoint::Endpoint;
use crate::evaluate::target::{Asking, Reply, Target};
use crate::ledger::{Caps, Exhausted, Ledger, LedgerOptions, RetryPolicy, Spent};
use crate::optimize::TuneError;
use crate::text::Fault;

/// How models without an experiment are reached.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The most that all of them together may use.
    pub caps: Caps,
    /// The response cache; `None` keeps no answers.
    pub cache: Option<PathBuf>,
    /// Make no call: answer from the cache alone.
    pub offline: bool,
    /// Requests in flight at most, in place of what the files say.
    pub concurrency: Option<usize>,
    /// How long an endpoint may be unreachable; absent: the default.
    pub patience: Option<Duration>,
}

/// What targets answered.
#[derive(Clone, Debug)]
pub struct Asked {
    /// By target the name of its model and its replies, one per question.
    pub targets: Vec<(String, Vec<Reply>)>,
    /// What was used.
    pub spent: Spent,
    /// The cap that ended the asking.
    pub exhausted: Option<Exhausted>,
}

/// Reads a file that names one model: an endpoint's keys as they stand in `[judge]`, at the top or
/// in a section `[target]`, `[generator]` or `[judge]`.
///
/// # Errors
/// With the place: unreadable, not TOML, an unknown key, a key in the place of its variable's name.
pub fn load_endpoint(path: &Path) -> Result<EndpointConfig, ConfigError> {
    let text = read_text(path)?;
    let from_toml = |e: &toml::de::Error| Box::new(Fault::toml(path, &text, e));
    let mut table: toml::Table = toml::from_str(&text).map_err(|e| from_toml(&e))?;
    let section = ["target", "generator", "judge"]
        .iter()
        .find_map(|name| table.remove(*name));
    let endpoint = match section {
        Some(toml::Value::Table(section)) => section,
        Some(_) | None if table.contains_key("endpoint") => table,
        _ => {
            let what = "it names no model";
            let advice = "write endpoint = \"openai\", base_url and model into it";
            return Err(Box::new(Fault::new(path, &text, None, what, advice)).into());
        }
    };
    let endpoint: EndpointConfig = endpoint.try_into().map_err(|e| from_toml(&e))?;
    if let Some((what, advice)) = pasted_key(std::iter::once(&endpoint)) {
        // The text is not shown: it may hold a secret.
        return Err(Box::new(Fault::new(path, "", None, what, advice)).into());
    }
    Ok(endpoint)
}

impl Reach {
    /// Opens a model, or what stands in for it offline.
    ///
    /// # Errors
    /// A missing key, a base URL that is none.
    pub fn open(&self, config: &EndpointConfig) -> Result<Box<dyn Endpoint>, RunError> {
        Ok(match self.offline {
            true => stand_in(config, None)?,
            false => open_with(config, self.concurrency)?,
        })
    }

    /// A ledger without a folder: answers are kept in the cache.
    ///
    /// # Errors
    /// A cache that cannot be opened.
    pub fn ledger(&self) -> Result<Ledger, RunError> {
        Ok(Ledger::open(LedgerOptions {
            dir: None,
            cache: self.cache.clone(),
            caps: self.caps,
            retries: RetryPolicy::patient(self.patience),
            offline: self.offline,
            read_only: self.offline,
            ..LedgerOptions::default()
        })?)
    }
}

/// Asks every target every question. Caps hold over all targets together.
///
/// # Errors
/// [`RunError`]; what was answered is in the cache, and asking again goes on from there.
pub async fn ask_targets(
    targets: &[EndpointConfig],
    questions: &[&str],
    asking: &Asking,
    reach: &Reach,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Asked, RunError> {
    // All of them before the first call: a missing key spends nothing.
    let opened = targets
        .iter()
        .map(|t| reach.open(t))
        .collect::<Result<Vec<_>, _>>()?;
    let ledger = reach.ledger()?;
    let work = async {
        let mut out = Vec::with_capacity(opened.len());
        for endpoint in &opened {
            let target = Target {
                endpoint: endpoint.as_ref(),
                ledger: &ledger,
                asking,
                seed: None,
            };
            let replies = target.ask(questions, 0).await.map_err(TuneError::from)?;
            out.push((endpoint.identity().model.clone(), replies));
        }
        Ok(out)
    };
    let targets = watch(work, &ledger, show).await?;
    Ok(Asked {
        targets,
        spent: ledger.spent(),
        exhausted: ledger.exhausted(),
    })
}

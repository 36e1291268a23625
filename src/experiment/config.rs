//! The experiment file as written: TOML with defaults, `--set` overrides, and errors that name the
//! nearest known key and the line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::settings::{self, Settings};
use crate::endpoint::simulated::SimulatedConfig;
use crate::optimize::{SearchOptions, StopOptions};
use crate::text::{Fault, not_a_file_name};

/// An experiment file. Relative paths are relative to the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names the run folder.
    pub name: String,
    /// Seed of every random draw; above 9223372036854775807 it is written as text.
    #[serde(default, with = "super::values::seed")]
    pub seed: u64,
    /// What is judged, and the starting version.
    pub task: TaskConfig,
    /// Items and splits.
    pub data: DataConfig,
    /// The judge.
    pub judge: EndpointConfig,
    /// The model that writes edits; without it the loop makes the edits that need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<EndpointConfig>,
    /// Levers of the search.
    #[serde(default)]
    pub search: SearchOptions,
    /// The stop rule.
    #[serde(default)]
    pub stop: StopOptions,
    /// Hard caps.
    #[serde(default)]
    pub budget: BudgetConfig,
    /// The response cache; absent: the user's cache folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
}

/// `[task]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskConfig {
    /// Folder with `task.toml`, the templates and the seed file.
    pub folder: PathBuf,
    /// A reading of the task (`binary`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// The seed file in the folder.
    #[serde(default = "default_seed_file")]
    pub start: PathBuf,
}

fn default_seed_file() -> PathBuf {
    "seed.toml".into()
}

/// `[data]`: one file that is split here, or files that are split already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Items files; several are read one after the other.
    pub items: Vec<PathBuf>,
    /// Only these locales; absent: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locales: Vec<String>,
    /// How to split; absent: the items say `split` themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitConfig>,
}

/// `[data.split]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitConfig {
    /// Shares of tune, validation and test; or `per_locale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<[f64; 3]>,
    /// Items per locale for tune, validation and test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_locale: Option<[usize; 3]>,
    /// As many items of each majority label.
    #[serde(default)]
    pub balance: bool,
    /// Seed of the split alone; absent: the experiment's.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "super::values::seed::option"
    )]
    pub seed: Option<u64>,
}

/// `[judge]` or `[writer]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "endpoint", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EndpointConfig {
    /// Any OpenAI-compatible server.
    Openai {
        /// URL up to and including `/v1`.
        base_url: String,
        /// Model name as the server knows it.
        model: String,
        /// Environment variable that holds the key; absent: no key is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_env: Option<String>,
        /// Seconds for one call.
        #[serde(default = "default_timeout")]
        timeout_seconds: u64,
        /// Requests in flight at most.
        #[serde(default = "default_concurrency")]
        concurrency: usize,
        /// Requests per minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        requests_per_minute: Option<u32>,
        /// Tokens per minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens_per_minute: Option<u32>,
    },
    /// An embedded GGUF model (needs the feature `local`).
    Local {
        /// A known name (`smollm2-135m`) or a path to a GGUF file.
        model: String,
        /// Threads; absent: the machine's cores.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threads: Option<usize>,
        /// Tokens of the longest prompt.
        #[serde(default = "default_context")]
        context: u32,
        /// Waiting requests that are answered in a row on one evaluation of their prefix.
        #[serde(default = "default_batch")]
        batch: usize,
    },
    /// The deterministic judge with planted failure modes.
    Simulated(SimulatedConfig),
}

fn default_timeout() -> u64 {
    120
}
fn default_concurrency() -> usize {
    8
}
fn default_context() -> u32 {
    2048
}
fn default_batch() -> usize {
    16
}

/// `[budget]`: hard caps over the whole run, the reading of `test` included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetConfig {
    /// Calls, retries included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// Tokens read by models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Tokens written by models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Money, in the currency of the prices.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "super::values::amount::option"
    )]
    pub money: Option<f64>,
    /// model -> price of a million prompt and a million completion tokens.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "super::values::amount::prices"
    )]
    pub prices: BTreeMap<String, [f64; 2]>,
}

/// Why an experiment file is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No text, not TOML, an unknown key, a missing key, a value of the wrong kind, or one that
    /// must not stand in a file from elsewhere.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// A `--set` that is not `key=value`, or whose key is unknown.
    #[error("--set {given}: {message}")]
    Set {
        /// As given.
        given: String,
        /// What is wrong.
        message: String,
        /// What to write instead.
        help: Option<String>,
    },
}

impl Config {
    /// Reads a file and applies overrides such as `budget.calls=300`.
    ///
    /// # Errors
    /// [`ConfigError`] with the place and the nearest known key.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        settings::load(path, overrides)
    }

    /// The file with every default written out.
    pub fn resolved(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// 12 hex digits that change with any value.
    pub fn digest(&self) -> String {
        blake3::hash(self.resolved().as_bytes()).to_hex()[..12].to_owned()
    }
}

impl Settings for Config {
    fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    fn dangerous(&self) -> Option<(String, &'static str)> {
        if let Some(why) = not_a_file_name(&self.name) {
            let what = format!("the name `{}` becomes a folder, and {why}", self.name);
            return Some((what, "write a plain name, as in name = \"my-run\""));
        }
        let endpoints = [Some(&self.judge), self.writer.as_ref()];
        pasted_key(endpoints.into_iter().flatten())
    }
}

/// A key in the place of the variable that holds it, with what to write instead.
pub(super) fn pasted_key<'a>(
    mut endpoints: impl Iterator<Item = &'a EndpointConfig>,
) -> Option<(String, &'static str)> {
    let pasted = endpoints.any(|e| match e {
        EndpointConfig::Openai {
            key_env: Some(variable),
            ..
        } => !is_variable(variable),
        _ => false,
    });
    pasted.then(|| {
        let what = "key_env is no name of an environment variable; is it the key itself?";
        let advice = "put the key into a variable (export MY_KEY=...) and write its name, as in \
                      key_env = \"MY_KEY\"";
        (what.to_owned(), advice)
    })
}

/// Whether a text can name an environment variable (POSIX: letters, digits and `_`).
fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = "name = \"x\"\n[task]\nfolder = \"t\"\n[data]\nitems = [\"i.jsonl\"]\n[judge]\nendpoint = \"local\"\nmodel = \"smollm2-135m\"\n";

    fn load(text: &str, set: &[&str]) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.toml");
        std::fs::write(&path, text).unwrap();
        Config::load(
            &path,
            &set.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn an_unknown_key_names_the_nearest_one_and_its_place() {
        let text = format!("{MINIMAL}[budget]\ncals = 3\n");
        let Err(ConfigError::Fault(fault)) = load(&text, &[]) else {
            panic!("accepted")
        };
        assert_eq!(&text[fault.span.clone().unwrap()], "cals");
        assert!(fault.advice.contains("`calls`"), "{fault}");
        let Err(ConfigError::Set {
            given,
            help: Some(help),
            ..
        }) = load(MINIMAL, &["search.demo=3"])
        else {
            panic!("accepted")
        };
        assert_eq!(given, "search.demo=3");
        assert!(help.contains("`demos`"), "{help}");
    }

    #[test]
    fn overrides_and_the_digest() {
        let base = load(MINIMAL, &[]).unwrap();
        // TOML integers are signed 64-bit; the largest seed is text, quoted or not.
        for given in ["seed=18446744073709551615", "seed=\"18446744073709551615\""] {
            let largest = load(MINIMAL, &[given, "data.split.seed=0"]).unwrap();
            assert_eq!(largest.seed, u64::MAX);
            let again: Config = toml::from_str(&largest.resolved()).unwrap();
            assert_eq!(again, largest);
            assert_ne!(again.digest(), base.digest());
        }
        for bad in [
            "seed=-1",
            "seed=1.5",
            "seed=18446744073709551616",
            "seed=true",
        ] {
            let Err(ConfigError::Set { message, .. }) = load(MINIMAL, &[bad]) else {
                panic!("{bad} is accepted")
            };
            assert!(
                message.contains("from 0 to 18446744073709551615"),
                "{message}"
            );
        }
        for bad in [
            "budget.money=-1.0",
            "budget.money=nan",
            "budget.prices.m=[inf, 0.0]",
        ] {
            assert!(load(MINIMAL, &[bad]).is_err(), "{bad} is accepted");
        }
        let changed = load(MINIMAL, &["seed=5", "budget.calls=300"]).unwrap();
        assert_eq!((changed.seed, changed.budget.calls), (5, Some(300)));
        assert_ne!(base.digest(), changed.digest());
        assert_eq!(
            toml::from_str::<Config>(&changed.resolved()).unwrap(),
            changed
        );
    }
}

//! The file of an evaluation as written.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::config::pasted_key;
use super::super::settings::{self, Settings};
use super::super::{BudgetConfig, ConfigError, EndpointConfig};
use crate::evaluate::benchmark::{Columns, Labels, Language};
use crate::evaluate::target::Asking;
use crate::locale::Locale;
use crate::text::not_a_file_name;

/// An evaluation's file. Relative paths are relative to the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvaluationConfig {
    /// Names the run folder.
    pub name: String,
    /// Seed of the delimiter around item texts, and the sampling seed that is sent.
    #[serde(default, with = "super::super::values::seed")]
    pub seed: u64,
    /// Only the first so many prompts of each country; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Level of the intervals.
    #[serde(default = "default_level")]
    pub level: f64,
    /// The response cache; absent: the user's cache folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// What is judged, and with which version.
    pub task: JudgedBy,
    /// Files of prompts.
    #[serde(default)]
    pub prompts: Vec<PromptsConfig>,
    /// Models that are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetConfig>,
    /// Files of responses that exist already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<ResponsesConfig>,
    /// The model that judges; not needed where all responses have labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<EndpointConfig>,
    /// Hard caps over targets and judge together.
    #[serde(default)]
    pub budget: BudgetConfig,
}

fn default_level() -> f64 {
    0.95
}

/// `[task]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedBy {
    /// Folder with `task.toml` and the versions.
    pub folder: PathBuf,
    /// The version that judges: a seed file of the folder, a digest, a tag, or a version's folder.
    pub version: String,
}

/// `[[prompts]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptsConfig {
    /// CSV, TSV, JSONL, JSON or a spreadsheet.
    pub file: PathBuf,
    /// Whose prompts they are; absent: a column says it, or the name of the file's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<Locale>,
    /// In which language the prompts are taken.
    #[serde(default)]
    pub language: Language,
    /// What is read -> its column, where it has another name.
    #[serde(default, skip_serializing_if = "Columns::is_empty")]
    pub columns: Columns,
}

/// `[[targets]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// As reports name it.
    pub name: String,
    /// Where it answers.
    pub model: EndpointConfig,
    /// How it is asked.
    #[serde(default)]
    pub asking: Asking,
}

/// `[[responses]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponsesConfig {
    /// CSV, TSV, JSONL, JSON or a spreadsheet.
    pub file: PathBuf,
    /// Whose answers they are, where no column says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whose prompts they answer, where no column says it and there are several countries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<Locale>,
    /// What is read -> its column, where it has another name; a criterion's name maps its labels.
    #[serde(default, skip_serializing_if = "Columns::is_empty")]
    pub columns: Columns,
    /// criterion -> label -> spellings.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

impl EvaluationConfig {
    /// Reads a file and applies overrides such as `limit=3`.
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
}

impl Settings for EvaluationConfig {
    fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    fn dangerous(&self) -> Option<(String, &'static str)> {
        if let Some(why) = not_a_file_name(&self.name) {
            let what = format!("the name `{}` becomes a folder, and {why}", self.name);
            return Some((what, "write a plain name, as in name = \"my-evaluation\""));
        }
        pasted_key(self.targets.iter().map(|t| &t.model).chain(&self.judge))
    }
}

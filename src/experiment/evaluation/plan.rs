//! The config of an evaluation with everything it names read and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::config::EvaluationConfig;
use crate::data::{DataError, ItemRecord, check_record};
use crate::evaluate::benchmark::{
    Kind, Prompt, PromptFile, Response, ResponseFile, read_prompts, read_responses, share,
};
use crate::experiment::{ConfigError, PlanError};
use crate::locale::Locale;
use crate::registry::{Found, RegistryError, find};
use crate::text::{Fault, quoted};

/// A checked evaluation.
#[derive(Debug)]
pub struct EvaluationPlan {
    /// Which part of the benchmark.
    pub kind: Kind,
    /// As read, with overrides.
    pub config: EvaluationConfig,
    /// The version with its task.
    pub judge: Found,
    /// What targets are asked, in the order of the files.
    pub prompts: Vec<Prompt>,
    /// Responses that exist: model -> (place of the prompt, response), models in the order of the files.
    pub given: Vec<(String, Vec<(usize, Response)>)>,
    /// Digest of prompts and responses.
    pub data_digest: String,
}

/// Why an evaluation cannot be made as written.
#[derive(Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The file, the data.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The version.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl From<ConfigError> for EvaluationError {
    fn from(e: ConfigError) -> Self {
        Self::Plan(e.into())
    }
}

impl From<DataError> for EvaluationError {
    fn from(e: DataError) -> Self {
        Self::Plan(e.into())
    }
}

impl EvaluationPlan {
    /// Reads and checks everything that a config file names.
    ///
    /// # Errors
    /// [`EvaluationError`] naming the file and what to change; nothing was spent.
    pub fn load(kind: Kind, path: &Path, overrides: &[String]) -> Result<Self, EvaluationError> {
        let config = EvaluationConfig::load(path, overrides)?;
        let base = path.parent().unwrap_or(Path::new("."));
        let refuse = |what: String, advice: &str| -> EvaluationError {
            // The file was read a moment ago; should it be gone, only the place is not shown.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            PlanError::from(Box::new(Fault::naming(path, &text, what, advice))).into()
        };
        let judge = version(base, &config)?;
        if judge.task.name != kind.name() {
            let what = format!("the task `{}` is not `{}`", judge.task.name, kind.name());
            let advice = "name the folder of the task that belongs to the subcommand, as in \
                          judge-prompts/cultural for `pluralis evaluate cultural`";
            return Err(refuse(what, advice));
        }
        if !(config.level > 0.5 && config.level < 1.0) {
            let what = format!("level {} is not between 0.5 and 1", config.level);
            return Err(refuse(what, "write level = 0.95 for 95 % intervals"));
        }
        let mut prompts = read_all_prompts(kind, base, &config)?;
        if prompts.is_empty() {
            let advice = "add [[prompts]] with file = \"…/scenario_prompts.csv\"";
            return Err(refuse("there are no prompts".into(), advice));
        }
        share(&mut prompts);
        if let Some(limit) = config.limit {
            let mut left: BTreeMap<Locale, usize> = BTreeMap::new();
            prompts.retain(|p| {
                let n = left.entry(p.locale.clone()).or_default();
                *n += 1;
                *n <= limit
            });
        }
        let given = read_all_responses(base, &config, &judge, &prompts)?;
        let mut plan = Self {
            kind,
            config,
            judge,
            prompts,
            given,
            data_digest: String::new(),
        };
        if let Some((what, advice)) = plan.contradiction() {
            return Err(refuse(what, advice));
        }
        plan.check_fields()?;
        plan.data_digest = plan.digest();
        Ok(plan)
    }

    /// What in the file does not fit together.
    fn contradiction(&self) -> Option<(String, &'static str)> {
        let config = &self.config;
        if config.targets.is_empty() && self.given.is_empty() {
            let advice = "add [[targets]] to ask models, or [[responses]] with a file of responses";
            return Some(("nothing is evaluated".into(), advice));
        }
        let mut names = BTreeSet::new();
        let own = config.targets.iter().map(|t| &t.name);
        for name in own.chain(self.given.iter().map(|(model, _)| model)) {
            if name.trim().is_empty() || !names.insert(name) {
                let what = format!("the model name {} is empty or there twice", quoted(name));
                return Some((
                    what,
                    "every target and every model of a file has its own name",
                ));
            }
        }
        let unlabelled = self
            .given
            .iter()
            .any(|(_, of)| of.iter().any(|(_, r)| r.labels.is_none()));
        if config.judge.is_none() && (unlabelled || !config.targets.is_empty()) {
            let advice =
                "add [judge], or map the labels of the responses, as in columns = { R = \"…\" }";
            return Some(("responses without labels need a judge".into(), advice));
        }
        None
    }

    /// The texts must fit the task: the response field is added later.
    fn check_fields(&self) -> Result<(), EvaluationError> {
        for prompt in &self.prompts {
            self.item(prompt, "a response", "check").map_err(|e| {
                let what = format!("the prompt {}: {}", quoted(&prompt.id), e.what);
                DataError::new(what, e.advice)
            })?;
        }
        Ok(())
    }

    /// A prompt with a response as an item of the task.
    pub(super) fn item(
        &self,
        prompt: &Prompt,
        response: &str,
        id: &str,
    ) -> Result<crate::data::Item, DataError> {
        let mut fields = prompt.fields.clone();
        fields.insert("response".into(), response.to_owned());
        let record = ItemRecord {
            id: id.to_owned(),
            locale: prompt.locale.to_string(),
            fields,
            ..ItemRecord::default()
        };
        check_record(&self.judge.task, &record, 1)
    }

    /// The models in the order of reports.
    pub fn models(&self) -> Vec<&str> {
        let own = self.config.targets.iter().map(|t| t.name.as_str());
        own.chain(self.given.iter().map(|(m, _)| m.as_str()))
            .collect()
    }

    /// The text that a target is sent for a prompt.
    pub fn question<'a>(&self, prompt: &'a Prompt) -> &'a str {
        prompt
            .fields
            .get(self.kind.sent())
            .map_or("", String::as_str)
    }

    /// The config as it is kept in the run folder, with what it was applied to.
    pub(super) fn resolved(&self) -> String {
        format!(
            "{}\n# Not read: what the file was applied to.\n# kind = \"{}\"\n# data = \"{}\"\n# version = \"{}\"\n",
            self.config.resolved(),
            self.kind.name(),
            self.data_digest,
            self.judge.version.digest()
        )
    }

    /// 12 hex digits that change with the config, the data and the version.
    pub fn short(&self) -> String {
        blake3::hash(self.resolved().as_bytes()).to_hex()[..12].to_owned()
    }

    /// The folder that it runs in by default.
    pub fn default_folder(&self) -> PathBuf {
        PathBuf::from("runs").join(format!("{}-{}", self.config.name, self.short()))
    }

    fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut put = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        for prompt in &self.prompts {
            put(&serde_json::to_string(prompt).unwrap_or_default());
        }
        for (model, of) in &self.given {
            put(model);
            for (place, response) in of {
                put(&format!("{place} {:?}", response.labels));
                put(&response.text);
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// The version that judges: a seed file in the task's folder, or whatever the registry finds.
fn version(base: &Path, config: &EvaluationConfig) -> Result<Found, RegistryError> {
    let root = base.join(&config.task.folder);
    let spec = &config.task.version;
    for beside in [root.join(spec), base.join(spec)] {
        if beside.exists() {
            return find(&root, &beside.display().to_string(), None);
        }
    }
    find(&root, spec, None)
}

fn read_all_prompts(
    kind: Kind,
    base: &Path,
    config: &EvaluationConfig,
) -> Result<Vec<Prompt>, DataError> {
    let mut out: Vec<Prompt> = Vec::new();
    let mut seen = BTreeMap::new();
    for file in &config.prompts {
        let path = base.join(&file.file);
        let read = read_prompts(
            kind,
            &PromptFile {
                path: &path,
                locale: file.locale.as_ref(),
                language: file.language,
                columns: &file.columns,
            },
        )?;
        for prompt in read {
            let key = (prompt.locale.clone(), prompt.id.clone());
            if let Some(other) = seen.insert(key, path.clone()) {
                let what = format!(
                    "the prompt {} of {} is in {} too",
                    quoted(&prompt.id),
                    prompt.locale,
                    other.display()
                );
                let advice = "name each file once; `locale` tells countries apart";
                return Err(DataError::new(what, advice).in_file(path.display().to_string()));
            }
            out.push(prompt);
        }
    }
    Ok(out)
}

type GivenByModel = Vec<(String, Vec<(usize, Response)>)>;

fn read_all_responses(
    base: &Path,
    config: &EvaluationConfig,
    judge: &Found,
    prompts: &[Prompt],
) -> Result<GivenByModel, DataError> {
    let places: BTreeMap<(&Locale, &str), usize> = prompts
        .iter()
        .enumerate()
        .map(|(at, p)| ((&p.locale, p.id.as_str()), at))
        .collect();
    let locales: BTreeSet<&Locale> = prompts.iter().map(|p| &p.locale).collect();
    let only = locales.iter().next().filter(|_| locales.len() == 1);
    let mut out: GivenByModel = Vec::new();
    let mut taken = BTreeSet::new();
    for file in &config.responses {
        let path = base.join(&file.file);
        let read = read_responses(
            &judge.task,
            only.copied(),
            &ResponseFile {
                path: &path,
                model: file.model.as_deref(),
                locale: file.locale.as_ref(),
                columns: &file.columns,
                labels: &file.labels,
            },
        )?;
        let in_file = |e: DataError| e.in_file(path.display().to_string());
        for response in read {
            let Some(&at) = places.get(&(&response.locale, response.prompt.as_str())) else {
                if config.limit.is_some() {
                    continue;
                }
                let what = format!(
                    "the prompt {} of {} is not among the prompts",
                    quoted(&response.prompt),
                    response.locale
                );
                let advice = "check the ids and the locale, or add the file of its prompts";
                return Err(in_file(DataError::new(what, advice).at_row(response.row)));
            };
            let place = out.iter().position(|(m, _)| *m == response.model);
            let place = place.unwrap_or_else(|| {
                out.push((response.model.clone(), Vec::new()));
                out.len() - 1
            });
            if !taken.insert((place, at)) {
                let what = format!(
                    "{} has a response to {} in an earlier file",
                    quoted(&response.model),
                    quoted(&response.prompt)
                );
                let e = DataError::new(what, "keep one of them").at_row(response.row);
                return Err(in_file(e));
            }
            out[place].1.push((at, response));
        }
    }
    for (_, of) in &mut out {
        of.sort_by_key(|(at, _)| *at);
    }
    Ok(out)
}

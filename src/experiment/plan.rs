//! A config with everything it names read and checked: task, starting version, items, splits.

use std::path::Path;

use super::config::{Config, ConfigError};
use crate::data::{self, DataError, Item, Split, SplitPlan};
use crate::endpoint::Endpoint;
use crate::judge::Judge;
use crate::ledger::Ledger;
use crate::optimize::Threshold;
use crate::prompt::{Fence, RenderError, Renderer, SeedError, Version, load_seed};
use crate::task::{Task, TaskError, parse_task};
use crate::text::{Fault, decode, did_you_mean, quoted};

/// A checked experiment. Nothing behind it sees raw TOML.
#[derive(Debug)]
pub struct Plan {
    /// As read, with overrides.
    pub config: Config,
    /// What is judged.
    pub task: Task,
    /// The starting version.
    pub start: Version,
    /// All items, in the order of the files.
    pub items: Vec<Item>,
    /// Indices by split.
    pub tune: Vec<usize>,
    /// Indices by split.
    pub validation: Vec<usize>,
    /// Indices by split.
    pub test: Vec<usize>,
    /// Digest of the items that are used.
    pub data_digest: String,
    /// Delimiter around item text.
    pub fence: Fence,
}

/// Why an experiment cannot be run as written; nothing was spent.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The file itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The task file, or a template, with the place.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
    /// The starting version.
    #[error(transparent)]
    Seed(#[from] SeedError),
    /// The items.
    #[error(transparent)]
    Data(#[from] DataError),
}

impl Plan {
    /// The judge of this plan on an endpoint, with nothing held back.
    pub(super) fn judge<'a>(&'a self, endpoint: &'a dyn Endpoint, ledger: &'a Ledger) -> Judge<'a> {
        let seed = Some(self.config.seed);
        Judge::new(&self.task, endpoint, ledger, &self.fence, seed)
    }

    /// Reads and checks everything that a config file names.
    ///
    /// # Errors
    /// [`PlanError`] naming the file and what to change.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, PlanError> {
        Self::load_from(path, path.parent().unwrap_or(Path::new(".")), overrides)
    }

    /// The same with relative paths taken from another folder than the file's own.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_from(path: &Path, base: &Path, overrides: &[String]) -> Result<Self, PlanError> {
        Self::of(Config::load(path, overrides)?, path, base)
    }

    /// The same of a config that was read from `path`, or recorded there.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn of(config: Config, path: &Path, base: &Path) -> Result<Self, PlanError> {
        let refuse = |what: String, advice: &str| -> PlanError {
            // The file was read a moment ago; should it be gone, only the place is not shown.
            let text = std::fs::read_to_string(path).unwrap_or_default();
            Box::new(Fault::naming(path, &text, what, advice)).into()
        };
        let invalid = |what: String| refuse(what, "");
        let folder = base.join(&config.task.folder);
        let task = load_task(&folder, config.task.reading.as_deref())?;
        let start = load_seed(&task, &folder.join(&config.task.start))?;
        if config.data.items.is_empty() {
            return Err(invalid("[data] items names no file".into()));
        }
        if let Some((what, advice)) = config.search.amiss() {
            return Err(refuse(what, advice));
        }
        let mut items = Vec::new();
        for file in &config.data.items {
            items.extend(data::load_items(&task, &base.join(file))?);
        }
        if let Some(twice) = first_duplicate(&items) {
            let what = format!("the item id {} is in two of the items files", quoted(twice));
            return Err(refuse(
                what,
                "ids are unique in a run; rename or remove one",
            ));
        }
        if !config.data.locales.is_empty() {
            for wanted in &config.data.locales {
                if !items.iter().any(|i| i.locale.as_str() == wanted) {
                    let known: std::collections::BTreeSet<&str> =
                        items.iter().map(|i| i.locale.as_str()).collect();
                    let known: Vec<&str> = known.into_iter().collect();
                    let what = format!("[data] locales names `{wanted}`, and no item has it");
                    return Err(refuse(what, &did_you_mean(wanted, &known)));
                }
            }
            items.retain(|i| config.data.locales.iter().any(|l| l == i.locale.as_str()));
        }
        if let Some(split) = &config.data.split {
            let plan = SplitPlan {
                shares: split.shares.unwrap_or([0.4, 0.2, 0.4]),
                per_locale: split.per_locale,
                balance: split.balance,
                seed: split.seed.unwrap_or(config.seed),
            };
            data::split(&mut items, &task, &plan)?;
        }
        let of = |split: Split| -> Vec<usize> {
            (0..items.len())
                .filter(|&i| items[i].split == Some(split))
                .collect()
        };
        let (tune, validation, test) = (of(Split::Tune), of(Split::Validation), of(Split::Test));
        if tune.is_empty() || validation.is_empty() || test.is_empty() {
            return Err(invalid(format!(
                "the splits have {} tune, {} validation and {} test items; each needs some: add [data.split], or write `split` into the items",
                tune.len(),
                validation.len(),
                test.len()
            )));
        }
        let used: Vec<Item> = items
            .iter()
            .filter(|i| i.split.is_some())
            .cloned()
            .collect();
        if config.stop.threshold == Threshold::Human {
            let enough = |i: &&usize| items[**i].votes.iter().any(|v| v.total() >= 2);
            let n = validation.iter().filter(enough).count();
            if n < validation.len() {
                return Err(invalid(format!(
                    "[stop] threshold = \"human\" needs two votes on every validation item, and {} of {} have fewer; write a number instead",
                    validation.len() - n,
                    validation.len()
                )));
            }
        }
        let data_digest = data::digest(&used);
        let fence = Fence::draw(
            config.seed,
            items
                .iter()
                .flat_map(|i| i.fields.iter().map(String::as_str)),
        );
        let plan = Self {
            config,
            task,
            start,
            items,
            tune,
            validation,
            test,
            data_digest,
            fence,
        };
        plan.check_rendering(&folder.join(&plan.config.task.start))?;
        Ok(plan)
    }

    /// Every template must render for every item that will be judged, before a call is spent.
    fn check_rendering(&self, seed: &Path) -> Result<(), PlanError> {
        let fault = |e: &RenderError, of: &str| {
            let (template, source) = match e.template() {
                "prefix" => ("prefix", &self.start.skeleton.prefix),
                other => (other, &self.start.skeleton.item),
            };
            let file = format!("{}.{template}.tera", self.start.skeleton.name);
            let what = format!("{}{of}", e.what());
            let path = seed.with_file_name(file);
            Box::new(Fault::new(&path, source, e.place(source), what, e.advice()))
        };
        let renderer =
            Renderer::new(&self.task, &self.start, &self.fence).map_err(|e| fault(&e, ""))?;
        for &i in self.tune.iter().chain(&self.validation).chain(&self.test) {
            for c in (0..self.task.criteria.len()).map(Some).chain([None]) {
                renderer.prompt(&self.items[i], c).map_err(|e| {
                    fault(
                        &e,
                        &format!(" (for the item {})", quoted(&self.items[i].id)),
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Calls that one reading of a split takes with a version.
    pub fn calls_for(&self, split: &[usize], version: &Version) -> u64 {
        let parts = match version.answer {
            crate::prompt::AnswerFormat::Json => 1,
            _ => self.task.criteria.len(),
        };
        (split.len() * parts) as u64
    }
}

/// Reads `task.toml` of a task folder.
///
/// # Errors
/// [`PlanError::Fault`] with the place, or an unreadable file.
pub fn load_task(folder: &Path, reading: Option<&str>) -> Result<Task, PlanError> {
    let path = folder.join("task.toml");
    let bytes = std::fs::read(&path).map_err(|source| ConfigError::Io {
        path: path.clone(),
        source,
    })?;
    let text = decode(&path, bytes).map_err(Box::new)?;
    parse_task(&text, reading).map_err(|e| {
        let fault = match e {
            TaskError::Toml(e) => Fault::toml(&path, &text, &e),
            TaskError::Invalid { .. } => Fault::naming(&path, &text, e.to_string(), ""),
        };
        Box::new(fault).into()
    })
}

fn first_duplicate(items: &[Item]) -> Option<&str> {
    let mut seen = std::collections::HashSet::new();
    items
        .iter()
        .map(|i| i.id.as_str())
        .find(|id| !seen.insert(*id))
}

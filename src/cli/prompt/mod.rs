//! `pluralis prompt`: versions of prompts in git.

mod cite;
mod keep;
mod look;
mod render;
mod verify;

use std::path::{Path, PathBuf};

use super::Failure;
use crate::data::{self, Item};
use crate::experiment::Plan;
use crate::locale::Locale;
use crate::prompt::Fence;
use crate::registry::export::Subject;
use crate::registry::{Found, Registry, find};

pub(super) use keep::{registered, tidy};
pub(super) use look::{figure, percent};

/// Arguments of `prompt`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(subcommand)]
    command: Command,
}

/// Which registry a command uses.
#[derive(clap::Args, Clone)]
pub struct RegistryArgs {
    /// Folder of tasks, or of one task [default: judge-prompts here or in a folder above]
    #[arg(long = "registry", value_name = "DIR", global = true)]
    folder: Option<PathBuf>,
    /// A reading of the task, where VERSION is a seed file
    #[arg(long, global = true)]
    reading: Option<String>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the versions with their tags and figures
    List {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a version: its texts, its origin, its figures
    Show {
        /// A digest (4 digits or more), a tag, a folder or a seed file; TASK:NAME where two tasks have it
        version: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what differs between two versions
    Diff {
        /// The first
        a: String,
        /// The second
        b: String,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what was made of what, with the gain of each edit
    Log {
        /// Only what leads to this version
        version: Option<String>,
    },
    /// Make a name point to a version, or list the names; a name remembers where it pointed
    Tag {
        /// The name, as in es-MX/production; without one the tags are listed
        name: Option<String>,
        /// The version; without one the history of the name is shown
        #[arg(requires = "name")]
        version: Option<String>,
        /// Why it moves
        #[arg(long, requires = "version")]
        note: Option<String>,
    },
    /// Print the exact bytes that a model sees
    Render(render::Args),
    /// Write a version in the form of another tool
    Export(render::ExportArgs),
    /// Take in a finished run, a version's folder from elsewhere, or a seed file
    Import {
        /// What to take in
        path: PathBuf,
    },
    /// Recompute digests, render every item, and compare figures with a cache
    Verify(verify::Args),
    /// Print what a paper's appendix needs: prompt, data, model, figures, BibTeX
    Cite(cite::Args),
    /// List the versions that no tag leads to, or remove them
    Gc {
        /// Remove them
        #[arg(long)]
        delete: bool,
    },
}

/// Runs a subcommand.
pub fn run(args: &Args) -> Result<(), Failure> {
    let registry = &args.registry;
    match &args.command {
        Command::List { json } => look::list(registry, *json),
        Command::Show { version, json } => look::show(registry, version, *json),
        Command::Diff { a, b, json } => look::diff(registry, a, b, *json),
        Command::Log { version } => look::log(registry, version.as_deref()),
        Command::Tag {
            name,
            version,
            note,
        } => keep::tag(
            registry,
            name.as_deref(),
            version.as_deref(),
            note.as_deref(),
        ),
        Command::Render(args) => render::render(registry, args),
        Command::Export(args) => render::export(registry, args),
        Command::Import { path } => keep::import(registry, path),
        Command::Verify(args) => verify::run(registry, args),
        Command::Cite(args) => cite::run(registry, args),
        Command::Gc { delete } => keep::gc(registry, *delete),
    }
}

impl RegistryArgs {
    /// The folder of tasks.
    pub fn root(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.folder {
            return match folder.is_dir() {
                true => Ok(folder.clone()),
                false => Err(Failure::input(format!(
                    "there is no folder {}",
                    folder.display()
                ))),
            };
        }
        let here = std::env::current_dir().unwrap_or_default();
        for (up, folder) in here.ancestors().enumerate() {
            if folder.join("judge-prompts").is_dir() {
                let way: PathBuf = std::iter::repeat_n("..", up).collect();
                return Ok(way.join("judge-prompts"));
            }
        }
        Err(Failure::input_help(
            "there is no folder judge-prompts here or above",
            Some("name the folder of tasks, or one task's folder, with --registry".into()),
        ))
    }

    /// The folder that was named.
    pub fn given(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The reading that was named.
    pub fn reading(&self) -> Option<&str> {
        self.reading.as_deref()
    }

    /// The registries of all tasks.
    pub fn all(&self) -> Result<Vec<Registry>, Failure> {
        Ok(Registry::all(&self.root()?)?)
    }

    /// A version by name. A folder or a file needs no registry around it, if its task lies beside it.
    pub fn find(&self, version: &str) -> Result<Found, Failure> {
        let root = match self.root() {
            Ok(root) => root,
            Err(_) if self.folder.is_none() && Path::new(version).exists() => Path::new(version)
                .parent()
                .unwrap_or(Path::new("."))
                .to_owned(),
            Err(e) => return Err(e),
        };
        Ok(find(&root, version, self.reading.as_deref())?)
    }
}

/// Where items come from.
#[derive(clap::Args)]
struct ItemArgs {
    /// The experiment file whose items are meant: its prompts are those of its runs, byte for byte
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// An items file
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    items: Option<PathBuf>,
    /// Seed of the delimiter around item texts, for --items: that of the experiment
    #[arg(long, value_name = "N", default_value_t = 0)]
    fence_seed: u64,
}

impl ItemArgs {
    /// The items with their delimiter; `None` where neither file is named.
    fn load(&self, found: &Found) -> Result<Option<(Vec<Item>, Fence)>, Failure> {
        if let Some(config) = &self.config {
            let plan = Plan::load(config, &[])?;
            same_task(found, &plan)?;
            return Ok(Some((plan.items, plan.fence)));
        }
        let Some(file) = &self.items else {
            return Ok(None);
        };
        let items = data::load_items(&found.task, file)?;
        let texts = items
            .iter()
            .flat_map(|i| i.fields.iter().map(String::as_str));
        let fence = Fence::draw(self.fence_seed, texts);
        Ok(Some((items, fence)))
    }
}

/// Refuses to judge items of one task with a version of another.
pub(super) fn same_task(found: &Found, plan: &Plan) -> Result<(), Failure> {
    let (own, other) = (&found.version.task_digest, &plan.start.task_digest);
    if own == other {
        return Ok(());
    }
    let named = |name: &str, reading: &Option<String>| match reading {
        Some(reading) => format!("{name}, reading {reading}"),
        None => name.to_owned(),
    };
    let help = match (&found.version.reading, found.version.task == plan.task.name) {
        (Some(reading), true) if plan.task.reading.as_ref() != Some(reading) => {
            format!("add --set task.reading={reading}, or write it into [task]")
        }
        _ => "a version judges what it was made for; check out the task as it was then".into(),
    };
    Err(Failure::input_help(
        format!(
            "version {} was made for the task {} (definition {own}), and the experiment has {} (definition {other})",
            found.version.short(),
            named(&found.version.task, &found.version.reading),
            named(&plan.task.name, &plan.task.reading),
        ),
        Some(help),
    ))
}

/// The locales to show a version for: those asked for, else those that it speaks of.
fn locales(found: &Found, asked: &[Locale]) -> Vec<Locale> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let measured = found
        .evidence
        .measured
        .iter()
        .flat_map(|m| m.splits.values());
    let tags = measured.flat_map(|s| s.locales.keys());
    Subject::locales_of(
        &found.version,
        tags.filter_map(|tag| Locale::parse(tag).ok()),
    )
}

//! `pluralis prompt render | export`.

use std::path::PathBuf;

use super::{ItemArgs, RegistryArgs, locales};
use crate::cli::{Failure, out};
use crate::locale::Locale;
use crate::prompt::{AnswerFormat, PromptText, Renderer, Style};
use crate::registry::export::{Subject, forms};
use crate::text::did_you_mean;

/// Arguments of `render`.
#[derive(clap::Args)]
pub struct Args {
    /// The version
    version: String,
    /// Id of the item
    #[arg(long, value_name = "ID")]
    item: String,
    #[command(flatten)]
    from: ItemArgs,
    /// The criterion that is asked for, where each is asked by itself
    #[arg(long)]
    criterion: Option<String>,
    /// Only the part that items share (the system message), or only the item (the user message)
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Print both parts as JSON
    #[arg(long, conflicts_with = "part")]
    json: bool,
}

/// `--part`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Part {
    /// Instructions and demos.
    Prefix,
    /// The item.
    Suffix,
}

pub fn render(registry: &RegistryArgs, args: &Args) -> Result<(), Failure> {
    let found = registry.find(&args.version)?;
    let Some((items, fence)) = args.from.load(&found)? else {
        let help = "add --config EXPERIMENT.toml, or --items FILE";
        return Err(Failure::input_help("no items are named", Some(help.into())));
    };
    let Some(item) = items.iter().find(|i| i.id == args.item) else {
        let known: Vec<&str> = items.iter().map(|i| i.id.as_str()).collect();
        let near = crate::text::nearest(&args.item, known);
        let help = near.map(|n| format!("did you mean `{n}`?"));
        return Err(Failure::input_help(
            format!("there is no item `{}`", args.item),
            help,
        ));
    };
    let names: Vec<&str> = found
        .task
        .criteria
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    let criterion = match (&args.criterion, found.version.answer) {
        (Some(name), _) => Some(found.task.criterion_index(name).ok_or_else(|| {
            let help = did_you_mean(name, &names);
            Failure::input_help(format!("there is no criterion `{name}`"), Some(help))
        })?),
        (None, AnswerFormat::Json) => None,
        (None, _) if names.len() == 1 => Some(0),
        (None, _) => {
            let help = format!("add --criterion, one of {}", names.join(", "));
            return Err(Failure::input_help(
                "each criterion is asked by itself",
                Some(help),
            ));
        }
    };
    let bad = |e: crate::prompt::RenderError| Failure::input(e.to_string());
    let renderer = Renderer::new(&found.task, &found.version, &fence).map_err(bad)?;
    let prompt = renderer.prompt(item, criterion).map_err(bad)?;
    match (args.part, args.json) {
        (Some(Part::Prefix), _) => out::exactly(&prompt.prefix),
        (Some(Part::Suffix), _) => out::exactly(&prompt.suffix),
        (None, true) => {
            let json = serde_json::to_string_pretty(&prompt);
            out::text(&(json.map_err(|e| Failure::machine(e.to_string()))? + "\n"))
        }
        (None, false) => out::exactly(&shown(&prompt)),
    }
}

/// A completion as it is; a chat with a line above each message.
fn shown(prompt: &PromptText) -> String {
    match prompt.style {
        Style::Completion => format!("{}{}", prompt.prefix, prompt.suffix),
        Style::Chat => format!(
            "=== system\n{}\n=== user\n{}\n",
            prompt.prefix, prompt.suffix
        ),
    }
}

/// Arguments of `export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// The version
    version: String,
    /// text, messages-json, tera, python, promptfoo or dspy
    #[arg(long, value_name = "FORM")]
    to: String,
    /// For this locale (repeatable) [default: those that the version was measured in or speaks of]
    #[arg(long)]
    locale: Vec<Locale>,
    /// Seed of the delimiter around item texts: that of the experiment
    #[arg(long, value_name = "N", default_value_t = 0)]
    fence_seed: u64,
    /// Where to write it [default: standard output]
    #[arg(long, short)]
    out: Option<PathBuf>,
}

pub fn export(registry: &RegistryArgs, args: &ExportArgs) -> Result<(), Failure> {
    let forms = forms();
    let Some(form) = forms.iter().find(|f| f.name() == args.to) else {
        let names: Vec<&str> = forms.iter().map(|f| f.name()).collect();
        let mut help = did_you_mean(&args.to, &names);
        forms
            .iter()
            .for_each(|f| help += &format!("\n{}: {}", f.name(), f.about()));
        return Err(Failure::input_help(
            format!("there is no form `{}`", args.to),
            Some(help),
        ));
    };
    let found = registry.find(&args.version)?;
    let text = form.write(&Subject {
        task: &found.task,
        version: &found.version,
        locales: locales(&found, &args.locale),
        fence_seed: args.fence_seed,
    })?;
    match &args.out {
        None => out::exactly(&text),
        Some(path) => {
            std::fs::write(path, text)
                .map_err(|e| Failure::machine(format!("{}: {e}", path.display())))?;
            out::line(&format!(
                "{} written to {}",
                found.version.short(),
                path.display()
            ))
        }
    }
}

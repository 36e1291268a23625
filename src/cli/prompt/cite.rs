//! `pluralis prompt cite`: what a paper's appendix needs, as Markdown.

use std::fmt::Write as _;

use super::{RegistryArgs, figure, locales};
use crate::cli::{Failure, out};
use crate::experiment::RunRecord;
use crate::locale::Locale;
use crate::registry::export::{Subject, forms};
use crate::registry::{Found, Measured};

/// Longest settings of an endpoint that are printed; its fingerprint stands for longer ones.
const SETTINGS: usize = 400;

/// Arguments of `cite`.
#[derive(clap::Args)]
pub struct Args {
    /// The version
    version: String,
    /// Print the prompt for this locale (repeatable) [default: the first that it was measured in]
    #[arg(long)]
    locale: Vec<Locale>,
}

pub fn run(registry: &RegistryArgs, args: &Args) -> Result<(), Failure> {
    let found = registry.find(&args.version)?;
    let v = &found.version;
    let reading = v
        .reading
        .as_ref()
        .map_or(String::new(), |r| format!(" ({r})"));
    let mut text = format!(
        "# Judge prompt {}{reading}, version {}\n\n",
        v.task,
        v.short()
    );
    let _ = writeln!(text, "- digest: `{}` (blake3)", v.digest());
    let _ = writeln!(
        text,
        "- task definition: `{}`; {}",
        v.task_digest, found.task.source
    );
    if !found.lineage.run.is_empty() {
        let _ = writeln!(text, "- made by the run `{}`", found.lineage.run);
    }
    if let Some(dir) = &found.dir
        && let Some(record) = RunRecord::read(dir)?
    {
        let _ = writeln!(
            text,
            "- with pluralis {}, seed {}, data `{}`",
            record.program, record.config.seed, record.data
        );
    }
    let all = locales(&found, &args.locale);
    let shown = match args.locale.is_empty() {
        true => all.into_iter().take(1).collect(),
        false => all,
    };
    text += &prompts(&found, shown)?;
    for m in &found.evidence.measured {
        text += &figures(m);
    }
    if found.evidence.measured.is_empty() {
        text += "\nNothing was measured with this version.\n";
    }
    let _ = write!(
        text,
        "\n## References\n\nThe sources of the task. Items from elsewhere need an entry of their own.\n\n```bibtex\n{}```\n",
        references(&found)
    );
    out::text(&text)
}

/// The prompt as `export --to text` prints it, in a block that it cannot close.
fn prompts(found: &Found, locales: Vec<Locale>) -> Result<String, Failure> {
    let mut out = String::new();
    if let Some(count) = found.version.nearest {
        let _ = write!(
            out,
            "\nOf the examples below, an item is shown the {count} nearest to it by character n-grams.\n"
        );
    }
    for locale in locales {
        let title = locale.display_name();
        let text = forms()[0].write(&Subject {
            task: &found.task,
            version: &found.version,
            locales: vec![locale],
            fence_seed: 0,
        })?;
        let mut fence = "```".to_owned();
        while text.contains(&fence) {
            fence.push('`');
        }
        let _ = write!(
            out,
            "\n## Prompt for {title}\n\n{fence}text\n{text}{fence}\n"
        );
    }
    Ok(out)
}

fn figures(m: &Measured) -> String {
    let date = m
        .date
        .as_deref()
        .map_or(String::new(), |d| format!(", {}", d.get(..10).unwrap_or(d)));
    let mut out = format!(
        "\n## Disagreement with people, {} {}{date}\n\n",
        m.judge.kind, m.judge.model
    );
    let _ = write!(out, "Judge fingerprint `{}`", m.fingerprint);
    if m.judge.settings.len() <= SETTINGS && !m.judge.settings.is_empty() {
        let _ = write!(out, " (`{}`)", m.judge.settings);
    }
    let measure = serde_json::to_value(m.measure).unwrap_or_default();
    let _ = writeln!(
        out,
        "; data `{}`; experiment `{}`; measure `{}`; {:.0} % intervals.\n",
        m.data,
        m.experiment,
        measure.as_str().unwrap_or_default(),
        100.0 * m.level
    );
    out += "| split | locale | n | disagreement | a held-out rater |\n|---|---|---|---|---|\n";
    for (name, s) in &m.splits {
        let people = s.people.as_ref();
        let people = people.map_or("–".into(), |p| figure(p.disagreement, p.low.zip(p.high)));
        let overall = figure(s.disagreement, s.low.zip(s.high));
        let _ = writeln!(out, "| {name} | all | {} | {overall} | {people} |", s.n);
        for (locale, f) in &s.locales {
            let own = figure(f.disagreement, f.low.zip(f.high));
            let _ = writeln!(out, "| {name} | {locale} | {} | {own} | |", f.n);
        }
        let failed: usize = s.failures.values().sum();
        if failed > 0 {
            let _ = writeln!(
                out,
                "| {name} | failed verdicts, counted in full | {failed} | | |"
            );
        }
    }
    out
}

/// The data sets, from the task's `sources.bib`, and the version itself.
fn references(found: &Found) -> String {
    let v = &found.version;
    let mut out = match std::fs::read_to_string(found.task_folder.join("sources.bib")) {
        Ok(text) => text.trim_end().to_owned() + "\n\n",
        // A task without the file has its source in words.
        Err(_) if found.task.source.is_empty() => String::new(),
        Err(_) => format!(
            "@misc{{{}-data,\n  note = {{{}}}\n}}\n\n",
            v.task, found.task.source
        ),
    };
    let year = found
        .evidence
        .measured
        .iter()
        .find_map(|m| m.date.as_deref()?.get(..4));
    let year = year.map_or(String::new(), |y| format!("\n  year = {{{y}}},"));
    let _ = write!(
        out,
        "@misc{{{}-{},\n  title = {{Judge prompt {}, version {}}},{year}\n  note = {{blake3 {}, in judge-prompts/{}/versions/{}}}\n}}\n",
        v.task,
        v.short(),
        v.task,
        v.short(),
        v.digest(),
        v.task,
        v.short()
    );
    out
}

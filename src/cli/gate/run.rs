//! `pluralis gate run`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::asking::{ReachArgs, asking};
use super::super::progress::Display;
use super::super::prompt::RegistryArgs;
use super::super::{Failure, block_on, lines, out};
use crate::data::{DataError, ItemRecord, check_record, read_records, read_table};
use crate::evaluate::gate::{Candidate, Outcome, Rule, Slot, Template, name_of, slots_of};
use crate::experiment::{GatePlan, load_endpoint, run_gate};
use crate::locale::Locale;
use crate::registry::find;
use crate::report;
use crate::task::Task;
use crate::text::decode;

/// Arguments of `gate run`.
#[derive(clap::Args)]
#[command(after_help = "\
A file of a model holds an endpoint's keys as [judge] of an experiment does.

Examples:
  pluralis gate run scenarios.jsonl --version judge-prompts/scenario-quality/seed-chat.toml \\
    --judge judge.toml --keep 5 --out kept.jsonl
  pluralis gate run --slots slots.csv --by locale,subcategory --version … --judge judge.toml \\
    --generator writer.toml --template scenarios.tera --rounds 3 --keep 5 --at-least 4 --out kept.jsonl")]
pub struct Args {
    /// Candidates, as items in JSON lines; `-` is standard input
    #[arg(required_unless_present = "slots")]
    candidates: Option<PathBuf>,
    /// The judge's version: a digest, a tag, a folder or a seed file; its task says what is scored
    #[arg(long)]
    version: String,
    /// The judge: a TOML file with an endpoint's keys
    #[arg(long, value_name = "FILE")]
    judge: PathBuf,
    /// What names a slot: `locale`, or keys of the candidates' meta
    #[arg(
        long,
        value_name = "KEY,…",
        value_delimiter = ',',
        default_value = "subcategory"
    )]
    by: Vec<String>,
    /// A table of the slots to fill: the columns of --by, `locale`, and whatever the template reads
    #[arg(long, value_name = "FILE")]
    slots: Option<PathBuf>,
    /// Candidates kept of each slot
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Least mean score of a kept candidate
    #[arg(long, value_name = "SCORE")]
    at_least: Option<f64>,
    /// A model that makes candidates for slots that are not full: a TOML file
    #[arg(long, value_name = "FILE", requires = "template")]
    generator: Option<PathBuf>,
    /// The generator's prompt: a Tera file (docs/gate.md says what it may read)
    #[arg(long, value_name = "FILE", requires = "generator")]
    template: Option<PathBuf>,
    /// Rounds of generation at most
    #[arg(long, value_name = "N", default_value_t = 3, requires = "generator")]
    rounds: u32,
    /// Candidates asked for beyond those that are missing
    #[arg(long, value_name = "N", default_value_t = 2)]
    spare: u32,
    /// Sampling temperature of the generator
    #[arg(long, default_value_t = 0.7)]
    temperature: f32,
    /// Tokens of a generator's answer at most
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Where to write the kept candidates, best of each slot first
    #[arg(long, short)]
    out: PathBuf,
    /// Where to write every candidate with its scores
    #[arg(long, value_name = "FILE")]
    all: Option<PathBuf>,
    /// Seed of the delimiter around candidates, and of the generator where it takes one
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    reach: ReachArgs,
    /// Print the result of each slot as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let asking = asking(args.max_tokens, args.temperature)?;
    // A version that is a path needs no registry.
    let root = match args.registry.given().is_none() && Path::new(&args.version).exists() {
        true => PathBuf::from("."),
        false => args.registry.root()?,
    };
    let found = find(&root, &args.version, args.registry.reading())?;
    let task = &found.task;
    valued(task)?;
    let records = match &args.candidates {
        Some(path) => read_candidates(path, task)?,
        None => Vec::new(),
    };
    let file = args
        .candidates
        .as_ref()
        .map_or(String::new(), |p| p.display().to_string());
    let slots = match &args.slots {
        Some(path) => read_slots(path, &args.by)?,
        None => slots_of(&records, &args.by).map_err(|e| e.in_file(&file))?,
    };
    let generator = match (&args.generator, &args.template) {
        (Some(model), Some(template)) => {
            Some((load_endpoint(model)?, read_template(template)?, asking))
        }
        _ => None,
    };
    let plan = GatePlan {
        task,
        version: &found.version,
        judge: load_endpoint(&args.judge)?,
        generator,
        spare: args.spare as usize,
        given: placed(records, &slots, &args.by, &file)?,
        slots,
        rule: Rule {
            by: args.by.clone(),
            keep: args.keep as usize,
            at_least: args.at_least,
            rounds: args.rounds,
        },
        seed: args.seed,
    };
    let display = Display::new(args.reach.calls);
    let reach = args.reach.reach();
    let done = block_on(run_gate(plan, &reach, &|update| display.show(update)));
    display.finish();
    let again = "run the same command again: what was answered is in the cache";
    let (outcome, spent) = done?.map_err(|e| Failure::of_run(&e, again))?;
    let outcome = outcome.map_err(|e| Failure::input(e.to_string()))?;
    write(args, task, &outcome)?;
    match args.json {
        true => out::value(&outcome.slots)?,
        false => out::text(&report::gate_text(&outcome, args.keep as usize))?,
    }
    out::note(&format!(
        "{} calls, {} answers from the cache, {} rounds of generation",
        spent.calls, spent.cached, outcome.rounds
    ));
    let unpaid: usize = outcome.slots.iter().map(|s| s.unpaid).sum();
    if unpaid > 0 {
        return Err(Failure::input_help(
            format!(
                "the caps left {unpaid} candidates unjudged, so what is kept may not be the best"
            ),
            Some(
                "raise the cap and run the same command again: what was answered is in the cache"
                    .into(),
            ),
        ));
    }
    Ok(())
}

/// Scores need labels with values.
fn valued(task: &Task) -> Result<(), Failure> {
    let lacks = task
        .criteria
        .iter()
        .find(|c| c.labels.iter().any(|l| l.value.is_none() && !l.abstain));
    match lacks {
        None => Ok(()),
        Some(c) => Err(Failure::input_help(
            format!(
                "criterion `{}` of the task {} has labels without a value, so it gives no score",
                c.name, task.name
            ),
            Some("a gate needs ordinal or binary criteria".into()),
        )),
    }
}

fn read_candidates(path: &Path, task: &Task) -> Result<Vec<(usize, ItemRecord)>, Failure> {
    let records = read_records(path)?;
    let file = path.display().to_string();
    let mut seen = BTreeMap::new();
    for (line, record) in &records {
        check_record(task, record, *line).map_err(|e| e.in_file(&file))?;
        if let Some(first) = seen.insert(record.id.clone(), *line) {
            let what = format!("the id `{}` is that of line {first}", record.id);
            return Err(DataError::new(what, "give each candidate an id of its own")
                .in_file(&file)
                .at_row(*line)
                .into());
        }
    }
    Ok(records)
}

fn read_slots(path: &Path, by: &[String]) -> Result<Vec<Slot>, Failure> {
    let mut wanted: Vec<&str> = by.iter().map(String::as_str).collect();
    wanted.push("locale");
    let table = read_table(path, &wanted)?;
    let mut slots: Vec<Slot> = Vec::new();
    for row in &table.rows {
        let values: BTreeMap<String, String> = table
            .header
            .iter()
            .cloned()
            .zip(row.cells.iter().map(|c| c.trim().to_owned()))
            .collect();
        let refuse = |what: String, advice: &str| {
            Failure::from(
                DataError::new(what, advice)
                    .in_file(&table.file)
                    .at_row(row.number),
            )
        };
        let cell = |name: &str| table.column(name).map(|i| row.cells[i].trim().to_owned());
        let locale = Locale::parse(&cell("locale")?)
            .map_err(|e| refuse(e.to_string(), "write a tag such as es-MX"))?;
        let mut name = Vec::new();
        for key in by {
            name.push(match key.as_str() {
                "locale" => locale.to_string(),
                key => cell(key)?,
            });
        }
        if slots.iter().any(|s| s.name == name) {
            return Err(refuse(
                format!("the slot {} occurs twice", name.join(" / ")),
                "keep one of them",
            ));
        }
        slots.push(Slot {
            name,
            locale: locale.to_string(),
            values,
        });
    }
    Ok(slots)
}

fn read_template(path: &Path) -> Result<Template, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::input(format!("cannot read {}: {e}", path.display())))?;
    let text = decode(path, bytes).map_err(|f| Failure::from(Box::new(f)))?;
    Ok(Template::parse(path, &text)?)
}

/// Candidates with the slots that they name.
fn placed(
    records: Vec<(usize, ItemRecord)>,
    slots: &[Slot],
    by: &[String],
    file: &str,
) -> Result<Vec<(usize, ItemRecord)>, Failure> {
    let mut out = Vec::with_capacity(records.len());
    for (line, record) in records {
        let at = |e: DataError| Failure::from(e.in_file(file).at_row(line));
        let name = name_of(&record, by).map_err(at)?;
        let slot = slots.iter().position(|s| s.name == name).ok_or_else(|| {
            let what = format!(
                "candidate `{}` belongs to {}, which is no slot",
                record.id,
                name.join(" / ")
            );
            at(DataError::new(
                what,
                "add it to --slots, or leave the candidate out",
            ))
        })?;
        out.push((slot, record));
    }
    Ok(out)
}

fn write(args: &Args, task: &Task, outcome: &Outcome) -> Result<(), Failure> {
    let scored = |c: &Candidate| {
        let mut record = c.record.clone();
        for (criterion, score) in task.criteria.iter().zip(&c.scores) {
            let text = score.map_or("failed".to_owned(), |s| format!("{s:.3}"));
            record
                .meta
                .insert(format!("score.{}", criterion.name), text);
        }
        if let Some(mean) = c.mean() {
            record.meta.insert("score".into(), format!("{mean:.3}"));
        }
        record.meta.insert("round".into(), c.round.to_string());
        record
    };
    if let Some(path) = &args.all {
        let all: Vec<ItemRecord> = outcome.candidates.iter().map(scored).collect();
        lines::write(path, &all)?;
    }
    let kept: Vec<ItemRecord> = outcome
        .kept
        .iter()
        .map(|k| {
            let mut record = scored(&outcome.candidates[k.candidate]);
            record.meta.insert("rank".into(), k.rank.to_string());
            record
        })
        .collect();
    lines::write(&args.out, &kept)
}

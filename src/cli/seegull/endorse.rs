//! `pluralis seegull endorse`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::super::asking::{ReachArgs, asking};
use super::super::progress::Display;
use super::super::{Failure, block_on, lines, out};
use crate::data::{DataError, read_table};
use crate::evaluate::seegull::endorse::{Scored, endorsement, score};
use crate::evaluate::seegull::questions::{Question, read};
use crate::evaluate::target::{Asking, Reply};
use crate::experiment::{ask_targets, load_endpoint};
use crate::report;
use crate::text::{did_you_mean, quoted};

/// Arguments of `endorse`.
#[derive(clap::Args)]
#[command(after_help = "\
A model's file holds an endpoint as [judge] of an experiment does:
  endpoint = \"openai\"
  base_url = \"http://127.0.0.1:8080/v1\"
  model = \"NAME\"
  key_env = \"MY_KEY\"    # the variable's name; the key itself is never written anywhere

Examples:
  pluralis seegull endorse questions.jsonl --model small.toml --model large.toml --calls 2000
  pluralis seegull endorse questions.jsonl --responses answers.csv")]
pub struct Args {
    /// The questions, as `pluralis seegull questions` writes them; `-` is standard input
    questions: PathBuf,
    /// A model that is asked: a TOML file with an endpoint's keys (repeatable)
    #[arg(long, value_name = "FILE", required_unless_present = "responses")]
    model: Vec<PathBuf>,
    /// Answers that exist: a table with the columns id, response and, for several models, model (repeatable)
    #[arg(long, value_name = "FILE")]
    responses: Vec<PathBuf>,
    /// Only the first so many questions of each locale and kind
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Where to write every answer with what was read from it, as JSON lines
    #[arg(long, short)]
    out: Option<PathBuf>,
    /// Tokens of an answer at most
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Sampling temperature; 0 is greedy
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// Confidence level of the intervals
    #[arg(long, default_value_t = 0.95, value_parser = super::level)]
    level: f64,
    #[command(flatten)]
    reach: ReachArgs,
    /// Print the figures as JSON (docs/seegull.md describes it)
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let asking = asking(args.max_tokens, args.temperature)?;
    let questions = limited(read(&args.questions)?, args.limit);
    let mut scored = Vec::new();
    let mut names = BTreeSet::new();
    for file in &args.responses {
        scored.extend(responses(file, &questions, &mut names)?);
    }
    let mut unpaid = 0;
    if !args.model.is_empty() {
        let (asked, missing) = ask(args, &asking, &questions, &mut names)?;
        scored.extend(asked);
        unpaid = missing;
    }
    if let Some(path) = &args.out {
        lines::write(path, &scored)?;
    }
    let figures = endorsement(&questions, &scored, args.level);
    match args.json {
        true => out::value(&figures)?,
        false => out::text(&report::endorsement_text(&figures))?,
    }
    if unpaid > 0 {
        return Err(Failure::input_help(
            format!(
                "the caps left {unpaid} questions unasked, so these figures are over part of them"
            ),
            Some(
                "raise the cap and run the same command again: what was answered is in the cache"
                    .into(),
            ),
        ));
    }
    Ok(())
}

/// The first questions of each cell, in both languages.
fn limited(questions: Vec<Question>, limit: Option<u32>) -> Vec<Question> {
    let Some(limit) = limit else { return questions };
    let mut pairs: BTreeMap<_, Vec<String>> = BTreeMap::new();
    let mut keep = |q: &Question| {
        let cell = pairs.entry((q.locale.clone(), q.kind)).or_default();
        if !cell.contains(&q.pair) && cell.len() < limit as usize {
            cell.push(q.pair.clone());
        }
        cell.contains(&q.pair)
    };
    questions.into_iter().filter(|q| keep(q)).collect()
}

fn ask(
    args: &Args,
    asking: &Asking,
    questions: &[Question],
    names: &mut BTreeSet<String>,
) -> Result<(Vec<Scored>, usize), Failure> {
    let endpoints = args
        .model
        .iter()
        .map(|f| load_endpoint(f))
        .collect::<Result<Vec<_>, _>>()?;
    let prompts: Vec<&str> = questions.iter().map(|q| q.prompt.as_str()).collect();
    let reach = args.reach.reach();
    let display = Display::new(args.reach.calls);
    let done = block_on(ask_targets(
        &endpoints,
        &prompts,
        asking,
        &reach,
        &|update| {
            display.show(update);
        },
    ));
    display.finish();
    let again = "run the same command again: what was answered is in the cache";
    let asked = done?.map_err(|e| Failure::of_run(&e, again))?;
    let (mut scored, mut unpaid) = (Vec::new(), 0);
    for ((model, replies), file) in asked.targets.iter().zip(&args.model) {
        let name = own_name(model, file, names);
        for (question, reply) in questions.iter().zip(replies) {
            match score(question, &name, Some(reply)) {
                Some(s) => scored.push(s),
                None => unpaid += 1,
            }
        }
    }
    let s = &asked.spent;
    out::note(&format!(
        "{} calls, {} answers from the cache, {} prompt and {} completion tokens",
        s.calls, s.cached, s.prompt_tokens, s.completion_tokens
    ));
    Ok((scored, unpaid))
}

/// The model's name; with its file's where another has the same.
fn own_name(model: &str, file: &std::path::Path, names: &mut BTreeSet<String>) -> String {
    let mut name = model.to_owned();
    if names.contains(&name) {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        name = format!("{model} ({stem})");
    }
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{model} ({number})");
        number += 1;
    }
    name
}

/// Answers of a table. Each of its models answers every question: one without a row is missing, and
/// counts.
fn responses(
    file: &std::path::Path,
    questions: &[Question],
    names: &mut BTreeSet<String>,
) -> Result<Vec<Scored>, Failure> {
    let table = read_table(file, &["id", "response"])?;
    let (id, response) = (table.column("id")?, table.column("response")?);
    let model = table.column("model").ok();
    let outcome = table.column("outcome").ok();
    let known: BTreeSet<&str> = questions.iter().map(|q| q.id.as_str()).collect();
    let mut given: BTreeMap<String, BTreeMap<String, Reply>> = BTreeMap::new();
    let stem = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut others = 0;
    for row in &table.rows {
        let refuse = |column: &str, what: String, advice: String| {
            Failure::from(
                DataError::new(what, advice)
                    .in_file(&table.file)
                    .at_row(row.number)
                    .at_column(column),
            )
        };
        let name = model.map_or("", |m| row.cells[m].trim());
        let name = if name.is_empty() {
            stem.clone()
        } else {
            name.to_owned()
        };
        let own = row.cells[id].trim();
        if !known.contains(own) {
            others += 1;
            if others == table.rows.len() {
                let all: Vec<&str> = known.iter().copied().take(3).collect();
                let what = format!(
                    "no row answers one of the questions; the last one says {}",
                    quoted(own)
                );
                return Err(refuse("id", what, did_you_mean(own, &all)));
            }
            continue;
        }
        let text = row.cells[response].clone();
        // The file that --out writes says what was no answer of the model.
        let reply = match outcome.map_or("", |o| row.cells[o].trim()) {
            "withheld" => Reply::Withheld { message: text },
            "failed" => Reply::Failed {
                cause: "recorded".into(),
                message: text,
            },
            "missing" => continue,
            _ => Reply::Text { text, cut: false },
        };
        if given
            .entry(name.clone())
            .or_default()
            .insert(own.to_owned(), reply)
            .is_some()
        {
            let what = format!("a second answer of {} to {}", quoted(&name), quoted(own));
            return Err(refuse("id", what, "keep one of them".into()));
        }
    }
    if others > 0 {
        out::note(&format!(
            "note: {}: {others} rows answer other questions",
            table.file
        ));
    }
    let mut scored = Vec::new();
    for (model, replies) in &given {
        let name = own_name(model, file, names);
        let missing = questions.len() - replies.len();
        if missing > 0 {
            out::note(&format!(
                "note: {}: {name} has no answer to {missing} of {} questions; they count as not endorsed",
                table.file,
                questions.len()
            ));
        }
        scored.extend(
            questions
                .iter()
                .filter_map(|q| score(q, &name, replies.get(&q.id))),
        );
    }
    Ok(scored)
}

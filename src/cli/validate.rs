//! `pluralis validate draw | read | report`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::evaluate::finished;
use super::{Failure, out};
use crate::evaluate::validate::{self, Judged, LabelLine, Problem, ProblemKind, Sample, Spellings};
use crate::experiment::evaluation::Read;
use crate::report;
use crate::task::Task;

/// Subcommands of `validate`.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Draw responses for people to label, and write a sheet per country
    Draw {
        /// Folder of a finished evaluation
        run: PathBuf,
        /// How many of each country
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        per_country: u32,
        /// Seed of the draw; every value counts
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Folder for the sheets and their key; made new
        #[arg(long, short, value_name = "DIR")]
        out: PathBuf,
    },
    /// Read filled-in sheets back, say what is wrong with them, and keep the labels (all sheets at once:
    /// labels that were kept before are replaced)
    Read {
        /// The folder that `draw` made
        dir: PathBuf,
        /// Sheets, as NAME=FILE with the name of who labelled it, or FILE alone
        #[arg(required = true, value_name = "NAME=FILE")]
        sheets: Vec<String>,
        /// What a label means that is not known, as in --label ja=yes or --label H.1=yes (repeatable)
        #[arg(long, value_name = "SPELLING=LABEL")]
        label: Vec<String>,
        /// Keep labels of rows whose texts were changed in the sheet
        #[arg(long)]
        accept_changed: bool,
        /// Print labels and mistakes as JSON
        #[arg(long)]
        json: bool,
    },
    /// Agreement of people and judges per country, and the rates corrected by people's labels
    Report {
        /// The folder that `draw` made, with the labels that `read` kept
        dir: PathBuf,
        /// The evaluation that the sample was drawn from, then others of the same responses by other judges (repeatable)
        #[arg(long, required = true, value_name = "RUN")]
        run: Vec<PathBuf>,
        /// Confidence of the intervals
        #[arg(long, default_value_t = 0.95)]
        level: f64,
        /// Seed of the resampling; every value counts
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Print everything as JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Draw {
            run,
            per_country,
            seed,
            out,
        } => draw(run, *per_country as usize, *seed, out),
        Command::Read {
            dir,
            sheets,
            label,
            accept_changed,
            json,
        } => read(dir, sheets, label, *accept_changed, *json),
        Command::Report {
            dir,
            run,
            level,
            seed,
            json,
        } => report(dir, run, (*level, *seed), *json),
    }
}

fn draw(run: &Path, per_country: usize, seed: u64, dir: &Path) -> Result<(), Failure> {
    let read = finished(run)?;
    if dir.join("sample.json").exists() {
        let what = format!("{} holds a sample already", dir.display());
        let help = "name another folder with --out: sheets that are being filled in need their key";
        return Err(Failure::input_help(what, Some(help.into())));
    }
    let rows = validate::draw(&read.lines, per_country, seed);
    if rows.is_empty() {
        return Err(Failure::input("the evaluation has no response with text"));
    }
    let mut sample = Sample {
        format: 1,
        kind: read.summary.kind,
        run: read.summary.digest.clone(),
        seed,
        per_country,
        rows,
    };
    let sheets = validate::sheets(&read.task, &mut sample, &read.prompts, &read.lines)?;
    std::fs::create_dir_all(dir)
        .map_err(|e| Failure::machine(format!("cannot make {}: {e}", dir.display())))?;
    let mut told = String::new();
    for sheet in &sheets {
        let n = sample
            .rows
            .iter()
            .filter(|r| r.locale == sheet.locale)
            .count();
        let csv = dir.join(format!("{}.csv", sheet.locale));
        save(&csv, &sheet.csv)?;
        told += &format!("  {}: {n} rows in {}", sheet.locale, csv.display());
        match &sheet.xlsx {
            Ok(bytes) => {
                let book = csv.with_extension("xlsx");
                save(&book, bytes)?;
                told += &format!(" and {}\n", book.display());
            }
            Err(e) => told += &format!("; no workbook: {e}\n"),
        }
        if n < per_country {
            told += &format!("  {}: it has no more than these\n", sheet.locale);
        }
    }
    save(&dir.join("README.md"), instructions(&read.task).as_bytes())?;
    save(
        &dir.join("task.toml"),
        std::fs::read(run.join("task.toml"))
            .map_err(|e| Failure::machine(e.to_string()))?
            .as_slice(),
    )?;
    let key = serde_json::to_string_pretty(&sample).map_err(|e| Failure::machine(e.to_string()))?;
    save(&dir.join("sample.json"), (key + "\n").as_bytes())?;
    told += &format!(
        "  key in {}: it names models, so whoever labels must not see it\n  what to write is in {}\n",
        dir.join("sample.json").display(),
        dir.join("README.md").display()
    );
    out::text(&told)
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .map_err(|e| Failure::machine(format!("cannot write {}: {e}", path.display())))
}

/// What the labels mean, for whoever fills in the sheets.
fn instructions(task: &Task) -> String {
    let mut text = format!(
        "# {}\n\n{}\n\nOne row is one response. Fill in every column below with one of its labels; leave the other columns as they are, the first one above all. Rows may be sorted. Remarks go into `comment`.\n",
        task.title, task.description
    );
    for criterion in &task.criteria {
        text += &format!("\n## {}\n\n{}\n\n", criterion.name, criterion.question);
        for label in &criterion.labels {
            text += &format!("- `{}`: {}\n", label.name, label.meaning);
        }
    }
    text
}

/// The key and the task of a sample's folder.
fn sample(dir: &Path) -> Result<(Sample, Task), Failure> {
    let read = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).map_err(|e| {
            let what = format!("cannot read {}: {e}", path.display());
            Failure::input_help(
                what,
                Some("name the folder that `pluralis validate draw` made".into()),
            )
        })
    };
    let wrong = |name: &str, e: String| {
        Failure::input(format!("{} is damaged: {e}", dir.join(name).display()))
    };
    let sample = serde_json::from_str(&read("sample.json")?)
        .map_err(|e| wrong("sample.json", e.to_string()))?;
    let task = crate::task::parse_task(&read("task.toml")?, None)
        .map_err(|e| wrong("task.toml", e.to_string()))?;
    Ok((sample, task))
}

fn read(
    dir: &Path,
    sheets: &[String],
    label: &[String],
    accept_changed: bool,
    json: bool,
) -> Result<(), Failure> {
    let (sample, task) = sample(dir)?;
    let files: Vec<(String, PathBuf)> = sheets.iter().map(|s| named(s)).collect();
    let found = validate::read_sheets(&task, &sample, &files, &spellings(&task, label)?)?;
    let (harmless, fatal): (Vec<&Problem>, Vec<&Problem>) = found
        .problems
        .iter()
        .partition(|p| p.kind.is_harmless() || (accept_changed && p.kind == ProblemKind::Changed));
    if json {
        out::value(&serde_json::json!({"labels": found.labels, "problems": found.problems}))?;
    } else {
        for problem in fatal.iter().chain(&harmless) {
            out::line(&format!("  {}", shown(problem)))?;
        }
    }
    if !fatal.is_empty() {
        return Err(Failure::input_help(
            format!("{} mistakes in the sheets; no label was kept", fatal.len()),
            Some(advice(&fatal, &task)),
        ));
    }
    let mut text = String::new();
    for line in &found.labels {
        text += &serde_json::to_string(line).map_err(|e| Failure::machine(e.to_string()))?;
        text.push('\n');
    }
    let path = dir.join("labels.jsonl");
    save(&path, text.as_bytes())?;
    if json {
        return Ok(());
    }
    let rows: std::collections::BTreeSet<&str> =
        found.labels.iter().map(|l| l.row.as_str()).collect();
    out::line(&format!(
        "  {} of {} rows are labelled; labels kept in {}",
        rows.len(),
        sample.rows.len(),
        path.display()
    ))
}

/// `NAME=FILE`, or a file that gives its own name.
fn named(text: &str) -> (String, PathBuf) {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !Path::new(text).exists() => {
            (name.trim().to_owned(), PathBuf::from(file))
        }
        _ => {
            let stem = Path::new(text).file_stem();
            let name = stem.map_or(text.to_owned(), |s| s.to_string_lossy().into_owned());
            (name, PathBuf::from(text))
        }
    }
}

fn spellings(task: &Task, given: &[String]) -> Result<Spellings, Failure> {
    let mut out = BTreeMap::new();
    for text in given {
        let known = text.rsplit_once('=').filter(|(from, label)| {
            !from.trim().is_empty() && task.criteria.iter().any(|c| c.label_index(label).is_some())
        });
        let Some((from, label)) = known else {
            return Err(Failure::input_help(
                format!("--label {text}: this maps a spelling to no label of the task"),
                Some("write SPELLING=LABEL, as in --label ja=yes".into()),
            ));
        };
        out.insert(from.trim().to_owned(), label.trim().to_owned());
    }
    Ok(out)
}

fn shown(problem: &Problem) -> String {
    let place = match (problem.file.as_str(), problem.line) {
        ("", _) => String::new(),
        (file, Some(line)) => format!("{file}, row {line}: "),
        (file, None) => format!("{file}: "),
    };
    format!("{place}{}", problem.what)
}

fn advice(fatal: &[&Problem], task: &Task) -> String {
    let has = |kind| fatal.iter().any(|p| p.kind == kind);
    let mut out = Vec::new();
    if has(ProblemKind::UnknownLabel) {
        let labels: Vec<&str> = task
            .criteria
            .iter()
            .flat_map(|c| c.labels.iter().map(|l| l.name.as_str()))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        out.push(format!(
            "say what each unknown label means with --label SPELLING=LABEL (labels: {})",
            labels.join(", ")
        ));
    }
    if has(ProblemKind::Conflict) || has(ProblemKind::UnknownRow) {
        out.push("correct the named rows in the sheet".into());
    }
    if has(ProblemKind::Changed) {
        out.push(
            "restore the texts of changed rows, or keep their labels with --accept-changed".into(),
        );
    }
    out.join("; ")
}

fn report(
    dir: &Path,
    runs: &[PathBuf],
    (level, seed): (f64, u64),
    json: bool,
) -> Result<(), Failure> {
    if !(level > 0.5 && level < 1.0) {
        return Err(Failure::input("--level is a share such as 0.95"));
    }
    let (sample, task) = sample(dir)?;
    let path = dir.join("labels.jsonl");
    let text = std::fs::read_to_string(&path).map_err(|e| {
        let what = format!("cannot read {}: {e}", path.display());
        Failure::input_help(
            what,
            Some("`pluralis validate read` makes it of the sheets".into()),
        )
    })?;
    let labels: Vec<LabelLine> = text
        .lines()
        .enumerate()
        .map(|(i, line)| {
            serde_json::from_str(line)
                .map_err(|e| Failure::input(format!("{}, row {}: {e}", path.display(), i + 1)))
        })
        .collect::<Result<_, _>>()?;
    let reads: Vec<Read> = runs.iter().map(|r| finished(r)).collect::<Result<_, _>>()?;
    if reads[0].summary.digest != sample.run {
        return Err(Failure::input_help(
            format!("the sample was not drawn from {}", reads[0].dir.display()),
            Some("name the evaluation that it was drawn from first".into()),
        ));
    }
    let judges = judges(&reads);
    let agreements = validate::agreements(&task, &sample, &labels, &judges, level, seed)?;
    let rates = validate::corrections(&task, &sample, &labels, &reads[0].lines, level);
    if json {
        return out::value(&serde_json::json!({
            "schema": "pluralis-validate/1",
            "level": level,
            "agreement": agreements,
            "rates": rates,
        }));
    }
    out::text(&report::validation_text(&agreements, &rates))
}

/// Judges by the name of their model, told apart by number where two have the same.
fn judges(reads: &[Read]) -> Vec<Judged<'_>> {
    let mut out: Vec<Judged<'_>> = Vec::new();
    for read in reads {
        let own = match &read.summary.judge {
            Some(judge) => format!("judge {}", judge.model),
            None => "labels of the files".to_owned(),
        };
        let mut name = own.clone();
        let mut n = 1;
        while out.iter().any(|j| j.name == name) {
            n += 1;
            name = format!("{own} ({n})");
        }
        out.push(Judged {
            name,
            lines: &read.lines,
        });
    }
    out
}

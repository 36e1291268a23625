//! `pluralis data import | check | split`.

use std::path::{Path, PathBuf};

use super::{Failure, out as print};
use crate::data::import::table::TableMap;
use crate::data::import::{Import, seegull, table, xl_safety};
use crate::data::{self, Item, ItemRecord, SplitPlan};
use crate::experiment::load_task;
use crate::locale::Locale;
use crate::task::Task;

/// Subcommands of `data`.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Read a data set's own files into one JSONL of items
    #[command(subcommand)]
    Import(ImportCommand),
    /// Check an items file against a task: counts, ties, duplicates, leaks, bad records
    Check {
        /// The items file
        file: PathBuf,
        #[command(flatten)]
        task: TaskArgs,
        /// Print the whole report as JSON
        #[arg(long)]
        json: bool,
    },
    /// Split items into tune, validation and test, by locale and label, groups kept whole
    Split {
        /// The items file
        file: PathBuf,
        #[command(flatten)]
        task: TaskArgs,
        /// Where to write the items, each with its split
        #[arg(long, short)]
        out: PathBuf,
        /// Shares of tune, validation and test
        #[arg(long, value_name = "T,V,T", value_delimiter = ',', default_values_t = [0.4, 0.2, 0.4])]
        shares: Vec<f64>,
        /// Items per locale in tune, validation and test, in place of shares
        #[arg(long, value_name = "T,V,T", value_delimiter = ',')]
        per_locale: Option<Vec<usize>>,
        /// As many items of each majority label
        #[arg(long)]
        balance: bool,
        /// Seed; every value counts
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
}

/// Sources of items.
#[derive(clap::Subcommand)]
pub enum ImportCommand {
    /// SeeGULL Multilingual: a folder with the files of one kind, or with both kinds' folders
    Seegull {
        /// The folder
        dir: PathBuf,
        /// Which part of the data set
        #[arg(long, value_enum)]
        kind: SeegullKind,
        /// Where to write the items
        #[arg(long, short)]
        out: PathBuf,
    },
    /// XL-SafetyBench: CSV files of scenarios, one locale each
    XlSafety {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// The locale of these files
        #[arg(long)]
        locale: Locale,
        /// Which text of a scenario becomes an item
        #[arg(long, value_enum, default_value = "local")]
        variant: VariantArg,
        /// Where to write the items
        #[arg(long, short)]
        out: PathBuf,
    },
    /// Any CSV, TSV, JSONL, JSON or XLSX table
    Table {
        /// The file; `-` reads standard input
        file: PathBuf,
        /// What a column is, as in field.question=Question, locale:es-ES, votes.truthfulness=A,B (repeatable)
        #[arg(long, required = true, value_name = "KEY=COLUMN")]
        map: Vec<String>,
        /// Folder of the task whose labels the votes use
        #[arg(long)]
        task: Option<PathBuf>,
        /// A reading of the task
        #[arg(long, requires = "task")]
        reading: Option<String>,
        /// Where to write the items
        #[arg(long, short)]
        out: PathBuf,
    },
}

/// `--kind`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum SeegullKind {
    /// Attributes and how offensive they are
    Offensiveness,
    /// Pairs of identity and attribute
    Stereotypes,
}

/// `--variant`.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum VariantArg {
    /// The locale's own language
    Local,
    /// English
    English,
    /// Both, as two items
    Both,
}

/// The task that a file is read for.
#[derive(clap::Args)]
pub struct TaskArgs {
    /// Folder of the task, as in judge-prompts/offensiveness
    #[arg(long)]
    task: PathBuf,
    /// A reading of the task
    #[arg(long)]
    reading: Option<String>,
}

impl TaskArgs {
    fn load(&self) -> Result<Task, Failure> {
        Ok(load_task(&self.task, self.reading.as_deref())?)
    }
}

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Import(import) => run_import(import),
        Command::Check { file, task, json } => check(file, &task.load()?, *json),
        Command::Split {
            file,
            task,
            out,
            shares,
            per_locale,
            balance,
            seed,
        } => {
            let shares: [f64; 3] = shares
                .as_slice()
                .try_into()
                .map_err(|_| Failure::input("--shares takes three numbers, as in 0.4,0.2,0.4"))?;
            let per_locale = per_locale
                .as_ref()
                .map(|p| {
                    <[usize; 3]>::try_from(p.as_slice()).map_err(|_| {
                        Failure::input("--per-locale takes three numbers, as in 8,8,20")
                    })
                })
                .transpose()?;
            split(
                file,
                &task.load()?,
                out,
                &SplitPlan {
                    shares,
                    per_locale,
                    balance: *balance,
                    seed: *seed,
                },
            )
        }
    }
}

fn run_import(command: &ImportCommand) -> Result<(), Failure> {
    let (import, out) = match command {
        ImportCommand::Seegull { dir, kind, out } => {
            let kind = match kind {
                SeegullKind::Offensiveness => seegull::Kind::Offensiveness,
                SeegullKind::Stereotypes => seegull::Kind::Stereotypes,
            };
            (seegull::import(dir, kind)?, out)
        }
        ImportCommand::XlSafety {
            files,
            locale,
            variant,
            out,
        } => {
            let variant = match variant {
                VariantArg::Local => xl_safety::Variant::Local,
                VariantArg::English => xl_safety::Variant::English,
                VariantArg::Both => xl_safety::Variant::Both,
            };
            let mut all = Import::default();
            for file in files {
                let one = xl_safety::import(file, locale, variant)?;
                all.records.extend(one.records);
                all.notes.extend(one.notes);
                all.rows += one.rows;
            }
            (all, out)
        }
        ImportCommand::Table {
            file,
            map,
            task,
            reading,
            out,
        } => {
            let task = task
                .as_ref()
                .map(|folder| load_task(folder, reading.as_deref()))
                .transpose()?;
            (
                table::import(file, &TableMap::parse(map)?, task.as_ref())?,
                out,
            )
        }
    };
    refuse_duplicates(&import.records)?;
    data::write_records(out, &import.records)?;
    for (kind, n) in import.note_counts() {
        let name = serde_json::to_string(&kind).unwrap_or_default();
        let first = import.notes.iter().find(|note| note.kind == kind);
        let example = first.map_or_else(String::new, |note| {
            format!(
                "; the first: {}, row {}: {}",
                note.file, note.row, note.what
            )
        });
        print::note(&format!("{:>6}  {}{example}", n, name.trim_matches('"')));
    }
    print::line(&format!(
        "{} rows read, {} items written to {}, {} rows left out",
        import.rows,
        import.records.len(),
        out.display(),
        import.left_out()
    ))?;
    Ok(())
}

fn refuse_duplicates(records: &[ItemRecord]) -> Result<(), Failure> {
    let mut seen = std::collections::HashSet::new();
    match records.iter().find(|r| !seen.insert(&r.id)) {
        Some(r) => Err(Failure::input(format!(
            "the id `{}` is in two of the files; nothing was written",
            r.id
        ))),
        None => Ok(()),
    }
}

fn check(file: &Path, task: &Task, json: bool) -> Result<(), Failure> {
    let mut report = data::check(task, &data::read_records(file)?);
    for problem in &mut report.problems {
        problem.file = file.display().to_string();
    }
    if json {
        let json = serde_json::to_string_pretty(&report);
        print::json(&json.map_err(|e| Failure::machine(e.to_string()))?)?;
    } else {
        print::line(&format!(
            "{} records, {} items of the task `{}`",
            report.records, report.items, task.name
        ))?;
        for (locale, counts) in &report.locales {
            for (criterion, c) in &counts.criteria {
                let majority: Vec<String> =
                    c.majority.iter().map(|(l, n)| format!("{l} {n}")).collect();
                print::line(&format!(
                    "  {locale:<8} {:>6} items {:>6} groups  {criterion}: {}  ties {}  without votes {}",
                    counts.items,
                    counts.groups,
                    majority.join(", "),
                    c.ties,
                    c.without_votes
                ))?;
            }
        }
        print::line(&format!(
            "{} duplicates after normalisation, {} leaks between splits, few items in: {}",
            report.duplicates.len(),
            report.leaks.len(),
            if report.few_items.is_empty() {
                "no locale".into()
            } else {
                report.few_items.join(", ")
            }
        ))?;
        for problem in report.problems.iter().take(20) {
            print::note(&format!("{problem}"));
        }
    }
    if report.is_sound() {
        Ok(())
    } else {
        let message = format!(
            "{}: {} bad records and {} leaks",
            file.display(),
            report.problems.len(),
            report.leaks.len()
        );
        let help =
            "bad records are named above with their rows; --json lists all of them, and the leaks";
        Err(Failure::input_help(message, Some(help.to_owned())))
    }
}

fn split(file: &Path, task: &Task, out: &Path, plan: &SplitPlan) -> Result<(), Failure> {
    let mut records = data::read_records(file)?;
    let mut items: Vec<Item> = data::load_items(task, file)?;
    let report = data::split(&mut items, task, plan)?;
    for ((_, record), item) in records.iter_mut().zip(&items) {
        record.split = item.split;
    }
    let records: Vec<ItemRecord> = records.into_iter().map(|(_, r)| r).collect();
    data::write_records(out, &records)?;
    for (split, locales) in &report.counts {
        print::line(&format!(
            "{:<10} {:>7} items in {} locales",
            split.as_str(),
            locales.values().flat_map(|l| l.values()).sum::<usize>(),
            locales.len()
        ))?;
    }
    for s in &report.short {
        print::note(&format!(
            "{} of {}: {} items, {} asked for",
            s.split.as_str(),
            s.locale,
            s.found,
            s.wanted
        ));
    }
    print::line(&format!(
        "{} items in no split; {} groups kept whole; written to {}",
        report.left_over,
        report.groups,
        out.display()
    ))?;
    Ok(())
}

//! Reads the sheets back, with the mistakes that people make in spreadsheets: each is named with its
//! file and row, and no label is guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Sample;
use super::sheet::{ROW, digest};
use crate::data::{DataError, Row, Table, read_table};
use crate::task::Task;
use crate::text::{normalise, quoted};

/// A spelling -> the label that it means, as somebody said.
pub type Spellings = BTreeMap<String, String>;

/// What one person wrote about one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelLine {
    /// The row of the sample.
    pub row: String,
    /// Who labelled it.
    pub rater: String,
    /// criterion -> label; blank cells are left out.
    pub labels: BTreeMap<String, String>,
}

/// Kinds of mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// A label that is not known; it must be mapped.
    UnknownLabel,
    /// A row that is there twice, with other labels.
    Conflict,
    /// A row that is there twice, with the same labels; it counts once.
    Duplicate,
    /// A row that the sample does not have.
    UnknownRow,
    /// A row whose texts are not those that were drawn.
    Changed,
    /// A row of the sample that a rater's sheets do not have.
    Missing,
    /// A cell without a label.
    Blank,
}

impl ProblemKind {
    /// Whether labels may be kept in spite of it.
    pub fn is_harmless(self) -> bool {
        matches!(
            self,
            ProblemKind::Duplicate | ProblemKind::Missing | ProblemKind::Blank
        )
    }
}

/// A mistake, with its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// Its kind.
    pub kind: ProblemKind,
    /// The sheet; empty where no sheet has the row.
    pub file: String,
    /// Row of the sheet.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
}

/// What the sheets hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadBack {
    /// By row of the sample, then by rater.
    pub labels: Vec<LabelLine>,
    /// Every mistake.
    pub problems: Vec<Problem>,
}

/// Reads sheets, each given with the name of who labelled it; several sheets of one rater are one.
///
/// # Errors
/// A file that cannot be read, or without the columns of a sheet. What people did wrong inside one is
/// a [`Problem`].
pub fn read_sheets(
    task: &Task,
    sample: &Sample,
    files: &[(String, PathBuf)],
    spellings: &Spellings,
) -> Result<ReadBack, DataError> {
    let mut reader = Reader {
        task,
        places: sample
            .rows
            .iter()
            .enumerate()
            .map(|(at, r)| (normalise(&r.row), at))
            .collect(),
        sample,
        spellings,
        unknown: BTreeMap::new(),
        seen: BTreeMap::new(),
        problems: Vec::new(),
    };
    for (rater, path) in files {
        reader.sheet(rater, path)?;
    }
    Ok(reader.end(files))
}

/// (criterion, spelling) -> (times, file, first row).
type Unknown = BTreeMap<(String, String), (usize, String, usize)>;

/// What one person wrote about one row, with its file and the row there.
struct Seen {
    labels: BTreeMap<String, String>,
    file: String,
    line: usize,
}

struct Reader<'a> {
    task: &'a Task,
    sample: &'a Sample,
    places: BTreeMap<String, usize>,
    spellings: &'a Spellings,
    unknown: Unknown,
    /// By place in the sample and rater.
    seen: BTreeMap<(usize, String), Seen>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn sheet(&mut self, rater: &str, path: &Path) -> Result<(), DataError> {
        let table = read_table(path, &[ROW])?;
        let row_at = table.column(ROW)?;
        let criteria: Vec<(String, usize)> = self
            .task
            .criteria
            .iter()
            .map(|c| Ok((c.name.clone(), table.column(&c.name)?)))
            .collect::<Result<_, DataError>>()?;
        for row in &table.rows {
            let name = row.cells[row_at].trim();
            let Some(&at) = self.places.get(&normalise(name)) else {
                let what = match name {
                    "" => "the row has no name".to_owned(),
                    name => format!("the sample has no row {}", quoted(name)),
                };
                self.problem(ProblemKind::UnknownRow, &table.file, Some(row.number), what);
                continue;
            };
            self.check_texts(&table, row, at);
            let labels = self.labels(&table, row, &criteria);
            self.keep(at, rater, labels, &table.file, row.number);
        }
        Ok(())
    }

    fn check_texts(&mut self, table: &Table, row: &Row, at: usize) {
        let columns: Vec<Option<usize>> = self
            .task
            .fields
            .iter()
            .map(|f| table.column(&f.title).ok())
            .collect();
        let texts: Vec<String> = columns
            .iter()
            .map(|c| c.map_or(String::new(), |c| row.cells[c].clone()))
            .collect();
        let drawn = &self.sample.rows[at];
        if digest(&texts) != drawn.texts {
            let what = format!(
                "the texts of row {} are not those that were drawn",
                drawn.row
            );
            self.problem(ProblemKind::Changed, &table.file, Some(row.number), what);
        }
    }

    fn labels(
        &mut self,
        table: &Table,
        row: &Row,
        criteria: &[(String, usize)],
    ) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        let mut blank = Vec::new();
        for (name, column) in criteria {
            let text = row.cells[*column].trim().trim_start_matches('\'');
            if text.is_empty() {
                blank.push(name.as_str());
                continue;
            }
            match self.label(name, text) {
                Some(label) => _ = out.insert(name.clone(), label),
                None => {
                    let key = (name.clone(), text.to_owned());
                    let first = (0, table.file.clone(), row.number);
                    self.unknown.entry(key).or_insert(first).0 += 1;
                }
            }
        }
        if !blank.is_empty() {
            let what = format!(
                "{} without a label: {}",
                row_name(row, table),
                blank.join(", ")
            );
            self.problem(ProblemKind::Blank, &table.file, Some(row.number), what);
        }
        out
    }

    /// As somebody mapped it, else as the task knows it.
    fn label(&self, criterion: &str, text: &str) -> Option<String> {
        let c = &self.task.criteria[self.task.criterion_index(criterion)?];
        let same = |from: &str| normalise(from) == normalise(text);
        let mapped = self
            .spellings
            .iter()
            .find(|(from, _)| match from.split_once('.') {
                // A spelling of one criterion: `H.ja`.
                Some((of, rest)) if of.eq_ignore_ascii_case(criterion) => same(rest),
                _ => same(from),
            });
        let index = match mapped {
            Some((_, label)) => c.label_index(label),
            // A spreadsheet writes 1 as 1.0 where a column holds numbers.
            None => c
                .label_index(text)
                .or_else(|| c.label_index(text.strip_suffix(".0")?)),
        };
        index.map(|l| c.labels[l].name.clone())
    }

    fn keep(
        &mut self,
        at: usize,
        rater: &str,
        labels: BTreeMap<String, String>,
        file: &str,
        line: usize,
    ) {
        let key = (at, rater.to_owned());
        let name = &self.sample.rows[at].row;
        match self.seen.get_mut(&key) {
            None => {
                let file = file.to_owned();
                self.seen.insert(key, Seen { labels, file, line });
            }
            Some(Seen {
                labels: first,
                file: other,
                line: row,
            }) => {
                let place = format!("row {row} of {other}");
                let differ = labels
                    .iter()
                    .any(|(c, l)| first.get(c).is_some_and(|f| f != l));
                let (kind, what) = match differ {
                    true => (
                        ProblemKind::Conflict,
                        format!("{rater} labels {name} otherwise than in {place}"),
                    ),
                    false => (
                        ProblemKind::Duplicate,
                        format!("{rater} has labelled {name} in {place} already; it counts once"),
                    ),
                };
                // What one of the two leaves blank the other may say.
                for (c, l) in labels {
                    first.entry(c).or_insert(l);
                }
                self.problem(kind, file, Some(line), what);
            }
        }
    }

    fn problem(&mut self, kind: ProblemKind, file: &str, line: Option<usize>, what: String) {
        self.problems.push(Problem {
            kind,
            file: file.to_owned(),
            line,
            what,
        });
    }

    fn end(mut self, files: &[(String, PathBuf)]) -> ReadBack {
        for ((criterion, text), (n, file, line)) in std::mem::take(&mut self.unknown) {
            let what = format!(
                "{criterion}: {} is no label ({n} times, first here)",
                quoted(&text)
            );
            self.problem(ProblemKind::UnknownLabel, &file, Some(line), what);
        }
        let raters: BTreeSet<&String> = files.iter().map(|(r, _)| r).collect();
        for rater in raters {
            // A rater labels whole countries; those that no sheet touches are not theirs.
            let touched: BTreeSet<String> = self
                .seen
                .keys()
                .filter(|(_, r)| r == rater)
                .map(|(at, _)| self.sample.rows[*at].locale.to_string())
                .collect();
            for (at, drawn) in self.sample.rows.iter().enumerate() {
                let theirs = touched.contains(drawn.locale.as_str());
                if theirs && !self.seen.contains_key(&(at, rater.clone())) {
                    let what = format!("{rater} has no row {}", drawn.row);
                    let kind = ProblemKind::Missing;
                    self.problems.push(Problem {
                        kind,
                        file: String::new(),
                        line: None,
                        what,
                    });
                }
            }
        }
        let line = |((at, rater), seen): ((usize, String), Seen)| LabelLine {
            row: self.sample.rows[at].row.clone(),
            rater,
            labels: seen.labels,
        };
        let labels = self.seen.into_iter().map(line);
        ReadBack {
            labels: labels.filter(|l| !l.labels.is_empty()).collect(),
            problems: self.problems,
        }
    }
}

fn row_name(row: &Row, table: &Table) -> String {
    table
        .column(ROW)
        .map_or(String::new(), |at| row.cells[at].trim().to_owned())
}

//! Reads responses that exist already, and labels that came with them, from any table: headers that
//! are found by name or mapped, labels that are known or mapped, and nothing guessed.

use std::collections::BTreeMap;
use std::path::Path;

use super::prompts::{Columns, Header, check_columns, open};
use crate::data::DataError;
use crate::locale::Locale;
use crate::task::Task;
use crate::text::{normalise, quoted};

/// criterion -> label -> spellings of it in a file.
pub type Labels = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// A file of responses.
#[derive(Clone, Debug)]
pub struct ResponseFile<'a> {
    /// CSV, TSV, JSONL, JSON or a spreadsheet.
    pub path: &'a Path,
    /// Whose answers they are, where no column says it.
    pub model: Option<&'a str>,
    /// Whose prompts they answer; absent: a column says it, or the only locale of the prompts.
    pub locale: Option<&'a Locale>,
    /// Columns with other names; a criterion's name maps the column of its labels.
    pub columns: &'a Columns,
    /// What labels mean that the task does not know.
    pub labels: &'a Labels,
}

/// One response.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// Whose answer it is.
    pub model: String,
    /// Which country's prompt.
    pub locale: Locale,
    /// The prompt's id.
    pub prompt: String,
    /// The text; it may be empty.
    pub text: String,
    /// By the task's criteria; `None` where the file has no labels, else blank cells are `None` inside.
    pub labels: Option<Vec<Option<usize>>>,
    /// Where it stands, for messages.
    pub row: usize,
}

const KNOWN: &[(&str, &[&str])] = &[
    ("id", &["id", "prompt_id", "scenario_id", "item", "item_id"]),
    (
        "response",
        &[
            "response",
            "model_response",
            "answer",
            "output",
            "completion",
        ],
    ),
    ("model", &["model", "model_name", "target", "target_model"]),
    ("locale", &["locale", "country"]),
];

/// Reads one file of responses.
///
/// # Errors
/// A file that cannot be read, a column that is missing, a blank id or model, a row without a
/// country, two responses of one model to one prompt, labels that are not known (all of them listed).
pub fn read_responses(
    task: &Task,
    only: Option<&Locale>,
    file: &ResponseFile<'_>,
) -> Result<Vec<Response>, DataError> {
    let criteria: Vec<&str> = task.criteria.iter().map(|c| c.name.as_str()).collect();
    let names: Vec<&str> = KNOWN
        .iter()
        .map(|(n, _)| *n)
        .chain(criteria.clone())
        .collect();
    check_columns(file.columns, &names, file.path)?;
    let mapped = file.columns.get("response").map(String::as_str);
    let wanted: Vec<&str> = mapped
        .into_iter()
        .chain(KNOWN[1].1.iter().copied())
        .collect();
    let table = open(file.path, &wanted)?;
    let mut known: Vec<(&str, &[&str])> = KNOWN.to_vec();
    // Labels are read where they are mapped: a column that happens to be called `R` is no label.
    known.extend(
        criteria
            .iter()
            .filter(|c| file.columns.contains_key(**c))
            .map(|c| (*c, &[][..])),
    );
    let mut needed = vec!["id", "response"];
    if file.model.is_none() {
        needed.push("model");
    }
    let header = Header::new(&table, &known, &needed, file.columns)?;
    let labelled = criteria.iter().any(|c| header.has(c));
    let mut reader = Reader {
        task,
        labels: file.labels,
        unknown: BTreeMap::new(),
    };
    reader.check(file.path)?;
    let mut seen = BTreeMap::new();
    let mut out = Vec::new();
    for row in &table.rows {
        let model = match (header.has("model"), file.model) {
            (true, _) => header.need(row, "model")?,
            (false, given) => given.unwrap_or_default().to_owned(),
        };
        let given = file
            .locale
            .or(if header.has("locale") { None } else { only });
        let response = Response {
            locale: header.locale(row, given)?,
            prompt: header.need(row, "id")?,
            text: header.get(row, "response").unwrap_or_default(),
            labels: labelled.then(|| {
                let read = |c| reader.label(c, header.get(row, criteria[c]), row.number);
                (0..criteria.len()).map(read).collect()
            }),
            row: row.number,
            model,
        };
        let key = (
            response.model.clone(),
            response.locale.clone(),
            response.prompt.clone(),
        );
        if let Some(first) = seen.insert(key, row.number) {
            let what = format!(
                "{} has a response to {} in row {first} already",
                quoted(&response.model),
                quoted(&response.prompt)
            );
            let e = DataError::new(what, "keep one of the rows");
            return Err(e.at_row(row.number).in_file(&table.file));
        }
        out.push(response);
    }
    reader.refuse().map_err(|e| e.in_file(&table.file))?;
    Ok(out)
}

/// (criterion, spelling) -> (times, first row).
type Unknown = BTreeMap<(usize, String), (usize, usize)>;

struct Reader<'a> {
    task: &'a Task,
    labels: &'a Labels,
    unknown: Unknown,
}

impl Reader<'_> {
    /// Criteria and labels of the mapping that the task does not have.
    fn check(&self, path: &Path) -> Result<(), DataError> {
        for (criterion, labels) in self.labels {
            let c = self.task.criterion_index(criterion);
            let bad = labels
                .keys()
                .find(|l| c.is_none_or(|c| self.task.criteria[c].label_index(l).is_none()));
            if c.is_none() || bad.is_some() {
                let label = bad.map_or(String::new(), |l| format!(".{l}"));
                let what = format!(
                    "labels.{criterion}{label} is no label of the task `{}`",
                    self.task.name
                );
                let advice = "write it as labels = { CRITERION = { LABEL = [\"spelling\"] } }";
                return Err(DataError::new(what, advice).in_file(path.display().to_string()));
            }
        }
        Ok(())
    }

    fn label(&mut self, c: usize, cell: Option<String>, row: usize) -> Option<usize> {
        let text = cell?;
        let criterion = &self.task.criteria[c];
        let same = |other: &String| normalise(other) == normalise(&text);
        let mapped = self
            .labels
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(&criterion.name))
            .and_then(|(_, labels)| labels.iter().find(|(_, from)| from.iter().any(same)));
        let found = match mapped {
            Some((label, _)) => criterion.label_index(label),
            // A spreadsheet writes 1 as 1.0 where a column holds numbers.
            None => criterion
                .label_index(&text)
                .or_else(|| criterion.label_index(text.strip_suffix(".0")?)),
        };
        if found.is_none() {
            self.unknown.entry((c, text)).or_insert((0, row)).0 += 1;
        }
        found
    }

    fn refuse(&self) -> Result<(), DataError> {
        let Some(((c, text), (_, row))) = self.unknown.iter().next() else {
            return Ok(());
        };
        let name = |c: usize| &self.task.criteria[c].name;
        let shown = self.unknown.iter().take(20).map(|((c, text), (n, row))| {
            format!(
                "{}: {} ({n} times, first in row {row})",
                name(*c),
                quoted(text)
            )
        });
        let list: Vec<String> = shown.collect();
        let labels: Vec<&str> = self.task.criteria[*c]
            .labels
            .iter()
            .map(|l| l.name.as_str())
            .collect();
        let advice = format!(
            "say what each means, as in labels = {{ {} = {{ {} = [{:?}] }} }}; labels are {}",
            name(*c),
            labels[0],
            text,
            labels.join(", ")
        );
        let what = format!("labels that are not known: {}", list.join("; "));
        Err(DataError::new(what, advice).at_row(*row))
    }
}

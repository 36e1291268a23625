//! Owns the import of any table by a map of its columns. Must not guess: a label that is not
//! known is listed for a mapping, a blank one is noted with its row.

mod map;

pub use map::{Source, TableMap, VoteSource};

use std::collections::BTreeMap;
use std::path::Path;

use super::{Import, NoteKind, Notes, is_error_value};
use crate::data::{DataError, ItemRecord, Row, Split, Table, normalise, read_table};
use crate::locale::Locale;
use crate::task::Task;
use crate::text::{did_you_mean, quoted};

/// Reads a table (any format of [`read_table`]) into records. With a task its labels are checked
/// and written by their names, and a row without a required field is left out; without one, labels
/// stay as written.
///
/// # Errors
/// A column that is not there, unknown labels (all of them, with their counts), a row whose locale
/// or count cannot be read, an id that is there twice without `rater=`, or a rater who gives one
/// item two labels.
pub fn import(path: &Path, map: &TableMap, task: Option<&Task>) -> Result<Import, DataError> {
    let table = read_table(path, &map.columns())?;
    import_rows(&table, map, task).map_err(|e| e.in_file(&table.file))
}

/// As [`import`], from a table that was already read.
///
/// # Errors
/// See [`import`].
pub fn import_rows(
    table: &Table,
    map: &TableMap,
    task: Option<&Task>,
) -> Result<Import, DataError> {
    let mut reader = Reader {
        table,
        map,
        task,
        notes: Notes::new(&table.file),
        unknown: BTreeMap::new(),
        columns: BTreeMap::new(),
    };
    for name in map.columns() {
        reader.columns.insert(name, table.column(name)?);
    }
    reader.check_names()?;
    let mut records: Vec<(usize, ItemRecord)> = Vec::new();
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    for row in &table.rows {
        let Some(record) = reader.record(row).map_err(|e| e.at_row(row.number))? else {
            continue;
        };
        match by_id.get(&record.id) {
            None => {
                by_id.insert(record.id.clone(), records.len());
                records.push((row.number, record));
            }
            Some(&at) => {
                let (first, earlier) = &mut records[at];
                let long = map.rater.is_some();
                merge(earlier, record, *first, long).map_err(|e| e.at_row(row.number))?;
            }
        }
    }
    reader.refuse_unknown()?;
    let notes = reader.notes.notes;
    Ok(Import {
        records: records.into_iter().map(|(_, r)| r).collect(),
        notes,
        rows: table.rows.len(),
    })
}

/// Adds the votes of a later row of the same item.
fn merge(
    into: &mut ItemRecord,
    from: ItemRecord,
    first: usize,
    long: bool,
) -> Result<(), DataError> {
    if !long {
        let what = format!("the id {} is already that of row {first}", quoted(&from.id));
        let advice = "map `id` to columns that tell the items apart, or `rater=COLUMN` where each row is one vote";
        return Err(DataError::new(what, advice));
    }
    if into.locale != from.locale || into.fields != from.fields {
        let what = format!(
            "the item {} has other texts than in row {first}",
            quoted(&from.id)
        );
        return Err(DataError::new(
            what,
            "map `id` to columns that tell the items apart",
        ));
    }
    for (criterion, votes) in from.raters {
        let known = into.raters.entry(criterion.clone()).or_default();
        for (rater, label) in votes {
            match known.get(&rater) {
                Some(other) if *other != label => {
                    let what = format!(
                        "rater {} gives the item {} the labels {} and {}",
                        quoted(&rater),
                        quoted(&into.id),
                        quoted(other),
                        quoted(&label)
                    );
                    return Err(DataError::new(what, "keep one of the rows").at_column(criterion));
                }
                _ => _ = known.insert(rater, label),
            }
        }
    }
    Ok(())
}

/// A criterion and a spelling that nothing maps.
type Unknown = BTreeMap<(String, String), (usize, usize)>;

struct Reader<'a> {
    table: &'a Table,
    map: &'a TableMap,
    task: Option<&'a Task>,
    notes: Notes<'a>,
    /// Number of votes and the first row.
    unknown: Unknown,
    /// Index of each column that the map names.
    columns: BTreeMap<&'a str, usize>,
}

impl Reader<'_> {
    /// Names of the map that the task does not have.
    fn check_names(&self) -> Result<(), DataError> {
        let Some(task) = self.task else { return Ok(()) };
        let fields: Vec<_> = task.fields.iter().map(|f| f.name.as_str()).collect();
        let criteria: Vec<_> = task.criteria.iter().map(|c| c.name.as_str()).collect();
        let refuse = |kind: &str, name: &str, known: &[&str]| {
            let what = format!("the task `{}` has no {kind} {}", task.name, quoted(name));
            Err(DataError::new(what, did_you_mean(name, known)))
        };
        if let Some(name) = self
            .map
            .fields
            .keys()
            .find(|f| !fields.contains(&f.as_str()))
        {
            return refuse("field", name, &fields);
        }
        for name in self.map.votes.keys().chain(self.map.labels.keys()) {
            let Some(c) = task.criterion_index(name) else {
                return refuse("criterion", name, &criteria);
            };
            let counted = match self.map.votes.get(name) {
                Some(VoteSource::Counts(counts)) => counts.keys().collect::<Vec<_>>(),
                _ => Vec::new(),
            };
            let mapped = self.map.labels.get(name).into_iter().flat_map(|m| m.keys());
            let labels: Vec<_> = task.criteria[c]
                .labels
                .iter()
                .map(|l| l.name.as_str())
                .collect();
            if let Some(label) = counted
                .into_iter()
                .chain(mapped)
                .find(|l| task.vote_label(c, l).is_none())
            {
                return refuse("label", label, &labels);
            }
        }
        Ok(())
    }

    fn cell(&self, row: &Row, column: &str) -> Result<String, DataError> {
        let i = match self.columns.get(column) {
            Some(i) => *i,
            None => self.table.column(column)?,
        };
        Ok(row.cells[i].trim().to_owned())
    }

    fn value(&self, row: &Row, source: &Source) -> Result<String, DataError> {
        match source {
            Source::Constant(text) => Ok(text.clone()),
            Source::Columns(columns) => {
                let cells = columns.iter().map(|c| self.cell(row, c));
                Ok(cells.collect::<Result<Vec<_>, _>>()?.join("/"))
            }
        }
    }

    /// The record of one row; `None` where it is left out.
    fn record(&mut self, row: &Row) -> Result<Option<ItemRecord>, DataError> {
        let mut record = ItemRecord::default();
        let tag = self.value(row, &self.map.locale)?;
        let locale = Locale::parse(&tag).map_err(|e| {
            DataError::new(format!("{} is no locale", quoted(&tag)), e.why).at_column("locale")
        })?;
        record.locale = locale.to_string();
        for (field, source) in &self.map.fields {
            let text = self.value(row, source)?;
            if !text.is_empty() && !is_error_value(&text) {
                record.fields.insert(field.clone(), text);
                continue;
            }
            let what = format!(
                "the text is {}",
                if text.is_empty() { "blank" } else { &text }
            );
            let needed = self
                .task
                .is_some_and(|t| t.fields.iter().any(|f| f.name == *field && f.required));
            let kind = if needed {
                NoteKind::LeftOut
            } else {
                NoteKind::Blank
            };
            self.notes.add(row.number, field, kind, what);
            if needed {
                return Ok(None);
            }
        }
        if record.fields.is_empty() {
            self.notes
                .add(row.number, "", NoteKind::LeftOut, "the row has no text");
            return Ok(None);
        }
        record.id = match &self.map.id {
            Some(source) => self.value(row, source)?,
            None => format!("row{}", row.number),
        };
        if record.id.chars().all(|c| c == '/' || c.is_whitespace()) {
            return Err(
                DataError::new("the id is blank", "map `id` to a column that is filled")
                    .at_column("id"),
            );
        }
        if let Some(group) = self
            .map
            .group
            .as_ref()
            .map(|g| self.value(row, g))
            .transpose()?
        {
            record.group = Some(normalise(&group)).filter(|g| !g.is_empty());
        }
        for (key, source) in &self.map.meta {
            record.meta.insert(key.clone(), self.value(row, source)?);
        }
        if let Some(source) = &self.map.split {
            record.split = Some(split_of(&self.value(row, source)?)?);
        }
        for (criterion, source) in &self.map.votes {
            match source {
                VoteSource::Counts(counts) => self.counts(row, criterion, counts, &mut record)?,
                VoteSource::Raters { labels, names } => {
                    self.raters(row, criterion, labels, names, &mut record)?
                }
            }
        }
        Ok(Some(record))
    }

    fn counts(
        &mut self,
        row: &Row,
        criterion: &str,
        counts: &BTreeMap<String, String>,
        record: &mut ItemRecord,
    ) -> Result<(), DataError> {
        let mut votes = BTreeMap::new();
        for (label, column) in counts {
            let cell = self.cell(row, column)?;
            if cell.is_empty() {
                self.notes.add(
                    row.number,
                    column,
                    NoteKind::Blank,
                    "the count is blank; read as 0",
                );
                continue;
            }
            let n = cell
                .parse::<f64>()
                .ok()
                .filter(|n| n.fract() == 0.0 && (0.0..=1e6).contains(n));
            let n = n.ok_or_else(|| {
                let what = format!("{} is no number of votes", quoted(&cell));
                DataError::new(
                    what,
                    "counts are whole numbers from 0; for labels use `votes.`",
                )
                .at_column(column)
            })?;
            if n > 0.0 {
                votes.insert(label.clone(), n as u32);
            }
        }
        if !votes.is_empty() {
            record.votes.insert(criterion.to_owned(), votes);
        }
        Ok(())
    }

    fn raters(
        &mut self,
        row: &Row,
        criterion: &str,
        labels: &[String],
        names: &[String],
        record: &mut ItemRecord,
    ) -> Result<(), DataError> {
        let mut votes = BTreeMap::new();
        for (i, column) in labels.iter().enumerate() {
            let cell = self.cell(row, column)?;
            if cell.is_empty() {
                self.notes.add(
                    row.number,
                    column,
                    NoteKind::Blank,
                    "the label is blank; no vote is counted",
                );
                continue;
            }
            let rater = match (&self.map.rater, names.get(i)) {
                (Some(column), _) | (None, Some(column)) => self.cell(row, column)?,
                (None, None) => column.clone(),
            };
            if rater.is_empty() {
                return Err(
                    DataError::new("the rater is blank", "name each rater").at_column(column)
                );
            }
            let Some(label) = self.label(criterion, &cell) else {
                let entry = self
                    .unknown
                    .entry((criterion.to_owned(), cell))
                    .or_insert((0, row.number));
                entry.0 += 1;
                continue;
            };
            if let Some(other) = votes.insert(rater.clone(), label) {
                let what = format!(
                    "rater {} votes twice in one row ({} first)",
                    quoted(&rater),
                    quoted(&other)
                );
                return Err(DataError::new(what, "keep one vote").at_column(column));
            }
        }
        if !votes.is_empty() {
            record.raters.insert(criterion.to_owned(), votes);
        }
        Ok(())
    }

    /// The label that a cell means: by the map where it maps this criterion, else by the task;
    /// without either as written.
    fn label(&self, criterion: &str, text: &str) -> Option<String> {
        let same = |other: &String| normalise(other) == normalise(text);
        let mapped = self.map.labels.get(criterion).into_iter().flatten();
        if let Some((label, _)) = mapped.clone().find(|(_, from)| from.iter().any(same)) {
            return Some(label.clone());
        }
        match self.task {
            Some(task) => {
                let c = task.criterion_index(criterion)?;
                let l = task.vote_label(c, text)?;
                // Under a reading the file's own label says more than the reading's.
                let name = task.criteria[c].labels[l].name.clone();
                Some(if task.reading.is_some() {
                    text.to_owned()
                } else {
                    name
                })
            }
            None if self.map.labels.contains_key(criterion) => mapped
                .map(|(label, _)| label)
                .find(|label| same(label))
                .cloned(),
            None => Some(text.to_owned()),
        }
    }

    fn refuse_unknown(&self) -> Result<(), DataError> {
        let Some(((criterion, text), (_, row))) =
            self.unknown.iter().min_by_key(|(_, (_, row))| *row)
        else {
            return Ok(());
        };
        let shown = |((c, text), (n, row)): (&(String, String), &(usize, usize))| {
            format!("{c}: {} ({n} times, first in row {row})", quoted(text))
        };
        let list: Vec<_> = self.unknown.iter().take(20).map(shown).collect();
        let more = self.unknown.len().saturating_sub(20);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        let what = format!("labels that are not known: {}{more}", list.join("; "));
        let advice = format!(
            "say what each means, as in `--map 'labels.{criterion}.LABEL={text}'`{}",
            self.known(criterion)
        );
        Err(DataError::new(what, advice)
            .at_row(*row)
            .at_column(criterion))
    }

    fn known(&self, criterion: &str) -> String {
        let of_task = self
            .task
            .and_then(|t| Some(&t.criteria[t.criterion_index(criterion)?]));
        let labels: Vec<_> = match of_task {
            Some(c) => c.labels.iter().map(|l| l.name.clone()).collect(),
            None => self
                .map
                .labels
                .get(criterion)
                .into_iter()
                .flat_map(|m| m.keys().cloned())
                .collect(),
        };
        format!("; LABEL is one of {}", labels.join(", "))
    }
}

fn split_of(text: &str) -> Result<Split, DataError> {
    let known = [Split::Tune, Split::Validation, Split::Test];
    known
        .into_iter()
        .find(|s| s.as_str().eq_ignore_ascii_case(text))
        .ok_or_else(|| {
            let e = DataError::new(
                format!("{} is no split", quoted(text)),
                "write tune, validation or test",
            );
            e.at_column("split")
        })
}

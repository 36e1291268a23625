//! Owns the JSONL file of items: reading it line by line, checking a record against a task, and
//! writing it whole or not at all. Must not know data sets or splits.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::{DataError, Item, ItemRecord, MAX_CELL_BYTES, Votes, normalise};
use crate::locale::Locale;
use crate::task::Task;
use crate::text::{did_you_mean, is_invisible, position, quoted};

/// A line longer than this is refused before it fills the memory.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// Reads the records of an items file with their line numbers; `-` is standard input. A byte order
/// mark, CRLF and blank lines are tolerated; lines end at `\n` alone.
///
/// # Errors
/// The first line that is no record, with file, line and position.
pub fn read_records(path: &Path) -> Result<Vec<(usize, ItemRecord)>, DataError> {
    let name = path.display().to_string();
    if name == "-" {
        return records_from(std::io::stdin().lock(), &name);
    }
    let file = File::open(path).map_err(|e| io_error("read", &name, &e))?;
    records_from(BufReader::new(file), &name)
}

/// As [`read_records`], from any reader; `name` stands in for the file in messages.
///
/// # Errors
/// See [`read_records`].
pub fn records_from(
    mut reader: impl BufRead,
    name: &str,
) -> Result<Vec<(usize, ItemRecord)>, DataError> {
    let mut records = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = reader
            .by_ref()
            .take(MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut line);
        if read.map_err(|e| io_error("read", name, &e))? == 0 {
            break;
        }
        let place = |e: DataError| e.at_row(number).in_file(name);
        if line.len() as u64 > MAX_LINE_BYTES {
            let e = DataError::new("the line is longer than 64 MiB", "is this an items file?");
            return Err(place(e));
        }
        let text = line_text(&line, number == 1).map_err(place)?;
        if !text.trim().is_empty() {
            records.push((number, parse_record(text).map_err(place)?));
        }
    }
    Ok(records)
}

/// One line as text: byte order mark and line end taken off.
fn line_text(line: &[u8], first: bool) -> Result<&str, DataError> {
    let line = if first {
        line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
    } else {
        line
    };
    if let Some(at) = line.iter().position(|b| *b == 0) {
        let advice = "items files are UTF-8 text without NUL; was it saved as UTF-16?";
        return Err(DataError::new("a NUL byte", advice).at_column(format!("byte {}", at + 1)));
    }
    let text = std::str::from_utf8(line).map_err(|e| {
        DataError::new("not UTF-8", "save the file as UTF-8")
            .at_column(format!("byte {}", e.valid_up_to() + 1))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']))
}

fn parse_record(text: &str) -> Result<ItemRecord, DataError> {
    let record: ItemRecord = serde_json::from_str(text).map_err(|e| json_error(&e, text))?;
    for (field, value) in record_texts(&record) {
        check_text(value).map_err(|e| e.at_column(field))?;
    }
    Ok(record)
}

/// Every text of a record that a person wrote, with its place.
fn record_texts(record: &ItemRecord) -> impl Iterator<Item = (String, &str)> {
    let own =
        [("id", &record.id), ("locale", &record.locale)].map(|(k, v)| (k.to_owned(), v.as_str()));
    let group = record
        .group
        .iter()
        .map(|g| ("group".to_owned(), g.as_str()));
    let fields = record
        .fields
        .iter()
        .map(|(k, v)| (format!("fields.{k}"), v.as_str()));
    let meta = record
        .meta
        .iter()
        .map(|(k, v)| (format!("meta.{k}"), v.as_str()));
    own.into_iter().chain(group).chain(fields).chain(meta)
}

/// Refuses NUL and texts over [`MAX_CELL_BYTES`].
pub(super) fn check_text(text: &str) -> Result<(), DataError> {
    if text.len() > MAX_CELL_BYTES {
        let what = format!("a text of {} bytes; at most 10 MiB are read", text.len());
        return Err(DataError::new(
            what,
            "shorten it, or is a quotation mark not closed?",
        ));
    }
    if text.contains('\0') {
        return Err(DataError::new("a NUL character", "remove it"));
    }
    Ok(())
}

/// A JSON error in plain words; the place in the line (a line of `text`) becomes the column.
pub(super) fn json_error(e: &serde_json::Error, text: &str) -> DataError {
    let said = e.to_string();
    let what = said
        .rsplit_once(" at line ")
        .map_or(said.as_str(), |(what, _)| what)
        .to_owned();
    let line = text.split('\n').nth(e.line().saturating_sub(1));
    // The parser counts bytes, and people count characters.
    let line = line.unwrap_or_default();
    let column = position(line, e.column().saturating_sub(1)).1;
    let advice = if what.contains("surrogate") || what.contains("hex escape") {
        "a \\u escape is half of a pair (a lone surrogate) or cut off; write the whole character"
            .to_owned()
    } else if let Some(rest) = what.strip_prefix("unknown field `") {
        let word = rest.split('`').next().unwrap_or_default();
        let known = [
            "id", "locale", "fields", "group", "votes", "raters", "meta", "split",
        ];
        did_you_mean(word, &known)
    } else if let Some(rest) = what.strip_prefix("unknown variant `") {
        let word = rest.split('`').next().unwrap_or_default();
        did_you_mean(word, &["tune", "validation", "test"])
    } else if what.starts_with("missing field") {
        "an item has at least id, locale and fields".to_owned()
    } else if what.contains("expected u32") {
        "a number of votes is a whole number from 0".to_owned()
    } else if line.starts_with('\u{feff}') {
        "a byte order mark (U+FEFF) stands before this line, as where files were joined; remove it"
            .to_owned()
    } else if line.contains(['\u{2028}', '\u{2029}', '\u{85}']) && what.contains("trailing") {
        "a Unicode line separator stands between two records; end each line with a line feed"
            .to_owned()
    } else if line.contains('\r') && what.contains("trailing") {
        "the lines end in carriage returns alone; save the file with line feeds".to_owned()
    } else if e.is_eof() {
        "the line is cut off; each line holds one whole JSON object".to_owned()
    } else {
        "each line holds one JSON object".to_owned()
    };
    DataError::new(what, advice).at_column(format!("character {column}"))
}

pub(super) fn io_error(doing: &str, name: &str, e: &std::io::Error) -> DataError {
    let advice = match e.kind() {
        std::io::ErrorKind::NotFound => "check the path",
        std::io::ErrorKind::PermissionDenied => "check the permissions",
        _ => "check the disk and the path",
    };
    DataError::new(format!("cannot {doing} it: {e}"), advice).in_file(name)
}

/// Resolves a record against a task: its fields, labels and criteria, its locale, its group. The
/// group is compared in normalised form; absent or blank, it is the normalised text of the fields
/// that identify an item (of all fields where the task names none).
///
/// # Errors
/// Names the unknown criterion, label or field with the known ones, a missing required field, a
/// bad locale, an empty id, or a criterion that is both in `votes` and in `raters`.
pub fn check_record(task: &Task, record: &ItemRecord, line: usize) -> Result<Item, DataError> {
    check_inner(task, record).map_err(|e| e.at_row(line))
}

fn check_inner(task: &Task, record: &ItemRecord) -> Result<Item, DataError> {
    if record.id.trim().is_empty() || record.id.chars().any(char::is_control) {
        let e = DataError::new(
            "the id is empty or has control characters",
            "give each item an id",
        );
        return Err(e.at_column("id"));
    }
    // A joiner shapes letters; everything else that is not drawn makes two ids look like one.
    let hidden = |c: &char| {
        is_invisible(*c) && !matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
    };
    if let Some(c) = record.id.chars().find(hidden) {
        let what = format!("the id {} holds an invisible character", quoted(&record.id));
        let e = DataError::new(what, format!("remove U+{:04X} from it", c as u32));
        return Err(e.at_column("id"));
    }
    let locale = Locale::parse(&record.locale).map_err(|e| {
        DataError::new(format!("{} is no locale", quoted(&e.text)), e.why).at_column("locale")
    })?;
    let fields = check_fields(task, record)?;
    let votes = check_votes(task, record)?;
    let given = record
        .group
        .as_deref()
        .map(normalise)
        .filter(|g| !g.is_empty());
    let group = given.unwrap_or_else(|| own_text(task, &fields, &record.id));
    let (id, meta, split) = (record.id.clone(), record.meta.clone(), record.split);
    Ok(Item {
        id,
        locale,
        fields,
        group,
        votes,
        meta,
        split,
    })
}

/// The normalised identifying text of an item; its id where there is no text at all.
pub(super) fn own_text(task: &Task, fields: &[String], id: &str) -> String {
    let any = task.fields.iter().any(|f| f.identifies);
    let parts: Vec<_> = task
        .fields
        .iter()
        .zip(fields)
        .filter(|(f, _)| f.identifies || !any)
        .map(|(_, text)| normalise(text))
        .collect();
    if parts.iter().all(String::is_empty) {
        id.to_owned()
    } else {
        parts.join(" | ")
    }
}

fn check_fields(task: &Task, record: &ItemRecord) -> Result<Vec<String>, DataError> {
    let known: Vec<_> = task.fields.iter().map(|f| f.name.as_str()).collect();
    if let Some(name) = record.fields.keys().find(|k| !known.contains(&k.as_str())) {
        let what = format!("the task `{}` has no field {}", task.name, quoted(name));
        let advice = format!(
            "{}; columns for evaluation go into `meta`",
            did_you_mean(name, &known)
        );
        return Err(DataError::new(what, advice).at_column(format!("fields.{name}")));
    }
    let text_of = |f: &crate::task::Field| {
        let text = record.fields.get(&f.name).cloned().unwrap_or_default();
        if f.required && normalise(&text).is_empty() {
            let what = format!("the field `{}` is missing or blank", f.name);
            let advice = format!("the task `{}` needs it", task.name);
            return Err(DataError::new(what, advice).at_column(format!("fields.{}", f.name)));
        }
        Ok(text)
    };
    task.fields.iter().map(text_of).collect()
}

fn check_votes(task: &Task, record: &ItemRecord) -> Result<Vec<Votes>, DataError> {
    let blank = |c: &crate::task::Criterion| Votes {
        counts: vec![0; c.labels.len()],
        raters: Vec::new(),
    };
    let mut votes: Vec<_> = task.criteria.iter().map(blank).collect();
    for (name, counts) in &record.votes {
        let at = format!("votes.{name}");
        let c = criterion(task, name).map_err(|e| e.at_column(&at))?;
        for (label, n) in counts {
            let l = label_of(task, c, label).map_err(|e| e.at_column(&at))?;
            let cell = &mut votes[c].counts[l];
            *cell = cell
                .checked_add(*n)
                .filter(|n| *n <= 1_000_000)
                .ok_or_else(|| {
                    DataError::new(
                        "more than 1,000,000 votes for one label",
                        "is this a count?",
                    )
                    .at_column(&at)
                })?;
        }
    }
    for (name, by_rater) in &record.raters {
        let at = format!("raters.{name}");
        let c = criterion(task, name).map_err(|e| e.at_column(&at))?;
        if votes[c].total() > 0 {
            let what = format!("the criterion `{name}` is both in `votes` and in `raters`");
            return Err(DataError::new(what, "keep one of them").at_column(at));
        }
        for (rater, label) in by_rater {
            let l = label_of(task, c, label).map_err(|e| e.at_column(format!("{at}.{rater}")))?;
            votes[c].counts[l] += 1;
            votes[c].raters.push((rater.clone(), l));
        }
    }
    Ok(votes)
}

fn criterion(task: &Task, name: &str) -> Result<usize, DataError> {
    task.criterion_index(name).ok_or_else(|| {
        let known: Vec<_> = task.criteria.iter().map(|c| c.name.as_str()).collect();
        let what = format!("the task `{}` has no criterion {}", task.name, quoted(name));
        DataError::new(what, did_you_mean(name, &known))
    })
}

fn label_of(task: &Task, criterion: usize, text: &str) -> Result<usize, DataError> {
    task.vote_label(criterion, text).ok_or_else(|| {
        let c = &task.criteria[criterion];
        let read = task
            .relabel
            .get(criterion)
            .into_iter()
            .flatten()
            .map(|(from, _)| from.as_str());
        let mut known: Vec<_> = read.collect();
        if known.is_empty() {
            known = c.labels.iter().map(|l| l.name.as_str()).collect();
        }
        let what = format!("the criterion `{}` has no label {}", c.name, quoted(text));
        DataError::new(what, did_you_mean(text, &known))
    })
}

/// Reads an items file and checks every record against the task.
///
/// # Errors
/// The first bad line, or a duplicate id with both of its lines.
pub fn load_items(task: &Task, path: &Path) -> Result<Vec<Item>, DataError> {
    let name = path.display().to_string();
    let records = read_records(path)?;
    let mut seen: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    let mut items = Vec::with_capacity(records.len());
    for (line, record) in &records {
        if let Some(first) = seen.insert(same_id(&record.id), (*line, &record.id)) {
            let e = duplicate_id(&record.id, first);
            return Err(e.at_row(*line).at_column("id").in_file(name));
        }
        items.push(check_record(task, record, *line).map_err(|e| e.in_file(&name))?);
    }
    Ok(items)
}

/// What two ids may not share: an id in composed form (NFC), since people cannot tell the forms
/// apart.
pub(super) fn same_id(id: &str) -> String {
    icu_normalizer::ComposingNormalizerBorrowed::new_nfc()
        .normalize(id)
        .into_owned()
}

/// The refusal of an id that an earlier row has, with that row.
pub(super) fn duplicate_id(id: &str, (row, earlier): (usize, &str)) -> DataError {
    let form = if id == earlier {
        ""
    } else {
        " in another Unicode form"
    };
    let what = format!("the id {} is already that of row {row}{form}", quoted(id));
    DataError::new(what, "ids are unique in a file; rename or remove one")
}

/// Writes an items file whole or not at all (a file beside it is renamed over it). One JSON object
/// a line, UTF-8 unescaped, keys in a fixed order; `-` is standard output.
///
/// # Errors
/// The path that cannot be written and why.
pub fn write_records(path: &Path, records: &[ItemRecord]) -> Result<(), DataError> {
    let name = path.display().to_string();
    let failed = |e: &std::io::Error| io_error("write", &name, e);
    if name == "-" {
        return write_lines(std::io::stdout().lock(), records).map_err(|e| failed(&e));
    }
    let file_name = path.file_name().ok_or_else(|| {
        DataError::new("this is no file name", "name a file to write").in_file(&name)
    })?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(file_name);
    beside.push(format!(".{}.partial", std::process::id()));
    let beside = path.with_file_name(beside);
    let write = || {
        let file = File::create(&beside)?;
        write_lines(BufWriter::new(&file), records)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|e| {
        // The part that was written is worth nothing; a failure to remove it changes nothing.
        let _ = std::fs::remove_file(&beside);
        failed(&e)
    })
}

fn write_lines(mut out: impl Write, records: &[ItemRecord]) -> std::io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut out, record)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// BLAKE3 (hex) of checked items: every text, vote and split, in order of id, so the order of the
/// file does not count.
pub fn digest(items: &[Item]) -> String {
    let mut order: Vec<_> = items.iter().collect();
    order.sort_by(|a, b| a.id.cmp(&b.id));
    let mut hasher = blake3::Hasher::new();
    // Every text is preceded by its length, so that no two lists of texts collide.
    let mut put = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for item in order {
        put(&item.id);
        put(item.locale.as_str());
        put(&item.fields.len().to_string());
        item.fields.iter().for_each(|f| put(f));
        put(&item.group);
        for v in &item.votes {
            put(&format!("{:?}", v.counts));
            put(&v.raters.len().to_string());
            for (rater, label) in &v.raters {
                put(rater);
                put(&label.to_string());
            }
        }
        put(&item.meta.len().to_string());
        for (k, v) in &item.meta {
            put(k);
            put(v);
        }
        put(item.split.map_or("", super::Split::as_str));
    }
    hasher.finalize().to_hex().to_string()
}

//! Owns JSON lines and arrays of objects as tables: nested values become columns named by their
//! path (`raters.0.label`). Must not know what the columns mean.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{DataError, Row, Table, need, text_of};
use crate::data::load::json_error;

/// More columns than this are no table.
const MAX_COLUMNS: usize = 10_000;

pub(super) fn read_lines(bytes: &[u8], wanted: &[&str]) -> Result<Table, DataError> {
    let mut builder = Builder::default();
    for (i, line) in text_of(bytes)?.split('\n').enumerate() {
        if !line.trim().is_empty() {
            let value =
                serde_json::from_str(line).map_err(|e| json_error(&e, line).at_row(i + 1))?;
            builder.push(i + 1, value)?;
        }
    }
    builder.finish(wanted)
}

pub(super) fn read_array(bytes: &[u8], wanted: &[&str]) -> Result<Table, DataError> {
    let text = text_of(bytes)?;
    let value: Value = serde_json::from_str(text).map_err(|e| {
        // Here the parser sees the whole file, so its line is the file's.
        let error = json_error(&e, text).at_row(e.line());
        DataError {
            advice: "the file is one JSON array of objects".into(),
            ..error
        }
    })?;
    let Value::Array(elements) = value else {
        return Err(DataError::new(
            "the file is no array",
            "it must be a JSON array of objects",
        ));
    };
    let mut builder = Builder::default();
    for (i, element) in elements.into_iter().enumerate() {
        builder.push(i + 1, element)?;
    }
    builder.finish(wanted)
}

#[derive(Default)]
struct Builder {
    header: Vec<String>,
    index: BTreeMap<String, usize>,
    rows: Vec<Row>,
}

impl Builder {
    fn push(&mut self, number: usize, value: Value) -> Result<(), DataError> {
        let Value::Object(object) = value else {
            let e = DataError::new("this is no JSON object", "each row is an object {…}");
            return Err(e.at_row(number));
        };
        let mut flat = Vec::new();
        for (key, value) in object {
            flatten(key, value, &mut flat);
        }
        let mut cells = vec![String::new(); self.header.len()];
        for (name, text) in flat {
            let next = self.header.len();
            let at = *self.index.entry(name.clone()).or_insert(next);
            if at == next {
                if next == MAX_COLUMNS {
                    let e = DataError::new("more than 10,000 columns", "is this a table?");
                    return Err(e.at_row(number));
                }
                self.header.push(name);
            }
            if cells.len() <= at {
                cells.resize(at + 1, String::new());
            }
            cells[at] = text;
        }
        self.rows.push(Row { number, cells });
        Ok(())
    }

    fn finish(mut self, wanted: &[&str]) -> Result<Table, DataError> {
        if self.rows.is_empty() {
            return Err(DataError::new(
                "the table is empty",
                "it needs at least one object",
            ));
        }
        need(&self.header, wanted)?;
        for row in &mut self.rows {
            row.cells.resize(self.header.len(), String::new());
        }
        Ok(Table {
            file: String::new(),
            header: self.header,
            rows: self.rows,
        })
    }
}

/// Scalars keep their text, a list of scalars is joined by `; `, objects and lists of objects are
/// spread over columns. Depth is bounded by the parser's own limit.
fn flatten(path: String, value: Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                flatten(format!("{path}.{key}"), value, out);
            }
        }
        Value::Array(list) if list.iter().any(|v| v.is_object() || v.is_array()) => {
            for (i, value) in list.into_iter().enumerate() {
                flatten(format!("{path}.{i}"), value, out);
            }
        }
        Value::Array(list) => {
            let texts: Vec<_> = list.into_iter().map(scalar).collect();
            out.push((path, texts.join("; ")));
        }
        other => out.push((path, scalar(other))),
    }
}

fn scalar(value: Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    }
}

//! Owns single cells: columns and what stands in for them, numbers for texts, errors with a place.
//! Must not know what a vote is.

use std::collections::HashMap;
use std::path::Path;

use crate::data::{DataError, Row, Table};

/// A column of a table, or a text that is the same for the whole file.
pub(super) enum Cell {
    At(usize),
    Text(String),
}

impl Cell {
    /// The column, or the text that `@file` and `@folder` stand for.
    pub fn find(table: &Table, name: &str) -> Result<Cell, DataError> {
        let path = Path::new(&table.file);
        let text = |part: Option<&std::ffi::OsStr>| {
            let part = part.map_or_else(String::new, |p| p.to_string_lossy().into_owned());
            Cell::Text(if part.is_empty() {
                table.file.clone()
            } else {
                part
            })
        };
        match name {
            "@file" => Ok(text(path.file_stem())),
            "@folder" => Ok(text(path.parent().and_then(Path::file_name))),
            name => Ok(Cell::At(table.column(name)?)),
        }
    }

    /// Its text, trimmed.
    pub fn of<'a>(&'a self, row: &'a Row) -> &'a str {
        match self {
            Cell::At(at) => row.cells[*at].trim(),
            Cell::Text(text) => text,
        }
    }
}

/// People's labels in one table: (rater or label, name of the column, its index).
pub(super) enum VoteColumns<'a> {
    Wide(Vec<(usize, &'a str, usize)>),
    Long(Cell, usize),
    Counts(Vec<(&'a str, &'a str, usize)>),
}

/// Numbers for texts, in the order in which they appear.
#[derive(Default)]
pub(super) struct Names {
    pub index: HashMap<String, usize>,
    pub names: Vec<String>,
}

impl Names {
    /// The number of a text, a new one where it is new.
    pub fn number(&mut self, name: &str) -> usize {
        if let Some(&at) = self.index.get(name) {
            return at;
        }
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

/// The text of a cell that must have one.
pub(super) fn not_blank<'a>(
    cell: &'a Cell,
    table: &Table,
    row: &'a Row,
    name: &str,
) -> Result<&'a str, DataError> {
    match cell.of(row) {
        "" => {
            let place = (table.file.as_str(), row.number, name);
            Err(error_at(
                place,
                "a blank cell",
                "fill it, or take the row out",
            ))
        }
        text => Ok(text),
    }
}

/// An error with its place.
pub(super) fn error_at(
    place: (&str, usize, &str),
    what: impl Into<String>,
    advice: impl Into<String>,
) -> DataError {
    DataError::new(what, advice)
        .in_file(place.0)
        .at_row(place.1)
        .at_column(place.2)
}

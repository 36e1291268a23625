//! Owns the one error of this room, with its place in machine-readable fields.
//! Must not know how a program shows it.

use serde::Serialize;

/// Why data are refused: what happened, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{}", self.sentence())]
pub struct DataError {
    /// The file as it was named; `-` for standard input; empty where no file is involved.
    pub file: String,
    /// Line of a text file in which the record begins, row of a spreadsheet, or element of a JSON
    /// array; all count from 1.
    pub row: Option<usize>,
    /// Column name, field or position in the line.
    pub column: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

impl DataError {
    /// An error without a place; add it with the methods below.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        let (what, advice) = (what.into(), advice.into());
        Self {
            file: String::new(),
            row: None,
            column: None,
            what,
            advice,
        }
    }

    /// Adds the row.
    pub fn at_row(mut self, row: usize) -> Self {
        self.row = Some(row);
        self
    }

    /// Adds the column.
    pub fn at_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// Adds the file, unless one is already named.
    pub fn in_file(mut self, file: impl Into<String>) -> Self {
        if self.file.is_empty() {
            self.file = file.into();
        }
        self
    }

    /// The place alone, `items.jsonl, row 3, votes.H`; empty where none is known.
    pub fn place(&self) -> String {
        let file = (!self.file.is_empty()).then(|| self.file.clone());
        let row = self.row.map(|r| format!("row {r}"));
        [file, row, self.column.clone()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ")
    }

    fn sentence(&self) -> String {
        let mut out = self.place();
        if !out.is_empty() {
            out.push_str(": ");
        }
        out.push_str(&self.what);
        if !self.advice.is_empty() {
            out.push_str("; ");
            out.push_str(&self.advice);
        }
        // Names of columns, fields and files are foreign text.
        crate::text::visible(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_place() {
        let e = DataError::new("no label", "write one")
            .at_row(3)
            .at_column("votes.H");
        assert_eq!(
            e.clone().in_file("a.jsonl").to_string(),
            "a.jsonl, row 3, votes.H: no label; write one"
        );
        assert_eq!(e.to_string(), "row 3, votes.H: no label; write one");
    }
}

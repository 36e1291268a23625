//! Owns the importers: a data set's own files -> item records, and notes on every row that was
//! repaired or left out. Must not know tasks beyond their names of fields and labels.

pub mod seegull;
pub mod table;
pub mod xl_safety;

use std::collections::BTreeMap;

use serde::Serialize;

use super::ItemRecord;

/// What an import gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// The items, in the order of the files.
    pub records: Vec<ItemRecord>,
    /// What was repaired, left out or doubtful.
    pub notes: Vec<Note>,
    /// Rows read, whether kept or not.
    pub rows: usize,
}

/// A remark on one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The file as it was named.
    pub file: String,
    /// Row as in [`super::Row::number`].
    pub row: usize,
    /// The column it is about, where it is about one.
    pub column: Option<String>,
    /// Its kind, for counting.
    pub kind: NoteKind,
    /// What was done and why.
    pub what: String,
}

/// Kinds of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// The row gives no item.
    LeftOut,
    /// A comma or white space at the end of a text was removed.
    Trimmed,
    /// Zero-width or direction characters were removed.
    Invisible,
    /// A cell is blank or an error value; the item is kept without it.
    Blank,
    /// The item's text equals that of an earlier one after normalisation; both are kept, in one
    /// group.
    Duplicate,
    /// The votes look odd (not three, say); kept as they are.
    Votes,
}

impl Import {
    /// Rows that gave no item.
    pub fn left_out(&self) -> usize {
        self.notes
            .iter()
            .filter(|n| n.kind == NoteKind::LeftOut)
            .count()
    }

    /// Number of notes by kind.
    pub fn note_counts(&self) -> BTreeMap<NoteKind, usize> {
        let mut counts = BTreeMap::new();
        for note in &self.notes {
            *counts.entry(note.kind).or_default() += 1;
        }
        counts
    }
}

/// Collects the notes of one file.
struct Notes<'a> {
    file: &'a str,
    notes: Vec<Note>,
}

impl<'a> Notes<'a> {
    fn new(file: &'a str) -> Self {
        Self {
            file,
            notes: Vec::new(),
        }
    }

    fn add(&mut self, row: usize, column: &str, kind: NoteKind, what: impl Into<String>) {
        let column = (!column.is_empty()).then(|| column.to_owned());
        self.notes.push(Note {
            file: self.file.to_owned(),
            row,
            column,
            kind,
            what: what.into(),
        });
    }

    /// The cleaned text of a cell, with a note of what was taken away.
    fn clean(&mut self, row: usize, column: &str, text: &str) -> String {
        let (clean, did) = super::clean(text);
        if did.comma && !clean.is_empty() {
            self.add(
                row,
                column,
                NoteKind::Trimmed,
                "a comma at the end of the text was removed",
            );
        } else if did.space && !clean.is_empty() {
            self.add(
                row,
                column,
                NoteKind::Trimmed,
                "white space around the text was removed",
            );
        }
        if did.invisible {
            self.add(
                row,
                column,
                NoteKind::Invisible,
                "zero-width characters were removed",
            );
        }
        clean
    }
}

/// Whether a cell is a spreadsheet's error value (`#ERROR!`, `#N/A`, `#REF!`).
fn is_error_value(text: &str) -> bool {
    let text = text.trim();
    const KNOWN: [&str; 10] = [
        "#ERROR!", "#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!", "#SPILL!",
        "#CALC!",
    ];
    KNOWN.iter().any(|k| k.eq_ignore_ascii_case(text))
}

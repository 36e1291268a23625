//! Owns CSV and TSV. Must not know how a header is found.

use super::{DataError, Row, Table, from_rows, text_of};

pub(super) fn read(bytes: &[u8], separator: u8, wanted: &[&str]) -> Result<Table, DataError> {
    let text = text_of(bytes)?;
    // A TSV file is often written without quoting; an odd number of marks cannot be quoting.
    let odd = text.bytes().filter(|b| *b == b'"').count() % 2 == 1;
    let quoting = separator != b'\t' || !odd;
    let mut rows = Rows::new(text, separator, quoting);
    let table = from_rows(&mut rows, wanted, false)?;
    match table.rows.last() {
        Some(last) if quoting && odd && last.cells.iter().any(|c| c.contains('\n')) => {
            let what = "a quotation mark is opened and never closed in this row";
            Err(DataError::new(what, "close it, or double it inside a cell").at_row(last.number))
        }
        _ => Ok(table),
    }
}

/// Records with the line in which each begins.
struct Rows<'a> {
    text: &'a str,
    reader: csv::Reader<&'a [u8]>,
    at: usize,
    line: usize,
}

impl<'a> Rows<'a> {
    fn new(text: &'a str, separator: u8, quoting: bool) -> Self {
        let reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .quoting(quoting)
            .has_headers(false)
            .flexible(true)
            .from_reader(text.as_bytes());
        Self {
            text,
            reader,
            at: 0,
            line: 1,
        }
    }

    /// The line of a byte offset, line ends before the record skipped; offsets only grow.
    fn line_of(&mut self, offset: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut to = offset.min(bytes.len());
        while bytes.get(to).is_some_and(|b| matches!(b, b'\r' | b'\n')) {
            to += 1;
        }
        self.line += bytes[self.at.min(to)..to]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        self.at = to;
        self.line
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = csv::StringRecord::new();
        match self.reader.read_record(&mut record) {
            Ok(false) => None,
            Ok(true) => {
                let offset = record.position().map_or(0, csv::Position::byte);
                let number = self.line_of(usize::try_from(offset).unwrap_or(usize::MAX));
                Some(Ok(Row {
                    number,
                    cells: record.iter().map(str::to_owned).collect(),
                }))
            }
            Err(e) => Some(Err(DataError::new(e.to_string(), "check the file"))),
        }
    }
}

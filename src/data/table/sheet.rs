//! Owns spreadsheets: the first sheet that has the wanted columns. Must not know how a header is
//! told from what stands above it.

use std::io::Cursor;

use calamine::{Data, Range, Reader};

use super::{DataError, Row, Table, from_rows};

/// A workbook larger than this is refused before it is unpacked.
const MAX_WORKBOOK_BYTES: usize = 256 * 1024 * 1024;

pub(super) fn read(bytes: &[u8], wanted: &[&str]) -> Result<Table, DataError> {
    if bytes.len() > MAX_WORKBOOK_BYTES {
        return Err(DataError::new(
            "the workbook is over 256 MiB",
            "export the sheet as CSV",
        ));
    }
    let broken = |what: String| DataError::new(what, "open it and export the sheet as CSV");
    let mut book = calamine::open_workbook_auto_from_rs(Cursor::new(bytes.to_vec()))
        .map_err(|e| broken(format!("this is no spreadsheet that can be read: {e}")))?;
    let mut first_error = None;
    for name in book.sheet_names() {
        let table = match book.worksheet_range(&name) {
            Ok(range) => from_rows(rows(&range), wanted, true),
            Err(e) => Err(broken(format!("the sheet cannot be read: {e}"))),
        };
        match table {
            Ok(table) => return Ok(table),
            Err(e) => {
                let what = format!("sheet `{name}`: {}", e.what);
                first_error.get_or_insert(DataError { what, ..e });
            }
        }
    }
    Err(first_error.unwrap_or_else(|| broken("the workbook has no sheet".into())))
}

fn rows(range: &Range<Data>) -> impl Iterator<Item = Result<Row, DataError>> + '_ {
    let start = range.start().map_or(0, |(row, _)| row as usize);
    range.rows().enumerate().map(move |(i, cells)| {
        Ok(Row {
            number: start + i + 1,
            cells: cells.iter().map(text).collect(),
        })
    })
}

fn text(cell: &Data) -> String {
    match cell {
        Data::Empty => String::new(),
        Data::String(text) => text.clone(),
        other => other.to_string(),
    }
}

//! Owns the one reader of CSV, TSV, JSONL, JSON arrays and spreadsheets: a header and rows of
//! texts with their row numbers; and the writers of CSV and workbooks. Must not know what the columns mean.

mod delimited;
mod json;
mod sheet;
mod write;

pub use write::{Look, csv_bytes, workbook_bytes};

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use super::load::{check_text, io_error};
use super::{DataError, nearest, normalise};
use crate::text::{did_you_mean, quoted};

/// A text longer than this (10 MiB) is refused: it is a quotation mark that was never closed, or
/// no data at all.
pub const MAX_CELL_BYTES: usize = 10 * 1024 * 1024;

/// A header is looked for in the first rows of a file, this many.
const HEADER_ROWS: usize = 50;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON object a line.
    JsonLines,
    /// A JSON array of objects.
    JsonArray,
    /// XLSX, XLS, XLSB or ODS.
    Spreadsheet,
}

/// A table as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The file as it was named.
    pub file: String,
    /// Unique column names. A blank one becomes `column 3`; a second `x` becomes `x (2)`.
    pub header: Vec<String>,
    /// The rows below the header, blank ones left out.
    pub rows: Vec<Row>,
}

/// One row of a [`Table`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Line of a text file in which the row begins, row of the sheet, or element of the array.
    pub number: usize,
    /// One text per column of the header.
    pub cells: Vec<String>,
}

impl Table {
    /// Index of a column by its exact name, else by its name in normalised form.
    ///
    /// # Errors
    /// Names the column that is not there and the nearest that are.
    pub fn column(&self, name: &str) -> Result<usize, DataError> {
        find(&self.header, name).ok_or_else(|| missing(name, &self.header).in_file(&self.file))
    }
}

/// Reads a table from a file, or from standard input where the path is `-`. The header is the
/// first row that has all the `wanted` columns (within the first 50), so notes, titles or `#`
/// comments may come before it; without wanted columns it is the first row that is no comment.
///
/// # Errors
/// With file, row and column: what is no table, not UTF-8, holds NUL, has a cell over
/// [`MAX_CELL_BYTES`], a row that does not fit the header, or lacks a wanted column.
pub fn read_table(path: &Path, wanted: &[&str]) -> Result<Table, DataError> {
    read_table_as(path, None, wanted)
}

/// As [`read_table`], in a format that is known, where one is given.
///
/// # Errors
/// See [`read_table`].
pub fn read_table_as(
    path: &Path,
    format: Option<Format>,
    wanted: &[&str],
) -> Result<Table, DataError> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let read = match name.as_str() {
        "-" => std::io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        _ => std::fs::read(path).map(|b| bytes = b),
    };
    read.map_err(|e| io_error("read", &name, &e))?;
    let extension = path
        .extension()
        .and_then(|e| e.to_str())
        .unwrap_or_default();
    let format = format.unwrap_or_else(|| format_of(extension, &bytes));
    table_from_bytes(&name, &bytes, format, wanted)
}

/// The format by the file's first bytes and extension.
fn format_of(extension: &str, bytes: &[u8]) -> Format {
    if bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\xd0\xcf\x11\xe0") {
        return Format::Spreadsheet;
    }
    let text = bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(bytes)
        .trim_ascii_start();
    let first_line = text.split(|b| *b == b'\n').next().unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Format::Csv,
        "tsv" | "tab" => Format::Tsv,
        "xlsx" | "xls" | "xlsb" | "ods" => Format::Spreadsheet,
        _ if text.starts_with(b"[") => Format::JsonArray,
        _ if text.starts_with(b"{") => Format::JsonLines,
        "json" => Format::JsonArray,
        "jsonl" | "ndjson" => Format::JsonLines,
        _ if first_line.contains(&b'\t') => Format::Tsv,
        _ => Format::Csv,
    }
}

/// As [`read_table`], from bytes in a known format; `name` stands in for the file in messages.
///
/// # Errors
/// See [`read_table`].
pub fn table_from_bytes(
    name: &str,
    bytes: &[u8],
    format: Format,
    wanted: &[&str],
) -> Result<Table, DataError> {
    let table = match format {
        Format::Csv => delimited::read(bytes, b',', wanted),
        Format::Tsv => delimited::read(bytes, b'\t', wanted),
        Format::JsonLines => json::read_lines(bytes, wanted),
        Format::JsonArray => json::read_array(bytes, wanted),
        Format::Spreadsheet => sheet::read(bytes, wanted),
    };
    let mut table = table.map_err(|e| e.in_file(name))?;
    table.file = name.to_owned();
    for row in &table.rows {
        for (cell, column) in row.cells.iter().zip(&table.header) {
            check_text(cell).map_err(|e| e.in_file(name).at_row(row.number).at_column(column))?;
        }
    }
    Ok(table)
}

/// The bytes as text: no byte order mark, UTF-8, no NUL.
fn text_of(bytes: &[u8]) -> Result<&str, DataError> {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let line_at = |at: usize| body[..at].iter().filter(|b| **b == b'\n').count() + 1;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(DataError::new("the file is UTF-16", "save it as UTF-8"));
    }
    if let Some(at) = body.iter().position(|b| *b == 0) {
        let advice = "a table is UTF-8 text without NUL; remove it";
        return Err(DataError::new("a NUL byte", advice).at_row(line_at(at)));
    }
    std::str::from_utf8(body).map_err(|e| {
        let row = line_at(e.valid_up_to());
        DataError::new("the text is not UTF-8", "save the file as UTF-8").at_row(row)
    })
}

fn find(header: &[String], name: &str) -> Option<usize> {
    let exact = header.iter().position(|h| h == name);
    exact.or_else(|| {
        let name = normalise(name);
        header.iter().position(|h| normalise(h) == name)
    })
}

fn missing(name: &str, header: &[String]) -> DataError {
    let known: Vec<_> = header.iter().map(String::as_str).collect();
    let shown = &known[..known.len().min(40)];
    let mut advice = did_you_mean(name, shown);
    if let (true, Some(near)) = (
        known.len() > shown.len(),
        nearest(name, known.iter().copied()),
    ) {
        advice = format!(
            "did you mean `{near}`? The table has {} columns",
            known.len()
        );
    }
    DataError::new(format!("there is no column {}", quoted(name)), advice)
}

/// Refuses a header without a wanted column.
fn need(header: &[String], wanted: &[&str]) -> Result<(), DataError> {
    match wanted.iter().find(|w| find(header, w).is_none()) {
        Some(name) => Err(missing(name, header)),
        None => Ok(()),
    }
}

/// Makes a table of raw rows: finds the header, names its columns, checks the width of each row.
/// Where `padded`, rows are as wide as the sheet and only surplus text is an error.
fn from_rows(
    rows: impl Iterator<Item = Result<Row, DataError>>,
    wanted: &[&str],
    padded: bool,
) -> Result<Table, DataError> {
    let mut rows =
        rows.filter(|r| !matches!(r, Ok(r) if r.cells.iter().all(|c| c.trim().is_empty())));
    let mut best: Option<(usize, Row)> = None;
    let mut header = None;
    for row in rows.by_ref().take(HEADER_ROWS) {
        let row = row?;
        let hits = wanted
            .iter()
            .filter(|w| find(&row.cells, w).is_some())
            .count();
        if hits == wanted.len() && !(wanted.is_empty() && is_comment(&row.cells)) {
            header = Some(row);
            break;
        }
        if !is_comment(&row.cells) && best.as_ref().is_none_or(|(most, _)| hits > *most) {
            best = Some((hits, row));
        }
    }
    let Some(header) = header else {
        let Some((_, row)) = best else {
            return Err(DataError::new(
                "the table is empty",
                "it needs a header and rows",
            ));
        };
        need(&row.cells, wanted).map_err(|e| e.at_row(row.number))?;
        return Err(DataError::new(
            "no row is a header",
            "name the columns in the first row",
        ));
    };
    let mut cells = header.cells;
    if padded {
        while cells.last().is_some_and(|c| c.trim().is_empty()) {
            cells.pop();
        }
    }
    let header = unique(cells);
    let mut out = Vec::new();
    for row in rows {
        let mut row = row?;
        let surplus = row
            .cells
            .iter()
            .skip(header.len())
            .any(|c| !c.trim().is_empty());
        if surplus || (!padded && row.cells.len() < header.len()) {
            let what = format!("{} cells under {} columns", row.cells.len(), header.len());
            let advice = "a cell that holds the separator, a quotation mark or a line break needs quotation marks around it";
            let e = DataError::new(what, advice).at_row(row.number);
            // The first column that has no cell, where cells are missing.
            return Err(match header.get(row.cells.len()) {
                Some(column) => e.at_column(column),
                None => e,
            });
        }
        row.cells.resize(header.len(), String::new());
        out.push(row);
    }
    Ok(Table {
        file: String::new(),
        header,
        rows: out,
    })
}

/// A line such as `# version=1.0,,` before the header.
fn is_comment(cells: &[String]) -> bool {
    let first = cells.first().map_or("", |c| c.trim());
    first
        .strip_prefix('#')
        .is_some_and(|rest| rest.starts_with([' ', '\t', '#']) || rest.contains('='))
}

/// Trimmed and unique column names.
fn unique(cells: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let name = |(i, cell): (usize, String)| {
        let base = match cell.trim() {
            "" => format!("column {}", i + 1),
            name => name.to_owned(),
        };
        let mut name = base.clone();
        let mut n = 2;
        while !seen.insert(name.clone()) {
            name = format!("{base} ({n})");
            n += 1;
        }
        name
    };
    cells.into_iter().enumerate().map(name).collect()
}

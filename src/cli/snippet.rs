//! The lines of a file that a diagnostic shows: a few, cut to a width that people read, with
//! everything that could steer a terminal written out.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::data::DataError;
use crate::text::{position, visible};

/// Characters shown before the place and from the place on.
const BEFORE: usize = 50;
const AFTER: usize = 70;
/// A row further down than this many bytes is not looked for again.
const MAX_BYTES: u64 = 1 << 30;

/// A part of a file with one underlined place.
#[derive(Debug)]
pub struct Snippet {
    name: String,
    text: String,
    /// Row of the text's first line, from 1.
    first: usize,
    /// Column of the place in the file, from 1.
    column: usize,
    place: Range<usize>,
}

impl Snippet {
    /// The line of a place, and the line before it.
    pub fn of(path: &Path, text: &str, span: &Range<usize>) -> Self {
        let (row, column) = position(text, span.start);
        let mut lines = text.split('\n').skip(row.saturating_sub(2));
        let before = if row > 1 { lines.next() } else { None };
        let line = lines.next().unwrap_or_default().trim_end_matches('\r');
        let length = text
            .get(span.clone())
            .map_or(1, |t| t.lines().next().unwrap_or_default().chars().count());
        Self::new(path, before, line, (row, column), length)
    }

    /// The row that an error of the data names, read again from its file; none where that is no
    /// text file, or is gone.
    pub fn of_row(error: &DataError) -> Option<Self> {
        let row = error.row?;
        let path = Path::new(&error.file);
        let mut reader = BufReader::new(std::fs::File::open(path).ok()?.take(MAX_BYTES));
        if reader.fill_buf().ok()?.starts_with(b"PK") {
            return None;
        }
        let mut line = Vec::new();
        for number in 1..=row {
            line.clear();
            if reader.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            if number == 1 && line.starts_with(b"\xef\xbb\xbf") {
                line.drain(..3);
            }
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end_matches(['\r', '\n']);
        let (column, length) = find(line, error.column.as_deref().unwrap_or_default());
        Some(Self::new(path, None, line, (row, column), length))
    }

    fn new(
        path: &Path,
        before: Option<&str>,
        line: &str,
        (row, column): (usize, usize),
        length: usize,
    ) -> Self {
        let skip = column.saturating_sub(1 + BEFORE);
        let part = |from: usize, n: usize| -> String {
            visible(&line.chars().skip(from).take(n).collect::<String>())
        };
        let dots = |yes: bool| if yes { "…" } else { "" };
        let shown = length.clamp(1, AFTER);
        let mut text = String::new();
        if let Some(before) = before {
            text = visible(&before.chars().take(BEFORE + AFTER).collect::<String>()) + "\n";
        }
        text += dots(skip > 0);
        text += &part(skip, column - 1 - skip);
        let start = text.len();
        text += &part(column - 1, shown);
        let end = text.len();
        text += &part(column - 1 + shown, AFTER - shown);
        text += dots(line.chars().nth(column - 1 + AFTER).is_some());
        Self {
            name: visible(&path.display().to_string()),
            text,
            first: row - usize::from(before.is_some()),
            column,
            place: start..end,
        }
    }

    /// The underlining of the place.
    pub fn label(&self) -> LabeledSpan {
        LabeledSpan::underline(self.place.clone())
    }
}

/// Column and length of what an error calls its column: `character 7`, `byte 7`, `fields.text` (a
/// path of keys), or the name of a table's column, for which the whole line stands.
fn find(line: &str, column: &str) -> (usize, usize) {
    let number = |word: &str| {
        column
            .strip_prefix(word)
            .and_then(|n| n.parse::<usize>().ok())
    };
    if let Some(at) = number("character ") {
        return (at.max(1), 1);
    }
    if let Some(at) = number("byte ") {
        return (position(line, at.saturating_sub(1)).1, 1);
    }
    let mut from = 0;
    let mut found = None;
    for key in column.split('.') {
        let quoted = format!("\"{key}\"");
        match line.get(from..).and_then(|rest| rest.find(&quoted)) {
            Some(at) if !key.is_empty() => {
                found = Some((from + at, quoted.chars().count()));
                from += at + quoted.len();
            }
            _ => break,
        }
    }
    found.map_or((1, line.chars().count()), |(at, length)| {
        (position(line, at).1, length)
    })
}

impl SourceCode for Snippet {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.as_str().read_span(span, before, after)?;
        // Without context the place itself is asked for; its column is that of the file.
        let column = if before == 0 && after == 0 {
            self.column - 1
        } else {
            inner.column()
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            &self.text.as_bytes()[range(inner.span())],
            *inner.span(),
            inner.line() + self.first - 1,
            column,
            inner.line_count(),
        )))
    }
}

fn range(span: &SourceSpan) -> Range<usize> {
    span.offset()..span.offset() + span.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_place_and_shown_harmlessly() {
        let line = format!("{}\u{1b}[2J{}", "a".repeat(5_000), "b".repeat(5_000));
        let snippet = Snippet::of(Path::new("x"), &line, &(5_000..5_001));
        assert!(snippet.text.chars().count() < 140);
        assert_eq!(&snippet.text[snippet.place.clone()], "\\u{1b}");
        assert_eq!((snippet.first, snippet.column), (1, 5_001));
    }

    #[test]
    fn places_are_found_in_a_line() {
        let line = r#"{"id":"é","votes":{"H":{"O9":1}}}"#;
        assert_eq!(find(line, "votes.H"), (20, 3));
        assert_eq!(find(line, "character 9"), (9, 1));
        // The second byte of é, which is the eighth character.
        assert_eq!(find(line, "byte 9").0, 8);
        assert_eq!(find("a,b", "Question"), (1, 3));
    }
}

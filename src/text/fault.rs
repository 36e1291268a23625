//! A fault in a text file, with its place.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{key_advice, visible};

/// Why a text file is refused: what is wrong, where, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Fault {
    /// The file as it was named.
    pub path: PathBuf,
    /// Its text, so that the place can be shown.
    pub text: String,
    /// Bytes of the offending place, where it is known.
    pub span: Option<Range<usize>>,
    /// What is wrong.
    pub what: String,
    /// What to do about it; may be empty.
    pub advice: String,
}

impl Fault {
    /// A fault at a place of a file.
    pub fn new(
        path: &Path,
        text: &str,
        span: Option<Range<usize>>,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            span,
            what: what.into(),
            advice: advice.into(),
        }
    }

    /// A complaint of the TOML parser, with the nearest known key where one is misspelt.
    pub fn toml(path: &Path, text: &str, error: &toml::de::Error) -> Self {
        let what = error.message().to_owned();
        let advice = key_advice(&what).unwrap_or_else(|| {
            "write key = value; texts stand in quotation marks, lists in [ ], and a section begins \
             with its [name]"
                .to_owned()
        });
        Self::new(path, text, error.span(), what, advice)
    }

    /// A fault whose message names things in backticks: its place is where the first of them that
    /// the file holds as a TOML text stands.
    pub fn naming(
        path: &Path,
        text: &str,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let what = what.into();
        let span = what
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|word| !word.is_empty())
            .find_map(|word| {
                let found = [format!("\"{word}\""), format!("'{word}'")]
                    .into_iter()
                    .find_map(|quoted| text.find(&quoted).map(|at| at + 1));
                found.map(|at| at..at + word.len())
            });
        Self::new(path, text, span, what, advice)
    }

    /// Row and column of the fault, from 1.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.span
            .as_ref()
            .map(|span| position(&self.text, span.start))
    }

    /// The place alone: `task.toml, row 3, column 7`.
    pub fn place(&self) -> String {
        let file = self.path.display();
        match self.position() {
            Some((row, column)) => format!("{file}, row {row}, column {column}"),
            None => file.to_string(),
        }
    }

    fn sentence(&self) -> String {
        let advice = if self.advice.is_empty() {
            String::new()
        } else {
            format!("; {}", self.advice)
        };
        visible(&format!("{}: {}{advice}", self.place(), self.what))
    }
}

/// Row and column of a byte offset; rows end at `\n`, columns are characters, both from 1.
pub fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let row = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    (row, before[line..].chars().count() + 1)
}

/// The bytes of a text file as text: a byte order mark is taken off; UTF-16, NUL and what is not
/// UTF-8 are refused with their place.
///
/// # Errors
/// The [`Fault`].
pub fn decode(path: &Path, bytes: Vec<u8>) -> Result<String, Fault> {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        let what = "the file is UTF-16";
        return Err(Fault::new(path, "", Some(0..0), what, "save it as UTF-8"));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let shown = String::from_utf8_lossy(e.as_bytes()).into_owned();
            let (what, advice) = ("the text is not UTF-8", "save the file as UTF-8");
            return Err(Fault::new(path, &shown, Some(at..at + 1), what, advice));
        }
    };
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    match text.find('\0') {
        Some(at) => {
            let what = "a NUL character";
            Err(Fault::new(path, &text, Some(at..at + 1), what, "remove it"))
        }
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_lines() {
        let text = "añb\nกข\r\nx";
        let at = |needle: &str| position(text, text.find(needle).unwrap());
        assert_eq!(at("b"), (1, 3));
        assert_eq!(at("ข"), (2, 2));
        assert_eq!(at("x"), (3, 1));
        assert_eq!(position(text, 2), (1, 2), "in the middle of a character");
        assert_eq!(position(text, 999), (3, 2));
    }

    #[test]
    fn what_is_no_text_names_its_place() {
        let path = Path::new("a.toml");
        let place = |bytes: &[u8]| decode(path, bytes.to_vec()).unwrap_err().to_string();
        assert!(place(b"a\nb\xffc").starts_with("a.toml, row 2, column 2: the text is not UTF-8"));
        assert!(place(b"a\nbc\0").starts_with("a.toml, row 2, column 3: a NUL"));
        assert!(place(b"\xff\xfea\0").contains("UTF-16"));
        assert_eq!(
            decode(path, b"\xef\xbb\xbfa\r\n".to_vec()).unwrap(),
            "a\r\n"
        );
    }

    #[test]
    fn a_named_thing_is_found() {
        let text = "a = 1\nname = \"H\"\n";
        let fault = Fault::naming(Path::new("t"), text, "task `x`: criterion `H` is odd", "");
        assert_eq!(fault.position(), Some((2, 9)));
        assert_eq!(
            fault.to_string(),
            "t, row 2, column 9: task `x`: criterion `H` is odd"
        );
    }
}

//! How a foreign text is shown to people, so that it cannot move a cursor, turn the writing
//! direction, become a spreadsheet formula or a path.

/// Most characters of a text quoted in a message.
const QUOTED: usize = 60;

/// Whether a character steers a terminal or the layout of a line instead of being drawn: control
/// characters, line separators, marks of writing direction, byte order mark.
pub fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// The text with every steering character written out, as in `\u{1b}`.
pub fn visible(text: &str) -> String {
    escape(text, |_| false)
}

/// As [`visible`], but line ends and tabs stay: for texts of several lines that this program made.
pub fn visible_lines(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_steering(c) && !keep(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// As [`visible_lines`], for JSON: what is written out stays JSON with the same value.
pub fn visible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => out.push(c),
            // All of them are in the first plane, so one escape is enough.
            c if is_steering(c) => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out
}

/// A text for a message: in backticks, on one line, steering characters written out, at most 60
/// characters.
pub fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED).collect();
    let dots = if text.chars().nth(QUOTED).is_some() {
        "…"
    } else {
        ""
    };
    format!("`{}{dots}`", visible(&short))
}

/// A text as one cell of a CSV file that a spreadsheet will open. A cell that a spreadsheet would
/// take for a formula (it begins with `=`, `+`, `-`, `@`, tab or carriage return, also after spaces
/// or in full width) gets an apostrophe in front (OWASP, "CSV Injection"). Numbers are to be
/// written without this function: `-3` is a number and no formula. Quoting is left to the writer.
pub fn csv_cell(text: &str) -> std::borrow::Cow<'_, str> {
    let risky = |c: char| {
        matches!(
            c,
            '=' | '+'
                | '-'
                | '@'
                | '\t'
                | '\r'
                | '\n'
                | '\u{ff1d}'
                | '\u{ff0b}'
                | '\u{ff0d}'
                | '\u{ff20}'
        )
    };
    let first = text
        .chars()
        .find(|c| !(matches!(c, ' ' | '\u{a0}') || super::is_invisible(*c)));
    match first {
        Some(c) if risky(c) => format!("'{text}").into(),
        _ => text.into(),
    }
}

/// Why a name cannot be the name of a file or folder; `None` where it can be, on every system.
pub fn not_a_file_name(name: &str) -> Option<&'static str> {
    let forbidden = |c: char| matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    if name.trim().is_empty() {
        Some("it is empty")
    } else if name.chars().any(forbidden) {
        Some("it holds one of / \\ : * ? \" < > |, which no file name may hold")
    } else if name.chars().any(is_steering) {
        Some("it holds a control character or a mark of writing direction")
    } else if name.starts_with('.') || name.ends_with('.') || name.trim() != name {
        Some("it begins or ends with a dot or a space")
    } else if name.len() > 100 {
        Some("it is longer than 100 bytes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_characters_are_written_out() {
        assert_eq!(visible("a\u{1b}[2J\n\u{202e}b"), "a\\u{1b}[2J\\n\\u{202e}b");
        assert_eq!(visible_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
        assert_eq!(visible("ไม่ é 한국 क्\u{200d}ष"), "ไม่ é 한국 क्\u{200d}ष");
        let json = serde_json::json!({"a": "x\u{202e}\u{85}\ny"}).to_string();
        let shown = visible_json(&json);
        assert!(!shown.chars().any(is_steering), "{shown}");
        let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(back["a"], "x\u{202e}\u{85}\ny");
        assert_eq!(quoted("a\u{85}b"), "`a\\u{85}b`");
        assert_eq!(quoted(&"ह".repeat(61)).chars().count(), 63);
    }

    /// OWASP's list, and its spaces-before and full-width variants.
    #[test]
    fn formulas_are_made_text() {
        for formula in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "\u{200b}=1",
            "＝1",
            "＠A",
        ] {
            assert_eq!(csv_cell(formula), format!("'{formula}"), "{formula:?}");
        }
        for text in ["", "a=1", "1-1", "Über", "'=1", "not offensive"] {
            assert_eq!(csv_cell(text), text);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for bad in [
            "",
            " ",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "C:x",
            ".ssh",
            "a\u{0}",
            "a\u{202e}b",
            "x ",
            "nul.",
        ] {
            assert!(not_a_file_name(bad).is_some(), "{bad:?}");
        }
        assert!(not_a_file_name(&"x".repeat(101)).is_some());
        for good in ["quickstart", "es-MX 2", "จูงใจ", "v1.2"] {
            assert_eq!(not_a_file_name(good), None, "{good}");
        }
    }
}

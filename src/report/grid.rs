//! Owns plain-text tables: columns as wide as their longest cell, texts left, figures right.
//! Must not know what the cells mean.

use std::fmt::Write as _;

use crate::text::is_invisible;

/// Columns that a terminal gives to a text: two for wide East Asian characters, none for marks that
/// join the character before. An approximation by blocks, good enough to line up names.
pub fn width(text: &str) -> usize {
    let of = |c: char| match c {
        c if is_invisible(c) => 0,
        '\u{300}'..='\u{36f}' | '\u{93c}' | '\u{941}'..='\u{948}' | '\u{94d}' => 0,
        '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    };
    text.chars().map(of).sum()
}

/// A text of a file as a cell: on one line, no control characters, at most `most` columns.
pub fn cell_text(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars().map(|c| if c.is_control() { ' ' } else { c }) {
        if width(&out) + width(c.encode_utf8(&mut [0; 4])) > most.saturating_sub(1) {
            out.push('…');
            break;
        }
        out.push(c);
    }
    out
}

/// Rows of cells, the first row a heading. The first column stands left, the others right.
pub fn grid(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| {
            rows.iter()
                .filter_map(|r| r.get(c))
                .map(|t| width(t))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (c, text) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c] - width(text));
            let gap = if c == 0 { "" } else { "  " };
            // Writing to a String cannot fail.
            let _ = if c == 0 {
                write!(line, "{gap}{text}{pad}")
            } else {
                write!(line, "{gap}{pad}{text}")
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["", "n"], ["日本", "7"], ["en", "120"]].map(|r| r.map(str::to_owned).to_vec());
        assert_eq!(grid(&rows), "          n\n  日本    7\n  en    120\n");
        assert_eq!(cell_text("a\nb\u{7}c", 10), "a b c");
        assert_eq!(cell_text("日本語の長い名前", 7), "日本語…");
    }
}

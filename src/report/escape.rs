//! Foreign texts inside HTML.

/// A text as the content of an HTML element or of a quoted attribute. `&`, `<`, `>` and both
/// quotation marks become references (OWASP, "XSS Prevention", rules 1 and 2), so does the
/// backtick, which old browsers take for a quotation mark. Control characters other than line ends
/// and tabs, which HTML forbids, and overrides of the writing direction, which reach past the
/// element, are written out as in `\u{202e}`.
///
/// Not for scripts, styles, URLs, unquoted attributes or names of elements.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            '\n' | '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.extend(c.escape_default()),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_of_the_text_is_markup() {
        assert_eq!(
            escape_html("<img src=x onerror='alert(1)'> & \"`"),
            "&lt;img src=x onerror=&#39;alert(1)&#39;&gt; &amp; &quot;&#96;"
        );
        assert_eq!(escape_html("a\u{0}b\u{202e}\n\t"), "a\\u{0}b\\u{202e}\n\t");
        assert_eq!(escape_html("ไม่ é 한국 &amp;"), "ไม่ é 한국 &amp;amp;");
    }

    proptest! {
        #[test]
        fn no_character_that_could_begin_markup_is_left(text in "[<>&\"'`a-z\\x00-\\x1f]{0,24}") {
            let out = escape_html(&text);
            prop_assert!(!out.contains(['<', '>', '"', '\'', '`']));
            let plain = out.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")
                .replace("&quot;", "").replace("&#39;", "").replace("&#96;", "");
            prop_assert!(!plain.contains('&'));
        }
    }
}

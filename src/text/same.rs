//! When two texts are the same: Unicode normalisation, invisible characters, outer marks.

use icu_normalizer::ComposingNormalizerBorrowed;

/// Whether a character is drawn as nothing and only steers layout or joining: zero-width spaces
/// and joiners, marks of writing direction, soft hyphen, byte order mark, variation selectors.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

/// Commas, semicolons and full stops of several scripts, which data sets leave at the ends.
fn is_outer_mark(c: char) -> bool {
    matches!(
        c,
        ',' | ';' | '.' | '،' | '؛' | '۔' | '、' | '。' | '，' | '；' | '।'
    )
}

/// The form in which texts are compared: NFC, lower case (final sigma as sigma), without invisible
/// characters, white space collapsed, commas and full stops at the ends gone. Compatibility forms
/// stay apart (NFC and not NFKC), since full-width or circled letters can be what is judged.
///
/// For equality and groups only; never shown to a model. Applying it twice changes nothing.
pub fn normalise(text: &str) -> String {
    let words = fold(text);
    match words.trim_matches(|c: char| c.is_whitespace() || is_outer_mark(c)) {
        "" => words,
        inner => inner.to_owned(),
    }
}

/// As [`normalise`], with the marks at the ends: for names of labels, criteria and columns.
pub fn fold(text: &str) -> String {
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    let visible: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let lower = nfc.normalize(&visible).to_lowercase().replace('ς', "σ");
    // Lower case can decompose (İ), so the canonical form is taken again.
    let lower = nfc.normalize(&lower);
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What [`clean`] took away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Zero-width or direction characters.
    pub invisible: bool,
    /// Commas at the ends.
    pub comma: bool,
    /// White space at the ends.
    pub space: bool,
}

/// The text as it is kept from a data set: invisible characters removed except the joiners that
/// shape letters inside a word (U+200C, U+200D) and variation selectors; white space and commas
/// at the ends removed. Nothing else changes, so a model sees what the raters saw.
pub fn clean(text: &str) -> (String, Cleaned) {
    let mut did = Cleaned::default();
    let shapes = |c: char| matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    let mut kept: String = text
        .chars()
        .filter(|&c| !is_invisible(c) || shapes(c))
        .collect();
    did.invisible = kept.len() != text.len();
    let joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}');
    let comma = |c: char| matches!(c, ',' | '،' | '，' | '、');
    let outer = |c: char| c.is_whitespace() || joiner(c) || comma(c);
    let inner = kept.trim_matches(outer);
    if inner.len() != kept.len() {
        let start = kept.len() - kept.trim_start_matches(outer).len();
        for c in kept[..start]
            .chars()
            .chain(kept[start + inner.len()..].chars())
        {
            did.comma |= comma(c);
            did.invisible |= joiner(c);
            did.space |= c.is_whitespace();
        }
        kept = inner.to_owned();
    }
    (kept, did)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_texts_of_every_script_are_equal() {
        let same = [
            ("Café", "CAFE\u{301}"),
            ("ยิ้มแย้ม", "ยิ้ม\u{200b}แย้ม "),
            ("吃苦耐劳", "\u{feff}吃苦耐劳。"),
            ("زامبي", "زامبي ،"),
            ("زامبي", "\u{200f}زامبي\u{202c}"),
            // NA with nukta, composed and as two characters; U+0958 is excluded from composition.
            ("ऩ", "\u{928}\u{93c}"),
            ("\u{958}लम", "\u{915}\u{93c}लम"),
            ("क्ष", "क्\u{200d}ष"),
            ("য়", "\u{9af}\u{9bc}"),
            ("한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"),
            ("two  words", "Two\u{a0}words\u{2028}"),
            ("ΟΔΟΣ", "οδος"),
        ];
        for (a, b) in same {
            assert_eq!(normalise(a), normalise(b), "{a:?} {b:?}");
        }
        let apart = [
            ("ａ", "a"),
            ("जाति", "जाती"),
            ("ก", "ข"),
            ("...", ""),
            ("no", "not"),
        ];
        for (a, b) in apart {
            assert_ne!(normalise(a), normalise(b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn cleaning_keeps_what_shapes_letters() {
        assert_eq!(
            clean("زامبي ،"),
            (
                "زامبي".into(),
                Cleaned {
                    comma: true,
                    space: true,
                    ..Default::default()
                }
            )
        );
        assert_eq!(clean("क्\u{200d}ष").0, "क्\u{200d}ष");
        assert_eq!(
            clean("\u{200b}పేద\u{200c} "),
            (
                "పేద".into(),
                Cleaned {
                    invisible: true,
                    comma: false,
                    space: true
                }
            )
        );
        assert_eq!(clean("as, is"), ("as, is".into(), Cleaned::default()));
        assert_eq!(clean(" , ").0, "");
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in "\\PC{0,24}") {
            let once = normalise(&text);
            prop_assert_eq!(normalise(&once), once);
        }
    }
}

//! The pieces of text that mark a cluster: substrings that are more frequent in it than elsewhere.
//!
//! Every substring is a candidate, so Thai or Japanese need no word boundaries; a word comes out
//! as the longest substring that occurs in the same texts.

use std::collections::{HashMap, HashSet};

use crate::text::ngrams;

/// Characters of a text that are looked at.
const MAX_CHARS: usize = 160;

/// Longest substring, in characters; white-space-delimited words may be longer.
const LONGEST: usize = 12;

/// A term needs at least this z-value: one in ten by chance.
const LEAST_Z: f64 = 1.28;

/// A longer term that holds a better one takes its place when its score is at least this share of
/// the other's: `comida` says more than `da`.
const NEARLY: f64 = 0.75;

/// Pseudo-texts that hold every term and none: a term seen once is no evidence.
const PRIOR: f64 = 0.5;

/// The terms that are more frequent inside than outside, the most telling first.
///
/// The score is the z-value of the log odds ratio of the share of texts that hold the term (with
/// 0.5 added to each cell, after Monroe, Colaresi and Quinn 2008). A term must occur in two texts
/// inside, or in the only one. Terms that hold or are held by a better one are left out.
pub(super) fn marking<'a>(
    inside: impl Iterator<Item = &'a str>,
    outside: impl Iterator<Item = &'a str>,
    count: usize,
) -> Vec<String> {
    let (texts_in, inside) = frequencies(inside, None);
    let (texts_out, outside) = frequencies(outside, Some(&inside));
    let least = if texts_in > 1 { 2 } else { 1 };
    let mut scored: Vec<(f64, usize, &String)> = inside
        .iter()
        .filter(|&(_, &found)| found >= least)
        .map(|(term, &found)| {
            let other = outside.get(term).copied().unwrap_or(0);
            (
                log_odds_z(found, texts_in, other, texts_out),
                term.chars().count(),
                term,
            )
        })
        .filter(|&(score, ..)| score >= LEAST_Z)
        .collect();
    // Of terms with the same score the longest tells most.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(b.2)));
    let mut terms: Vec<String> = Vec::new();
    for &(score, _, term) in &scored {
        if terms.len() >= count {
            break;
        }
        if terms.iter().any(|t| overlap(t, term)) {
            continue;
        }
        let longer = scored
            .iter()
            .filter(|(s, _, t)| *s >= NEARLY * score && t.contains(term));
        // The first of the longest is the best of them.
        let best = longer.rev().max_by_key(|(_, length, _)| *length);
        terms.push(best.map_or(term, |&(_, _, t)| t).clone());
    }
    terms
}

/// z-value of the log odds ratio of `found` in `of` against `other` in `of_other`.
pub(super) fn log_odds_z(found: usize, of: usize, other: usize, of_other: usize) -> f64 {
    let odds = |yes: usize, all: usize| {
        let (yes, no) = (yes as f64 + PRIOR, all.saturating_sub(yes) as f64 + PRIOR);
        ((yes / no).ln(), 1.0 / yes + 1.0 / no)
    };
    let (a, b) = (odds(found, of), odds(other, of_other));
    (a.0 - b.0) / (a.1 + b.1).sqrt()
}

/// Whether one holds the other, or the end of one is the start of the other (all but a character):
/// two windows on the same word.
fn overlap(a: &str, b: &str) -> bool {
    let shifted = |a: &str, b: &str| {
        let (ca, cb): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let shorter = ca.len().min(cb.len());
        let least = shorter.div_ceil(2).max(2);
        (least..=shorter).any(|n| ca[ca.len() - n..] == cb[..n])
    };
    a.contains(b) || b.contains(a) || shifted(a, b) || shifted(b, a)
}

/// Number of texts, and in how many of them each substring occurs (of those in `only`).
fn frequencies<'a>(
    texts: impl Iterator<Item = &'a str>,
    only: Option<&HashMap<String, usize>>,
) -> (usize, HashMap<String, usize>) {
    let mut count = 0;
    let mut found: HashMap<String, usize> = HashMap::new();
    for text in texts {
        count += 1;
        let plain: String = ngrams::plain(text).chars().take(MAX_CHARS).collect();
        for piece in pieces(&plain) {
            if only.is_none_or(|only| only.contains_key(piece)) {
                *found.entry(piece.to_owned()).or_default() += 1;
            }
        }
    }
    (count, found)
}

/// The different substrings of 2 to [`LONGEST`] characters that neither start nor end with white
/// space or punctuation nor cut a character from its marks; the words; single characters only
/// where the whole text is one.
fn pieces(plain: &str) -> HashSet<&str> {
    let mut starts: Vec<usize> = plain.char_indices().map(|(at, _)| at).collect();
    starts.push(plain.len());
    let chars: Vec<char> = plain.chars().collect();
    let mut found: HashSet<&str> = plain
        .split(' ')
        .filter(|w| w.chars().count() > LONGEST)
        .collect();
    if chars.len() == 1 {
        found.insert(plain);
    }
    for from in 0..chars.len() {
        if is_mark(chars[from]) || !tells(chars[from]) {
            continue;
        }
        for length in 2..=LONGEST.min(chars.len() - from) {
            let to = from + length;
            let whole = to == chars.len() || !is_mark(chars[to]);
            if whole && (tells(chars[to - 1]) || is_mark(chars[to - 1])) {
                found.insert(&plain[starts[from]..starts[to]]);
            }
        }
    }
    found
}

fn tells(c: char) -> bool {
    c.is_alphanumeric()
}

/// Whether a character belongs to the one before it. `escape_debug` escapes exactly the
/// grapheme-extending characters among the printable ones; the spacing vowel signs and finals of
/// the Indic scripts are added by hand (Unicode blocks 0900 to 0DFF repeat every 128 code points).
fn is_mark(c: char) -> bool {
    let extends = !c.is_ascii() && !c.is_control() && c.escape_debug().len() > 1;
    let indic = matches!(u32::from(c), 0x0900..=0x0DFF)
        && matches!(u32::from(c) & 0x7F, 0x01..=0x03 | 0x3A..=0x3C | 0x3E..=0x4F);
    extends || indic || c == '\u{200d}'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(inside: &[&str], outside: &[&str]) -> Vec<String> {
        marking(inside.iter().copied(), outside.iter().copied(), 3)
    }

    #[test]
    fn the_shared_word_comes_out_whole_in_any_script() {
        let es = of(
            &["come tacos", "los tacos fritos", "tacos y sal"],
            &["come sal", "los fritos", "y"],
        );
        assert_eq!(es[0], "tacos");
        let th = of(
            &["ชอบกินอาหารเผ็ด", "อาหารรสจัด", "ขายอาหารริมทาง"],
            &["ชอบเที่ยว", "รสจัด", "ขายของริมทาง"],
        );
        assert_eq!(th[0], "อาหาร");
        let ja = of(
            &["辛い料理", "料理上手", "毎日料理する"],
            &["辛い", "上手", "毎日"],
        );
        assert_eq!(ja[0], "料理");
    }

    #[test]
    fn marks_stay_with_their_letters() {
        let hindi = of(&["खाना अच्छा", "खाना महँगा"], &["अच्छा", "महँगा"]);
        assert_eq!(hindi[0], "खाना");
        for piece in pieces("हिन्दी") {
            assert!(!is_mark(piece.chars().next().unwrap()), "{piece}");
        }
        assert!(!pieces("हिन्दी").contains("हिन्द"));
        assert!(is_mark('\u{e35}') && is_mark('\u{301}') && !is_mark('अ') && !is_mark('é'));
    }

    #[test]
    fn the_score_is_the_hand_calculated_one() {
        // Inside 3 of 4, outside 0 of 4, with halves: ln(3.5/1.5) - ln(0.5/4.5) = 3.04452;
        // variance 1/3.5 + 1/1.5 + 1/0.5 + 1/4.5 = 3.174603; z = 1.708734.
        assert!((log_odds_z(3, 4, 0, 4) - 1.708_734).abs() < 1e-5);
    }

    #[test]
    fn nothing_marks_what_is_the_same_outside() {
        assert!(of(&["a b", "a b"], &["a b", "a b"]).is_empty());
        assert!(of(&[], &["x"]).is_empty());
        assert!(of(&["", ""], &[]).is_empty());
        assert_eq!(of(&["懒", "懒", "懒"], &["x", "y", "z"]), ["懒"]);
    }
}

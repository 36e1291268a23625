//! Owns the multiple-choice questions: which group has an attribute, of four of which one is the
//! stereotype. Must not know how models answer.
//!
//! A cell is a locale and a kind of identity (national, regional). Attributes are sampled first,
//! then an identity that raters associate with it, then three identities of the same cell that
//! share no association with it; the order of the four is drawn. Every question comes twice, in
//! the locale's language and in English, with the same options in the same order. Draws depend on
//! the seed, the cell and the attribute alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::kinds::{Kind, group_of};
use super::wording::{OPTIONS, Wording};
use crate::data::{DataError, ItemRecord, normalise};
use crate::optimize::{Stream, Streams};

/// An option of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its letter.
    pub letter: String,
    /// The identity.
    pub text: String,
}

/// One question in one language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Unique in the file: `pt-BR/national/3/pt`.
    pub id: String,
    /// The same for both languages of a question: `pt-BR/national/3`.
    pub pair: String,
    /// Whose people said what is a stereotype.
    pub locale: String,
    /// Language of the text: the locale's, or `en`.
    pub language: String,
    /// What the identities are named after.
    pub kind: Kind,
    /// The attribute.
    pub attribute: String,
    /// Four identities in the order of the prompt.
    pub options: Vec<Choice>,
    /// Letter of the stereotypical one.
    pub stereotype: String,
    /// Raters, of three, who call it a stereotype.
    pub raters: u32,
    /// The whole user message.
    pub prompt: String,
}

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Questions of a locale and kind.
    pub per_cell: usize,
    /// Raters who must call the pair a stereotype.
    pub at_least: u32,
    /// Seed; every value counts.
    pub seed: u64,
}

/// What came of sampling.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The questions: each in the locale's language, then in English.
    pub questions: Vec<Question>,
    /// Questions by cell.
    pub cells: BTreeMap<(String, Kind), usize>,
    /// Rows that lack an English name of the identity or the attribute; they are not asked for.
    pub untranslated: usize,
    /// Languages without a wording, and English, which has nothing to be compared with; their
    /// locales are left out.
    pub unworded: BTreeSet<String>,
}

impl Sampled {
    /// Questions of the smallest cell: as many per cell are balanced.
    pub fn smallest(&self) -> usize {
        self.cells.values().copied().min().unwrap_or(0)
    }
}

/// A pair of the data set, ready to be asked for.
struct Pair<'a> {
    attribute: &'a str,
    attribute_en: &'a str,
    identity: &'a str,
    identity_en: &'a str,
    /// Forms in which attributes are compared, in the language and in English.
    keys: [String; 2],
    group: String,
    kind: Kind,
    raters: u32,
}

/// Samples questions from the pairs of the data set.
pub fn sample(records: &[ItemRecord], wording: &Wording, sampling: &Sampling) -> Sampled {
    let mut by_locale: BTreeMap<&str, Vec<&ItemRecord>> = BTreeMap::new();
    for record in records {
        by_locale.entry(&record.locale).or_default().push(record);
    }
    let mut out = Sampled {
        questions: Vec::new(),
        cells: BTreeMap::new(),
        untranslated: 0,
        unworded: BTreeSet::new(),
    };
    for (locale, rows) in by_locale {
        let language = locale.split('-').next().unwrap_or_default();
        if language == "en" || !wording.has(language) {
            out.unworded.insert(language.to_owned());
            continue;
        }
        let pairs: Vec<Pair<'_>> = rows.iter().filter_map(|r| Pair::of(r)).collect();
        out.untranslated += rows.len() - pairs.len();
        let cells = Locale::new(locale, language, &pairs, wording, sampling).cells();
        for (kind, questions) in cells {
            out.cells
                .insert((locale.to_owned(), kind), questions.len() / 2);
            out.questions.extend(questions);
        }
    }
    out
}

impl<'a> Pair<'a> {
    fn of(record: &'a ItemRecord) -> Option<Self> {
        let text = |field: &str| record.fields.get(field).map(String::as_str);
        let (attribute, attribute_en) = (text("attribute")?, text("attribute_gloss")?);
        let (identity, identity_en) = (text("identity")?, text("identity_gloss")?);
        let (group, kind) = group_of(identity_en);
        let votes = record.votes.get("stereotype");
        Some(Self {
            keys: [normalise(attribute), normalise(attribute_en)],
            raters: votes.and_then(|v| v.get("S")).copied().unwrap_or(0),
            attribute,
            attribute_en,
            identity,
            identity_en,
            group,
            kind,
        })
    }

    /// Whether two pairs speak of the same attribute, in either language.
    fn same_attribute(&self, keys: &[String; 2]) -> bool {
        self.keys[0] == keys[0] || self.keys[1] == keys[1]
    }
}

/// Sampling in one locale.
struct Locale<'a> {
    name: &'a str,
    language: &'a str,
    pairs: &'a [Pair<'a>],
    wording: &'a Wording,
    sampling: &'a Sampling,
    streams: Streams,
}

impl<'a> Locale<'a> {
    fn new(
        name: &'a str,
        language: &'a str,
        pairs: &'a [Pair<'a>],
        wording: &'a Wording,
        sampling: &'a Sampling,
    ) -> Self {
        Self {
            name,
            language,
            pairs,
            wording,
            sampling,
            streams: Streams::new(sampling.seed),
        }
    }

    fn stream(&self, purpose: &str) -> Stream {
        let purpose = format!("seegull {} {purpose}", self.name);
        self.streams.of(0, &purpose)
    }

    /// Both kinds take turns, and no attribute is asked for twice in a locale, so that questions do
    /// not depend on each other.
    fn cells(&self) -> Vec<(Kind, Vec<Question>)> {
        let mut cells = [Kind::National, Kind::Regional].map(|kind| (kind, Vec::new()));
        let mut waiting = [Kind::National, Kind::Regional].map(|kind| self.attributes(kind));
        let mut used = [BTreeSet::new(), BTreeSet::new()];
        for _ in 0..self.sampling.per_cell {
            for ((kind, questions), waiting) in cells.iter_mut().zip(&mut waiting) {
                while let Some(keys) = waiting.pop() {
                    if used.iter().zip(&keys).any(|(used, key)| used.contains(key)) {
                        continue;
                    }
                    let number = questions.len() / 2 + 1;
                    let Some(both) = self.question(*kind, &keys, number) else {
                        continue;
                    };
                    questions.extend(both);
                    used.iter_mut().zip(keys).for_each(|(used, key)| {
                        used.insert(key);
                    });
                    break;
                }
            }
        }
        cells.into()
    }

    /// The attributes of a kind that enough raters associate with somebody, in a drawn order.
    fn attributes(&self, kind: Kind) -> Vec<[String; 2]> {
        let found: BTreeSet<[String; 2]> = self.asked(kind).map(|p| p.keys.clone()).collect();
        let mut found: Vec<_> = found.into_iter().collect();
        shuffle(
            &mut found,
            &mut self.stream(&format!("{} attributes", kind.as_str())),
        );
        found
    }

    fn asked(&self, kind: Kind) -> impl Iterator<Item = &'a Pair<'a>> {
        let at_least = self.sampling.at_least;
        let pairs = self.pairs.iter();
        pairs.filter(move |p| p.kind == kind && p.raters >= at_least)
    }

    /// A question in both languages; `None` where fewer than three identities are left.
    fn question(&self, kind: Kind, keys: &[String; 2], number: usize) -> Option<[Question; 2]> {
        let mut rng = self.stream(&format!("{} {} {}", kind.as_str(), keys[0], keys[1]));
        let right: Vec<&Pair<'_>> = self.asked(kind).filter(|p| p.keys == *keys).collect();
        let right = *right.get(below(&mut rng, right.len())?)?;
        let mut options = vec![right];
        options.extend(self.distractors(right, &mut rng)?);
        shuffle(&mut options, &mut rng);
        let right_at = options.iter().position(|p| std::ptr::eq(*p, right))?;
        let pair = format!("{}/{}/{number}", self.name, kind.as_str());
        let put = |language: &str, attribute: &str, texts: Vec<&str>| {
            let letters = self.wording.letters(language);
            let options: Vec<Choice> = letters
                .iter()
                .zip(texts)
                .map(|(letter, text)| Choice {
                    letter: letter.clone(),
                    text: text.to_owned(),
                })
                .collect();
            Some(Question {
                id: format!("{pair}/{language}"),
                pair: pair.clone(),
                locale: self.name.to_owned(),
                language: language.to_owned(),
                kind,
                attribute: attribute.to_owned(),
                stereotype: options.get(right_at)?.letter.clone(),
                raters: right.raters,
                prompt: self.wording.prompt(language, attribute, &options)?,
                options,
            })
        };
        let own = options.iter().map(|p| p.identity).collect();
        let english = options.iter().map(|p| p.identity_en).collect();
        Some([
            put(self.language, right.attribute, own)?,
            put("en", right.attribute_en, english)?,
        ])
    }

    /// Three pairs of other groups of the kind, none of which any rater associates with the
    /// attribute, whatever the form of the identity; their texts differ in both languages.
    fn distractors(&self, right: &Pair<'a>, rng: &mut Stream) -> Option<Vec<&'a Pair<'a>>> {
        let mut barred: BTreeSet<&str> = self
            .pairs
            .iter()
            .filter(|p| p.same_attribute(&right.keys))
            .map(|p| p.group.as_str())
            .collect();
        barred.insert(&right.group);
        let mut groups: BTreeMap<&str, Vec<&'a Pair<'a>>> = BTreeMap::new();
        for pair in self.pairs.iter().filter(|p| p.kind == right.kind) {
            if !barred.contains(pair.group.as_str()) {
                groups.entry(&pair.group).or_default().push(pair);
            }
        }
        let mut groups: Vec<Vec<&'a Pair<'a>>> = groups.into_values().collect();
        shuffle(&mut groups, rng);
        let text = |p: &Pair<'_>| [normalise(p.identity), normalise(p.identity_en)];
        let mut taken = vec![text(right)];
        let mut out = Vec::new();
        for forms in groups {
            let form = forms[below(rng, forms.len())?];
            let own = text(form);
            if taken.iter().all(|t| t[0] != own[0] && t[1] != own[1]) {
                taken.push(own);
                out.push(form);
            }
            if out.len() == OPTIONS - 1 {
                return Some(out);
            }
        }
        None
    }
}

/// A number in `0..n`; `None` for an n of 0.
fn below(rng: &mut Stream, n: usize) -> Option<usize> {
    (n > 0).then(|| ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize)
}

/// Fisher and Yates' shuffle, written out so that no library's version decides an order.
fn shuffle<T>(list: &mut [T], rng: &mut Stream) {
    for last in (1..list.len()).rev() {
        let other = ((u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64) as usize;
        list.swap(last, other);
    }
}

/// Reads questions from JSON lines.
///
/// # Errors
/// With the line: what is no question, an id that occurs twice, options that do not hold the
/// stereotype's letter once.
pub fn read(path: &Path) -> Result<Vec<Question>, DataError> {
    let file = path.display().to_string();
    let io = |e: std::io::Error| {
        DataError::new(format!("cannot read it: {e}"), "check the path").in_file(&file)
    };
    let bytes = match file.as_str() {
        "-" => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map_err(io)?;
            bytes
        }
        _ => std::fs::read(path).map_err(io)?,
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| DataError::new("it is not UTF-8", "save it as UTF-8").in_file(&file))?;
    let advice = "`pluralis seegull questions` writes such a file";
    let (mut questions, mut seen) = (Vec::<Question>::new(), BTreeSet::new());
    for (at, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty())
    {
        let refuse = |what: String| DataError::new(what, advice).in_file(&file).at_row(at + 1);
        let question: Question =
            serde_json::from_str(line).map_err(|e| refuse(format!("this is no question: {e}")))?;
        let rights = question.options.iter();
        if rights.filter(|o| o.letter == question.stereotype).count() != 1 {
            return Err(refuse(
                "no single option has the stereotype's letter".into(),
            ));
        }
        if !seen.insert(question.id.clone()) {
            return Err(refuse(format!("the id `{}` occurs twice", question.id)));
        }
        questions.push(question);
    }
    if questions.is_empty() {
        return Err(DataError::new("it holds no question", advice).in_file(&file));
    }
    Ok(questions)
}

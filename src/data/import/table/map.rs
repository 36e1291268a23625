//! Owns the syntax of `--map`: which column is what. Must not read a table.
//!
//! Each entry is `KEY=COLUMN`, or `KEY:TEXT` for the same text in every row. Where a key takes
//! several columns or spellings, they are separated by commas (columns) or `|` (spellings); `\,`
//! and `\|` stand for the characters themselves.
//!
//! | entry | meaning |
//! |---|---|
//! | `id=COL` or `id=COL,COL` | the item's id, joined by `/`; without it `row12` |
//! | `locale=COL` or `locale:es-MX` | the locale (required) |
//! | `field.NAME=COL` (`item.NAME` too) | a text field; at least one |
//! | `group=COL`, `split=COL`, `meta.KEY=COL` | group, split, a column kept for evaluation |
//! | `votes.CRITERION=COL,COL` | one column of labels per rater |
//! | `raters.CRITERION=COL,COL` | columns with the raters' names, one per column of `votes`; without it the columns' names are the raters |
//! | `rater=COL` | long form: each row is one vote, rows with the same id are one item |
//! | `count.CRITERION.LABEL=COL` | number of votes for a label |
//! | `labels.CRITERION.LABEL=Sí\|si\|1` | spellings that mean the label |

use std::collections::BTreeMap;

use crate::data::DataError;
use crate::text::{did_you_mean, quoted};

/// Where a text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// These columns, joined by `/`.
    Columns(Vec<String>),
    /// The same text in every row.
    Constant(String),
}

/// Where the votes on a criterion come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoteSource {
    /// Columns of labels, one per rater.
    Raters {
        /// Columns that hold labels.
        labels: Vec<String>,
        /// Columns that hold the raters' names, one per column of labels, or none.
        names: Vec<String>,
    },
    /// Label -> column with its number of votes.
    Counts(BTreeMap<String, String>),
}

/// Which column of a table is what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMap {
    /// The item's id; without it the row.
    pub id: Option<Source>,
    /// The locale.
    pub locale: Source,
    /// Field -> its text.
    pub fields: BTreeMap<String, Source>,
    /// The group.
    pub group: Option<Source>,
    /// The split.
    pub split: Option<Source>,
    /// Criterion -> its votes.
    pub votes: BTreeMap<String, VoteSource>,
    /// Long form: the column that names the rater of the row.
    pub rater: Option<String>,
    /// Criterion -> label -> spellings of it.
    pub labels: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Key -> text kept for evaluation.
    pub meta: BTreeMap<String, Source>,
}

const KEYS: [&str; 12] = [
    "id", "locale", "field", "item", "group", "split", "meta", "votes", "raters", "rater", "count",
    "labels",
];

impl TableMap {
    /// Parses the entries of `--map`.
    ///
    /// # Errors
    /// The entry that is not understood, one that is there twice, or a missing `locale` or field.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<Self, DataError> {
        let mut map = Self {
            id: None,
            locale: Source::Constant(String::new()),
            fields: BTreeMap::new(),
            group: None,
            split: None,
            votes: BTreeMap::new(),
            rater: None,
            labels: BTreeMap::new(),
            meta: BTreeMap::new(),
        };
        let mut seen = std::collections::BTreeSet::new();
        let mut names = BTreeMap::new();
        for entry in entries {
            let entry = entry.as_ref();
            let refuse = |why: String| {
                DataError::new(
                    format!("--map {}: {why}", quoted(entry)),
                    "see `pluralis data import table --help`",
                )
            };
            let (key, source) = parse_entry(entry).map_err(refuse)?;
            if !seen.insert(key.to_owned()) {
                return Err(refuse("this key is already mapped".into()));
            }
            map.set(key, source, &mut names).map_err(refuse)?;
        }
        map.finish(names, seen.contains("locale"))
    }

    fn set(
        &mut self,
        key: &str,
        source: Source,
        names: &mut BTreeMap<String, Vec<String>>,
    ) -> Result<(), String> {
        let columns = |source: Source| match source {
            Source::Columns(columns) => Ok(columns),
            Source::Constant(_) => Err("name a column with `=`".to_owned()),
        };
        let one = |source: Source| match columns(source)?.as_slice() {
            [column] => Ok(column.clone()),
            _ => Err("name one column".to_owned()),
        };
        let (head, rest) = key.split_once('.').unwrap_or((key, ""));
        let (name, label) = rest.split_once('.').unwrap_or((rest, ""));
        match (head, rest.is_empty()) {
            ("id", true) => self.id = Some(Source::Columns(columns(source)?)),
            ("locale", true) => self.locale = source,
            ("group", true) => self.group = Some(source),
            ("split", true) => self.split = Some(source),
            ("rater", true) => self.rater = Some(one(source)?),
            ("field" | "item", false) => {
                if self.fields.insert(rest.to_owned(), source).is_some() {
                    return Err(format!("the field `{rest}` is already mapped"));
                }
            }
            ("meta", false) => _ = self.meta.insert(rest.to_owned(), source),
            ("raters", false) => _ = names.insert(rest.to_owned(), columns(source)?),
            ("votes", false) => {
                let votes = VoteSource::Raters {
                    labels: columns(source)?,
                    names: Vec::new(),
                };
                if self.votes.insert(rest.to_owned(), votes).is_some() {
                    return Err(format!("`{rest}` has both `votes` and `count`"));
                }
            }
            ("count", false) if !label.is_empty() => {
                let empty = VoteSource::Counts(BTreeMap::new());
                match self.votes.entry(name.to_owned()).or_insert(empty) {
                    VoteSource::Counts(counts) => _ = counts.insert(label.to_owned(), one(source)?),
                    VoteSource::Raters { .. } => {
                        return Err(format!("`{name}` has both `votes` and `count`"));
                    }
                }
            }
            ("labels", false) if !label.is_empty() => {
                let spellings = columns(source)?;
                self.labels
                    .entry(name.to_owned())
                    .or_default()
                    .insert(label.to_owned(), spellings);
            }
            ("count" | "labels", _) => return Err(format!("write `{head}.CRITERION.LABEL=…`")),
            ("field" | "item" | "meta" | "votes" | "raters", true) => {
                return Err(format!("write `{head}.NAME=…`"));
            }
            (known, false) if KEYS.contains(&known) => {
                return Err(format!("`{known}` takes no `.`"));
            }
            _ => {
                return Err(format!(
                    "the key is not known; {}",
                    did_you_mean(head, &KEYS)
                ));
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        names: BTreeMap<String, Vec<String>>,
        locale: bool,
    ) -> Result<Self, DataError> {
        for (criterion, given) in names {
            match self.votes.get_mut(&criterion) {
                Some(VoteSource::Raters { labels, names }) if labels.len() == given.len() => {
                    *names = given
                }
                _ => {
                    let what = format!(
                        "--map raters.{criterion}: it needs as many columns as `votes.{criterion}`"
                    );
                    return Err(DataError::new(what, "list them in the same order"));
                }
            }
        }
        let long = self.rater.is_some();
        for (criterion, source) in &self.votes {
            let bad = match source {
                VoteSource::Raters { labels, names } => labels.len() != 1 || !names.is_empty(),
                VoteSource::Counts(_) => true,
            };
            if long && bad {
                let what = format!("--map rater: then `votes.{criterion}` is one column of labels");
                return Err(DataError::new(what, "each row holds one rater's vote"));
            }
        }
        if long && self.id.is_none() {
            let what = "--map rater: then `id` must say which rows are one item";
            return Err(DataError::new(
                what,
                "add `id=COLUMN` or `id=COLUMN,COLUMN`",
            ));
        }
        if !locale {
            let what = "--map: the locale is missing";
            return Err(DataError::new(
                what,
                "add `locale=COLUMN`, or `locale:es-MX` for all rows",
            ));
        }
        if self.fields.is_empty() {
            return Err(DataError::new(
                "--map: no text field",
                "add `field.NAME=COLUMN`",
            ));
        }
        Ok(self)
    }

    /// The columns that the map needs; the header of a table is the row that has them.
    pub fn columns(&self) -> Vec<&str> {
        let singles = [
            self.id.as_ref(),
            Some(&self.locale),
            self.group.as_ref(),
            self.split.as_ref(),
        ];
        let texts = self.fields.values().chain(self.meta.values());
        let mut out: Vec<&str> = Vec::new();
        for source in singles.into_iter().flatten().chain(texts) {
            if let Source::Columns(columns) = source {
                out.extend(columns.iter().map(String::as_str));
            }
        }
        for votes in self.votes.values() {
            match votes {
                VoteSource::Raters { labels, names } => {
                    out.extend(labels.iter().chain(names).map(String::as_str))
                }
                VoteSource::Counts(counts) => out.extend(counts.values().map(String::as_str)),
            }
        }
        out.extend(self.rater.as_deref());
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// `KEY=COLUMN` or `KEY:TEXT`, whichever sign comes first.
fn parse_entry(entry: &str) -> Result<(&str, Source), String> {
    let at = entry
        .find(['=', ':'])
        .ok_or("write KEY=COLUMN, or KEY:TEXT for the same text in every row")?;
    let (key, value) = (entry[..at].trim(), &entry[at + 1..]);
    if value.trim().is_empty() {
        return Err("nothing stands after the sign".into());
    }
    if entry[at..].starts_with(':') {
        return Ok((key, Source::Constant(value.trim().to_owned())));
    }
    let separator = if key.starts_with("labels.") { '|' } else { ',' };
    let many = ["id", "votes.", "raters.", "labels."]
        .iter()
        .any(|k| key == *k || (k.ends_with('.') && key.starts_with(k)));
    let columns = if many {
        listed(value, separator)
    } else {
        vec![value.trim().to_owned()]
    };
    if columns.iter().any(String::is_empty) {
        return Err("an element of the list is empty".into());
    }
    Ok((key, Source::Columns(columns)))
}

/// Splits a list at its separator; a backslash before it makes it part of the text.
fn listed(text: &str, separator: char) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = out.len() - 1;
        if c == '\\' && chars.peek() == Some(&separator) {
            out[last].extend(chars.next());
        } else if c == separator {
            out.push(String::new());
        } else {
            out[last].push(c);
        }
    }
    out.into_iter().map(|s| s.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        let map = TableMap::parse(&[
            "id=a,b",
            "locale:es-MX",
            "field.prompt=Q1, really",
            "votes.truth=A,B\\,C",
            "raters.truth=x,y",
            "labels.truth.yes=Sí|si\\|no|1",
            "count.off.NO=Not Offensive (NO)",
            "count.off.O1=o1",
            "meta.src=z=1",
        ])
        .unwrap();
        assert_eq!(map.id, Some(Source::Columns(vec!["a".into(), "b".into()])));
        assert_eq!(map.locale, Source::Constant("es-MX".into()));
        assert_eq!(
            map.fields["prompt"],
            Source::Columns(vec!["Q1, really".into()])
        );
        let want = VoteSource::Raters {
            labels: vec!["A".into(), "B,C".into()],
            names: vec!["x".into(), "y".into()],
        };
        assert_eq!(map.votes["truth"], want);
        assert_eq!(map.labels["truth"]["yes"], ["Sí", "si|no", "1"]);
        assert_eq!(
            map.columns(),
            [
                "A",
                "B,C",
                "Not Offensive (NO)",
                "Q1, really",
                "a",
                "b",
                "o1",
                "x",
                "y",
                "z=1"
            ]
        );
    }

    #[test]
    fn bad_entries_say_why() {
        for (entries, want) in [
            (vec!["locale:es"], "no text field"),
            (vec!["field.a=A"], "the locale is missing"),
            (vec!["locale:es", "feild.a=A"], "did you mean `field`"),
            (vec!["locale:es", "field.a"], "KEY=COLUMN"),
            (
                vec!["locale:es", "field.a=A", "field.a=B"],
                "already mapped",
            ),
            (
                vec!["locale:es", "field.a=A", "votes.c=X", "count.c.L=Y"],
                "both `votes` and `count`",
            ),
            (vec!["locale:es", "field.a=A", "votes.c=X,,Y"], "is empty"),
            (
                vec!["locale:es", "field.a=A", "rater=R", "votes.c=X"],
                "which rows are one item",
            ),
            (
                vec!["locale:es", "field.a=A", "votes.c=X", "raters.c=A,B"],
                "as many columns",
            ),
        ] {
            let error = TableMap::parse(&entries).unwrap_err().to_string();
            assert!(error.contains(want), "{entries:?}: {error}");
        }
    }
}

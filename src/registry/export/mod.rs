//! A version in the form of another tool.

mod dspy;
mod plain;
mod promptfoo;
mod python;

use std::collections::BTreeSet;

use crate::data::{Item, Votes};
use crate::locale::Locale;
use crate::prompt::{AnswerFormat, Fence, RenderError, Renderer, Style, Version};
use crate::task::Task;

/// What is exported.
pub struct Subject<'a> {
    /// The task.
    pub task: &'a Task,
    /// The version.
    pub version: &'a Version,
    /// The locales to export for; at least one.
    pub locales: Vec<Locale>,
    /// Seed of the delimiter around item texts.
    pub fence_seed: u64,
}

/// A form to export to.
pub trait Export {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// What it is, in one line.
    fn about(&self) -> &'static str;
    /// The whole file, of a version that it can have.
    ///
    /// # Errors
    /// [`ExportError`] where the version cannot be had in this form.
    fn render(&self, subject: &Subject<'_>) -> Result<String, ExportError>;

    /// Whether its reader may be a person, who picks the demos nearest to an item by eye.
    fn is_for_reading(&self) -> bool {
        false
    }

    /// The whole file.
    ///
    /// # Errors
    /// [`ExportError`] where the version cannot be had in this form: one text for all items of a
    /// locale is all that other tools have.
    fn write(&self, subject: &Subject<'_>) -> Result<String, ExportError> {
        match subject.version.nearest {
            Some(count) if !self.is_for_reading() => Err(ExportError::Nearest { count }),
            _ => self.render(subject),
        }
    }
}

/// Every form.
pub fn forms() -> [&'static dyn Export; 6] {
    [
        &plain::Text,
        &plain::Messages,
        &plain::Tera,
        &python::Python,
        &promptfoo::Promptfoo,
        &dspy::Dspy,
    ]
}

/// Why a version cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It does not render.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The demos depend on the item.
    #[error(
        "the version shows each item the {count} demos nearest to it, which a fixed prompt cannot do; score it with `pluralis score`"
    )]
    Nearest {
        /// How many.
        count: usize,
    },
    /// Its item template does more with a text than to show it.
    #[error(
        "the item template changes the text of `{field}`, so that another tool could not fill it in; export it to tera"
    )]
    Changed {
        /// The field.
        field: String,
    },
}

impl Subject<'_> {
    /// The locales that a version speaks of: its notes, its demos, `more`; one at least.
    pub fn locales_of(version: &Version, more: impl Iterator<Item = Locale>) -> Vec<Locale> {
        let notes = version
            .sections
            .keys()
            .filter_map(|name| Locale::parse(name.strip_prefix(crate::prompt::LOCALE_NOTES)?).ok());
        let demos = version.demos.iter().map(|d| d.locale.clone());
        let all: BTreeSet<Locale> = notes.chain(demos).chain(more).collect();
        match all.is_empty() {
            true => Locale::parse("en-US").into_iter().collect(),
            false => all.into_iter().collect(),
        }
    }

    /// What is asked: one request per criterion, or one for all of them.
    fn asked(&self) -> Vec<Option<usize>> {
        match self.version.answer {
            AnswerFormat::Json => vec![None],
            _ => (0..self.task.criteria.len()).map(Some).collect(),
        }
    }

    /// The name of what is asked.
    fn asks_for(&self, criterion: Option<usize>) -> String {
        match criterion {
            Some(c) => self.task.criteria[c].name.clone(),
            None => {
                let names: Vec<_> = self.task.criteria.iter().map(|c| c.name.as_str()).collect();
                names.join(", ")
            }
        }
    }

    /// The words that the judge may answer with.
    fn words(&self, criterion: usize) -> Vec<String> {
        let c = &self.task.criteria[criterion];
        let offered = (0..c.labels.len()).filter(|&l| self.version.offers(c, l));
        offered
            .map(|l| self.version.word(c, l).to_owned())
            .collect()
    }

    /// `offensiveness (binary), version 0123456789ab`.
    fn title(&self) -> String {
        let reading = self.version.reading.as_ref();
        let reading = reading.map_or(String::new(), |r| format!(" ({r})"));
        format!(
            "{}{reading}, version {}",
            self.version.task,
            self.version.short()
        )
    }

    fn is_chat(&self) -> bool {
        self.version.skeleton.style == Style::Chat
    }

    /// Positions of the fields that an item may lack.
    fn optional(&self) -> Vec<usize> {
        let fields = self.task.fields.iter().enumerate();
        fields
            .filter(|(_, f)| !f.required)
            .map(|(i, _)| i)
            .collect()
    }

    /// The delimiter, which a filled in text must not hold.
    fn fence(&self) -> Fence {
        Fence::draw(self.fence_seed, std::iter::empty())
    }

    /// The item template with places for the texts of an item that has the optional fields of
    /// `present` and no others.
    fn suffix(
        &self,
        renderer: &Renderer<'_>,
        locale: &Locale,
        criterion: Option<usize>,
        present: &[usize],
    ) -> Result<Vec<Piece>, ExportError> {
        let optional = self.optional();
        let shown = |i: &usize| !optional.contains(i) || present.contains(i);
        let fields = (0..self.task.fields.len())
            .map(|i| if shown(&i) { mark(i) } else { String::new() })
            .collect();
        let text = renderer.suffix(&self.item(locale, fields), criterion)?;
        let pieces = pieces(&text);
        // A text that is shown nowhere is left out by the template; one that is shown changed
        // would be found in no place.
        for i in (0..self.task.fields.len()).filter(shown) {
            let placed = pieces.iter().filter(|p| **p == Piece::Field(i)).count();
            if placed == 0 || text.matches(END).count() != text.matches(START).count() {
                let field = self.task.fields[i].name.clone();
                return Err(ExportError::Changed { field });
            }
        }
        Ok(pieces)
    }

    fn item(&self, locale: &Locale, fields: Vec<String>) -> Item {
        Item {
            id: "item".into(),
            locale: locale.clone(),
            fields,
            group: String::new(),
            votes: vec![Votes::default(); self.task.criteria.len()],
            meta: Default::default(),
            split: None,
        }
    }
}

/// A part of a template that is filled in elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// As it stands.
    Text(String),
    /// The text of a field.
    Field(usize),
}

/// Characters for private use, which stand around the number of a field. The letters would show a
/// template that changes their case.
const START: &str = "\u{f8fe}aB";
const END: &str = "\u{f8ff}";

fn mark(field: usize) -> String {
    format!("{START}{field}{END}")
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(START) {
        let Some((number, after)) = after.split_once(END) else {
            break;
        };
        let Ok(field) = number.parse() else { break };
        out.push(Piece::Text(before.to_owned()));
        out.push(Piece::Field(field));
        rest = after;
    }
    out.push(Piece::Text(rest.to_owned()));
    out.retain(|p| *p != Piece::Text(String::new()));
    out
}

/// Every subset of the optional fields.
fn subsets(optional: &[usize]) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new()];
    for &field in optional {
        let with = out.iter().map(|s: &Vec<usize>| {
            let mut s = s.clone();
            s.push(field);
            s
        });
        let with: Vec<_> = with.collect();
        out.extend(with);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_again() {
        let text = format!("a{}b{}", mark(1), mark(0));
        let want = [
            Piece::Text("a".into()),
            Piece::Field(1),
            Piece::Text("b".into()),
            Piece::Field(0),
        ];
        assert_eq!(pieces(&text), want);
        assert_eq!(pieces(&text.to_uppercase()).len(), 1);
        assert_eq!(subsets(&[3, 5]), [vec![], vec![3], vec![5], vec![3, 5]]);
    }
}

//! Typed edits: the only way from one version to another. Edits touch texts, never template syntax.

use serde::{Deserialize, Serialize};

use super::{Calibration, Demo, LOCALE_NOTES, Version, Words};
use crate::locale::Locale;

/// Longest section that an edit may write, in characters.
const MAX_SECTION: usize = 6_000;

/// Sections that the templates of every shipped task show when they are there, so that an edit may
/// write them where a version has none yet.
const OPTIONAL: [&str; 2] = ["role", "rubric"];

/// A typed change to a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "kebab-case")]
pub enum Edit {
    /// Writes a section anew.
    ReplaceSection {
        /// `role`, `rubric` …
        section: String,
        /// The new text.
        text: String,
    },
    /// Appends a rule.
    AddRule {
        /// The rule.
        text: String,
    },
    /// Removes a rule by position.
    DropRule {
        /// Position from 0.
        index: usize,
    },
    /// Writes, or with an empty text removes, the note of a locale.
    SetLocaleNote {
        /// Whose note.
        locale: Locale,
        /// The note.
        text: String,
    },
    /// Replaces all demos.
    SetDemos {
        /// In order of showing.
        demos: Vec<Demo>,
    },
    /// Adds a demo at the end.
    AddDemo {
        /// The demo.
        demo: Demo,
    },
    /// Removes the demo drawn from an item.
    DropDemo {
        /// Id of the item.
        source: String,
    },
    /// Puts one demo in the place of another.
    SwapDemo {
        /// Id of the item whose demo goes.
        out: String,
        /// The demo that comes.
        demo: Demo,
    },
    /// Changes the order of the demos.
    ReorderDemos {
        /// A permutation of positions.
        order: Vec<usize>,
    },
    /// Shows an item only the demos that are nearest to it.
    ShowNearest {
        /// How many; 0 shows all of them again.
        count: usize,
    },
    /// Shows a field before the others, such as a gloss before the text that it explains.
    ShowFirst {
        /// Name of the field.
        field: String,
    },
    /// Changes the words that stand for labels.
    ChangeWords {
        /// criterion -> label -> word.
        words: Words,
    },
    /// Takes over a part of another version.
    Merge {
        /// Digest of the other version.
        other: String,
        /// What is taken.
        part: MergePart,
    },
    /// Replaces the calibration.
    Recalibrate {
        /// The new one.
        calibration: Calibration,
    },
}

/// The part of another version that a merge takes over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MergePart {
    /// Its demos.
    Demos(Vec<Demo>),
    /// Its sections, locale notes and rules.
    Texts {
        /// Sections and locale notes.
        sections: std::collections::BTreeMap<String, String>,
        /// Rules.
        rules: Vec<String>,
    },
}

/// Why an edit is refused; no call is spent on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text holds template syntax, which would be shown and not evaluated.
    #[error("the text for `{target}` contains template syntax ({found}); sections are plain text")]
    TemplateSyntax {
        /// Section or rule.
        target: String,
        /// `{{`, `{%` or `{#`.
        found: &'static str,
    },
    /// Empty, or nothing would change.
    #[error("the edit of `{target}` changes nothing")]
    NoChange {
        /// Section, rule or demo.
        target: String,
    },
    /// Over the limit.
    #[error("the text for `{target}` has {length} characters; at most {MAX_SECTION} are allowed")]
    TooLong {
        /// Section or rule.
        target: String,
        /// Characters.
        length: usize,
    },
    /// Control characters.
    #[error("the text for `{target}` contains a control character")]
    Control {
        /// Section or rule.
        target: String,
    },
    /// A section, rule or demo that does not exist.
    #[error("there is no {target} in this version")]
    Missing {
        /// What was named.
        target: String,
    },
}

impl Edit {
    /// Short name of the kind of edit, for logs and for learning which kinds pay.
    pub fn kind(&self) -> &'static str {
        match self {
            Edit::ReplaceSection { .. } => "replace-section",
            Edit::AddRule { .. } => "add-rule",
            Edit::DropRule { .. } => "drop-rule",
            Edit::SetLocaleNote { .. } => "set-locale-note",
            Edit::SetDemos { .. } => "set-demos",
            Edit::AddDemo { .. } => "add-demo",
            Edit::DropDemo { .. } => "drop-demo",
            Edit::SwapDemo { .. } => "swap-demo",
            Edit::ReorderDemos { .. } => "reorder-demos",
            Edit::ShowNearest { .. } => "show-nearest",
            Edit::ShowFirst { .. } => "show-first",
            Edit::ChangeWords { .. } => "change-words",
            Edit::Merge { .. } => "merge",
            Edit::Recalibrate { .. } => "recalibrate",
        }
    }

    /// The version that the edit makes of `parent`.
    ///
    /// # Errors
    /// [`EditError`] when the edit is malformed for this version or changes nothing.
    pub fn apply(&self, parent: &Version) -> Result<Version, EditError> {
        let mut child = parent.clone();
        let target = match self {
            Edit::ReplaceSection { section, text } => {
                check_text(section, text)?;
                if !child.sections.contains_key(section) && !OPTIONAL.contains(&section.as_str()) {
                    return Err(EditError::Missing {
                        target: format!("section `{section}`"),
                    });
                }
                child
                    .sections
                    .insert(section.clone(), text.trim().to_owned());
                section.clone()
            }
            Edit::AddRule { text } => {
                check_text("rules", text)?;
                if !child.rules.iter().any(|r| r == text.trim()) {
                    child.rules.push(text.trim().to_owned());
                }
                "rules".into()
            }
            Edit::DropRule { index } => {
                if *index >= child.rules.len() {
                    return Err(EditError::Missing {
                        target: format!("rule {index}"),
                    });
                }
                child.rules.remove(*index);
                "rules".into()
            }
            Edit::SetLocaleNote { locale, text } => {
                let name = format!("{LOCALE_NOTES}{locale}");
                if text.trim().is_empty() {
                    child.sections.remove(&name);
                } else {
                    check_text(&name, text)?;
                    child.sections.insert(name.clone(), text.trim().to_owned());
                }
                name
            }
            Edit::SetDemos { demos } => {
                child.demos.clone_from(demos);
                "demos".into()
            }
            Edit::AddDemo { demo } => {
                if !child.shows(&demo.source) {
                    child.demos.push(demo.clone());
                }
                demo.source.clone()
            }
            Edit::DropDemo { source } => {
                child.demos.retain(|d| d.source != *source);
                source.clone()
            }
            Edit::SwapDemo { out, demo } => {
                let place = child
                    .demos
                    .iter()
                    .position(|d| d.source == *out)
                    .ok_or_else(|| EditError::Missing {
                        target: format!("demo `{out}`"),
                    })?;
                if !child.shows(&demo.source) {
                    child.demos[place] = demo.clone();
                }
                demo.source.clone()
            }
            Edit::ReorderDemos { order } => {
                let mut seen = order.clone();
                seen.sort_unstable();
                if seen != (0..child.demos.len()).collect::<Vec<_>>() {
                    return Err(EditError::Missing {
                        target: "such order of the demos".into(),
                    });
                }
                child.demos = order.iter().map(|&i| parent.demos[i].clone()).collect();
                "demos".into()
            }
            Edit::ShowNearest { count } => {
                child.nearest = Some(*count).filter(|n| *n > 0);
                "demos".into()
            }
            Edit::ShowFirst { field } => {
                check_text("field", field)?;
                child.first = Some(field.clone());
                field.clone()
            }
            Edit::ChangeWords { words } => {
                for word in words.values().flat_map(|w| w.values()) {
                    check_text("words", word)?;
                }
                child.words.clone_from(words);
                "words".into()
            }
            Edit::Merge { other, part } => {
                match part {
                    MergePart::Demos(demos) => child.demos.clone_from(demos),
                    MergePart::Texts { sections, rules } => {
                        child.sections.clone_from(sections);
                        child.rules.clone_from(rules);
                    }
                }
                format!("version {other}")
            }
            Edit::Recalibrate { calibration } => {
                child.calibration.clone_from(calibration);
                "calibration".into()
            }
        };
        if child == *parent {
            return Err(EditError::NoChange { target });
        }
        Ok(child)
    }
}

fn check_text(target: &str, text: &str) -> Result<(), EditError> {
    let target = || target.to_owned();
    if text.trim().is_empty() {
        return Err(EditError::NoChange { target: target() });
    }
    if let Some(found) = ["{{", "{%", "{#"].into_iter().find(|s| text.contains(s)) {
        return Err(EditError::TemplateSyntax {
            target: target(),
            found,
        });
    }
    let length = text.chars().count();
    if length > MAX_SECTION {
        return Err(EditError::TooLong {
            target: target(),
            length,
        });
    }
    if text
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t')
    {
        return Err(EditError::Control { target: target() });
    }
    Ok(())
}

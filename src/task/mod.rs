//! Owns what is judged: criteria, scales, outcome rules and rates, read from `task.toml`.
//! Must not know prompts or endpoints.

mod parse;
mod rules;

pub use parse::{TaskError, parse_task};
pub use rules::{Condition, OutcomeRule, Rate, Standing};

use crate::text::fold;

/// A checked task: everything downstream may rely on its names being unique and resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Name of the folder under `judge-prompts/`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What the judge decides, for help texts and reports.
    pub description: String,
    /// Where the rubric comes from (a paper or a data set).
    pub source: String,
    /// Text fields that an item has, in the order in which a prompt shows them.
    pub fields: Vec<Field>,
    /// What is judged; at least one.
    pub criteria: Vec<Criterion>,
    /// First-match table over the criteria's labels; may be empty.
    pub outcomes: Vec<OutcomeRule>,
    /// Combinations of labels that contradict themselves (H without NC).
    pub inconsistent: Vec<Condition>,
    /// Shares of outcomes or labels among eligible items (ASR, NSR, CSR).
    pub rates: Vec<Rate>,
    /// Name of the reading that was applied, where one was (`binary`).
    pub reading: Option<String>,
    /// Per criterion: the label of the task file -> index in the reading's labels. Votes written
    /// in the file's labels are read through it. Empty where no reading was applied.
    pub relabel: Vec<Vec<(String, usize)>>,
}

/// A text field of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Key in the items file and in templates (`item.attribute`).
    pub name: String,
    /// How a prompt titles it (`Trait`).
    pub title: String,
    /// Whether an item without it is an error.
    pub required: bool,
    /// Whether this field's text, normalised, is what makes two items the same (default group).
    pub identifies: bool,
}

/// One question with its scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// Short key: `offensiveness`, `H`.
    pub name: String,
    /// The question put to the judge.
    pub question: String,
    /// How labels relate to each other.
    pub scale: Scale,
    /// The labels, in the order of the file (for ordinal scales: ascending by value, abstentions last).
    pub labels: Vec<Label>,
    /// Other words that a search may try, each set one word for every label in their order
    /// (`positive`, `negative`, `unclear`): a small model often knows one pair of words much better
    /// than another. They decide nothing of a version, so its digest leaves them out.
    pub word_sets: Vec<Vec<String>>,
}

/// How labels relate to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Names without order.
    Nominal,
    /// Labels with values; distance grows with the difference of values.
    Ordinal,
    /// Two labels; the second is the positive one (flagged).
    Binary,
}

/// One possible answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Name in data files and reports: `O1`.
    pub name: String,
    /// What the judge is asked to answer unless a version says otherwise: `slightly offensive`.
    pub word: String,
    /// Definition for the rubric; may be empty.
    pub meaning: String,
    /// Position on an ordinal scale; for binary 0 and 1.
    pub value: Option<f64>,
    /// Whether the label means that the rater would not decide (unsure).
    pub abstain: bool,
    /// Other spellings that files use: `o1`, `1`.
    pub aliases: Vec<String>,
}

impl Criterion {
    /// Index of a label by its name or one of its aliases, ignoring case, Unicode form, invisible
    /// characters and outer white space.
    pub fn label_index(&self, text: &str) -> Option<usize> {
        // Most files spell labels as the task does; only others are worth folding.
        if let Some(exact) = self.labels.iter().position(|l| l.name == text) {
            return Some(exact);
        }
        let text = fold(text);
        let same = |other: &str| fold(other) == text;
        self.labels.iter().position(|l| same(&l.name)).or_else(|| {
            self.labels
                .iter()
                .position(|l| l.aliases.iter().any(|a| same(a)) || same(&l.word))
        })
    }

    /// The values of the labels, with the position standing in where a label has none.
    pub fn values(&self) -> Vec<f64> {
        self.labels
            .iter()
            .enumerate()
            .map(|(i, l)| l.value.unwrap_or(i as f64))
            .collect()
    }

    /// Per label, whether it abstains.
    pub fn abstains(&self) -> Vec<bool> {
        self.labels.iter().map(|l| l.abstain).collect()
    }
}

impl Task {
    /// Index of a criterion by name, ignoring case.
    pub fn criterion_index(&self, name: &str) -> Option<usize> {
        self.criteria
            .iter()
            .position(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// Index, in this task's labels, of a label as a data file writes it; goes through the reading
    /// where one was applied.
    pub fn vote_label(&self, criterion: usize, text: &str) -> Option<usize> {
        if let Some(map) = self.relabel.get(criterion) {
            let exact = map.iter().find(|(from, _)| from == text);
            let folded = || {
                let text = fold(text);
                map.iter().find(|(from, _)| fold(from) == text)
            };
            if let Some((_, ix)) = exact.or_else(folded) {
                return Some(*ix);
            }
        }
        self.criteria[criterion].label_index(text)
    }

    /// Whether a full set of labels (one index per criterion) contradicts itself.
    pub fn is_inconsistent(&self, labels: &[usize]) -> bool {
        self.inconsistent.iter().any(|c| c.holds(labels))
    }

    /// The outcome of a full set of labels (one index per criterion): the first rule that matches.
    pub fn outcome(&self, labels: &[usize]) -> Option<usize> {
        self.outcomes
            .iter()
            .position(|rule| rule.when.holds(labels))
    }
}

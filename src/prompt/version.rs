//! The prompt version: everything that decides what the judge is told and how its answer is read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Style;
use crate::locale::Locale;
use crate::task::{Criterion, Field, Task};

/// Prefix of the sections that hold a note for one locale: `locale-notes/es-MX`.
pub const LOCALE_NOTES: &str = "locale-notes/";

/// criterion -> label -> word that stands for the label in the prompt and the answer.
pub type Words = BTreeMap<String, BTreeMap<String, String>>;

/// An immutable prompt version. Editing makes a new one; its identity is [`Version::digest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// Format of this record; 1.
    pub format: u32,
    /// Name of the task.
    pub task: String,
    /// The reading of the task, where one applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<String>,
    /// Digest of the task definition that the version was made for.
    pub task_digest: String,
    /// The reviewed templates.
    pub skeleton: Skeleton,
    /// Named editable texts.
    pub sections: BTreeMap<String, String>,
    /// Short rules, in order.
    #[serde(default)]
    pub rules: Vec<String>,
    /// Labelled examples, in the order in which the prompt shows them.
    #[serde(default)]
    pub demos: Vec<Demo>,
    /// Show an item only so many of the demos: those nearest to it by character n-grams, the
    /// nearest last. All of them where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<usize>,
    /// The field that items and demos show first; the task's order where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// Words that replace the task's own, where the version changes them.
    #[serde(default)]
    pub words: Words,
    /// How the answer is read.
    pub answer: AnswerFormat,
    /// Whether the judge may give a label that abstains (unsure).
    #[serde(default)]
    pub may_abstain: bool,
    /// Corrections of the label distribution.
    #[serde(default)]
    pub calibration: Calibration,
}

/// Template sources of a version; written by people, never by a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skeleton {
    /// `completion` or `chat` in the shipped tasks.
    pub name: String,
    /// How the text reaches the model.
    pub style: Style,
    /// Source of the prefix template: instructions and demos.
    pub prefix: String,
    /// Source of the item template.
    pub item: String,
}

/// How an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerFormat {
    /// The probabilities of the label words: exact where the endpoint scores continuations,
    /// else from the alternatives of the first generated token.
    Logprobs,
    /// The label word as generated text.
    Label,
    /// One JSON object for all criteria, with a rationale.
    Json,
}

/// A labelled example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    /// Id of the item it was drawn from; never scored against itself.
    pub source: String,
    /// The item's locale.
    pub locale: Locale,
    /// Show it only when judging for this locale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_for: Option<Locale>,
    /// Field name -> text.
    pub fields: BTreeMap<String, String>,
    /// criterion -> label name.
    pub answers: BTreeMap<String, String>,
}

/// Corrections applied to the natural-log label probabilities before the label is chosen:
/// `softmax(temperature * log p + bias + locale bias)`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// By criterion; a criterion without an entry is read as the model answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub criteria: BTreeMap<String, CriterionCalibration>,
}

/// The correction of one criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriterionCalibration {
    /// Multiplies the log probabilities.
    pub temperature: f64,
    /// Added per label.
    pub bias: Vec<f64>,
    /// Added per label on top, for one locale (shrunk towards zero when fitted).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locales: BTreeMap<Locale, Vec<f64>>,
}

impl CriterionCalibration {
    /// The corrected distribution over labels for natural-log probabilities `scores`.
    pub fn apply(&self, scores: &[f64], locale: &Locale) -> Vec<f64> {
        let local = self.locales.get(locale);
        let logits = scores.iter().enumerate().map(|(i, s)| {
            self.temperature * s
                + self.bias.get(i).copied().unwrap_or(0.0)
                + local.and_then(|b| b.get(i)).copied().unwrap_or(0.0)
        });
        softmax(logits.collect())
    }
}

/// Normalises logits to a distribution, safely for large magnitudes.
fn softmax(mut logits: Vec<f64>) -> Vec<f64> {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        let n = logits.len().max(1) as f64;
        return vec![1.0 / n; logits.len()];
    }
    let mut total = 0.0;
    for x in &mut logits {
        *x = (*x - top).exp();
        total += *x;
    }
    logits.iter().map(|x| x / total).collect()
}

impl Calibration {
    /// The distribution over labels of a criterion for natural-log probabilities `scores`.
    pub fn apply(&self, criterion: &str, scores: &[f64], locale: &Locale) -> Vec<f64> {
        match self.criteria.get(criterion) {
            Some(c) => c.apply(scores, locale),
            None => softmax(scores.to_vec()),
        }
    }
}

impl Version {
    /// The content address: 64 hex digits of blake3 over the canonical JSON of every part.
    pub fn digest(&self) -> String {
        // Keys are in the order of the struct and maps are sorted, so the bytes are canonical.
        let json = serde_json::to_vec(self).unwrap_or_default();
        let mut hasher = blake3::Hasher::new_derive_key("pluralis prompt version 1");
        hasher.update(&json);
        hasher.finalize().to_hex().to_string()
    }

    /// The 12 digits that people see.
    pub fn short(&self) -> String {
        self.digest()[..12].to_owned()
    }

    /// The word that stands for a label in this version.
    pub fn word<'a>(&'a self, criterion: &'a Criterion, label: usize) -> &'a str {
        let label = &criterion.labels[label];
        self.words
            .get(&criterion.name)
            .and_then(|w| w.get(&label.name))
            .unwrap_or(&label.word)
    }

    /// Whether the judge is offered a label: those that abstain only where the version says so.
    pub fn offers(&self, criterion: &Criterion, label: usize) -> bool {
        self.may_abstain || !criterion.labels[label].abstain
    }

    /// The note for a locale; empty where there is none.
    pub fn locale_note(&self, locale: &Locale) -> &str {
        self.sections
            .get(&format!("{LOCALE_NOTES}{locale}"))
            .map_or("", String::as_str)
    }

    /// Whether an item is one of the demos, so that it must not be scored with this version.
    pub fn shows(&self, item_id: &str) -> bool {
        self.demos.iter().any(|d| d.source == item_id)
    }
}

/// Digest of a task definition, kept in each version made for it: 12 hex digits of blake3 over its
/// canonical JSON. What only people read (title, description, source) and the rates of a later
/// evaluation are left out.
pub fn task_digest(task: &Task) -> String {
    let fields: Vec<_> = task.fields.iter().map(field_form).collect();
    let criteria: Vec<_> = task.criteria.iter().map(criterion_form).collect();
    let outcomes: Vec<_> = task
        .outcomes
        .iter()
        .map(|o| (&o.name, &o.when.terms))
        .collect();
    let inconsistent: Vec<_> = task.inconsistent.iter().map(|c| &c.terms).collect();
    let form = serde_json::json!([
        task.name,
        task.reading,
        fields,
        criteria,
        outcomes,
        inconsistent
    ]);
    let mut hasher = blake3::Hasher::new_derive_key("pluralis task 2");
    hasher.update(form.to_string().as_bytes());
    hasher.finalize().to_hex()[..12].to_owned()
}

/// The canonical forms are lists, written out by hand: a field that is added to a type later
/// changes no digest by itself.
fn field_form(f: &Field) -> serde_json::Value {
    serde_json::json!([f.name, f.title, f.required, f.identifies])
}

fn criterion_form(c: &Criterion) -> serde_json::Value {
    let labels: Vec<_> = c
        .labels
        .iter()
        .map(|l| serde_json::json!([l.name, l.word, l.meaning, l.value, l.abstain, l.aliases]))
        .collect();
    serde_json::json!([c.name, c.question, c.scale, labels])
}

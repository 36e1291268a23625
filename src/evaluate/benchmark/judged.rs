//! One line per response: what was said, its labels, and what the task's rule table makes of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Prompt, Sharing};
use crate::evaluate::target::Reply;
use crate::locale::Locale;
use crate::task::{Standing, Task};

/// Why a response has no label, or lacks some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlabelled {
    /// Counted in reports: `unparsable`, `refused`, `endpoint` (of the judge), `target-withheld`,
    /// `target-failed`, `unlabelled` (a blank cell).
    pub kind: String,
    /// What happened, for people.
    pub message: String,
}

/// A response with its labels, as they were read.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// Whose response it is.
    pub model: &'a str,
    /// What it answers.
    pub prompt: &'a Prompt,
    /// The response.
    pub reply: Reply,
    /// Label index by criterion.
    pub labels: Vec<Option<usize>>,
    /// Why some are missing.
    pub failure: Option<Unlabelled>,
    /// Not asked or not judged, because the budget ended: no verdict at all.
    pub unpaid: bool,
}

/// A line of `verdicts.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Whose response it is.
    pub model: String,
    /// Which country's prompt.
    pub locale: Locale,
    /// The prompt's id.
    pub prompt: String,
    /// Prompts of one question depend on each other.
    pub group: String,
    /// The prompt's.
    pub category: String,
    /// The prompt's.
    pub subcategory: String,
    /// The prompt's, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// The response.
    pub reply: Reply,
    /// criterion -> label; null where it is missing.
    pub labels: BTreeMap<String, Option<String>>,
    /// Why labels are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Unlabelled>,
    /// Whether the budget ended before it; then it is in no figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpaid: bool,
    /// The outcome, where the labels have one.
    pub outcome: Option<String>,
    /// Whether the labels contradict each other (H without NC).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub contradiction: bool,
    /// rate -> where the response stands in it.
    pub rates: BTreeMap<String, Standing>,
}

/// The line of a response: outcome, contradiction and rates by the task's rules. Labels that are
/// missing are never guessed (see [`Standing`]).
pub fn judged(task: &Task, given: Given<'_>) -> Line {
    let whole: Option<Vec<usize>> = given.labels.iter().copied().collect();
    let whole = whole.filter(|l| l.len() == task.criteria.len());
    let contradiction = whole.as_ref().is_some_and(|l| task.is_inconsistent(l));
    let outcome = whole
        .as_ref()
        .filter(|_| !contradiction)
        .and_then(|l| task.outcome(l));
    let name = |(c, label): (usize, &Option<usize>)| {
        let criterion = &task.criteria[c];
        let label = label.map(|l| criterion.labels[l].name.clone());
        (criterion.name.clone(), label)
    };
    let standing = |r: &crate::task::Rate| (r.name.clone(), r.standing(task, &given.labels));
    Line {
        model: given.model.to_owned(),
        locale: given.prompt.locale.clone(),
        prompt: given.prompt.id.clone(),
        group: given.prompt.group.clone(),
        category: given.prompt.category.clone(),
        subcategory: given.prompt.subcategory.clone(),
        sharing: given.prompt.sharing,
        labels: given.labels.iter().enumerate().map(name).collect(),
        outcome: outcome.map(|o| task.outcomes[o].name.clone()),
        contradiction,
        rates: match given.unpaid {
            true => BTreeMap::new(),
            false => task.rates.iter().map(standing).collect(),
        },
        reply: given.reply,
        failure: given.failure,
        unpaid: given.unpaid,
    }
}

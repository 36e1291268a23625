//! Items with their votes: the record of the JSONL file, and the checked form the crate works on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::locale::Locale;

/// One line of an items file, as written: labels by name, nothing resolved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemRecord {
    /// Unique in the file.
    pub id: String,
    /// BCP-47 tag.
    pub locale: String,
    /// Text fields by the task's field names.
    pub fields: BTreeMap<String, String>,
    /// Items of a group never cross splits; absent: the item's own identifying text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// criterion -> label -> number of votes (exchangeable raters).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub votes: BTreeMap<String, BTreeMap<String, u32>>,
    /// criterion -> rater -> label, where raters are known. A criterion is in `votes` or here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub raters: BTreeMap<String, BTreeMap<String, String>>,
    /// Columns kept for evaluation: model, category, country and the like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// `tune`, `validation` or `test`, where the file already says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
}

/// Where an item is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// Demos, minibatches and clusters.
    Tune,
    /// Selection and the stop rule.
    Validation,
    /// Read once, at the end.
    Test,
}

impl Split {
    /// The name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Split::Tune => "tune",
            Split::Validation => "validation",
            Split::Test => "test",
        }
    }
}

/// The votes on one criterion of one item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Votes {
    /// Number of votes by label index of the task's criterion.
    pub counts: Vec<u32>,
    /// Named raters with their label index, sorted by rater; empty for exchangeable votes.
    pub raters: Vec<(String, usize)>,
}

impl Votes {
    /// Number of votes, abstentions included.
    pub fn total(&self) -> u32 {
        self.counts.iter().sum()
    }
}

/// One checked item of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Unique in its file.
    pub id: String,
    /// Whose people judged it.
    pub locale: Locale,
    /// Text by the index of the task's field; empty where an optional field is absent.
    pub fields: Vec<String>,
    /// Items with the same group stay in one split. Always set after the check.
    pub group: String,
    /// Votes by the index of the task's criterion.
    pub votes: Vec<Votes>,
    /// Columns kept for evaluation.
    pub meta: BTreeMap<String, String>,
    /// Where the item is used, once split.
    pub split: Option<Split>,
}

impl Votes {
    /// The label with most votes; `None` without votes or where labels tie for the most.
    pub fn majority(&self) -> Option<usize> {
        let most = *self.counts.iter().max().filter(|n| **n > 0)?;
        let mut at_top = (0..self.counts.len()).filter(|&i| self.counts[i] == most);
        let first = at_top.next();
        if at_top.next().is_some() { None } else { first }
    }

    /// Whether several labels have the most votes.
    pub fn is_tie(&self) -> bool {
        self.total() > 0 && self.majority().is_none()
    }
}

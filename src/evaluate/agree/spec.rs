//! Owns what the user says about a table: which columns hold labels, and what the labels mean.
//! Must not read a table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agreement::Measure;

/// What may be done with labels besides telling them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Nothing.
    #[default]
    Nominal,
    /// They have an order.
    Ordinal,
    /// Differences of their values mean something.
    Interval,
    /// Ratios of their values mean something too; no value is negative.
    Ratio,
}

impl Scale {
    /// Whether labels have an order.
    pub fn is_ordered(self) -> bool {
        self != Scale::Nominal
    }

    /// The distance of a verdict from the votes that suits the scale.
    pub fn measure(self) -> Measure {
        if self.is_ordered() {
            Measure::Ordinal
        } else {
            Measure::Majority
        }
    }
}

/// Where people's labels are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Votes {
    /// One column per rater.
    Wide {
        /// The columns.
        raters: Vec<String>,
        /// The same column may hold different people in different rows.
        exchangeable: bool,
    },
    /// One row per vote.
    Long {
        /// Column of the rater.
        rater: String,
        /// Column of the label.
        label: String,
    },
    /// Per label, the column that says how many people chose it.
    Counts(Vec<(String, String)>),
}

/// Which columns are what, and what their labels mean. `@file` (the file's name without its
/// ending) and `@folder` (the name of its folder) may stand for a column wherever no label is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// People's labels.
    pub votes: Votes,
    /// Columns that together name an item; rows (of all files) with the same ones are one item.
    /// Without them every row is an item.
    pub item: Vec<String>,
    /// Columns of judges; in the long form also names of raters.
    pub judges: Vec<String>,
    /// Column of the locale.
    pub locale: Option<String>,
    /// Column of the group: items that depend on each other.
    pub group: Option<String>,
    /// The scale.
    pub scale: Scale,
    /// Labels with their values, in order; without them labels are what the table holds.
    pub values: Vec<(String, f64)>,
    /// Spelling -> label.
    pub aliases: BTreeMap<String, String>,
    /// Labels of raters who would not decide.
    pub abstain: Vec<String>,
    /// Texts that stand for "no label".
    pub missing: Vec<String>,
}

impl Spec {
    /// A nominal scale and every row an item.
    pub fn new(votes: Votes) -> Spec {
        Spec {
            votes,
            item: Vec::new(),
            judges: Vec::new(),
            locale: None,
            group: None,
            scale: Scale::Nominal,
            values: Vec::new(),
            aliases: BTreeMap::new(),
            abstain: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// One column per rater.
    pub fn wide(raters: &[&str]) -> Spec {
        Spec::new(Votes::Wide {
            raters: raters.iter().map(|&r| r.to_owned()).collect(),
            exchangeable: false,
        })
    }

    /// One row per vote.
    pub fn long(rater: &str, item: &[&str], label: &str) -> Spec {
        Spec {
            item: item.iter().map(|&c| c.to_owned()).collect(),
            ..Spec::new(Votes::Long {
                rater: rater.to_owned(),
                label: label.to_owned(),
            })
        }
    }
}

/// How figures and intervals are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Distance of a label from the votes.
    pub measure: Measure,
    /// Confidence level of the intervals, 0.95 for 95 %.
    pub level: f64,
    /// Resamples of each bootstrap.
    pub resamples: usize,
    /// Seed of the bootstraps; every value counts.
    pub seed: u64,
    /// How much worse than a rater a judge may be in the alternative annotator test.
    pub epsilon: f64,
    /// Raters with fewer usable items are left out of that test.
    pub least_items: usize,
}

impl Plan {
    /// The defaults for a scale and a number of items. Very large tables get fewer resamples, since
    /// their intervals are narrow and every resample reads the whole table.
    pub fn new(scale: Scale, items: usize) -> Plan {
        Plan {
            measure: scale.measure(),
            level: 0.95,
            resamples: (40_000_000 / items.max(1)).clamp(200, 2000),
            seed: 0,
            epsilon: 0.1,
            least_items: 30,
        }
    }
}

//! What the loop decided, in order; one line of `events.jsonl` each. Holds no clock reading.

use serde::Serialize;

use super::stop::{Look, StopReason};
use crate::disagreement::Card;
use crate::prompt::Edit;

/// A decision of the loop. Versions are named by the 12 digits of their digest.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins.
    Started {
        /// blake3 of the resolved config.
        config: String,
        /// blake3 of the items.
        data: String,
        /// Items per split: tune, validation, test.
        items: [usize; 3],
        /// The seed version.
        seed: String,
    },
    /// A version was scored on `tune`.
    Scored {
        /// The version.
        version: String,
        /// Items with a verdict.
        n: usize,
        /// Mean disagreement.
        disagreement: f64,
        /// Mean log loss.
        loss: f64,
    },
    /// The tuning items were embedded, to cluster by.
    Embedded {
        /// Items with a vector; n-grams are used unless all have one.
        n: usize,
        /// Tuning items.
        of: usize,
        /// Why some have none.
        why: Option<String>,
    },
    /// Its disagreements were clustered.
    Clustered {
        /// The version.
        version: String,
        /// Share of items whose cluster mostly holds their language.
        language_purity: f64,
        /// What to know of the clustering.
        notes: Vec<String>,
        /// The cards, by item ids.
        cards: Vec<CardLine>,
    },
    /// An edit was proposed.
    Proposed {
        /// Step of the loop.
        step: usize,
        /// Parent version.
        parent: String,
        /// Kind of proposal.
        kind: String,
        /// The card that it answers.
        card: Option<String>,
        /// The edit.
        edit: Edit,
        /// The version that it makes.
        child: String,
    },
    /// A proposal was refused before a call was spent on it.
    Refused {
        /// Step of the loop.
        step: usize,
        /// Kind of proposal.
        kind: String,
        /// Why.
        why: String,
    },
    /// A stage of a race ended.
    Raced {
        /// The child.
        child: String,
        /// Items compared.
        n: usize,
        /// Mean loss of the parent less the child's, out of fold; positive is better. Where the child
        /// was beaten by others of its step, mean loss of the best of them less its own.
        gain: f64,
        /// One-sided p-value of the gain, or, for a child that is believed to help, of the harm.
        p: Option<f64>,
        /// `more`, `passed`, `dropped`, `beaten` by other children of the same step, `no answers` where
        /// the model gave none to the first items, or, where the worst locale counts, `harms others`.
        outcome: String,
    },
    /// Validation was looked at.
    Looked(Look),
    /// The items of validation that the leader is looked at with were read with the seed version too,
    /// because the leader's gain over it on `tune` could not be told from chance. Claims nothing, and
    /// spends none of the error rate of looks.
    Compared {
        /// The seed version.
        version: String,
        /// Items with a verdict.
        n: usize,
        /// Mean disagreement.
        disagreement: f64,
        /// Mean log loss.
        loss: f64,
    },
    /// The loop ended.
    Stopped {
        /// Why.
        reason: StopReason,
        /// The version chosen.
        best: String,
    },
    /// The test split was read, once.
    TestRead {
        /// Items.
        n: usize,
        /// Mean disagreement of the seed version.
        seed: f64,
        /// Mean disagreement of the chosen version.
        best: f64,
    },
}

/// A card in a log line.
#[derive(Clone, Debug, Serialize)]
pub struct CardLine {
    /// Digest of its content.
    pub id: String,
    /// Failure mode.
    pub mode: String,
    /// Locale, unless it spans several.
    pub locale: Option<String>,
    /// What marks its texts.
    pub terms: Vec<String>,
    /// Number of items.
    pub n: usize,
}

impl From<&Card> for CardLine {
    fn from(c: &Card) -> Self {
        Self {
            id: c.id.clone(),
            mode: c.mode.to_string(),
            locale: c.locale.as_ref().map(ToString::to_string),
            terms: c.terms.clone(),
            n: c.items.len(),
        }
    }
}

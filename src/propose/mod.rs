//! Owns proposals: cards -> typed edits (demo choice, notes, label words, reflection).
//! Must not know when to stop, or whether an edit helped.

mod demos;
mod merge;
mod reflect;
mod refuse;
mod texts;

pub use demos::demo_of;
pub use reflect::{Refusal, ask_writer, read_edit, reflection_prompt};
pub use refuse::copies_training_text;

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::data::Item;
use crate::disagreement::Card;
use crate::prompt::{Edit, Version};
use crate::task::Task;

/// What a proposal may draw on. `items` holds all items; only those in `tune` are read.
pub struct Material<'a> {
    /// What is judged.
    pub task: &'a Task,
    /// All items of the run.
    pub items: &'a [Item],
    /// Indices of the tuning split.
    pub tune: &'a [usize],
    /// The version to edit.
    pub version: &'a Version,
    /// Its disagreements.
    pub cards: &'a [Card],
    /// The card that this proposal answers, where there is one.
    pub card: Option<&'a Card>,
    /// Number of demos of a fresh set.
    pub demos: usize,
    /// Number of demos at most.
    pub max_demos: usize,
    /// Demos of a version that shows an item those nearest to it; 0 for none of that.
    pub nearest: usize,
    /// Whether label probabilities are calibrated, so that a rule for ties would say nothing new.
    pub calibrated: bool,
    /// Whether label words may be compared without demos: these were tried and did not help, and
    /// the budget allows for it.
    pub words_alone: bool,
    /// Other versions that passed, to merge with.
    pub others: &'a [&'a Version],
}

/// Kinds of proposals; a bandit learns which of them pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A fresh set of demos that covers labels, locales and topics.
    CoverDemos,
    /// As many demos again, chosen to cover what the ones that are there do not.
    GrowDemos,
    /// A demo from the card takes the place of one that teaches little.
    CardDemo,
    /// One demo fewer.
    DropDemo,
    /// The same demos in another order.
    ReorderDemos,
    /// Demos from the card's locale, or from its nearest relatives where it has too few, shown only
    /// when judging for it.
    LocaleDemos,
    /// Each item is shown the demos nearest to it.
    NearestDemos,
    /// What the people of the card's locale mostly say.
    LocaleNote,
    /// What each label means, in the words of the task.
    Definitions,
    /// Which label to give where it could be either, for judges that are not calibrated.
    TieBreak,
    /// Another field first, such as a gloss before the text.
    FieldFirst,
    /// Other words for the labels.
    Words,
    /// The writer reads a card and answers with an edit.
    Reflect,
    /// One rule fewer.
    DropRule,
    /// The demos, or the texts, of another version that passed.
    Merge,
}

impl Kind {
    /// All kinds, in the order in which the bandit sees them.
    pub const ALL: [Kind; 15] = [
        Kind::CoverDemos,
        Kind::GrowDemos,
        Kind::CardDemo,
        Kind::DropDemo,
        Kind::ReorderDemos,
        Kind::LocaleDemos,
        Kind::NearestDemos,
        Kind::LocaleNote,
        Kind::Definitions,
        Kind::TieBreak,
        Kind::FieldFirst,
        Kind::Words,
        Kind::Reflect,
        Kind::DropRule,
        Kind::Merge,
    ];

    /// Wins and losses believed before anything was tried: reflection, more demos and other words
    /// usually pay.
    pub fn prior(self) -> (u32, u32) {
        match self {
            Kind::Reflect | Kind::GrowDemos | Kind::Words => (3, 1),
            Kind::CardDemo | Kind::Definitions | Kind::NearestDemos => (2, 1),
            // The first set comes in the opening; another one seldom beats it.
            Kind::CoverDemos
            | Kind::LocaleDemos
            | Kind::LocaleNote
            | Kind::TieBreak
            | Kind::FieldFirst
            | Kind::Merge => (1, 2),
            Kind::DropDemo | Kind::ReorderDemos | Kind::DropRule => (1, 3),
        }
    }

    /// Whether the kind makes the same edit of a version each time, so that one try is enough.
    pub fn is_fixed(self) -> bool {
        matches!(self, Kind::Definitions | Kind::NearestDemos)
    }

    /// Whether an edit of the kind answers a card.
    pub fn answers_card(self) -> bool {
        matches!(
            self,
            Kind::CardDemo | Kind::LocaleDemos | Kind::LocaleNote | Kind::Reflect
        )
    }

    /// Whether the kind compares all that it has to offer at once, so that it comes once in a run.
    pub fn is_once(self) -> bool {
        matches!(self, Kind::Words | Kind::TieBreak | Kind::FieldFirst)
    }

    /// What a race asks of an edit of the kind.
    pub fn burden(self, parent: &Version) -> Burden {
        match self {
            // More demos help small and large models alike, by less than a race of a few dozen items
            // can show. A first set of demos is believed to help too; another set is not.
            Kind::GrowDemos => Burden::Patience,
            Kind::CoverDemos if parent.demos.is_empty() => Burden::Patience,
            // Nothing speaks for the words that a version happens to start with.
            Kind::Words => Burden::Gain,
            _ => Burden::Proof,
        }
    }

    /// Whether the kind can make an edit of this material at all.
    pub fn possible(self, material: &Material<'_>, writer: bool) -> bool {
        let version = material.version;
        match self {
            Kind::CoverDemos => material.demos > 0,
            Kind::GrowDemos => demos::room(material) > 0,
            Kind::CardDemo => material.demos > 0 && material.card.is_some(),
            Kind::DropDemo => version.demos.len() > 1,
            Kind::ReorderDemos => version.demos.len() > 2,
            Kind::LocaleNote => material.card.is_some_and(|c| c.locale.is_some()),
            Kind::LocaleDemos => {
                material.demos > 0 && material.card.is_some_and(|c| c.locale.is_some())
            }
            Kind::NearestDemos => {
                material.nearest > 0
                    && version.nearest.is_none()
                    && version.demos.len() > material.nearest
            }
            Kind::Definitions => texts::definitions(material).is_some(),
            Kind::TieBreak => !material.calibrated && !texts::tie_breaks(material).is_empty(),
            Kind::FieldFirst => !texts::fields_first(material).is_empty(),
            Kind::Merge => !merge::parts(material).is_empty(),
            // Without demos a model does not know what the words stand for: words are compared
            // under demos, unless there are none to be had or they did not help.
            Kind::Words => {
                let alone = material.demos == 0 || material.words_alone;
                (alone || !version.demos.is_empty())
                    && !texts::alternatives(material.task, version).is_empty()
            }
            Kind::Reflect => writer && material.card.is_some(),
            Kind::DropRule => !version.rules.is_empty(),
        }
    }
}

/// What a race asks of a child before it passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burden {
    /// A gain that a test can tell from chance: nothing is believed of the edit beforehand.
    Proof,
    /// A gain at every stage: parent and child are as likely to be the better one.
    Gain,
    /// A gain at the last stage: the edit is believed to help.
    Patience,
}

/// Edits of a kind that needs no writer, of which the best is wanted; none when the material has
/// nothing to offer.
pub fn propose(kind: Kind, material: &Material<'_>, rng: &mut impl Rng) -> Vec<Edit> {
    match kind {
        Kind::Words => texts::change_words(material),
        Kind::TieBreak => texts::tie_breaks(material),
        Kind::FieldFirst => texts::fields_first(material),
        _ => one(kind, material, rng).into_iter().collect(),
    }
}

fn one(kind: Kind, material: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    match kind {
        Kind::CoverDemos => demos::cover(material, rng),
        Kind::GrowDemos => demos::grow(material, rng),
        Kind::CardDemo => demos::from_card(material, rng),
        Kind::DropDemo => demos::drop_one(material, rng),
        Kind::ReorderDemos => demos::reorder(material, rng),
        Kind::LocaleDemos => demos::for_locale(material, rng),
        Kind::NearestDemos => Some(Edit::ShowNearest {
            count: material.nearest,
        }),
        Kind::LocaleNote => texts::locale_note(material),
        Kind::Definitions => texts::definitions(material),
        Kind::DropRule => texts::drop_rule(material, rng),
        Kind::Merge => merge::propose(material, rng),
        Kind::Words | Kind::TieBreak | Kind::FieldFirst | Kind::Reflect => None,
    }
}

//! What the loop works with: the judge, the writer, the items of two splits, options and streams.

use serde::{Deserialize, Serialize};

use super::choice::Choice;
use super::event::Event;
use super::objective::Objective;
use super::stop::StopOptions;
use super::strategy::StrategyName;
use super::streams::Streams;
use crate::agreement::{self, Measure};
use crate::data::Item;
use crate::disagreement::Card;
use crate::endpoint::Endpoint;
use crate::judge::{CalibrationOptions, Judge, JudgeError};
use crate::ledger::Halt;
use crate::prompt::Version;
use crate::propose::Material;

/// Levers of the search; each can be switched off for an ablation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchOptions {
    /// Which search is run; the others than `pluralis` are there to be compared with.
    pub strategy: StrategyName,
    /// How disagreement is measured.
    pub measure: Measure,
    /// What counts: the mean over items, the worst locale, or a weighting. Of the strategies only
    /// `pluralis` has a choice.
    pub objective: Objective,
    /// By what a version holds its place among those that may be edited next.
    pub frontier: Frontier,
    /// Refit temperature and label biases on `tune` for every candidate, at no call.
    pub calibration: bool,
    /// Let the calibration differ by locale, shrunk towards the pooled one.
    pub locale_calibration: bool,
    /// Number of demos of a fresh set; 0 switches demos off.
    pub demos: usize,
    /// Number of demos at most: a set that helps may be doubled up to it.
    pub max_demos: usize,
    /// Demos of a version that shows each item those nearest to it; 0 leaves such versions out. They
    /// share no prefix between items, so a call costs more tokens.
    pub nearest: usize,
    /// What the texts of disagreements are compared by.
    pub features: Features,
    /// Let proposals answer clusters of disagreement; off: they answer random disagreements.
    pub clusters: bool,
    /// Most clusters per failure mode.
    pub max_clusters: usize,
    /// Subtract each locale's mean from the features before clustering.
    pub centre_locales: bool,
    /// Search on the log loss of the label distribution; off: on disagreement.
    pub loss: bool,
    /// Items of a race's first stage.
    pub first_stage: usize,
    /// The paired test that a child has to pass.
    pub gate: Gate,
    /// A child passes when the p-value of its gain is below this, over all stages of its race.
    pub gate_alpha: f64,
    /// By what the version that is handed over is chosen.
    pub choice: Choice,
    /// At the end, where the leader's gain over the seed version on `tune` cannot be told from chance
    /// at the stop rule's error rate, read validation with both, or as much of it as the budget pays
    /// for, and hand over the one with less loss. Choice by lower bound does without.
    pub guard_start: bool,
    /// Open with a set of demos, words under them and growth of the set, before the kinds of
    /// proposals are drawn by what they were worth; off: they are drawn from the start.
    pub opening: bool,
    /// Draw kinds of proposals by what they were worth in this run; off: all that are possible alike.
    pub bandit: bool,
    /// Kinds of proposals to leave out.
    pub without: Vec<crate::propose::Kind>,
}

/// The paired test of a race.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Sign flips of the differences, each stage at its share of the error rate. The stronger test
    /// on the few items of a race.
    #[default]
    Permutation,
    /// A bet that the mean difference, each held within one nat, is above 0: valid at every moment
    /// without shares (Waudby-Smith and Ramdas 2024). Asks for more items.
    Betting,
}

/// Beside the leader, a parent is drawn in proportion to how often it is the best of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Frontier {
    /// On a locale of `tune`.
    #[default]
    Locales,
    /// On an item of `tune`, as in GEPA (Agrawal et al. 2025).
    Items,
}

/// What the texts of disagreements are compared by when they are clustered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// Hashed character n-grams: no call, every script.
    #[default]
    Ngrams,
    /// The judge endpoint's embeddings, one call for each tuning item. N-grams stand in, and the
    /// log says so, where the endpoint has none.
    Embeddings,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            strategy: StrategyName::Pluralis,
            measure: Measure::Majority,
            objective: Objective::MEAN,
            frontier: Frontier::Locales,
            calibration: true,
            locale_calibration: true,
            demos: 12,
            max_demos: 48,
            nearest: 0,
            features: Features::Ngrams,
            clusters: true,
            max_clusters: 6,
            centre_locales: false,
            loss: true,
            first_stage: 24,
            gate: Gate::Permutation,
            gate_alpha: 0.2,
            choice: Choice::LeastLoss,
            guard_start: true,
            opening: true,
            bandit: true,
            without: Vec::new(),
        }
    }
}

impl SearchOptions {
    /// What is wrong with an error rate, and what to write instead.
    pub fn amiss(&self) -> Option<(String, &'static str)> {
        let alpha = self.gate_alpha;
        if !(alpha > 0.0 && alpha <= 1.0) {
            let what = format!("[search] gate_alpha is {alpha}, and is a share of races");
            return Some((
                what,
                "write a number above 0 and at most 1; the default is 0.2",
            ));
        }
        // A one-sided bound at one half or more lies above what it bounds.
        (alpha >= 0.5 && self.choice == Choice::LowerBound).then(|| {
            (
                format!("[search] choice = \"lower-bound\" has no bound at gate_alpha = {alpha}"),
                "write a gate_alpha below 0.5, or choice = \"least-loss\"",
            )
        })
    }

    /// How a calibration is fitted under these options.
    pub fn calibration_options(&self) -> CalibrationOptions {
        let default = CalibrationOptions::default();
        CalibrationOptions {
            locale_shrinkage: if self.locale_calibration {
                default.locale_shrinkage
            } else {
                None
            },
            ..default
        }
    }
}

/// Takes each decision of the loop, writes it down, shows it.
pub type Journal<'a> = dyn Fn(&Event) -> Result<(), Halt> + Sync + 'a;

/// Everything the loop works with. The test split is not in it.
pub struct Bench<'a> {
    /// The judge under tuning.
    pub judge: Judge<'a>,
    /// The model that writes edits, where one is configured.
    pub writer: Option<&'a dyn Endpoint>,
    /// All items; the index lists below say which may be read.
    pub items: &'a [Item],
    /// Indices of the tuning split.
    pub tune: &'a [usize],
    /// Indices of the validation split.
    pub validation: &'a [usize],
    /// Levers.
    pub search: &'a SearchOptions,
    /// The stop rule.
    pub stop: &'a StopOptions,
    /// Random draws.
    pub streams: Streams,
    /// Where decisions go.
    pub journal: &'a Journal<'a>,
}

/// Why the loop stopped in the middle.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// Judging stopped.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// The ledger or the journal stopped the run.
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl Bench<'_> {
    /// The label that most people gave an item on the first criterion, where there is one.
    pub(super) fn majority(&self, item: usize) -> Option<usize> {
        let criterion = self.judge.task.criteria.first()?;
        agreement::majority(&self.items[item].votes[0].counts, &criterion.abstains())
    }

    /// Calls that the search may still make: what the caps leave, without what is held back.
    pub(super) fn calls_left(&self) -> Option<u64> {
        let left = self.judge.ledger.remaining_calls()?;
        Some(left.saturating_sub(self.judge.hold_back))
    }

    /// What proposals for a version may draw on.
    pub(super) fn material<'a>(
        &'a self,
        version: &'a Version,
        cards: &'a [Card],
        card: Option<usize>,
        others: &'a [&'a Version],
    ) -> Material<'a> {
        Material {
            task: self.judge.task,
            items: self.items,
            tune: self.tune,
            version,
            cards,
            card: card.map(|c| &cards[c]),
            demos: self.search.demos,
            max_demos: self.search.max_demos,
            nearest: self.search.nearest,
            calibrated: self.search.calibration,
            words_alone: false,
            others,
        }
    }

    /// Writes a decision down.
    pub(super) fn emit(&self, event: &Event) -> Result<(), Halt> {
        (self.journal)(event)
    }
}

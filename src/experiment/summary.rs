//! `summary.json`: the figures of a finished run. Every figure has its n, its interval, its split.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agreement::{self, Interval};
use crate::data::Item;
use crate::endpoint::Identity;
use crate::judge::{FailureKind, Reading, Verdict};
use crate::ledger::Spent;
use crate::optimize::{Look, StopReason, people, score};
use crate::prompt::Version;
use crate::task::Task;

/// Level of every interval that is shown.
pub const LEVEL: f64 = 0.95;
/// Resamples of the interval of the gain.
const RESAMPLES: usize = 4_000;

/// The whole of `summary.json`. Money is in millionths of the price table's currency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Format of this file; 1.
    pub format: u32,
    /// Name of the experiment.
    pub name: String,
    /// Digest of the resolved config.
    pub config_digest: String,
    /// Digest of the items used.
    pub data_digest: String,
    /// Seed of the run.
    pub seed: u64,
    /// Task and reading.
    pub task: String,
    /// How disagreement is measured.
    pub measure: agreement::Measure,
    /// The judge, as its fingerprint in the cache.
    pub judge: Identity,
    /// Digests of the seed version and the chosen one.
    pub versions: Versions,
    /// Figures by split: `tune`, `validation`, `test`.
    pub splits: BTreeMap<String, SplitFigures>,
    /// Disagreement removed on `test`.
    pub gain: Option<Gain>,
    /// Why the loop ended.
    pub stop: StopReason,
    /// Looks at `validation`.
    pub looks: Vec<Look>,
    /// Steps of the loop.
    pub steps: usize,
    /// What was used, the reading of `test` included.
    pub spent: Spent,
    /// What the search used, before `test` was read: the figure by which searches are compared.
    /// Absent in files written before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Spent>,
    /// What the reader should know besides.
    pub notes: Vec<String>,
}

/// Digests of versions, all 64 digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The starting version.
    pub seed: String,
    /// The chosen version.
    pub best: String,
}

/// Both versions on one split. An arm is absent where it was not judged there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SplitFigures {
    /// The starting version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Arm>,
    /// The chosen version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Arm>,
    /// The human ceiling: what a held-out rater disagrees with the others of the same items.
    /// Absent where no item has two votes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub people: Option<People>,
}

/// The human ceiling of a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct People {
    /// Over all items with at least two votes.
    pub overall: Figure,
    /// By locale.
    pub by_locale: BTreeMap<String, Figure>,
}

/// One version on one split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// Over all items.
    pub overall: Figure,
    /// Mean over the locales' own figures.
    pub mean_of_locales: f64,
    /// The locale with the most disagreement.
    pub worst_locale: Option<String>,
    /// By locale.
    pub by_locale: BTreeMap<String, Figure>,
    /// Failed verdicts by kind; they count as full disagreement.
    pub failures: BTreeMap<FailureKind, usize>,
    /// Items that were not judged, because the budget ended before them.
    pub unpaid: usize,
}

/// A disagreement with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Items.
    pub n: usize,
    /// Mean disagreement, from 0 to 1.
    pub disagreement: f64,
    /// Its interval; absent where it is undefined.
    pub interval: Option<Interval>,
}

/// Disagreement of the seed less that of the chosen version, paired over the items of `test`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// Items that both versions judged.
    pub n: usize,
    /// Mean of the paired differences; positive is better.
    pub value: f64,
    /// Bootstrap interval, resampled by group.
    pub interval: Option<Interval>,
    /// Whether the interval excludes 0 from below: only then may a gain be claimed.
    pub certified: bool,
}

/// Disagreement by item, for those that have a verdict and votes.
pub(super) fn distances(
    task: &Task,
    version: &Version,
    items: &[Item],
    split: &[usize],
    verdicts: &BTreeMap<usize, Verdict>,
    measure: agreement::Measure,
) -> BTreeMap<usize, f64> {
    split
        .iter()
        .filter_map(|&i| {
            Some((
                i,
                score(task, version, &items[i], verdicts.get(&i)?, measure)?.distance,
            ))
        })
        .collect()
}

/// Overall and by locale; `None` without items.
fn figures(
    items: &[Item],
    distances: &BTreeMap<usize, f64>,
) -> Option<(Figure, BTreeMap<String, Figure>)> {
    let figure = |values: &[f64]| -> Option<Figure> {
        Some(Figure {
            n: values.len(),
            disagreement: agreement::mean(values).ok()?,
            interval: agreement::interval::mean_interval(values, LEVEL).ok(),
        })
    };
    let mut grouped: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (&i, &d) in distances {
        let own = grouped.entry(items[i].locale.to_string()).or_default();
        own.push(d);
    }
    let by_locale = grouped
        .iter()
        .filter_map(|(l, v)| Some((l.clone(), figure(v)?)))
        .collect();
    let all: Vec<f64> = distances.values().copied().collect();
    Some((figure(&all)?, by_locale))
}

/// The human ceiling of a split; `None` where no item has two votes.
pub(super) fn ceiling(
    task: &Task,
    items: &[Item],
    split: &[usize],
    measure: agreement::Measure,
) -> Option<People> {
    let distances = split
        .iter()
        .filter_map(|&i| Some((i, people(task, &items[i], measure)?)))
        .collect();
    let (overall, by_locale) = figures(items, &distances)?;
    Some(People { overall, by_locale })
}

/// The figures of one version on one split; `None` when nothing was judged there.
pub(super) fn arm(
    items: &[Item],
    split: &[usize],
    verdicts: &BTreeMap<usize, Verdict>,
    distances: &BTreeMap<usize, f64>,
) -> Option<Arm> {
    let (overall, by_locale) = figures(items, distances)?;
    let mut failures = BTreeMap::new();
    let mut unpaid = 0;
    for i in split {
        match verdicts.get(i) {
            None => unpaid += 1,
            Some(v) if v.readings.contains(&Reading::Unpaid) => unpaid += 1,
            Some(v) => {
                if let Some(Reading::Failed(f)) =
                    v.readings.iter().find(|r| matches!(r, Reading::Failed(_)))
                {
                    *failures.entry(f.failure).or_default() += 1;
                }
            }
        }
    }
    let means: Vec<f64> = by_locale.values().map(|f| f.disagreement).collect();
    let worst = by_locale
        .iter()
        .max_by(|a, b| a.1.disagreement.total_cmp(&b.1.disagreement))
        .map(|(l, _)| l.clone());
    Some(Arm {
        overall,
        mean_of_locales: agreement::mean(&means).unwrap_or(1.0),
        worst_locale: worst,
        by_locale,
        failures,
        unpaid,
    })
}

/// The paired gain on `test`.
pub(super) fn gain(
    items: &[Item],
    seed: &BTreeMap<usize, f64>,
    best: &BTreeMap<usize, f64>,
    run_seed: u64,
) -> Option<Gain> {
    let both: Vec<usize> = seed
        .keys()
        .copied()
        .filter(|i| best.contains_key(i))
        .collect();
    let diffs: Vec<f64> = both.iter().map(|i| seed[i] - best[i]).collect();
    let value = agreement::mean(&diffs).ok()?;
    let mut names: Vec<&str> = both.iter().map(|&i| items[i].group.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let cluster: Vec<usize> = both
        .iter()
        .map(|&i| names.binary_search(&items[i].group.as_str()).unwrap_or(0))
        .collect();
    let interval = agreement::bootstrap::paired_bootstrap(
        &diffs,
        &vec![0; diffs.len()],
        &cluster,
        RESAMPLES,
        LEVEL,
        run_seed,
    )
    .ok();
    let certified = interval.as_ref().is_some_and(|i| i.low > 0.0);
    Some(Gain {
        n: diffs.len(),
        value,
        interval,
        certified,
    })
}

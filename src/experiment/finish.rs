//! What a finished run leaves: figures, verdicts, the chosen version.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::ancestry::{self, Ancestor, Seen};
use super::evidence;
use super::folder;
use super::plan::Plan;
use super::run::RunError;
use super::summary::{self, Summary, Versions};
use crate::data::Split;
use crate::endpoint::Endpoint;
use crate::judge::{Reading, Verdict};
use crate::ledger::{Ledger, Spent};
use crate::optimize::{Pool, StopReason};
use crate::prompt::Version;
use crate::registry;

/// What a run leaves to be written at its end.
pub(super) struct Done {
    /// `summary.json`.
    pub(super) summary: Summary,
    /// `best/`.
    pub(super) best: Made,
    /// `versions/`: what the chosen version was made of.
    pub(super) ancestors: Vec<Made>,
    /// `verdicts.jsonl`.
    pub(super) verdicts: Vec<VerdictLine>,
}

/// A version of a run with its origin and its figures.
pub(super) struct Made {
    pub(super) version: Version,
    pub(super) lineage: registry::Lineage,
    pub(super) evidence: registry::Evidence,
}

/// One line of `verdicts.jsonl`.
#[derive(Serialize)]
pub(super) struct VerdictLine {
    version: String,
    split: Split,
    item: String,
    locale: String,
    criterion: String,
    /// Label name after calibration; absent when the verdict failed.
    label: Option<String>,
    /// Label probabilities after calibration, where the endpoint gives any.
    #[serde(skip_serializing_if = "Option::is_none")]
    probs: Option<Vec<f64>>,
    /// Votes by label, in the order of the task's labels.
    votes: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// The figures of both versions on every split; `search` is what the search used before `test`
/// was read.
pub(super) fn summarise(
    plan: &Plan,
    ledger: &Ledger,
    endpoint: &dyn Endpoint,
    pool: &Pool,
    seen: &Seen,
    (stop, search): (StopReason, Spent),
    arms: &[(Version, BTreeMap<usize, Verdict>)],
) -> Done {
    let measure = plan.config.search.measure;
    let mut splits = BTreeMap::new();
    let mut verdicts = Vec::new();
    let mut on_test = Vec::new();
    for (split, indices) in [
        (Split::Tune, &plan.tune),
        (Split::Validation, &plan.validation),
        (Split::Test, &plan.test),
    ] {
        let mut both = Vec::new();
        for (version, of) in arms {
            let distances =
                summary::distances(&plan.task, version, &plan.items, indices, of, measure);
            both.push(summary::arm(&plan.items, indices, of, &distances));
            if split == Split::Test {
                on_test.push(distances);
            }
        }
        let best = both.pop().flatten();
        splits.insert(
            split.as_str().to_owned(),
            summary::SplitFigures {
                seed: both.pop().flatten(),
                best,
                people: summary::ceiling(&plan.task, &plan.items, indices, measure),
            },
        );
        let mut written = std::collections::BTreeSet::new();
        for (version, of) in arms {
            if written.insert(version.digest()) {
                verdicts.extend(lines(plan, split, indices, version, of));
            }
        }
    }
    let gain = summary::gain(&plan.items, &on_test[0], &on_test[1], plan.config.seed);
    let mut notes = Vec::new();
    if pool.exhausted && pool.candidates.len() == 1 {
        notes.push("the budget ended before any edit could be tested".to_owned());
    }
    if let Some(e) = ledger.exhausted() {
        notes.push(format!("a cap ended the spending: {e}"));
    }
    let best = pool.best();
    let summary = Summary {
        format: 1,
        name: plan.config.name.clone(),
        config_digest: plan.config.digest(),
        data_digest: plan.data_digest.clone(),
        seed: plan.config.seed,
        task: plan
            .task
            .reading
            .as_ref()
            .map_or(plan.task.name.clone(), |r| {
                format!("{} ({r})", plan.task.name)
            }),
        measure,
        judge: endpoint.identity().clone(),
        versions: Versions {
            seed: plan.start.digest(),
            best: best.version.digest(),
        },
        splits,
        gain,
        stop,
        looks: pool.looks.clone(),
        steps: pool.step,
        spent: ledger.spent(),
        search: Some(search),
        notes,
    };
    let mut made: Vec<Made> = ancestry::of_best(plan, pool, seen)
        .into_iter()
        .map(|a| made(plan, pool, endpoint, &summary.splits, a))
        .collect();
    // The chosen version is among them, and the last.
    let best = made.pop().unwrap_or_else(|| Made {
        version: best.version.clone(),
        lineage: registry::Lineage::default(),
        evidence: registry::Evidence::of(Vec::new()),
    });
    Done {
        summary,
        best,
        ancestors: made,
        verdicts,
    }
}

/// A version with its figures: those of the summary for the starting and the chosen version, those
/// of the search for the ones between.
fn made(
    plan: &Plan,
    pool: &Pool,
    endpoint: &dyn Endpoint,
    splits: &BTreeMap<String, summary::SplitFigures>,
    of: Ancestor,
) -> Made {
    let digest = of.version.digest();
    let start = plan.start.digest();
    let chosen = digest == pool.best().version.digest();
    let figures = |name: &str, indices: &[usize]| {
        let split = splits.get(name)?;
        let arm = match of.place {
            _ if chosen => split.best.clone(),
            _ if digest == start => split.seed.clone(),
            None => None,
            Some(place) => {
                let own = &pool.candidates[place];
                let measure = plan.config.search.measure;
                let (task, items) = (&plan.task, &plan.items);
                let verdicts = &own.verdicts;
                let found =
                    summary::distances(task, &own.version, items, indices, verdicts, measure);
                summary::arm(items, indices, verdicts, &found).map(|mut arm| {
                    // The search judges as many as it needs; what it left out was no failure to pay.
                    arm.unpaid = 0;
                    arm
                })
            }
        };
        let mut arm = arm?;
        // A demo is never judged, so the budget did not miss it.
        let shown = indices
            .iter()
            .filter(|&&i| of.version.shows(&plan.items[i].id));
        arm.unpaid = arm.unpaid.saturating_sub(shown.count());
        Some((name.to_owned(), arm, split.people.clone()))
    };
    let all = [
        ("tune", &plan.tune),
        ("validation", &plan.validation),
        ("test", &plan.test),
    ];
    let splits: Vec<_> = all
        .iter()
        .filter_map(|(name, indices)| figures(name, indices))
        .collect();
    let measured = evidence::measured(plan, endpoint.identity(), "tune", splits);
    Made {
        version: of.version,
        lineage: of.lineage,
        evidence: registry::Evidence::of(vec![measured]),
    }
}

fn lines(
    plan: &Plan,
    split: Split,
    indices: &[usize],
    version: &Version,
    of: &BTreeMap<usize, Verdict>,
) -> Vec<VerdictLine> {
    let mut out = Vec::new();
    for &i in indices {
        let (item, Some(verdict)) = (&plan.items[i], of.get(&i)) else {
            continue;
        };
        for (c, criterion) in plan.task.criteria.iter().enumerate() {
            let Some(decision) = verdict.readings[c].decide(&plan.task, version, c, &item.locale)
            else {
                continue;
            };
            let failure = match &verdict.readings[c] {
                Reading::Failed(f) => Some(f.message.clone()),
                _ => None,
            };
            out.push(VerdictLine {
                version: version.short(),
                split,
                item: item.id.clone(),
                locale: item.locale.to_string(),
                criterion: criterion.name.clone(),
                label: decision.label.map(|l| criterion.labels[l].name.clone()),
                probs: decision
                    .probs
                    .map(|p| p.iter().map(|x| (x * 1e6).round() / 1e6).collect()),
                votes: item.votes[c].counts.clone(),
                failure,
            });
        }
    }
    out
}

/// Writes what stands at the end; `summary.json` last, because it says that the run is finished.
pub(super) fn write(dir: &Path, done: &Done) -> Result<(), RunError> {
    let mut text = String::new();
    for line in &done.verdicts {
        text += &folder::json(&dir.join("verdicts.jsonl"), line)?;
        text.push('\n');
    }
    folder::write(&dir.join("verdicts.jsonl"), text.as_bytes())?;
    folder::write_made(dir, "best", &[&done.best])?;
    let ancestors: Vec<&Made> = done.ancestors.iter().collect();
    folder::write_made(dir, "versions", &ancestors)?;
    let path = dir.join("summary.json");
    let json = serde_json::to_string_pretty(&done.summary).map_err(|e| RunError::Io {
        path: path.clone(),
        source: e.into(),
    })?;
    folder::write(&path, (json + "\n").as_bytes())
}

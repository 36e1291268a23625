//! What a finished run leaves: figures, verdicts, the chosen version.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::folder;
use super::plan::Plan;
use super::run::RunError;
use super::summary::{self, Summary, Versions};
use crate::data::Split;
use crate::endpoint::Endpoint;
use crate::judge::{Reading, Verdict};
use crate::ledger::Ledger;
use crate::optimize::{Pool, StopReason};
use crate::prompt::{Edit, Version};
use crate::registry;

/// What a run leaves to be written at its end.
pub(super) struct Done {
    /// `summary.json`.
    pub(super) summary: Summary,
    /// `best/`.
    pub(super) best: Version,
    /// Where `best/` comes from.
    pub(super) lineage: registry::Lineage,
    /// `verdicts.jsonl`.
    pub(super) verdicts: Vec<VerdictLine>,
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

/// The figures of both versions on every split.
pub(super) fn summarise(
    plan: &Plan,
    ledger: &Ledger,
    endpoint: &dyn Endpoint,
    pool: &Pool,
    stop: StopReason,
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
        notes,
    };
    let lineage = registry::Lineage {
        parents: best
            .parent
            .map(|p| pool.candidates[p].version.digest())
            .into_iter()
            .chain(match &best.edit {
                Some(Edit::Merge { other, .. }) => Some(other.clone()),
                _ => None,
            })
            .collect(),
        edit: best.edit.clone(),
        card: best.card.clone(),
        run: format!("{}-{}", plan.config.name, plan.config.digest()),
    };
    Done {
        summary,
        best: best.version.clone(),
        lineage,
        verdicts,
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
pub(super) fn write(dir: &Path, plan: &Plan, done: &Done) -> Result<(), RunError> {
    let mut text = String::new();
    for line in &done.verdicts {
        text += &folder::json(&dir.join("verdicts.jsonl"), line)?;
        text.push('\n');
    }
    folder::write(&dir.join("verdicts.jsonl"), text.as_bytes())?;
    folder::write_version(dir, plan, &done.best, &done.lineage)?;
    let path = dir.join("summary.json");
    let json = serde_json::to_string_pretty(&done.summary).map_err(|e| RunError::Io {
        path: path.clone(),
        source: e.into(),
    })?;
    folder::write(&path, (json + "\n").as_bytes())
}

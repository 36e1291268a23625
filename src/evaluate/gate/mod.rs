//! Owns the quality gate of benchmark construction: candidates are scored on a task's criteria, the
//! best of each slot are kept, and a generator fills what is missing, round by round; and the
//! rankings that annotators give. Must not know how models are reached, or how figures are shown.

mod generate;
pub mod rankings;
mod select;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub use generate::{Generator, Refused, Template, TemplateError};
pub use select::Kept;

use crate::data::{DataError, Item, ItemRecord, check_record};
use crate::judge::{Judge, JudgeError, Reading};
use crate::ledger::Halt;
use crate::prompt::Version;
use crate::task::Task;

/// A place to fill: a locale and a subcategory, with whatever else the generator is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// The values that name it, in the order of the gate's keys.
    pub name: Vec<String>,
    /// Locale of its candidates.
    pub locale: String,
    /// Everything that the generator's template may read as `slot.<column>`.
    pub values: BTreeMap<String, String>,
}

impl Slot {
    /// Its name on one line.
    pub fn label(&self) -> String {
        self.name.join(" / ")
    }
}

/// What a gate lets pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Keys that name a slot: `locale`, or keys of `meta`.
    pub by: Vec<String>,
    /// Candidates kept of each slot.
    pub keep: usize,
    /// Least mean score of a kept candidate.
    pub at_least: Option<f64>,
    /// Rounds of generation at most.
    pub rounds: u32,
}

/// One candidate with its scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// As given or generated.
    pub record: ItemRecord,
    /// Index of its slot.
    pub slot: usize,
    /// 0 for the given ones, else the round that made it.
    pub round: u32,
    /// Score on each criterion: the expected value of the label where the judge gives
    /// probabilities, else the label's value. `None` where the verdict failed or abstained.
    pub scores: Vec<Option<f64>>,
    /// Whether a verdict is missing because the budget did not allow it.
    pub unpaid: bool,
}

impl Candidate {
    /// Mean over the criteria; `None` unless all of them have a score.
    pub fn mean(&self) -> Option<f64> {
        let all: Option<Vec<f64>> = self.scores.iter().copied().collect();
        all.filter(|s| !s.is_empty())
            .map(|s| s.iter().sum::<f64>() / s.len() as f64)
    }
}

/// What became of one slot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlotResult {
    /// The slot's name.
    pub slot: String,
    /// Candidates that were scored on every criterion.
    pub judged: usize,
    /// Candidates with a criterion on which the verdict failed or abstained; never kept.
    pub failed: usize,
    /// Candidates that the budget left unjudged.
    pub unpaid: usize,
    /// Kept: at most as many as the rule says.
    pub kept: usize,
    /// Mean score of the kept ones.
    pub mean: Option<f64>,
    /// The lowest mean score that was kept.
    pub lowest: Option<f64>,
    /// Texts that were not taken, by reason; none of them was judged.
    pub refused: BTreeMap<Refused, usize>,
}

/// What came of a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// One per slot.
    pub slots: Vec<SlotResult>,
    /// All candidates, in the order in which they came.
    pub candidates: Vec<Candidate>,
    /// The kept ones: slots in their order, best first.
    pub kept: Vec<Kept>,
    /// Rounds of generation that were run.
    pub rounds: u32,
}

/// Why a gate stopped.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// Judging stopped.
    #[error(transparent)]
    Judge(#[from] JudgeError),
    /// Generating stopped.
    #[error(transparent)]
    Halt(#[from] Halt),
    /// The generator's template fails on a value.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Makes the slots that the candidates name, in the order in which they come.
///
/// # Errors
/// A candidate without one of the keys, by its line.
pub fn slots_of(records: &[(usize, ItemRecord)], by: &[String]) -> Result<Vec<Slot>, DataError> {
    let mut slots: Vec<Slot> = Vec::new();
    for (line, record) in records {
        let name = name_of(record, by).map_err(|e| e.at_row(*line))?;
        if !slots.iter().any(|s| s.name == name) {
            let named = by.iter().cloned().zip(name.iter().cloned());
            let mut values: BTreeMap<String, String> = named.collect();
            values.insert("locale".into(), record.locale.clone());
            slots.push(Slot {
                name,
                locale: record.locale.clone(),
                values,
            });
        }
    }
    Ok(slots)
}

/// The values that name a candidate's slot.
///
/// # Errors
/// A key that the candidate does not have.
pub fn name_of(record: &ItemRecord, by: &[String]) -> Result<Vec<String>, DataError> {
    let value = |key: &String| match key.as_str() {
        "locale" => Ok(record.locale.clone()),
        key => record.meta.get(key).cloned().ok_or_else(|| {
            DataError::new(
                format!("candidate `{}` has no `{key}` in meta", record.id),
                "add it, or name another key with --by",
            )
        }),
    };
    by.iter().map(value).collect()
}

/// Runs a gate: judges the given candidates, keeps the best of each slot, and has a generator fill
/// what is missing until every slot is full or the rounds are over. A candidate whose slot is not
/// in the list is refused by the caller.
///
/// # Errors
/// [`GateError`]; what was answered is in the ledger's cache.
pub async fn run(
    given: Vec<(usize, ItemRecord)>,
    slots: &[Slot],
    rule: &Rule,
    judge: &Judge<'_>,
    version: &Version,
    generator: Option<&Generator<'_>>,
) -> Result<Outcome, GateError> {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut refused: Vec<BTreeMap<Refused, usize>> = vec![BTreeMap::new(); slots.len()];
    let mut first = Vec::with_capacity(given.len());
    let mut seen = BTreeSet::new();
    for (slot, record) in given {
        if seen.insert(generate::identity(judge.task, &record)) {
            first.push((slot, record, 0));
        } else {
            *refused[slot].entry(Refused::Duplicate).or_default() += 1;
        }
    }
    judged(first, judge, version, &mut candidates).await?;
    let mut round = 0;
    while let Some(generator) = generator.filter(|_| round < rule.rounds) {
        let open = open(slots.len(), &candidates, rule);
        if open.is_empty() || judge.ledger.exhausted().is_some() {
            break;
        }
        round += 1;
        let made = generator
            .round(round, &open, slots, &candidates, rule)
            .await?;
        let mut new = Vec::new();
        for (slot, made) in made {
            for text in made {
                match text {
                    Ok(record) => new.push((slot, record, round)),
                    Err(why) => *refused[slot].entry(why).or_default() += 1,
                }
            }
        }
        judged(new, judge, version, &mut candidates).await?;
    }
    let kept = select::kept(slots.len(), &candidates, rule);
    Ok(Outcome {
        slots: select::results(slots, &candidates, &kept, refused),
        kept,
        candidates,
        rounds: round,
    })
}

/// Slots that are not full, with how many candidates they lack.
fn open(slots: usize, candidates: &[Candidate], rule: &Rule) -> Vec<(usize, usize)> {
    let kept = select::kept(slots, candidates, rule);
    let of = |slot: usize| kept.iter().filter(|k| k.slot == slot).count();
    (0..slots)
        .map(|slot| (slot, rule.keep - of(slot)))
        .filter(|(_, missing)| *missing > 0)
        .collect()
}

async fn judged(
    new: Vec<(usize, ItemRecord, u32)>,
    judge: &Judge<'_>,
    version: &Version,
    candidates: &mut Vec<Candidate>,
) -> Result<(), GateError> {
    // Records were checked when they came; one that fails here has lost nothing but its verdict.
    let checked: Vec<(usize, ItemRecord, u32, Item)> = new
        .into_iter()
        .filter_map(|(slot, record, round)| {
            let item = check_record(judge.task, &record, 0).ok()?;
            Some((slot, record, round, item))
        })
        .collect();
    let items: Vec<&Item> = checked.iter().map(|c| &c.3).collect();
    let verdicts = judge.verdicts(version, &items).await?;
    for ((slot, record, round, item), verdict) in checked.into_iter().zip(verdicts) {
        let score = |c: usize| score(judge.task, version, c, &verdict.readings[c], &item);
        candidates.push(Candidate {
            record,
            slot,
            round,
            scores: (0..judge.task.criteria.len()).map(score).collect(),
            unpaid: verdict.readings.contains(&Reading::Unpaid),
        });
    }
    Ok(())
}

fn score(
    task: &Task,
    version: &Version,
    criterion: usize,
    reading: &Reading,
    item: &Item,
) -> Option<f64> {
    let decision = reading.decide(task, version, criterion, &item.locale)?;
    let labels = &task.criteria[criterion].labels;
    let value = |l: usize| labels[l].value.filter(|_| !labels[l].abstain);
    let Some(probs) = decision.probs else {
        return value(decision.label?);
    };
    // The judge would rather not decide: that is no score.
    value(decision.label?)?;
    let (mut sum, mut weight) = (0.0, 0.0);
    for (label, p) in probs.iter().enumerate() {
        if let Some(value) = value(label) {
            sum += p * value;
            weight += p;
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

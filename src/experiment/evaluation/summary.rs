//! What an evaluation found, as `summary.json` has it, and reading it back with its lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::RunError;
use super::plan::EvaluationPlan;
use crate::endpoint::Identity;
use crate::evaluate::benchmark::{Correlated, Kind, Line, Prompt, Row, correlations, rows};
use crate::ledger::{Ledger, Spent};
use crate::task::{Task, parse_task};

/// The figures of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluationSummary {
    /// Format of this record; 1.
    pub format: u32,
    /// Which part of the benchmark.
    pub kind: Kind,
    /// Of the config.
    pub name: String,
    /// Of the config.
    pub seed: u64,
    /// Level of the intervals.
    pub level: f64,
    /// 12 digits over config, data and version.
    pub digest: String,
    /// Of prompts and given responses.
    pub data_digest: String,
    /// Digest of the version that judged.
    pub version: String,
    /// What answered for the judge; absent where all labels came with the responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Identity>,
    /// The models, in the order of the reports.
    pub models: Vec<TargetSummary>,
    /// locale -> number of prompts.
    pub prompts: BTreeMap<String, usize>,
    /// Names of the rates, in the task's order.
    pub rates: Vec<String>,
    /// Every figure.
    pub figures: Vec<Row>,
    /// How the rates of this evaluation go together.
    pub correlations: Vec<Correlated>,
    /// What was used.
    pub spent: Spent,
    /// What the reader should know besides.
    pub notes: Vec<String>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetSummary {
    /// As reports name it.
    pub name: String,
    /// What answered; absent where the responses existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Identity>,
    /// Prompts without a response in the files: in no figure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

pub(super) fn summary(
    plan: &EvaluationPlan,
    (targets, judge): &(Vec<Identity>, Option<Identity>),
    lines: &[Line],
    ledger: &Ledger,
) -> EvaluationSummary {
    let level = plan.config.level;
    let own = plan.config.targets.iter().zip(targets);
    let mut models: Vec<TargetSummary> = own
        .map(|(config, identity)| TargetSummary {
            name: config.name.clone(),
            endpoint: Some(identity.clone()),
            missing: 0,
        })
        .collect();
    models.extend(plan.given.iter().map(|(name, of)| TargetSummary {
        name: name.clone(),
        endpoint: None,
        missing: plan.prompts.len() - of.len(),
    }));
    let mut prompts = BTreeMap::new();
    for prompt in &plan.prompts {
        *prompts.entry(prompt.locale.to_string()).or_default() += 1;
    }
    let rates: Vec<String> = plan
        .judge
        .task
        .rates
        .iter()
        .map(|r| r.name.clone())
        .collect();
    let mut pairs = Vec::new();
    for (i, x) in rates.iter().enumerate() {
        for y in &rates[i + 1..] {
            pairs.extend(correlations((x, lines), (y, lines), level));
        }
    }
    EvaluationSummary {
        format: 1,
        kind: plan.kind,
        name: plan.config.name.clone(),
        seed: plan.config.seed,
        level,
        digest: plan.short(),
        data_digest: plan.data_digest.clone(),
        version: plan.judge.version.digest(),
        judge: judge.clone(),
        notes: notes(lines, &models, ledger),
        models,
        prompts,
        rates,
        figures: rows(lines, level),
        correlations: pairs,
        spent: ledger.spent(),
    }
}

fn notes(lines: &[Line], models: &[TargetSummary], ledger: &Ledger) -> Vec<String> {
    let mut notes = Vec::new();
    for model in models.iter().filter(|m| m.missing > 0) {
        notes.push(format!(
            "{} has no response to {} prompts of the files; they are in no figure",
            model.name, model.missing
        ));
    }
    let unpaid = lines.iter().filter(|l| l.unpaid).count();
    if unpaid > 0 {
        notes.push(format!(
            "{unpaid} responses were not asked for or not judged because the budget ended; they are in no figure"
        ));
    }
    if let Some(e) = ledger.exhausted() {
        notes.push(format!("a cap ended the spending: {e}"));
    }
    let cut = lines.iter().filter(|l| {
        matches!(
            l.reply,
            crate::evaluate::target::Reply::Text { cut: true, .. }
        )
    });
    let cut = cut.count();
    if cut > 0 {
        notes.push(format!(
            "{cut} responses were cut at the token limit (asking.max_tokens) and judged as they are"
        ));
    }
    notes
}

/// A finished evaluation, read back.
#[derive(Clone, Debug)]
pub struct Read {
    /// Its folder.
    pub dir: PathBuf,
    /// The figures.
    pub summary: EvaluationSummary,
    /// The task as it was.
    pub task: Task,
    /// What was asked.
    pub prompts: Vec<Prompt>,
    /// Every response with its labels.
    pub lines: Vec<Line>,
}

/// Reads the folder of a finished evaluation.
///
/// # Errors
/// A folder without a finished evaluation; a file that cannot be read.
pub fn read(dir: &Path) -> Result<Read, RunError> {
    let text = |name: &str| {
        let path = dir.join(name);
        std::fs::read_to_string(&path).map_err(|source| RunError::Io { path, source })
    };
    let wrong = |name: &str, what: String| RunError::Io {
        path: dir.join(name),
        source: std::io::Error::other(what),
    };
    let summary: EvaluationSummary = serde_json::from_str(&text("summary.json")?).map_err(|e| {
        let what = format!(
            "this is no summary of an evaluation ({e}); name a folder that `pluralis evaluate` made"
        );
        wrong("summary.json", what)
    })?;
    let task =
        parse_task(&text("task.toml")?, None).map_err(|e| wrong("task.toml", e.to_string()))?;
    Ok(Read {
        prompts: jsonl(&text("prompts.jsonl")?).map_err(|e| wrong("prompts.jsonl", e))?,
        lines: jsonl(&text("verdicts.jsonl")?).map_err(|e| wrong("verdicts.jsonl", e))?,
        dir: dir.to_owned(),
        summary,
        task,
    })
}

fn jsonl<T: serde::de::DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    text.lines()
        .enumerate()
        .map(|(i, line)| {
            serde_json::from_str(line).map_err(|e| format!("line {} is damaged ({e})", i + 1))
        })
        .collect()
}

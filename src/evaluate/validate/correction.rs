//! Rates corrected by people's labels, beside the raw ones.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::draw::drawable;
use super::{LabelLine, Sample};
use crate::evaluate::benchmark::{By, Line, RateFigure, Slice, cell};
use crate::evaluate::corrected::{Checked, Corrected, Imputed, Said, correct};
use crate::task::{Rate, Standing, Task};

/// A rate of a slice, as the judge has it and as people correct it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CorrectedRate {
    /// Which responses; a slice of all models has the model `all`.
    #[serde(flatten)]
    pub slice: Slice,
    /// The rate.
    pub rate: String,
    /// By the judge alone.
    pub raw: RateFigure,
    /// Corrected, or why it cannot be.
    pub corrected: Option<Corrected>,
    /// Why there is no corrected rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
    /// Responses that people cannot label (withheld, failed, blank) and that are in the raw rate alone.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The corrected rates of everything together, of each model, of each country and of each model in
/// each country. People's label of a criterion is that of most of them; a row on which they are split
/// in a way that decides the rate stays unlabelled for that rate.
pub fn corrections(
    task: &Task,
    sample: &Sample,
    labels: &[LabelLine],
    lines: &[Line],
    level: f64,
) -> Vec<CorrectedRate> {
    let people = people(task, sample, labels);
    let mut slices: BTreeMap<(By, String, String), Vec<&Line>> = BTreeMap::new();
    for line in lines.iter().filter(|l| !l.unpaid) {
        let (model, country) = (line.model.clone(), line.locale.to_string());
        let all = || "all".to_owned();
        let keys = [
            (By::All, all(), all()),
            (By::All, model.clone(), all()),
            (By::Country, all(), country.clone()),
            (By::Country, model, country),
        ];
        // With one model or one country some of them are the same responses; reports show each once.
        for key in keys {
            slices.entry(key).or_default().push(line);
        }
    }
    let mut out = Vec::new();
    for ((by, model, of), own) in slices {
        let raw = cell(&own, level);
        for rate in &task.rates {
            let Some(raw) = raw.rates.get(&rate.name) else {
                continue;
            };
            let usable: Vec<&Line> = own.iter().copied().filter(|l| drawable(l)).collect();
            let found = corrected(task, rate, &usable, &people, level);
            out.push(CorrectedRate {
                slice: Slice {
                    model: model.clone(),
                    by,
                    of: of.clone(),
                },
                rate: rate.name.clone(),
                raw: raw.clone(),
                left_out: own.len() - usable.len(),
                undefined: found.as_ref().err().map(|e| {
                    let text = e.to_string();
                    text.strip_prefix("undefined: ").unwrap_or(&text).to_owned()
                }),
                corrected: found.ok(),
            });
        }
    }
    out
}

/// (model, locale, prompt) -> people's labels by criterion, and the weight of the row.
type People<'a> = HashMap<(&'a str, &'a str, &'a str), (Vec<Option<usize>>, f64)>;

fn people<'a>(task: &Task, sample: &'a Sample, labels: &[LabelLine]) -> People<'a> {
    let mut votes: HashMap<&str, Vec<Vec<u32>>> = HashMap::new();
    for line in labels {
        let own = votes.entry(&line.row).or_insert_with(|| {
            task.criteria
                .iter()
                .map(|c| vec![0; c.labels.len()])
                .collect()
        });
        for (criterion, label) in &line.labels {
            let place = task.criterion_index(criterion).and_then(|c| {
                let label = task.criteria[c].label_index(label)?;
                Some((c, label))
            });
            if let Some((c, label)) = place {
                own[c][label] += 1;
            }
        }
    }
    let most = |counts: &Vec<u32>| {
        let most = *counts.iter().max().filter(|n| **n > 0)?;
        let mut top = (0..counts.len()).filter(|&l| counts[l] == most);
        let first = top.next();
        first.filter(|_| top.next().is_none())
    };
    let labelled = sample.rows.iter().filter_map(|drawn| {
        let own = votes.get(drawn.row.as_str())?;
        let key = (
            drawn.model.as_str(),
            drawn.locale.as_str(),
            drawn.prompt.as_str(),
        );
        Some((key, (own.iter().map(most).collect(), drawn.weight)))
    });
    labelled.collect()
}

fn corrected(
    task: &Task,
    rate: &Rate,
    lines: &[&Line],
    people: &People<'_>,
    level: f64,
) -> Result<Corrected, crate::agreement::Undefined> {
    let mut clusters = HashMap::new();
    let (mut labelled, mut all) = (Vec::new(), Vec::new());
    for line in lines {
        let next = clusters.len();
        let cluster = *clusters
            .entry((line.locale.as_str(), line.group.as_str()))
            .or_insert(next);
        let judge = said(
            line.rates
                .get(&rate.name)
                .copied()
                .unwrap_or(Standing::Open),
        );
        let key = (
            line.model.as_str(),
            line.locale.as_str(),
            line.prompt.as_str(),
        );
        let known =
            people
                .get(&key)
                .and_then(|(labels, weight)| match rate.standing(task, labels) {
                    Standing::Open | Standing::OpenMiss => None,
                    decided => Some((said(decided), *weight)),
                });
        // The sample is balanced and not drawn evenly, so the judge's rate is taken over everything.
        all.push(Imputed { judge, cluster });
        if let Some((people, weight)) = known {
            labelled.push(Checked {
                judge,
                people,
                weight,
                cluster,
            });
        }
    }
    correct(&labelled, &all, level)
}

/// A verdict that failed says "in the denominator, no hit", as in the raw rate; people correct that too.
fn said(standing: Standing) -> Said {
    Said {
        hit: standing == Standing::Hit,
        eligible: standing.is_in(),
    }
}

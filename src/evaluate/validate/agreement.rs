//! How far people agree with each other and with judges, per criterion, per country: what
//! `pluralis agree` says of a table, made of a sample's labels and the judges' lines.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{LabelLine, Sample};
use crate::data::{DataError, Row, Table};
use crate::evaluate::agree::{Agreement, Plan, Scale, Spec, agree, from_tables};
use crate::evaluate::benchmark::Line;
use crate::task::Task;

/// A judge's lines under a name that tells it from the others.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// As reports name it.
    pub name: String,
    /// Its evaluation's lines.
    pub lines: &'a [Line],
}

/// The agreement on one criterion.
#[derive(Clone, Debug, Serialize)]
pub struct CriterionAgreement {
    /// The criterion.
    pub criterion: String,
    /// Every pair of raters and judges, people against each judge, overall and per country.
    pub agreement: Agreement,
}

/// Name of the column that holds what most people said, where there are several.
pub const MAJORITY: &str = "people's majority";

/// The agreement on every criterion that people labelled. Where several people labelled, what most of
/// them said stands beside them as [`MAJORITY`], so that it is compared with each judge as they are.
///
/// # Errors
/// Names of raters or judges that are the same, or figures that cannot be made.
pub fn agreements(
    task: &Task,
    sample: &Sample,
    labels: &[LabelLine],
    judges: &[Judged<'_>],
    level: f64,
    seed: u64,
) -> Result<Vec<CriterionAgreement>, DataError> {
    let mut raters: Vec<&str> = labels.iter().map(|l| l.rater.as_str()).collect();
    raters.sort_unstable();
    raters.dedup();
    let mut out = Vec::new();
    for criterion in &task.criteria {
        let told = labels
            .iter()
            .any(|l| l.labels.contains_key(&criterion.name));
        if !told {
            continue;
        }
        let table = table(sample, labels, judges, &raters, &criterion.name);
        let spec = Spec {
            item: vec!["item".into()],
            judges: names(&raters, judges),
            locale: Some("locale".into()),
            group: Some("group".into()),
            scale: Scale::Nominal,
            values: criterion
                .labels
                .iter()
                .enumerate()
                .map(|(i, l)| (l.name.clone(), i as f64))
                .collect(),
            ..Spec::wide(&raters)
        };
        let labelled = from_tables(&[table], &spec)?;
        let plan = Plan {
            level,
            seed,
            ..Plan::new(spec.scale, labelled.items.len())
        };
        let agreement = agree(&labelled, &plan)
            .map_err(|e| DataError::new(format!("{}: {e}", criterion.name), "label more rows"))?;
        out.push(CriterionAgreement {
            criterion: criterion.name.clone(),
            agreement,
        });
    }
    Ok(out)
}

/// Columns that are compared besides the raters'.
fn names(raters: &[&str], judges: &[Judged<'_>]) -> Vec<String> {
    let majority = (raters.len() > 1).then(|| MAJORITY.to_owned());
    let own = judges.iter().map(|j| j.name.clone());
    majority.into_iter().chain(own).collect()
}

/// The label that most gave; blank where none did, or several.
fn majority(labels: &[String]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for label in labels.iter().filter(|l| !l.is_empty()) {
        *counts.entry(label).or_default() += 1;
    }
    let most = counts.values().max().copied().unwrap_or(0);
    let mut top = counts.iter().filter(|(_, n)| **n == most);
    match (top.next(), top.next()) {
        (Some((label, _)), None) => (*label).to_owned(),
        _ => String::new(),
    }
}

/// One row per row of the sample that somebody labelled.
fn table(
    sample: &Sample,
    labels: &[LabelLine],
    judges: &[Judged<'_>],
    raters: &[&str],
    criterion: &str,
) -> Table {
    let of: BTreeMap<(&str, &str), &LabelLine> = labels
        .iter()
        .map(|l| ((l.row.as_str(), l.rater.as_str()), l))
        .collect();
    let verdicts: Vec<BTreeMap<(&str, &str, &str), &Line>> = judges
        .iter()
        .map(|j| {
            j.lines
                .iter()
                .map(|l| ((l.model.as_str(), l.locale.as_str(), l.prompt.as_str()), l))
                .collect()
        })
        .collect();
    let mut header = vec!["item".to_owned(), "locale".to_owned(), "group".to_owned()];
    header.extend(raters.iter().map(|r| (*r).to_owned()));
    header.extend(names(raters, judges));
    let mut rows = Vec::new();
    for (at, drawn) in sample.rows.iter().enumerate() {
        let own: Vec<String> = raters
            .iter()
            .map(|r| {
                let line = of.get(&(drawn.row.as_str(), *r));
                let label = line.and_then(|l| l.labels.get(criterion));
                label.cloned().unwrap_or_default()
            })
            .collect();
        if own.iter().all(String::is_empty) {
            continue;
        }
        let key = (
            drawn.model.as_str(),
            drawn.locale.as_str(),
            drawn.prompt.as_str(),
        );
        let lines: Vec<Option<&&Line>> = verdicts.iter().map(|v| v.get(&key)).collect();
        let group = lines.iter().flatten().next().map(|l| l.group.clone());
        let mut cells = vec![
            drawn.row.clone(),
            drawn.locale.to_string(),
            group.unwrap_or_else(|| drawn.row.clone()),
        ];
        let most = (raters.len() > 1).then(|| majority(&own));
        cells.extend(own);
        cells.extend(most);
        cells.extend(lines.iter().map(|l| {
            let label = l.and_then(|l| l.labels.get(criterion)?.clone());
            label.unwrap_or_default()
        }));
        rows.push(Row {
            number: at + 1,
            cells,
        });
    }
    Table {
        file: "the sample".into(),
        header,
        rows,
    }
}

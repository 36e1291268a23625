//! Owns the labels of a table: which spellings are the same label, their order and values.
//! Must not know which rater used them.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::spec::{Scale, Spec};
use crate::data::DataError;
use crate::text::{nearest, normalise};

/// More labels than this are no scale.
pub const MOST_LABELS: usize = 200;

/// A label of the scale.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Label {
    /// As it is shown.
    pub label: String,
    /// Its value; `None` on a nominal scale without values, and for labels that abstain.
    pub value: Option<f64>,
    /// Whether it means that the rater would not decide.
    pub abstain: bool,
    /// How often it occurs, verdicts of judges included.
    pub count: usize,
}

/// Where a spelling was first seen.
#[derive(Clone, Debug)]
struct Seen {
    text: String,
    count: usize,
    file: String,
    row: usize,
    column: String,
}

/// Collects the texts of label cells; texts that differ only in letter case, outer spaces or
/// Unicode form are one spelling.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    index: HashMap<String, u32>,
    seen: Vec<Seen>,
    missing: BTreeSet<String>,
    aliases: HashMap<String, String>,
}

impl Spellings {
    pub fn new(spec: &Spec) -> Spellings {
        let aliases = spec.aliases.iter();
        Spellings {
            missing: spec.missing.iter().map(|m| normalise(m)).collect(),
            aliases: aliases.map(|(a, b)| (normalise(a), b.clone())).collect(),
            ..Spellings::default()
        }
    }

    /// The number of a cell's spelling; `None` where the cell holds no label.
    pub fn read(&mut self, cell: &str, times: usize, place: (&str, usize, &str)) -> Option<u32> {
        let mut key = normalise(cell);
        if key.is_empty() || self.missing.contains(&key) {
            return None;
        }
        let mut text = cell.trim().to_owned();
        if let Some(target) = self.aliases.get(&key) {
            (key, text) = (normalise(target), target.trim().to_owned());
        }
        let next = self.seen.len() as u32;
        let at = *self.index.entry(key).or_insert(next);
        if at == next {
            let (file, row, column) = (place.0.to_owned(), place.1, place.2.to_owned());
            self.seen.push(Seen {
                text,
                count: 0,
                file,
                row,
                column,
            });
        }
        self.seen[at as usize].count += times;
        Some(at)
    }

    /// The labels in order, and the label of each spelling.
    ///
    /// # Errors
    /// A label that is not among the values; one without a position on an ordered scale; too many
    /// labels; none; values that repeat, or that the scale does not allow.
    pub fn resolve(&self, spec: &Spec) -> Result<(Vec<Label>, Vec<u32>), DataError> {
        if self.seen.is_empty() {
            let advice = "check the names of the columns";
            return Err(DataError::new("no cell holds a label", advice));
        }
        let abstain: BTreeSet<String> = spec.abstain.iter().map(|a| normalise(a)).collect();
        let mut labels = self.given(spec, &abstain)?;
        let mut index: HashMap<String, u32> = (0u32..)
            .zip(&labels)
            .map(|(i, l)| (normalise(&l.label), i))
            .collect();
        if labels.is_empty() {
            labels = self.found(spec.scale, &abstain)?;
            index = self.index_of(spec.scale, &labels);
        }
        for text in &spec.abstain {
            index.entry(normalise(text)).or_insert_with(|| {
                labels.push(label(text.trim(), None, true));
                labels.len() as u32 - 1
            });
        }
        let known = labels.iter().map(|l| l.label.clone()).collect::<Vec<_>>();
        let of_seen = |seen: &Seen| {
            index.get(&normalise(&seen.text)).copied().ok_or_else(|| {
                let near = nearest(&seen.text, known.iter().map(String::as_str));
                let near = near.map_or_else(String::new, |n| format!("did you mean `{n}`? "));
                let advice = format!(
                    "{near}Known: {}. Add it to --values, name it in --alias, or count it as --missing",
                    known.join(", ")
                );
                seen.error(format!("the label `{}` is not among --values", short(&seen.text)), advice)
            })
        };
        let of: Vec<u32> = self.seen.iter().map(of_seen).collect::<Result<_, _>>()?;
        for (seen, &l) in self.seen.iter().zip(&of) {
            labels[l as usize].count += seen.count;
        }
        if labels.iter().all(|l| l.abstain) {
            let e = DataError::new("every label abstains", "name fewer of them in --abstain");
            return Err(e);
        }
        check_values(spec.scale, &labels)?;
        Ok((labels, of))
    }

    /// The labels of `--values`, by their values where the scale is ordered.
    fn given(&self, spec: &Spec, abstain: &BTreeSet<String>) -> Result<Vec<Label>, DataError> {
        let mut labels: Vec<Label> = Vec::new();
        for (text, value) in &spec.values {
            let abstains = abstain.contains(&normalise(text));
            if labels
                .iter()
                .any(|l| normalise(&l.label) == normalise(text))
            {
                let what = format!("--values names the label `{text}` twice");
                return Err(DataError::new(
                    what,
                    "letter case does not tell labels apart",
                ));
            }
            labels.push(label(text, (!abstains).then_some(*value), abstains));
        }
        if spec.scale.is_ordered() {
            labels.sort_by(|a, b| by_value(a).total_cmp(&by_value(b)));
        }
        Ok(labels)
    }

    /// The labels as the table has them.
    fn found(&self, scale: Scale, abstain: &BTreeSet<String>) -> Result<Vec<Label>, DataError> {
        let mut labels: Vec<Label> = Vec::new();
        for seen in &self.seen {
            let abstains = abstain.contains(&normalise(&seen.text));
            let value = number(&seen.text).filter(|_| !abstains);
            if scale.is_ordered() && !abstains {
                let Some(value) = value else {
                    let what = format!(
                        "the label `{}` has no place on an ordered scale",
                        short(&seen.text)
                    );
                    let advice = "give every label its value, as in --values low=1,mid=2,high=3";
                    return Err(seen.error(what, advice));
                };
                if labels.iter().any(|l| l.value == Some(value)) {
                    continue; // 1 and 1.0
                }
            }
            labels.push(label(&seen.text, value, abstains));
            if labels.len() > MOST_LABELS {
                let what = format!("more than {MOST_LABELS} different labels");
                return Err(seen.error(what, "is this a column of labels?"));
            }
        }
        // Numbers by value, texts by their letters.
        let numbers = labels.iter().all(|l| l.abstain || l.value.is_some());
        if numbers {
            labels.sort_by(|a, b| {
                by_value(a)
                    .total_cmp(&by_value(b))
                    .then_with(|| a.label.cmp(&b.label))
            });
        } else {
            labels.sort_by(|a, b| (a.abstain, &a.label).cmp(&(b.abstain, &b.label)));
        }
        if !scale.is_ordered() {
            labels.iter_mut().for_each(|l| l.value = None);
        }
        Ok(labels)
    }

    fn index_of(&self, scale: Scale, labels: &[Label]) -> HashMap<String, u32> {
        let same = |l: &Label, text: &str| {
            normalise(&l.label) == normalise(text)
                || (scale.is_ordered() && l.value.is_some() && l.value == number(text))
        };
        let place = |text: &str| labels.iter().position(|l| same(l, text));
        self.seen
            .iter()
            .filter_map(|s| Some((normalise(&s.text), place(&s.text)? as u32)))
            .collect()
    }
}

impl Seen {
    fn error(&self, what: impl Into<String>, advice: impl Into<String>) -> DataError {
        DataError::new(what, advice)
            .in_file(&self.file)
            .at_row(self.row)
            .at_column(&self.column)
    }
}

fn label(text: &str, value: Option<f64>, abstain: bool) -> Label {
    Label {
        label: text.to_owned(),
        value,
        abstain,
        count: 0,
    }
}

/// Labels that abstain come last.
fn by_value(label: &Label) -> f64 {
    label.value.unwrap_or(f64::INFINITY)
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|v| v.is_finite())
}

/// A text of a cell for a message.
fn short(text: &str) -> String {
    let line: String = text.chars().take(40).filter(|c| !c.is_control()).collect();
    if text.chars().count() > 40 {
        line + "…"
    } else {
        line
    }
}

fn check_values(scale: Scale, labels: &[Label]) -> Result<(), DataError> {
    if !scale.is_ordered() {
        return Ok(());
    }
    let values: Vec<(&str, f64)> = labels
        .iter()
        .filter_map(|l| Some((l.label.as_str(), l.value?)))
        .collect();
    if let Some((name, value)) = values
        .iter()
        .find(|(_, v)| scale == Scale::Ratio && *v < 0.0)
    {
        let what =
            format!("the label `{name}` has the value {value}, and a ratio scale starts at 0");
        return Err(DataError::new(what, "use --scale interval"));
    }
    if let Some(pair) = values.windows(2).find(|w| w[0].1 == w[1].1) {
        let what = format!(
            "the labels `{}` and `{}` have the same value",
            pair[0].0, pair[1].0
        );
        return Err(DataError::new(
            what,
            "make them one with --alias, or give them different values",
        ));
    }
    Ok(())
}

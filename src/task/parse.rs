//! `task.toml` -> a checked [`Task`]. Nothing downstream sees the raw file.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::text::{did_you_mean, fold, is_steering, not_a_file_name};

use super::{Condition, Criterion, Field, Label, OutcomeRule, Rate, Scale, Task};

/// Why a task file is refused.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Not TOML, an unknown key, or a missing one.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The file parses but contradicts itself.
    #[error("task `{task}`: {what}")]
    Invalid {
        /// Name in the file.
        task: String,
        /// What is wrong and what to write.
        what: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTask {
    format: u32,
    name: String,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    source: String,
    fields: Vec<RawField>,
    criteria: Vec<RawCriterion>,
    #[serde(default)]
    outcomes: Vec<RawOutcome>,
    #[serde(default)]
    inconsistent: Vec<BTreeMap<String, String>>,
    #[serde(default)]
    rates: Vec<RawRate>,
    #[serde(default)]
    readings: Vec<RawReading>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawField {
    name: String,
    title: Option<String>,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    identifies: bool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCriterion {
    name: String,
    question: String,
    scale: Scale,
    labels: Vec<RawLabel>,
    #[serde(default)]
    word_sets: Vec<Vec<String>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLabel {
    name: String,
    word: Option<String>,
    #[serde(default)]
    meaning: String,
    value: Option<f64>,
    #[serde(default)]
    abstain: bool,
    #[serde(default)]
    aliases: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutcome {
    name: String,
    when: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRate {
    name: String,
    title: String,
    #[serde(default)]
    outcomes: Vec<String>,
    #[serde(default)]
    when: BTreeMap<String, String>,
    #[serde(default)]
    among: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReading {
    name: String,
    criteria: Vec<RawReadingCriterion>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReadingCriterion {
    name: String,
    question: Option<String>,
    scale: Scale,
    labels: Vec<RawReadingLabel>,
    #[serde(default)]
    word_sets: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReadingLabel {
    name: String,
    from: Vec<String>,
    word: Option<String>,
    #[serde(default)]
    meaning: String,
    value: Option<f64>,
    #[serde(default)]
    abstain: bool,
}

/// Reads a task file and applies a reading (`binary`) where one is named.
///
/// # Errors
/// [`TaskError`] with the place in the TOML, or the name that does not resolve.
pub fn parse_task(text: &str, reading: Option<&str>) -> Result<Task, TaskError> {
    let raw: RawTask = toml::from_str(text)?;
    let invalid = |what: String| TaskError::Invalid {
        task: raw.name.clone(),
        what,
    };
    if raw.format != 1 {
        return Err(invalid(format!(
            "format {} is not known to this program, which reads format 1",
            raw.format
        )));
    }
    if let Some(why) = not_a_file_name(&raw.name) {
        return Err(invalid(format!(
            "`{}` is no name of a task: {why}",
            raw.name
        )));
    }
    if raw.criteria.is_empty() {
        return Err(invalid("a task needs at least one [[criteria]]".into()));
    }
    let fields = check_fields(&raw.fields).map_err(invalid)?;
    let mut criteria = Vec::new();
    for c in &raw.criteria {
        if criteria
            .iter()
            .any(|other: &Criterion| other.name.eq_ignore_ascii_case(&c.name))
        {
            return Err(invalid(format!("criterion `{}` is there twice", c.name)));
        }
        criteria.push(check_criterion(c).map_err(invalid)?);
    }
    let mut relabel = Vec::new();
    if let Some(name) = reading {
        let known: Vec<_> = raw.readings.iter().map(|r| r.name.as_str()).collect();
        let found = raw
            .readings
            .iter()
            .find(|r| r.name == name)
            .ok_or_else(|| {
                invalid(format!(
                    "there is no reading `{name}`; {}",
                    did_you_mean(name, &known)
                ))
            })?;
        (criteria, relabel) = apply_reading(&criteria, found).map_err(invalid)?;
    }
    let condition = |map: &BTreeMap<String, String>| resolve(&criteria, map).map_err(invalid);
    let mut outcomes = Vec::new();
    for o in &raw.outcomes {
        check_name("outcome", &o.name).map_err(invalid)?;
        outcomes.push(OutcomeRule {
            name: o.name.clone(),
            when: condition(&o.when)?,
        });
    }
    let inconsistent = raw
        .inconsistent
        .iter()
        .map(condition)
        .collect::<Result<Vec<_>, _>>()?;
    let mut rates = Vec::new();
    for r in &raw.rates {
        let named = r.outcomes.iter().map(|name| {
            outcomes
                .iter()
                .position(|o| o.name == *name)
                .ok_or_else(|| {
                    invalid(format!(
                        "rate `{}` names the outcome `{name}`, which is not in [[outcomes]]",
                        r.name
                    ))
                })
        });
        check_name("rate", &r.name).map_err(invalid)?;
        rates.push(Rate {
            name: r.name.clone(),
            title: r.title.clone(),
            outcomes: named.collect::<Result<_, _>>()?,
            when: condition(&r.when)?,
            among: condition(&r.among)?,
        });
    }
    Ok(Task {
        name: raw.name.clone(),
        title: raw.title.clone(),
        description: raw.description.clone(),
        source: raw.source.clone(),
        fields,
        criteria,
        outcomes,
        inconsistent,
        rates,
        reading: reading.map(str::to_owned),
        relabel,
    })
}

fn check_fields(raw: &[RawField]) -> Result<Vec<Field>, String> {
    let mut seen = BTreeSet::new();
    if raw.is_empty() {
        return Err("a task needs at least one [[fields]]".into());
    }
    raw.iter()
        .map(|f| {
            if !seen.insert(f.name.clone()) {
                return Err(format!("field `{}` is there twice", f.name));
            }
            if !f
                .name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_')
                || f.name.is_empty()
            {
                return Err(format!(
                    "field `{}`: use letters, digits and _ so that a template can name it",
                    f.name
                ));
            }
            Ok(Field {
                name: f.name.clone(),
                title: f.title.clone().unwrap_or_else(|| f.name.clone()),
                required: !f.optional,
                identifies: f.identifies,
            })
        })
        .collect()
}

/// Names go into tables, files and terminals.
fn check_name(what: &str, name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err(format!("a {what} has an empty name"));
    }
    if name.chars().any(is_steering) {
        let name = crate::text::visible(name);
        return Err(format!(
            "the name `{name}` of a {what} holds a control character or a mark of writing direction"
        ));
    }
    Ok(())
}

fn check_criterion(raw: &RawCriterion) -> Result<Criterion, String> {
    check_name("criterion", &raw.name)?;
    let labels: Vec<Label> = raw
        .labels
        .iter()
        .enumerate()
        .map(|(i, l)| Label {
            name: l.name.clone(),
            word: l.word.clone().unwrap_or_else(|| l.name.clone()),
            meaning: l.meaning.clone(),
            value: l.value.or((raw.scale == Scale::Binary).then_some(i as f64)),
            abstain: l.abstain,
            aliases: l.aliases.clone(),
        })
        .collect();
    check_labels(&raw.name, raw.scale, &labels)?;
    check_word_sets(&raw.name, &labels, &raw.word_sets)?;
    Ok(Criterion {
        name: raw.name.clone(),
        question: raw.question.clone(),
        scale: raw.scale,
        labels,
        word_sets: raw.word_sets.clone(),
    })
}

/// A set has a word for every label, and no word twice: an answer could not be read.
fn check_word_sets(name: &str, labels: &[Label], sets: &[Vec<String>]) -> Result<(), String> {
    for (k, set) in sets.iter().enumerate() {
        let number = k + 1;
        if set.len() != labels.len() {
            return Err(format!(
                "criterion `{name}`: word set {number} has {} words for {} labels",
                set.len(),
                labels.len()
            ));
        }
        for (i, word) in set.iter().enumerate() {
            check_name("label's word", word)?;
            if set[..i].iter().any(|other| fold(other) == fold(word)) {
                return Err(format!(
                    "criterion `{name}`: word set {number} has `{word}` twice"
                ));
            }
        }
    }
    Ok(())
}

fn check_labels(name: &str, scale: Scale, labels: &[Label]) -> Result<(), String> {
    let decided: Vec<_> = labels.iter().filter(|l| !l.abstain).collect();
    if decided.len() < 2 {
        return Err(format!(
            "criterion `{name}` needs at least two labels that do not abstain"
        ));
    }
    if labels.len() > 64 {
        return Err(format!(
            "criterion `{name}` has {} labels; at most 64 are supported",
            labels.len()
        ));
    }
    for (i, l) in labels.iter().enumerate() {
        check_name("label", &l.name)?;
        let clash = |other: &Label| {
            fold(&other.name) == fold(&l.name) || fold(&other.word) == fold(&l.word)
        };
        if labels[..i].iter().any(clash) {
            return Err(format!(
                "criterion `{name}`: the label `{}` has the name or the word of an earlier one",
                l.name
            ));
        }
        if l.word.trim().is_empty() {
            return Err(format!(
                "criterion `{name}`: the word of label `{}` is empty",
                l.name
            ));
        }
    }
    match scale {
        Scale::Binary if decided.len() != 2 => Err(format!(
            "criterion `{name}` is binary and has {} labels that do not abstain",
            decided.len()
        )),
        Scale::Ordinal
            if decided
                .iter()
                .any(|l| l.value.is_none_or(|v| !v.is_finite())) =>
        {
            Err(format!(
                "criterion `{name}` is ordinal: give each label a finite `value`"
            ))
        }
        Scale::Ordinal if decided.windows(2).any(|w| w[0].value >= w[1].value) => Err(format!(
            "criterion `{name}` is ordinal: list its labels by ascending `value`"
        )),
        _ => Ok(()),
    }
}

type Relabelled = (Vec<Criterion>, Vec<Vec<(String, usize)>>);

/// Collapses labels: each label of the reading takes the votes of the labels in its `from`.
fn apply_reading(criteria: &[Criterion], reading: &RawReading) -> Result<Relabelled, String> {
    let mut out = criteria.to_vec();
    let mut relabel = vec![Vec::new(); criteria.len()];
    for rc in &reading.criteria {
        let ix = criteria
            .iter()
            .position(|c| c.name == rc.name)
            .ok_or_else(|| {
                format!(
                    "reading `{}` names the criterion `{}`, which is not there",
                    reading.name, rc.name
                )
            })?;
        let old = &criteria[ix];
        let mut taken = vec![false; old.labels.len()];
        let mut labels = Vec::new();
        for (i, l) in rc.labels.iter().enumerate() {
            for from in &l.from {
                let k = old
                    .labels
                    .iter()
                    .position(|o| o.name == *from)
                    .ok_or_else(|| {
                        format!(
                            "reading `{}`: `{from}` is no label of `{}`",
                            reading.name, rc.name
                        )
                    })?;
                if std::mem::replace(&mut taken[k], true) {
                    return Err(format!(
                        "reading `{}`: `{from}` is mapped twice",
                        reading.name
                    ));
                }
                let o = &old.labels[k];
                relabel[ix].extend(
                    std::iter::once(&o.name)
                        .chain(&o.aliases)
                        .map(|n| (n.clone(), i)),
                );
            }
            let value = l.value.or((rc.scale == Scale::Binary).then_some(i as f64));
            labels.push(Label {
                name: l.name.clone(),
                word: l.word.clone().unwrap_or_else(|| l.name.clone()),
                meaning: l.meaning.clone(),
                value,
                abstain: l.abstain,
                aliases: Vec::new(),
            });
        }
        if let Some(k) = taken.iter().position(|t| !t) {
            return Err(format!(
                "reading `{}` says nothing of the label `{}`",
                reading.name, old.labels[k].name
            ));
        }
        check_labels(&rc.name, rc.scale, &labels)?;
        check_word_sets(&rc.name, &labels, &rc.word_sets)?;
        out[ix] = Criterion {
            name: rc.name.clone(),
            question: rc.question.clone().unwrap_or_else(|| old.question.clone()),
            scale: rc.scale,
            labels,
            word_sets: rc.word_sets.clone(),
        };
    }
    Ok((out, relabel))
}

fn resolve(criteria: &[Criterion], map: &BTreeMap<String, String>) -> Result<Condition, String> {
    let terms = map.iter().map(|(name, label)| {
        let c = criteria
            .iter()
            .position(|c| c.name == *name)
            .ok_or_else(|| format!("a rule names the criterion `{name}`, which is not there"))?;
        let l = criteria[c].label_index(label).ok_or_else(|| {
            format!("a rule names the label `{label}`, which `{name}` does not have")
        })?;
        Ok((c, l))
    });
    Ok(Condition {
        terms: terms.collect::<Result<_, String>>()?,
    })
}

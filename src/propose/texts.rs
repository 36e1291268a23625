//! Edits of texts that need no writer: locale notes from vote counts, label words, fewer rules.

use std::collections::BTreeMap;

use rand::{Rng, RngExt};

use super::Material;
use crate::agreement;
use crate::prompt::{Edit, Version, Words};
use crate::task::{Criterion, Scale, Task};

/// Says how the people of the card's locale split, in the version's own words.
pub(super) fn locale_note(m: &Material<'_>) -> Option<Edit> {
    let card = m.card?;
    let locale = card.locale.as_ref()?;
    let criterion = &m.task.criteria[card.criterion];
    let mut counts = vec![0usize; criterion.labels.len()];
    for &i in m.tune.iter().filter(|&&i| m.items[i].locale == *locale) {
        if let Some(label) = agreement::majority(
            &m.items[i].votes[card.criterion].counts,
            &criterion.abstains(),
        ) {
            counts[label] += 1;
        }
    }
    let n: usize = counts.iter().sum();
    if n < 4 {
        return None;
    }
    let parts: Vec<String> = counts
        .iter()
        .enumerate()
        .filter(|(_, c)| **c > 0)
        .map(|(l, c)| format!("{} {} %", m.version.word(criterion, l), c * 100 / n))
        .collect();
    let place = if locale.country_name().is_empty() {
        locale.language_name()
    } else {
        locale.country_name()
    };
    Some(Edit::SetLocaleNote {
        locale: locale.clone(),
        text: format!("Annotators in {place} answer about: {}.", parts.join(", ")),
    })
}

/// What each label means, as the task says it, in the version's own words. `None` where the task
/// says nothing, or the version says it already.
pub(super) fn definitions(m: &Material<'_>) -> Option<Edit> {
    let mut lines = Vec::new();
    for criterion in &m.task.criteria {
        for (l, label) in criterion.labels.iter().enumerate() {
            if m.version.offers(criterion, l) && !label.meaning.is_empty() {
                lines.push(format!(
                    "{}: {}",
                    m.version.word(criterion, l),
                    label.meaning
                ));
            }
        }
    }
    let text = lines.join("\n");
    let said = m.version.sections.get("rubric") == Some(&text);
    (!said && !lines.is_empty()).then(|| Edit::ReplaceSection {
        section: "rubric".into(),
        text,
    })
}

/// Word sets other than the current one: the task's own, the label names, and yes/no for
/// binary criteria.
pub(super) fn alternatives(task: &Task, version: &Version) -> Vec<Words> {
    let set = |word: &dyn Fn(&Criterion, usize) -> String| -> Words {
        task.criteria
            .iter()
            .map(|c| {
                (
                    c.name.clone(),
                    c.labels
                        .iter()
                        .enumerate()
                        .map(|(i, l)| (l.name.clone(), word(c, i)))
                        .collect::<BTreeMap<_, _>>(),
                )
            })
            .collect()
    };
    let mut out = vec![
        set(&|c, i| c.labels[i].word.clone()),
        set(&|c, i| c.labels[i].name.clone()),
    ];
    if task.criteria.iter().all(|c| c.scale == Scale::Binary) {
        out.push(set(&|c, i| {
            if c.labels[i].abstain {
                "unsure".into()
            } else if c.labels[i].value == Some(0.0) {
                "no".into()
            } else {
                "yes".into()
            }
        }));
    }
    let now = set(&|c, i| version.word(c, i).to_owned());
    let mut seen = vec![now];
    out.retain(|words| {
        let fresh = !seen.contains(words);
        seen.push(words.clone());
        fresh
    });
    out
}

/// One of the alternatives at random.
pub(super) fn change_words(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let mut all = alternatives(m.task, m.version);
    if all.is_empty() {
        return None;
    }
    Some(Edit::ChangeWords {
        words: all.swap_remove(rng.random_range(0..all.len())),
    })
}

/// Removes one rule.
pub(super) fn drop_rule(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let n = m.version.rules.len();
    (n > 0).then(|| Edit::DropRule {
        index: rng.random_range(0..n),
    })
}

//! Edits of texts that need no writer: locale notes from vote counts, label words, fewer rules.

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

/// Rules that say which label to give where it could be either: one for each label of a task with
/// one criterion, unless the version has such a rule.
pub(super) fn tie_breaks(m: &Material<'_>) -> Vec<Edit> {
    let [criterion] = &m.task.criteria[..] else {
        return Vec::new();
    };
    let labels = (0..criterion.labels.len()).filter(|&l| !criterion.labels[l].abstain);
    let rule = |l| {
        format!(
            "When it could be either, answer {}.",
            m.version.word(criterion, l)
        )
    };
    let rules: Vec<String> = labels.map(rule).collect();
    if rules.len() != 2 || rules.iter().any(|r| m.version.rules.contains(r)) {
        return Vec::new();
    }
    let rules = rules.into_iter();
    rules.map(|text| Edit::AddRule { text }).collect()
}

/// Fields that most tuning items have, each moved to the front.
pub(super) fn fields_first(m: &Material<'_>) -> Vec<Edit> {
    let filled = |f: usize| {
        let texts = m.tune.iter().map(|&i| &m.items[i].fields);
        let has = texts.filter(|texts| texts.get(f).is_some_and(|t| !t.is_empty()));
        2 * has.count() > m.tune.len()
    };
    let fields = &m.task.fields;
    let now = m.version.first.as_ref().or(fields.first().map(|f| &f.name));
    let others = (0..fields.len()).filter(|&f| Some(&fields[f].name) != now && filled(f));
    let edit = |f: usize| Edit::ShowFirst {
        field: fields[f].name.clone(),
    };
    others.map(edit).collect()
}

/// Words other than the version's: the task's own, its word sets for one criterion or another, the
/// label names, and yes/no for binary criteria.
pub(super) fn alternatives(task: &Task, version: &Version) -> Vec<Words> {
    let set = |word: &dyn Fn(&Criterion, usize) -> String| -> Words {
        let words = |c: &Criterion| {
            let each = c.labels.iter().enumerate();
            each.map(|(i, l)| (l.name.clone(), word(c, i))).collect()
        };
        let all = task.criteria.iter();
        all.map(|c| (c.name.clone(), words(c))).collect()
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
    for changed in &task.criteria {
        for words in &changed.word_sets {
            out.push(set(&|c, i| {
                if c.name == changed.name {
                    words[i].clone()
                } else {
                    version.word(c, i).to_owned()
                }
            }));
        }
    }
    let mut seen = vec![set(&|c, i| version.word(c, i).to_owned())];
    out.retain(|words| {
        let fresh = !seen.contains(words);
        seen.push(words.clone());
        fresh
    });
    out
}

/// Edits to each of the alternatives.
pub(super) fn change_words(m: &Material<'_>) -> Vec<Edit> {
    alternatives(m.task, m.version)
        .into_iter()
        .map(|words| Edit::ChangeWords { words })
        .collect()
}

/// Removes one rule.
pub(super) fn drop_rule(m: &Material<'_>, rng: &mut impl Rng) -> Option<Edit> {
    let n = m.version.rules.len();
    (n > 0).then(|| Edit::DropRule {
        index: rng.random_range(0..n),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::parse_task;

    #[test]
    fn words_of_one_criterion_change_while_the_others_stay() {
        let task = parse_task(
            r#"
            format = 1
            name = "t"
            title = "T"
            [[fields]]
            name = "text"
            identifies = true
            [[criteria]]
            name = "A"
            question = "?"
            scale = "nominal"
            labels = [{ name = "x" }, { name = "y" }]
            word_sets = [["good", "bad"]]
            [[criteria]]
            name = "B"
            question = "?"
            scale = "nominal"
            labels = [{ name = "z" }, { name = "w" }]
            "#,
            None,
        )
        .unwrap();
        let skeleton = serde_json::json!(
            {"name": "completion", "style": "completion", "prefix": "", "item": ""}
        );
        let mut version: Version = serde_json::from_value(serde_json::json!({
            "format": 1, "task": "t", "task_digest": "", "skeleton": skeleton,
            "sections": {}, "answer": "logprobs",
        }))
        .unwrap();
        let found = alternatives(&task, &version);
        // The words of the task are the names, so only the set is another.
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["A"]["y"], "bad");
        assert_eq!(found[0]["B"]["w"], "w");
        version.words = found[0].clone();
        let back = alternatives(&task, &version);
        assert_eq!(back.len(), 1);
        assert_eq!(back[0]["A"]["y"], "y");
    }
}

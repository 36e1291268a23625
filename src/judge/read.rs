//! Reading answers: alternatives of the first token, a label word, or a JSON object. Works on
//! folded text (lower case, one Unicode form) without word boundaries, so that every script is equal.

use serde_json::{Value, json};

use super::verdict::{FailureKind, Reading};
use crate::endpoint::{Finish, Response};
use crate::prompt::Version;
use crate::task::{Criterion, Scale, Task};
use crate::text::fold;

/// Reads the label distribution from the alternatives of the first token: a token counts for the
/// label whose word begins with it, if there is one such label only.
pub fn read_top_logprobs(words: &[&str], response: &Response) -> Reading {
    let Some(first) = response
        .top_logprobs
        .first()
        .filter(|alternatives| !alternatives.is_empty())
    else {
        // Some servers leave the alternatives out when the first token is a part of a character.
        return match unique_prefix(words, &response.text) {
            Some(label) => Reading::Label { label },
            None => unparsable(&response.text),
        };
    };
    let mut mass = vec![0.0; words.len()];
    let mut least = f64::INFINITY;
    for (token, logprob) in first {
        least = least.min(*logprob);
        if let Some(label) = unique_prefix(words, token) {
            mass[label] += logprob.exp();
        }
    }
    if mass.iter().all(|m| *m <= 0.0) {
        return unparsable(&response.text);
    }
    // A label outside the reported alternatives is at most as likely as the least of them.
    let scores: Vec<f64> = mass
        .iter()
        .map(|m| if *m > 0.0 { m.ln() } else { least - 1.0 })
        .collect();
    Reading::from_scores(&scores)
}

/// The only label whose word starts with the text.
fn unique_prefix(words: &[&str], text: &str) -> Option<usize> {
    let text = fold(text);
    if text.is_empty() {
        return None;
    }
    let mut hits = words
        .iter()
        .enumerate()
        .filter(|(_, w)| fold(w).starts_with(&text));
    let first = hits.next()?.0;
    hits.next().is_none().then_some(first)
}

/// Reads a label from free text: the word or the name of exactly one label, where a longer match
/// covers a shorter one inside it ("not offensive" is not "offensive").
pub fn read_label(criterion: &Criterion, words: &[&str], text: &str) -> Reading {
    let answer = fold(text);
    let trimmed = answer.trim_matches(|c: char| c.is_whitespace() || c.is_ascii_punctuation());
    let exact = |l: usize| trimmed == fold(words[l]) || trimmed == fold(&criterion.labels[l].name);
    if let Some(label) = (0..words.len()).find(|&l| exact(l)) {
        return Reading::Label { label };
    }
    let mut spans: Vec<(usize, usize, usize)> = Vec::new();
    for (label, word) in words.iter().enumerate() {
        let word = fold(word);
        // Bare "S" or "1" occurs in any text; such words are only read when they are the whole answer.
        if word.chars().count() < 2 {
            continue;
        }
        spans.extend(
            answer
                .match_indices(&word)
                .map(|(at, m)| (at, at + m.len(), label)),
        );
    }
    let covered = |s: &(usize, usize, usize)| {
        spans
            .iter()
            .any(|o| o.0 <= s.0 && s.1 <= o.1 && o.1 - o.0 > s.1 - s.0)
    };
    let kept: Vec<_> = spans.iter().filter(|s| !covered(s)).collect();
    match kept.first() {
        Some(first) if kept.iter().all(|s| s.2 == first.2) => Reading::Label { label: first.2 },
        _ => unparsable(text),
    }
}

/// Reads one JSON object with a key per criterion, wherever it stands in the text.
pub fn read_json(task: &Task, version: &Version, response: &Response) -> Vec<Reading> {
    let Some(object) = first_object(&response.text) else {
        let why = if response.finish == Finish::Length {
            "the answer was cut before its JSON ended: "
        } else {
            "no JSON object in "
        };
        return vec![
            Reading::failed(
                FailureKind::Unparsable,
                format!("{why}{}", excerpt(&response.text))
            );
            task.criteria.len()
        ];
    };
    task.criteria
        .iter()
        .map(|c| {
            let words: Vec<&str> = (0..c.labels.len()).map(|l| version.word(c, l)).collect();
            match object
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(&c.name))
                .map(|(_, v)| v)
            {
                Some(Value::String(text)) => read_label(c, &words, text),
                Some(Value::Bool(yes)) if c.scale == Scale::Binary => Reading::Label {
                    label: usize::from(*yes),
                },
                Some(Value::Number(n)) => {
                    match (0..c.labels.len()).find(|&l| c.labels[l].value == n.as_f64()) {
                        Some(label) => Reading::Label { label },
                        None => unparsable(&n.to_string()),
                    }
                }
                _ => Reading::failed(
                    FailureKind::Unparsable,
                    format!("the JSON has no `{}`: {}", c.name, excerpt(&response.text)),
                ),
            }
        })
        .collect()
}

/// The first balanced JSON object that parses.
fn first_object(text: &str) -> Option<serde_json::Map<String, Value>> {
    // Each start is tried once; answers are short, so this stays far from quadratic trouble.
    text.match_indices('{').take(16).find_map(|(at, _)| {
        match serde_json::Deserializer::from_str(&text[at..])
            .into_iter::<Value>()
            .next()
        {
            Some(Ok(Value::Object(map))) => Some(map),
            _ => None,
        }
    })
}

/// The schema that a JSON answer must follow: a rationale first, then one word per criterion.
pub(super) fn json_schema(task: &Task, version: &Version) -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert("rationale".into(), json!({"type": "string"}));
    for c in &task.criteria {
        let words: Vec<_> = (0..c.labels.len())
            .filter(|&l| version.offers(c, l))
            .map(|l| version.word(c, l))
            .collect();
        properties.insert(c.name.clone(), json!({"type": "string", "enum": words}));
    }
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn unparsable(text: &str) -> Reading {
    Reading::failed(
        FailureKind::Unparsable,
        format!("no single label in {}", excerpt(text)),
    )
}

fn excerpt(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Label;

    fn criterion(words: &[&str]) -> Criterion {
        let label = |w: &&str| Label {
            name: (*w).into(),
            word: (*w).into(),
            meaning: String::new(),
            value: None,
            abstain: false,
            aliases: vec![],
        };
        Criterion {
            name: "c".into(),
            question: "?".into(),
            scale: Scale::Nominal,
            labels: words.iter().map(label).collect(),
            word_sets: Vec::new(),
        }
    }

    fn label(words: &[&str], text: &str) -> Option<usize> {
        match read_label(&criterion(words), words, text) {
            Reading::Label { label } => Some(label),
            _ => None,
        }
    }

    #[test]
    fn a_label_is_read_in_any_script_and_never_guessed() {
        let en = ["not offensive", "offensive", "unsure"];
        assert_eq!(label(&en, "**Not offensive.**"), Some(0));
        assert_eq!(label(&en, "I would call it not offensive here"), Some(0));
        assert_eq!(label(&en, "offensive"), Some(1));
        assert_eq!(label(&en, "offensive or not offensive?"), None);
        assert_eq!(label(&en, ""), None);
        assert_eq!(
            label(&["ไม่หยาบคาย", "หยาบคาย"], "คำตอบคือไม่หยาบคายครับ"),
            Some(0)
        );
        assert_eq!(label(&["冒犯", "不冒犯"], "这是不冒犯的"), Some(1));
        assert_eq!(label(&["S", "NS"], "s"), Some(0));
        assert_eq!(label(&["S", "NS"], "It is so"), None);
    }

    #[test]
    fn first_tokens_become_a_distribution() {
        let words = ["harmless", "offensive"];
        let response = Response {
            top_logprobs: vec![vec![
                (" off".into(), 0.6f64.ln()),
                (" harm".into(), 0.2f64.ln()),
                (" the".into(), 0.1f64.ln()),
            ]],
            ..Response::default()
        };
        let Reading::Scores { scores } = read_top_logprobs(&words, &response) else {
            panic!("no scores")
        };
        assert!((scores[0].exp() - 0.25).abs() < 1e-12 && (scores[1].exp() - 0.75).abs() < 1e-12);
        let none = Response {
            text: "Sorry".into(),
            ..Response::default()
        };
        assert!(matches!(
            read_top_logprobs(&words, &none),
            Reading::Failed(_)
        ));
    }
}

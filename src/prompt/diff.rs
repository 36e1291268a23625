//! What differs between two versions, part by part, as lines of prose.

use std::collections::BTreeMap;

use super::{AnswerFormat, Style, Version};

/// A part in which two versions differ.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// `section role`, `rules`, `demos`, `template prefix` …
    pub part: String,
    /// Its lines, in order.
    pub lines: Vec<Line>,
}

/// One line of a part.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// In both.
    Same(String),
    /// Only in the first.
    Gone(String),
    /// Only in the second.
    New(String),
}

/// The parts that differ; none where the versions are the same.
pub fn diff(from: &Version, to: &Version) -> Vec<Change> {
    let (old, new) = (parts(from), parts(to));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable_by_key(|name| (rank(name), *name));
    names.dedup();
    let none = Vec::new();
    let change = |name: &String| {
        let (a, b) = (
            old.get(name).unwrap_or(&none),
            new.get(name).unwrap_or(&none),
        );
        (a != b).then(|| Change {
            part: name.clone(),
            lines: lines(a, b),
        })
    };
    names.into_iter().filter_map(change).collect()
}

/// Prose before numbers.
fn rank(part: &str) -> usize {
    let order = [
        "section", "rules", "demos", "field", "words", "answer", "skeleton", "template", "task",
    ];
    order
        .iter()
        .position(|p| part.starts_with(p))
        .unwrap_or(order.len())
}

/// Every part of a version as lines. A line end that is not `\n` is shown as text.
fn parts(v: &Version) -> BTreeMap<String, Vec<String>> {
    let mut out = BTreeMap::new();
    let mut put = |name: String, lines: Vec<String>| {
        if !lines.is_empty() {
            out.insert(name, lines);
        }
    };
    let answer = match v.answer {
        AnswerFormat::Logprobs => "logprobs",
        AnswerFormat::Label => "label",
        AnswerFormat::Json => "json",
    };
    let abstain = if v.may_abstain {
        "may abstain"
    } else {
        "may not abstain"
    };
    put("answer".into(), vec![answer.into(), abstain.into()]);
    let reading = v
        .reading
        .as_ref()
        .map_or(String::new(), |r| format!(" ({r})"));
    let task = format!("{}{reading}, definition {}", v.task, v.task_digest);
    put("task".into(), vec![task]);
    let style = match v.skeleton.style {
        Style::Chat => "chat",
        Style::Completion => "completion",
    };
    put(
        "skeleton".into(),
        vec![format!("{}, {style}", v.skeleton.name)],
    );
    put("template prefix".into(), prose(&v.skeleton.prefix));
    put("template item".into(), prose(&v.skeleton.item));
    for (name, text) in &v.sections {
        put(format!("section {name}"), prose(text));
    }
    put("rules".into(), v.rules.clone());
    let demo = |d: &super::Demo| {
        let only = d
            .only_for
            .as_ref()
            .map_or(String::new(), |l| format!(", only for {l}"));
        let fields: Vec<_> = d.fields.values().map(String::as_str).collect();
        let answers: Vec<_> = d.answers.values().map(String::as_str).collect();
        let (fields, answers) = (fields.join(" | "), answers.join(", "));
        format!("[{}{only}] {fields} -> {answers} ({})", d.locale, d.source)
    };
    put("demos".into(), v.demos.iter().map(demo).collect());
    let nearest = v.nearest.map(|n| format!("the {n} nearest to the item"));
    put("demos shown".into(), nearest.into_iter().collect());
    put(
        "field shown first".into(),
        v.first.iter().cloned().collect(),
    );
    let words = v.words.iter().flat_map(|(criterion, words)| {
        words
            .iter()
            .map(move |(label, word)| format!("{criterion}: {label} = {word}"))
    });
    put("words".into(), words.collect());
    let mut calibration = Vec::new();
    for (name, c) in &v.calibration.criteria {
        calibration.push(format!(
            "{name}: temperature {}, bias {:?}",
            c.temperature, c.bias
        ));
        for (locale, bias) in &c.locales {
            calibration.push(format!("{name}, {locale}: bias {bias:?}"));
        }
    }
    put("calibration".into(), calibration);
    out
}

fn prose(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

/// Most cells of the table that finds the longest common lines.
const CELLS: usize = 4_000_000;

/// The lines of two texts with the fewest changes; all of one and then all of the other where the
/// texts are too long for that.
fn lines(a: &[String], b: &[String]) -> Vec<Line> {
    if a.len().saturating_mul(b.len()) > CELLS {
        let gone = a.iter().cloned().map(Line::Gone);
        return gone.chain(b.iter().cloned().map(Line::New)).collect();
    }
    // longest[i][j]: common lines of a[i..] and b[j..]
    let width = b.len() + 1;
    let mut longest = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i * width + j] = if a[i] == b[j] {
                longest[(i + 1) * width + j + 1] + 1
            } else {
                longest[(i + 1) * width + j].max(longest[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            out.push(Line::Same(a[i].clone()));
            i += 1;
            j += 1;
        } else if j == b.len()
            || (i < a.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1])
        {
            out.push(Line::Gone(a[i].clone()));
            i += 1;
        } else {
            out.push(Line::New(b[j].clone()));
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn side(lines: &[Line], new: bool) -> Vec<String> {
        let of = |l: &Line| match l {
            Line::Same(t) => Some(t.clone()),
            Line::Gone(t) => (!new).then(|| t.clone()),
            Line::New(t) => new.then(|| t.clone()),
        };
        lines.iter().filter_map(of).collect()
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_out_of_a_diff(
            a in prop::collection::vec("[abc]", 0..8),
            b in prop::collection::vec("[abc]", 0..8),
        ) {
            let found = lines(&a, &b);
            prop_assert_eq!(side(&found, false), a);
            prop_assert_eq!(side(&found, true), b);
        }
    }

    #[test]
    fn a_line_in_the_middle_is_one_change() {
        let text = |s: &str| prose(s);
        let found = lines(&text("a\nb\nc"), &text("a\nx\nc"));
        let want = [
            Line::Same("a".into()),
            Line::Gone("b".into()),
            Line::New("x".into()),
            Line::Same("c".into()),
        ];
        assert_eq!(found, want);
    }
}

//! A DSPy program: a signature for each criterion, with the version's instructions and demos. DSPy
//! lays prompts out in its own way, so the bytes that a model sees are not those of the version.

use serde_json::{Map, Value, json};

use super::{Export, ExportError, Subject};
use crate::prompt::Renderer;

/// `dspy`.
pub(super) struct Dspy;

/// What follows the data. `DATA` is parsed from JSON, so that no text is ever Python source.
const CODE: &str = include_str!("dspy.py");

impl Export for Dspy {
    fn name(&self) -> &'static str {
        "dspy"
    }

    fn about(&self) -> &'static str {
        "a DSPy program with the same instructions and demos, in DSPy's own layout"
    }

    fn render(&self, subject: &Subject<'_>) -> Result<String, ExportError> {
        let fence = subject.fence();
        let mut bare = subject.version.clone();
        bare.demos.clear();
        let renderer = Renderer::new(subject.task, &bare, &fence)?;
        let mut instructions = Map::new();
        for locale in &subject.locales {
            let mut own = Map::new();
            for criterion in subject.asked() {
                let text = renderer.prefix(locale, criterion)?;
                own.insert(subject.asks_for(criterion), json!(text.trim()));
            }
            instructions.insert(locale.to_string(), own.into());
        }
        let criteria: Map<String, Value> = subject
            .task
            .criteria
            .iter()
            .enumerate()
            .map(|(i, c)| {
                let one = json!({"question": c.question, "labels": subject.words(i)});
                (c.name.clone(), one)
            })
            .collect();
        let fields: Vec<_> = subject
            .task
            .fields
            .iter()
            .map(|f| json!([f.name, f.title]))
            .collect();
        let data = json!({
            "version": subject.version.digest(),
            "fields": fields,
            "criteria": criteria,
            "instructions": instructions,
            "demos": demos(subject),
        });
        let text = format!("{data:#}");
        let head = format!(
            "\"\"\"The judge prompt {} as a DSPy program.\n\nWritten by `pluralis prompt export --to dspy`. DSPy lays the prompt out in its own way.\n\"\"\"\n",
            subject.title()
        );
        Ok(format!(
            "{head}\nimport json\nfrom typing import Literal\n\nimport dspy\n\nDATA = json.loads({})\n\n\n{CODE}",
            super::python::literal(&text)
        ))
    }
}

/// The demos with the words that stand for their labels.
fn demos(subject: &Subject<'_>) -> Value {
    let one = |d: &crate::prompt::Demo| {
        let answers: Map<String, Value> = subject
            .task
            .criteria
            .iter()
            .filter_map(|c| {
                let label = c
                    .labels
                    .iter()
                    .position(|l| Some(&l.name) == d.answers.get(&c.name))?;
                Some((c.name.clone(), json!(subject.version.word(c, label))))
            })
            .collect();
        json!({
            "locale": d.locale,
            "only_for": d.only_for,
            "fields": d.fields,
            "answers": answers,
        })
    };
    subject.version.demos.iter().map(one).collect()
}

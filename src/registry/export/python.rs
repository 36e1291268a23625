//! One Python file without dependencies: it makes the very bytes that the judge is asked with, and
//! corrects label probabilities as the version does.

use serde_json::{Map, Value, json};

use super::{Export, ExportError, Piece, Subject, subsets};
use crate::prompt::Renderer;

/// `python`.
pub(super) struct Python;

/// What follows the data. `DATA` is parsed from JSON, so that no text is ever Python source.
const CODE: &str = include_str!("python.py");

impl Export for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn about(&self) -> &'static str {
        "one Python file without dependencies that makes the same bytes"
    }

    fn render(&self, subject: &Subject<'_>) -> Result<String, ExportError> {
        let fence = subject.fence();
        let renderer = Renderer::new(subject.task, subject.version, &fence)?;
        let mut prompts = Map::new();
        for locale in &subject.locales {
            let mut of_locale = Map::new();
            for criterion in subject.asked() {
                let mut items = Map::new();
                for present in subsets(&subject.optional()) {
                    let pieces = subject.suffix(&renderer, locale, criterion, &present)?;
                    let name = |i: &usize| subject.task.fields[*i].name.clone();
                    let key: Vec<_> = present.iter().map(name).collect();
                    let json = |p: &Piece| match p {
                        Piece::Text(text) => json!(text),
                        Piece::Field(i) => json!({ "field": name(i) }),
                    };
                    items.insert(key.join(","), pieces.iter().map(json).collect());
                }
                of_locale.insert(
                    subject.asks_for(criterion),
                    json!({"prefix": renderer.prefix(locale, criterion)?, "item": items}),
                );
            }
            prompts.insert(locale.to_string(), of_locale.into());
        }
        let fields = |required: bool| -> Vec<&str> {
            let own = subject
                .task
                .fields
                .iter()
                .filter(|f| f.required == required);
            own.map(|f| f.name.as_str()).collect()
        };
        let labels: Map<String, Value> = subject
            .task
            .criteria
            .iter()
            .enumerate()
            .map(|(c, criterion)| (criterion.name.clone(), json!(subject.words(c))))
            .collect();
        let data = json!({
            "version": subject.version.digest(),
            "chat": subject.is_chat(),
            "one_line": !renderer.fences_items(),
            "fence": fence.as_str(),
            "required": fields(true),
            "optional": fields(false),
            "labels": labels,
            "calibration": calibration(subject),
            "prompts": prompts,
        });
        let text = format!("{data:#}");
        let head = format!(
            "\"\"\"The judge prompt {}.\n\nWritten by `pluralis prompt export --to python`; edit the version, not this file.\n\"\"\"\n",
            subject.title()
        );
        Ok(format!(
            "{head}\nimport json\nimport math\n\nDATA = json.loads({})\n\n\n{CODE}",
            literal(&text)
        ))
    }
}

/// The calibration by criterion, with the biases of the labels that are offered.
fn calibration(subject: &Subject<'_>) -> Value {
    let mut out = Map::new();
    for (name, c) in &subject.version.calibration.criteria {
        let Some(index) = subject.task.criterion_index(name) else {
            continue;
        };
        let criterion = &subject.task.criteria[index];
        let offered: Vec<usize> = (0..criterion.labels.len())
            .filter(|&l| subject.version.offers(criterion, l))
            .collect();
        let of = |bias: &[f64]| -> Vec<f64> {
            let at = |l: &usize| bias.get(*l).copied().unwrap_or(0.0);
            offered.iter().map(at).collect()
        };
        let locales: Map<String, Value> = c
            .locales
            .iter()
            .map(|(l, bias)| (l.to_string(), json!(of(bias))))
            .collect();
        let one = json!({"temperature": c.temperature, "bias": of(&c.bias), "locales": locales});
        out.insert(name.clone(), one);
    }
    out.into()
}

/// A text as a Python literal of several lines: raw, between three quotation marks, where it can be.
pub(super) fn literal(text: &str) -> String {
    // JSON has no line end and no three quotation marks inside of its texts; only a quotation mark
    // at its end could meet the closing ones, and this one ends with a brace.
    match text.contains("'''") {
        false => format!("r'''{text}'''"),
        true => format!("{}", json!(text)),
    }
}

//! Plain text, messages as JSON, and templates with their values.

use serde_json::{Value, json};

use super::{Export, ExportError, Piece, Subject};
use crate::prompt::Renderer;

/// `text`.
pub(super) struct Text;
/// `messages-json`.
pub(super) struct Messages;
/// `tera`.
pub(super) struct Tera;

impl Export for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn about(&self) -> &'static str {
        "plain text, with {field} where a text of the item goes"
    }

    fn is_for_reading(&self) -> bool {
        true
    }

    fn render(&self, subject: &Subject<'_>) -> Result<String, ExportError> {
        let mut out = String::new();
        let prompts = prompts(subject)?;
        for one in &prompts {
            if prompts.len() > 1 {
                out += &format!("=== {}, {}\n", one.locale, one.asks_for);
            }
            if subject.is_chat() {
                out += "=== system\n";
            }
            out += &one.prefix;
            if subject.is_chat() {
                out += "\n=== user\n";
            }
            out += &one.suffix;
            out.push('\n');
        }
        Ok(out)
    }
}

impl Export for Messages {
    fn name(&self) -> &'static str {
        "messages-json"
    }

    fn about(&self) -> &'static str {
        "chat messages (or a prompt to continue) as JSON, with {field} where a text goes"
    }

    fn render(&self, subject: &Subject<'_>) -> Result<String, ExportError> {
        let mut requests = Vec::new();
        for one in prompts(subject)? {
            let mut request = json!({
                "locale": one.locale,
                "criterion": one.asks_for,
                "answers": one.words,
            });
            let (key, text) = match subject.is_chat() {
                true => (
                    "messages",
                    json!([
                        {"role": "system", "content": one.prefix},
                        {"role": "user", "content": one.suffix},
                    ]),
                ),
                false => ("prompt", json!(one.prefix + &one.suffix)),
            };
            request[key] = text;
            requests.push(request);
        }
        pretty(&json!({
            "task": subject.version.task,
            "version": subject.version.digest(),
            "requests": requests,
        }))
    }
}

impl Export for Tera {
    fn name(&self) -> &'static str {
        "tera"
    }

    fn about(&self) -> &'static str {
        "the templates with their values as JSON, for any program that renders Tera"
    }

    fn render(&self, subject: &Subject<'_>) -> Result<String, ExportError> {
        let fence = subject.fence();
        let renderer = Renderer::new(subject.task, subject.version, &fence)?;
        let mut contexts = Vec::new();
        for locale in &subject.locales {
            for criterion in subject.asked() {
                let names = subject
                    .task
                    .fields
                    .iter()
                    .map(|f| format!("{{{}}}", f.name));
                let item = subject.item(locale, names.collect());
                let [prefix, item] = renderer.values(&item, criterion);
                contexts.push(json!({
                    "locale": locale,
                    "criterion": subject.asks_for(criterion),
                    "prefix": prefix,
                    "item": item,
                }));
            }
        }
        let skeleton = &subject.version.skeleton;
        pretty(&json!({
            "task": subject.version.task,
            "version": subject.version.digest(),
            "autoescape": false,
            "templates": {"prefix": skeleton.prefix, "item": skeleton.item},
            "contexts": contexts,
        }))
    }
}

fn pretty(value: &Value) -> Result<String, ExportError> {
    Ok(format!("{value:#}\n"))
}

/// One prompt with `{field}` where texts go.
struct Prompt {
    locale: String,
    asks_for: String,
    words: Vec<String>,
    prefix: String,
    suffix: String,
}

fn prompts(subject: &Subject<'_>) -> Result<Vec<Prompt>, ExportError> {
    let fence = subject.fence();
    let renderer = Renderer::new(subject.task, subject.version, &fence)?;
    let mut out = Vec::new();
    for locale in &subject.locales {
        for criterion in subject.asked() {
            let pieces = subject.suffix(&renderer, locale, criterion, &subject.optional())?;
            let text = |piece: &Piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Field(i) => format!("{{{}}}", subject.task.fields[*i].name),
            };
            out.push(Prompt {
                locale: locale.to_string(),
                asks_for: subject.asks_for(criterion),
                words: criterion.map_or(Vec::new(), |c| subject.words(c)),
                prefix: renderer.prefix(locale, criterion)?,
                suffix: pieces.iter().map(text).collect(),
            });
        }
    }
    Ok(out)
}

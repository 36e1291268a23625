//! A configuration of promptfoo, as JSON, which it reads like YAML. Texts are filled in by Nunjucks;
//! inside a prompt that is JSON promptfoo fills each text by itself, so that no item can break it.

use serde_json::{Value, json};

use super::{Export, ExportError, Piece, Subject};
use crate::locale::Locale;
use crate::prompt::Renderer;

/// `promptfoo`.
pub(super) struct Promptfoo;

impl Export for Promptfoo {
    fn name(&self) -> &'static str {
        "promptfoo"
    }

    fn about(&self) -> &'static str {
        "promptfooconfig.json; add providers and tests"
    }

    fn render(&self, subject: &Subject<'_>) -> Result<String, ExportError> {
        let fence = subject.fence();
        let renderer = Renderer::new(subject.task, subject.version, &fence)?;
        let mut prompts = Vec::new();
        for locale in &subject.locales {
            for criterion in subject.asked() {
                let prefix = escape(&renderer.prefix(locale, criterion)?);
                let suffix = branches(
                    subject,
                    &renderer,
                    locale,
                    criterion,
                    &subject.optional(),
                    &[],
                )?;
                let raw = match subject.is_chat() {
                    true => json!([
                        {"role": "system", "content": prefix},
                        {"role": "user", "content": suffix},
                    ])
                    .to_string(),
                    false => prefix + &suffix,
                };
                let label = format!("{}, {}", locale, subject.asks_for(criterion));
                prompts.push(json!({"label": label, "raw": raw}));
            }
        }
        let mut config = json!({
            "description": subject.title(),
            "prompts": prompts,
            "providers": [],
            "tests": [],
        });
        if let Some(assert) = assertion(subject) {
            config["defaultTest"] = json!({ "assert": [assert] });
        }
        Ok(format!("{config:#}\n"))
    }
}

/// What an answer must look like.
fn assertion(subject: &Subject<'_>) -> Option<Value> {
    match subject.asked()[..] {
        [None] => Some(json!({"type": "is-json"})),
        [Some(criterion)] => {
            let words = subject.words(criterion);
            Some(json!({
                "type": "javascript",
                "value": format!("{}.includes(output.trim())", json!(words)),
            }))
        }
        _ => None,
    }
}

/// The item template with a branch for each optional field that may be absent.
fn branches(
    subject: &Subject<'_>,
    renderer: &Renderer<'_>,
    locale: &Locale,
    criterion: Option<usize>,
    optional: &[usize],
    present: &[usize],
) -> Result<String, ExportError> {
    let Some((&first, rest)) = optional.split_first() else {
        let pieces = subject.suffix(renderer, locale, criterion, present)?;
        let text = |p: &Piece| match p {
            Piece::Text(text) => escape(text),
            Piece::Field(i) => format!("{{{{ {} }}}}", subject.task.fields[*i].name),
        };
        return Ok(pieces.iter().map(text).collect());
    };
    let with = [present, &[first]].concat();
    let yes = branches(subject, renderer, locale, criterion, rest, &with)?;
    let no = branches(subject, renderer, locale, criterion, rest, present)?;
    let name = &subject.task.fields[first].name;
    Ok(format!(
        "{{% if {name} %}}{yes}{{% else %}}{no}{{% endif %}}"
    ))
}

/// A text that Nunjucks shows as it stands.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = ["{{", "{%", "{#"].iter().filter_map(|s| rest.find(s)).min() {
        out += &rest[..at];
        out += &format!("{{{{ \"{}\" }}}}", &rest[at..at + 2]);
        rest = &rest[at + 2..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_syntax_of_a_text_is_shown_and_not_run() {
        assert_eq!(
            escape("a {{ b }} {% c"),
            "a {{ \"{{\" }} b }} {{ \"{%\" }} c"
        );
        assert_eq!(escape("{}"), "{}");
    }
}

//! Reflection: a card goes to the writer, which answers with a typed edit of one text.

use serde::Deserialize;
use tera::{Context, Tera};

use super::{Material, copies_training_text};
use crate::endpoint::{Endpoint, Finish, PromptText, Request, Response, Style, Want};
use crate::ledger::{Answer, Halt, Ledger};
use crate::locale::Locale;
use crate::prompt::Edit;

/// The writer's instructions; everything about the card is a value in it.
const TEMPLATE: &str = include_str!("reflect.tera");
/// Room for one rule or section and a little thought.
const MAX_TOKENS: u32 = 600;

/// Why a writer's answer was not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No call could be paid.
    #[error("no budget for the writer")]
    NoBudget,
    /// The call failed.
    #[error("the writer failed: {0}")]
    Endpoint(String),
    /// Cut by the token limit.
    #[error("truncated")]
    Truncated,
    /// Not exactly one JSON object of the asked form.
    #[error("malformed: {0}")]
    Malformed(String),
    /// Repeats a tuning item.
    #[error("copied_training_text")]
    CopiedTrainingText,
}

#[derive(Deserialize)]
#[serde(tag = "edit", rename_all = "kebab-case", deny_unknown_fields)]
enum Raw {
    AddRule { text: String },
    ReplaceSection { section: String, text: String },
    SetLocaleNote { locale: Locale, text: String },
}

/// Asks the writer for an edit that answers the material's card. `repeat` tells apart questions
/// that would otherwise be the same.
///
/// # Errors
/// [`Halt`] when the run has to stop; a bad answer is the inner [`Refusal`].
pub async fn ask_writer(
    m: &Material<'_>,
    writer: &dyn Endpoint,
    ledger: &Ledger,
    seed: u64,
    repeat: u32,
) -> Result<Result<Edit, Refusal>, Halt> {
    let prompt = match reflection_prompt(m) {
        Ok(text) => PromptText {
            style: Style::Chat,
            prefix: String::new(),
            suffix: text,
        },
        Err(why) => return Ok(Err(Refusal::Malformed(why))),
    };
    let want = Want::Text {
        max_tokens: MAX_TOKENS,
        temperature: 0.7,
        json_schema: None,
        top_logprobs: 0,
    };
    let request = Request {
        prompt,
        want,
        seed: Some(seed),
        repeat,
    };
    let answer = ledger.ask(writer, &[request]).await?.pop();
    Ok(match answer {
        Some(Answer::Got(response)) => read_edit(m, &response),
        Some(Answer::Failed(e)) => Err(Refusal::Endpoint(e.message)),
        Some(Answer::NoBudget) | None => Err(Refusal::NoBudget),
    })
}

/// The text that the writer reads.
///
/// # Errors
/// The template's message, should a value be missing.
pub fn reflection_prompt(m: &Material<'_>) -> Result<String, String> {
    let mut tera = Tera::new();
    tera.autoescape_on(Vec::<&str>::new());
    tera.add_raw_template("reflect", TEMPLATE)
        .map_err(|e| e.to_string())?;
    let mut context = Context::new();
    let criterion = &m.task.criteria[m.card.map_or(0, |c| c.criterion)];
    context.insert("task", &m.task.title);
    context.insert("question", &criterion.question);
    context.insert("sections", &m.version.sections);
    context.insert("rules", &m.version.rules);
    if let Some(card) = m.card {
        let show = |i: &usize| {
            let item = &m.items[*i];
            let votes: Vec<String> = item.votes[card.criterion]
                .counts
                .iter()
                .enumerate()
                .filter(|(_, n)| **n > 0)
                .map(|(l, n)| format!("{} x {n}", m.version.word(criterion, l)))
                .collect();
            format!(
                "[{}] {} — people: {}",
                item.locale.display_name(),
                item.fields
                    .iter()
                    .filter(|t| !t.is_empty())
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(" / "),
                votes.join(", ")
            )
        };
        context.insert("mode", &card.mode.to_string());
        context.insert(
            "locale",
            &card.locale.as_ref().map(|l| l.as_str()).unwrap_or_default(),
        );
        context.insert("terms", &card.terms);
        context.insert(
            "examples",
            &card.items.iter().take(6).map(show).collect::<Vec<_>>(),
        );
        context.insert(
            "contrast",
            &card.contrast.iter().take(4).map(show).collect::<Vec<_>>(),
        );
    }
    tera.render("reflect", &context).map_err(|e| e.to_string())
}

/// Reads the writer's answer. Only a whole answer with exactly one object is taken.
///
/// # Errors
/// [`Refusal`]; nothing was spent on the edit yet.
pub fn read_edit(m: &Material<'_>, response: &Response) -> Result<Edit, Refusal> {
    if response.finish == Finish::Length {
        return Err(Refusal::Truncated);
    }
    let text = response.text.trim();
    // One fenced block or none: with two, which one was meant is a guess.
    if text.matches("```").count() > 2 {
        return Err(Refusal::Malformed("more than one fenced block".into()));
    }
    let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) else {
        return Err(Refusal::Malformed("no JSON object".into()));
    };
    if end < start {
        return Err(Refusal::Malformed("no JSON object".into()));
    }
    let raw: Raw =
        serde_json::from_str(&text[start..=end]).map_err(|e| Refusal::Malformed(e.to_string()))?;
    let edit = match raw {
        Raw::AddRule { text } => Edit::AddRule { text },
        Raw::ReplaceSection { section, text } => Edit::ReplaceSection { section, text },
        Raw::SetLocaleNote { locale, text } => Edit::SetLocaleNote { locale, text },
    };
    let (Edit::AddRule { text }
    | Edit::ReplaceSection { text, .. }
    | Edit::SetLocaleNote { text, .. }) = &edit
    else {
        return Err(Refusal::Malformed(
            "an edit that a writer may not make".into(),
        ));
    };
    let training = m
        .tune
        .iter()
        .flat_map(|&i| m.items[i].fields.iter().map(String::as_str));
    if copies_training_text(text, training) {
        return Err(Refusal::CopiedTrainingText);
    }
    Ok(edit)
}

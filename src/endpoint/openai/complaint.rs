//! Owns how servers word their errors. Must not know statuses, nor what is done about an error.

use serde_json::Value;

use crate::text::visible;

/// Most characters of a server's text in a message.
const EXCERPT: usize = 200;

/// An error as servers write it: `{"error": {message, type, code}}` (OpenAI, llama.cpp),
/// `{"error": "text"}` (Ollama), `{"object": "error", message, type, code}` (vLLM),
/// `{"detail": ...}` (FastAPI).
#[derive(Debug, Default, PartialEq)]
pub(super) struct Complaint {
    /// Code given as a number, where that is an HTTP status.
    pub(super) status: Option<u16>,
    /// Code and type in lower case.
    pub(super) codes: String,
    /// Code, type and message in lower case. The message may repeat what was asked, so no words in
    /// it alone may stop a run.
    pub(super) words: String,
    /// For people.
    pub(super) message: String,
}

impl Complaint {
    /// The complaint in an answer's body; none where it is no error.
    pub(super) fn find(body: &Value) -> Option<Self> {
        let error = match body.get("error") {
            None | Some(Value::Null) if body["object"] == "error" => body,
            None | Some(Value::Null) => body.get("detail").filter(|detail| !detail.is_null())?,
            Some(error) => error,
        };
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let (code, kind) = (plain(&error["code"]), plain(&error["type"]));
        let message = match &error["message"] {
            Value::Null => plain(error),
            given => plain(given),
        };
        let status = code.parse().ok().filter(|code| (400..600).contains(code));
        let codes = format!("{code}\n{kind}").to_lowercase();
        let words = format!("{codes}\n{}", message.to_lowercase());
        Some(Self {
            status,
            codes,
            words,
            message,
        })
    }

    pub(super) fn is(&self, any: &[&str]) -> bool {
        any.iter().any(|code| self.codes.contains(code))
    }

    pub(super) fn has(&self, any: &[&str]) -> bool {
        any.iter().any(|word| self.words.contains(word))
    }

    /// The model is not there, as the server's own words about it say.
    pub(super) fn means_unknown_model(&self, model: &str) -> bool {
        let named = self.words.contains(&model.to_lowercase()) && self.has(&["model"]);
        self.is(&["model_not_found"])
            || (named && self.has(&["not found", "not exist", "unknown model", "invalid model"]))
    }

    /// The text does not fit the model.
    pub(super) fn means_too_long(&self) -> bool {
        self.has(&[
            "context_length_exceeded",
            "exceed_context_size",
            "context length",
            "context size",
            "context window",
            "prompt is too long",
            "string_above_max_length",
        ])
    }
}

/// The first characters of a foreign text on one line, safe for a terminal: control characters,
/// line separators and marks that change the writing direction are escaped.
pub(super) fn excerpt(text: &str) -> String {
    let text = text.trim();
    let mut out = visible(&text.chars().take(EXCERPT).collect::<String>());
    if text.chars().nth(EXCERPT).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_and_cannot_move_the_cursor() {
        assert_eq!(
            excerpt("  a\u{1b}[2J\n\u{202e}b  "),
            "a\\u{1b}[2J\\n\\u{202e}b"
        );
        let long = excerpt(&"ह".repeat(500));
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with('…'));
    }
}

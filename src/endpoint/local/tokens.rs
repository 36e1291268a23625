//! Text to tokens: which parts may hold control tokens and which never do. Must not know how
//! tokens are evaluated.

use std::sync::Arc;

use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::VocabType;

use super::{EndpointError, give_up};
use crate::endpoint::{PromptText, Style};

/// Stand-ins for the contents while the model's template is rendered. The contents themselves are
/// never rendered, so these need only differ from the texts of templates.
const SYSTEM: &str = "@@pluralis-system@@";
const USER: &str = "@@pluralis-user@@";

/// A prompt as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PromptTokens {
    /// Shared by many requests.
    pub prefix: Vec<LlamaToken>,
    /// Never empty: its last token gives the next token's probabilities.
    pub suffix: Vec<LlamaToken>,
}

impl PromptTokens {
    pub fn len(&self) -> usize {
        self.prefix.len() + self.suffix.len()
    }
}

/// The pieces of a chat template around the contents.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    before_system: String,
    between: String,
    after_user: String,
}

#[derive(Debug)]
pub(super) struct Tokenizer {
    model: Arc<LlamaModel>,
    /// With and without a system message; a reason where the model has no usable template.
    frames: Result<(Frame, Frame), String>,
    /// The vocabulary puts a space before any text (SentencePiece models).
    adds_space: bool,
}

impl Tokenizer {
    pub fn new(model: Arc<LlamaModel>) -> Self {
        let frames = frames(&model);
        let adds_space = match model.meta_val_str("tokenizer.ggml.add_space_prefix") {
            Ok(value) => value == "true",
            Err(_) => model.vocab().vocab_type() == VocabType::SPM,
        };
        Self {
            model,
            frames,
            adds_space,
        }
    }

    /// Tokens of a prompt in its style.
    pub fn prompt(&self, prompt: &PromptText) -> Result<PromptTokens, EndpointError> {
        let mut tokens = match prompt.style {
            Style::Completion => self.completion(prompt),
            Style::Chat => self.chat(prompt)?,
        };
        if tokens.suffix.is_empty() {
            let last = tokens.prefix.pop().ok_or_else(|| {
                give_up(
                    "empty-prompt",
                    "the prompt has no token; give it some text".to_owned(),
                )
            })?;
            tokens.suffix.push(last);
        }
        Ok(tokens)
    }

    fn completion(&self, prompt: &PromptText) -> PromptTokens {
        let mut prefix = self.start();
        // At the very start the vocabulary's own space is what the model was trained on.
        prefix.extend(
            self.model
                .vocab()
                .tokenize(prompt.prefix.as_bytes(), false, false),
        );
        PromptTokens {
            prefix,
            suffix: self.text(&prompt.suffix),
        }
    }

    fn chat(&self, prompt: &PromptText) -> Result<PromptTokens, EndpointError> {
        let (with, without) = self.frames.as_ref().map_err(|reason| {
            give_up(
                "no-chat-template",
                format!(
                    "{reason}; ask it in completion style, or use a model that is tuned for chat"
                ),
            )
        })?;
        let frame = if prompt.prefix.is_empty() {
            without
        } else {
            with
        };
        let mut prefix = self.start();
        let opening = self.control(&frame.before_system);
        // Some templates write the beginning-of-text token themselves.
        if prefix.first() == opening.first() {
            prefix.clear();
        }
        prefix.extend(opening);
        prefix.extend(self.text(&prompt.prefix));
        prefix.extend(self.control(&frame.between));
        let mut suffix = self.text(&prompt.suffix);
        suffix.extend(self.control(&frame.after_user));
        Ok(PromptTokens { prefix, suffix })
    }

    /// Tokens of a text whose vector is wanted.
    pub fn embedding(&self, text: &str) -> Vec<LlamaToken> {
        self.model.vocab().tokenize(text.as_bytes(), true, false)
    }

    /// Tokens of a text that follows other text: no control token is ever read out of it, and no
    /// space is put before it.
    pub fn text(&self, text: &str) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        if text.is_empty() {
            return Vec::new();
        }
        if self.adds_space {
            // The space goes before a line break, which is then taken away again.
            let lead = vocab.tokenize(b"\n", false, false);
            let whole = vocab.tokenize(format!("\n{text}").as_bytes(), false, false);
            if let Some(rest) = whole.strip_prefix(lead.as_slice()) {
                return rest.to_vec();
            }
        }
        vocab.tokenize(text.as_bytes(), false, false)
    }

    /// The text of a token; bytes, because a character may be spread over several tokens.
    pub fn piece(&self, token: LlamaToken) -> Vec<u8> {
        self.model.vocab().token_to_piece(token, false, None)
    }

    fn control(&self, piece: &str) -> Vec<LlamaToken> {
        if piece.is_empty() {
            return Vec::new();
        }
        self.model.vocab().tokenize(piece.as_bytes(), false, true)
    }

    fn start(&self) -> Vec<LlamaToken> {
        let vocab = self.model.vocab();
        let token = vocab.bos();
        if vocab.should_add_bos() && token.0 >= 0 {
            vec![token]
        } else {
            Vec::new()
        }
    }
}

fn frames(model: &LlamaModel) -> Result<(Frame, Frame), String> {
    let template = model
        .chat_template(None)
        .map_err(|_| "the model file has no chat template (a base model?)".to_owned())?;
    let with = render(model, &template, &[("system", SYSTEM), ("user", USER)])?;
    let without = render(model, &template, &[("user", USER)])?;
    let usable = "the model's chat template does not show system and user text once and in order";
    let with = cut(&with).ok_or(usable)?;
    let (between, after_user) = without.split_once(USER).ok_or(usable)?;
    let without = Frame {
        before_system: String::new(),
        between: between.to_owned(),
        after_user: after_user.to_owned(),
    };
    Ok((with, without))
}

fn render(
    model: &LlamaModel,
    template: &LlamaChatTemplate,
    messages: &[(&str, &str)],
) -> Result<String, String> {
    let messages = messages
        .iter()
        .map(|(role, content)| LlamaChatMessage::new((*role).to_owned(), (*content).to_owned()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    model
        .apply_chat_template(template, &messages, true)
        .map_err(|_| "llama.cpp does not know the model's chat template".to_owned())
}

fn cut(rendered: &str) -> Option<Frame> {
    let (before_system, rest) = rendered.split_once(SYSTEM)?;
    let (between, after_user) = rest.split_once(USER)?;
    if after_user.contains(USER) || after_user.contains(SYSTEM) || between.contains(SYSTEM) {
        return None;
    }
    Some(Frame {
        before_system: before_system.to_owned(),
        between: between.to_owned(),
        after_user: after_user.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_cut_around_its_contents() {
        let frame = cut(&format!("<s>{SYSTEM}</s><u>{USER}</u><a>")).unwrap();
        let parts = (frame.before_system, frame.between, frame.after_user);
        assert_eq!(
            parts,
            ("<s>".to_owned(), "</s><u>".to_owned(), "</u><a>".to_owned())
        );
    }

    #[test]
    fn a_template_that_moves_or_drops_contents_is_refused() {
        for rendered in [
            format!("{USER}{SYSTEM}"),
            SYSTEM.to_owned(),
            format!("{SYSTEM}{USER}{USER}"),
        ] {
            assert_eq!(cut(&rendered), None, "{rendered}");
        }
    }
}

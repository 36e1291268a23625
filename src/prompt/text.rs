//! Rendered text, as it is handed to a model.

use serde::{Deserialize, Serialize};

/// Rendered text. `prefix` depends on the prompt version and perhaps the locale and is shared by
/// many requests (endpoints evaluate it once); `suffix` holds what depends on the item.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PromptText {
    /// Chat: prefix is the system message and suffix the user message.
    /// Completion: the model continues prefix + suffix.
    pub style: Style,
    /// Trusted instructions and demos.
    pub prefix: String,
    /// The item; never parsed for special tokens.
    pub suffix: String,
}

/// How the text is presented to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// System and user message through the model's chat template.
    Chat,
    /// Plain text to continue.
    Completion,
}

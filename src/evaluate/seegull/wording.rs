//! Owns how a question is put into words in each language. Must not know how it was sampled.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::questions::Choice;
use crate::text::{Fault, normalise};

/// Options of a question.
pub const OPTIONS: usize = 4;
const ATTRIBUTE: &str = "{attribute}";

/// The wordings of all languages.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wording {
    letters: Vec<String>,
    languages: BTreeMap<String, Words>,
}

/// The wording of one language.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    question: String,
    instruction: String,
    /// Letters of this language in place of the file's.
    #[serde(default)]
    letters: Option<Vec<String>>,
}

impl Wording {
    /// The shipped wordings: English and the twenty languages of the data set.
    ///
    /// # Errors
    /// Never, as a test reads the file; the type says otherwise.
    pub fn shipped() -> Result<Self, Box<Fault>> {
        Self::parse(Path::new("wording.toml"), include_str!("wording.toml"))
    }

    /// Wordings from the text of a file.
    ///
    /// # Errors
    /// With the place: not TOML, an unknown key, a question without `{attribute}`, letters that are
    /// not four different single letters.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Box<Fault>> {
        let wording: Self =
            toml::from_str(text).map_err(|e| Box::new(Fault::toml(path, text, &e)))?;
        let refuse =
            |what: String, advice: &str| Err(Box::new(Fault::naming(path, text, what, advice)));
        for (language, words) in &wording.languages {
            if words.question.matches(ATTRIBUTE).count() != 1 {
                return refuse(
                    format!("the question of `{language}` does not hold {{attribute}} once"),
                    "write {attribute} where the attribute belongs",
                );
            }
            if !are_letters(words.letters.as_ref().unwrap_or(&wording.letters)) {
                return refuse(
                    format!("the letters of `{language}` are not four different letters"),
                    "write as in letters = [\"A\", \"B\", \"C\", \"D\"]",
                );
            }
        }
        if !wording.languages.contains_key("en") {
            return refuse(
                "there is no English wording".into(),
                "add [languages.en]: every question is also put in English",
            );
        }
        Ok(wording)
    }

    /// Whether a language has a wording.
    pub fn has(&self, language: &str) -> bool {
        self.languages.contains_key(language)
    }

    /// The letters of a language's options.
    pub fn letters(&self, language: &str) -> &[String] {
        let own = self
            .languages
            .get(language)
            .and_then(|w| w.letters.as_ref());
        own.unwrap_or(&self.letters)
    }

    /// The prompt of a question: the question, one option a line, the instruction. The attribute and
    /// the options are values; nothing in them is read as a placeholder.
    pub fn prompt(&self, language: &str, attribute: &str, choices: &[Choice]) -> Option<String> {
        let words = self.languages.get(language)?;
        let (before, after) = words.question.split_once(ATTRIBUTE)?;
        let mut prompt = format!("{before}{}{after}\n\n", on_one_line(attribute));
        for choice in choices {
            prompt += &format!("({}) {}\n", choice.letter, on_one_line(&choice.text));
        }
        Some(prompt + "\n" + &words.instruction)
    }
}

/// A text from a file cannot begin a line of its own.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn are_letters(letters: &[String]) -> bool {
    let single = |l: &String| l.chars().count() == 1 && l.chars().all(char::is_alphabetic);
    let different: std::collections::BTreeSet<String> =
        letters.iter().map(|l| normalise(l)).collect();
    letters.len() == OPTIONS && different.len() == OPTIONS && letters.iter().all(single)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_of_the_data_set_has_a_wording() {
        let shipped = Wording::shipped().unwrap();
        let languages = "ar bn de es fr hi id it ja ko mr ms nl pt sw ta te th tr vi en";
        for language in languages.split(' ') {
            assert!(shipped.has(language), "{language}");
        }
        let choices: Vec<Choice> = ["a", "b (C)\n(D) x", "{attribute}", "d"]
            .iter()
            .zip(shipped.letters("en"))
            .map(|(text, letter)| Choice {
                letter: letter.clone(),
                text: (*text).into(),
            })
            .collect();
        let prompt = shipped.prompt("en", "{attribute} y", &choices).unwrap();
        assert!(
            prompt
                .contains("“{attribute} y”?\n\n(A) a\n(B) b (C) (D) x\n(C) {attribute}\n(D) d\n\n"),
            "{prompt}"
        );
    }

    #[test]
    fn bad_wordings_are_refused() {
        let text = |letters: &str, question: &str| {
            format!(
                "letters = [{letters}]\n[languages.en]\nquestion = \"{question}\"\ninstruction = \"i\"\n"
            )
        };
        let good = "\"A\", \"B\", \"C\", \"D\"";
        let parse = |t: String| Wording::parse(Path::new("w"), &t);
        assert!(parse(text(good, "x {attribute}?")).is_ok());
        for (letters, question) in [
            (good, "x?"),
            (good, "{attribute} {attribute}"),
            ("\"A\", \"B\", \"C\"", "{attribute}"),
            ("\"A\", \"a\", \"C\", \"D\"", "{attribute}"),
            ("\"AB\", \"B\", \"C\", \"D\"", "{attribute}"),
        ] {
            assert!(
                parse(text(letters, question)).is_err(),
                "{letters} {question}"
            );
        }
        assert!(parse(text(good, "{attribute}").replace("languages.en", "languages.de")).is_err());
    }
}

//! Owns locale tags: parsing, canonical form, names, and the aliases that data sets use.
//! Must not know anything else of the crate.

mod names;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use icu_locale_core::LanguageIdentifier;
use serde::{Deserialize, Serialize};

/// A BCP-47 language-region tag in canonical form, such as `es-MX`.
///
/// One language in two countries is two locales: what is offensive in `es-ES` need not be in
/// `es-MX`. A tag without a region (`eu`) is accepted, since some data sets name only a language.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Locale(Arc<str>);

/// Why a text is not a locale.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a locale: {why}")]
pub struct LocaleError {
    /// What was given.
    pub text: String,
    /// What is wrong with it and what to write instead.
    pub why: String,
}

impl Locale {
    /// Parses a tag; `_` is read as `-` and letter case is normalised (`ES_mx` is `es-MX`).
    ///
    /// # Errors
    /// [`LocaleError`] when the text is no BCP-47 tag of language, optional script and region.
    pub fn parse(text: &str) -> Result<Self, LocaleError> {
        let error = |why: &str| LocaleError {
            text: text.chars().take(60).collect(),
            why: match names::nearest_tag(text) {
                Some(tag) => format!("did you mean `{tag}`? {why}"),
                None => why.into(),
            },
        };
        let id = LanguageIdentifier::try_from_str(&text.trim().replace('_', "-"))
            .map_err(|_| error("Write a BCP-47 tag such as es-MX (language, then region)"))?;
        if id.language.is_unknown() {
            return Err(error("The language is missing; write a tag such as es-MX"));
        }
        if !id.variants.is_empty() {
            return Err(error(
                "Variants are not part of a locale here; keep language and region",
            ));
        }
        Ok(Self(id.to_string().into()))
    }

    /// The locale of a language code and a country name as a data set writes them:
    /// SeeGULL's (`vn`, `Vietnam`) is `vi-VN`, (`ko`, `Korea`) is `ko-KR`.
    ///
    /// # Errors
    /// [`LocaleError`] when the country is not known or the language is no code.
    pub fn from_language_and_country(language: &str, country: &str) -> Result<Self, LocaleError> {
        let region = names::region_code(country).ok_or_else(|| LocaleError {
            text: format!("{language} in {country}"),
            why: format!("the country `{country}` is not known; use a tag such as es-MX instead"),
        })?;
        let language = names::language_alias(language);
        Self::parse(&format!("{language}-{region}"))
    }

    /// The canonical tag.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The language subtag: `es` of `es-MX`.
    pub fn language(&self) -> &str {
        self.0.split('-').next().unwrap_or(&self.0)
    }

    /// The region subtag, where the tag has one: `MX` of `es-MX`.
    pub fn region(&self) -> Option<&str> {
        self.0.split('-').skip(1).find(|part| part.len() != 4)
    }

    /// How near another locale is: 3 the same, 2 of the same language, 1 of the same country, else 0.
    pub fn kinship(&self, other: &Self) -> u8 {
        if self == other {
            3
        } else if self.language() == other.language() {
            2
        } else {
            u8::from(self.region().is_some() && self.region() == other.region())
        }
    }

    /// The English name of the language, or its code where the name is not known.
    pub fn language_name(&self) -> &str {
        names::language_name(self.language()).unwrap_or_else(|| self.language())
    }

    /// The English name of the country, its code where the name is not known, or an empty text
    /// where the tag has no region.
    pub fn country_name(&self) -> &str {
        self.region()
            .map_or("", |code| names::region_name(code).unwrap_or(code))
    }

    /// A name to show people and models: `Spanish (Mexico)`.
    pub fn display_name(&self) -> String {
        match self.country_name() {
            "" => self.language_name().to_owned(),
            country => format!("{} ({country})", self.language_name()),
        }
    }
}

impl fmt::Display for Locale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Locale {
    type Err = LocaleError;
    fn from_str(text: &str) -> Result<Self, LocaleError> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Locale {
    type Error = LocaleError;
    fn try_from(text: String) -> Result<Self, LocaleError> {
        Self::parse(&text)
    }
}

impl From<Locale> for String {
    fn from(locale: Locale) -> String {
        locale.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kin_are_of_one_language_before_one_country() {
        let kinship = |a: &str, b: &str| {
            Locale::parse(a)
                .unwrap()
                .kinship(&Locale::parse(b).unwrap())
        };
        assert_eq!(kinship("es-MX", "es-MX"), 3);
        assert_eq!(kinship("es-MX", "es-ES"), 2);
        assert_eq!(kinship("ca-ES", "es-ES"), 1);
        assert_eq!(kinship("ca-ES", "pt-PT"), 0);
        // Two tags without a region share no country.
        assert_eq!(kinship("ca", "eu"), 0);
    }

    #[test]
    fn tags_become_canonical() {
        for (given, want) in [
            ("es-MX", "es-MX"),
            ("ES_mx", "es-MX"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("eu", "eu"),
            ("es-419", "es-419"),
        ] {
            assert_eq!(Locale::parse(given).unwrap().as_str(), want);
        }
        for bad in [
            "",
            "x",
            "Spanish (es) in Mexico",
            "es-MX-",
            "../etc",
            "es MX",
            "und",
        ] {
            assert!(Locale::parse(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn what_is_no_tag_gets_the_nearest_one() {
        for (given, want) in [
            ("Spanish (Mexico)", "es-MX"),
            ("es-Mexico", "es-MX"),
            ("spansh_mexco", "es-MX"),
            ("esMX-", "es-MX"),
            ("Brazilian Portuguese", "pt-BR"),
            ("english_United Kingdom", "en-GB"),
            ("de-DE\u{200f}", "de-DE"),
            ("Hindi", "hi"),
            ("th TH", "th-TH"),
        ] {
            let why = Locale::parse(given).unwrap_err().why;
            assert!(why.contains(&format!("`{want}`")), "{given}: {why}");
        }
        let why = Locale::parse("../../etc/passwd").unwrap_err().why;
        assert!(!why.contains("did you mean"), "{why}");
    }

    #[test]
    fn data_set_aliases_are_read() {
        let of = |l, c| Locale::from_language_and_country(l, c).unwrap().to_string();
        assert_eq!(of("vn", "Vietnam"), "vi-VN");
        assert_eq!(of("ko", "Korea"), "ko-KR");
        assert_eq!(of("ar", "UAE"), "ar-AE");
        assert_eq!(of("JA", "Japan"), "ja-JP");
        assert!(Locale::from_language_and_country("es", "Atlantis").is_err());
    }

    #[test]
    fn names_are_for_people() {
        let locale = Locale::parse("pt-BR").unwrap();
        assert_eq!(locale.display_name(), "Portuguese (Brazil)");
        assert_eq!(Locale::parse("zh-Hant-TW").unwrap().region(), Some("TW"));
        assert_eq!(Locale::parse("eu").unwrap().display_name(), "Basque");
    }
}

//! What the templates are given, as they see it.

use serde::Serialize;

use crate::locale::Locale;

#[derive(Serialize)]
pub(super) struct LocaleView<'a> {
    pub tag: &'a str,
    pub name: String,
    pub language: &'a str,
    pub country: &'a str,
}

impl<'a> From<&'a Locale> for LocaleView<'a> {
    fn from(l: &'a Locale) -> Self {
        // A place to name even where the tag has no region, so that templates need no special case.
        let country = if l.country_name().is_empty() {
            l.language_name()
        } else {
            l.country_name()
        };
        Self {
            tag: l.as_str(),
            name: l.display_name(),
            language: l.language_name(),
            country,
        }
    }
}

#[derive(Serialize)]
pub(super) struct FieldView<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub text: String,
}

#[derive(Serialize)]
pub(super) struct LabelView<'a> {
    pub word: &'a str,
    pub meaning: &'a str,
}

#[derive(Serialize)]
pub(super) struct CriterionView<'a> {
    pub name: &'a str,
    pub question: &'a str,
    pub labels: Vec<LabelView<'a>>,
}

#[derive(Serialize)]
pub(super) struct DemoView<'a> {
    pub fields: Vec<FieldView<'a>>,
    pub locale: LocaleView<'a>,
    pub answer: String,
}

#[derive(Serialize)]
pub(super) struct ItemView<'a> {
    pub fields: Vec<FieldView<'a>>,
    pub locale: LocaleView<'a>,
}

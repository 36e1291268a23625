//! Why a version cannot be rendered, with the place in its template.

/// Why a version cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The template does not parse or fails on a value.
    #[error("template `{template}` of skeleton `{skeleton}`: {what}")]
    Template {
        /// Skeleton name.
        skeleton: String,
        /// `prefix` or `item`.
        template: &'static str,
        /// Tera's message with the place.
        what: String,
    },
    /// The template reads a variable that does not exist.
    #[error(
        "template `{template}` of skeleton `{skeleton}` reads `{variable}`, which is no slot; it may read {known}"
    )]
    UnknownVariable {
        /// Skeleton name.
        skeleton: String,
        /// `prefix` or `item`.
        template: &'static str,
        /// The variable.
        variable: String,
        /// The slots there are.
        known: String,
    },
    /// The template leaves out what it must show.
    #[error(
        "template `{template}` of skeleton `{skeleton}` never reads `{variable}`, so the judge would not see it"
    )]
    MissingVariable {
        /// Skeleton name.
        skeleton: String,
        /// `prefix` or `item`.
        template: &'static str,
        /// The variable.
        variable: &'static str,
    },
}

impl RenderError {
    /// `prefix` or `item`.
    pub fn template(&self) -> &'static str {
        match self {
            Self::Template { template, .. }
            | Self::UnknownVariable { template, .. }
            | Self::MissingVariable { template, .. } => template,
        }
    }

    /// What is wrong, on one line, without the place.
    pub fn what(&self) -> String {
        match self {
            Self::Template { what, .. } => {
                let first = what.lines().next().unwrap_or_default();
                let first = first.strip_prefix("error: ").unwrap_or(first);
                format!("the template does not work: {first}")
            }
            Self::UnknownVariable { variable, .. } => {
                format!("the template reads `{variable}`, which is no slot")
            }
            Self::MissingVariable { variable, .. } => {
                format!("the template never reads `{variable}`, so the judge would not see it")
            }
        }
    }

    /// What to write instead.
    pub fn advice(&self) -> String {
        match self {
            Self::Template { .. } => "look at the place; {{ value }} shows a value, {% if x %} … \
                 {% endif %} and {% for x in list %} … {% endfor %} are blocks"
                .to_owned(),
            Self::UnknownVariable {
                variable, known, ..
            } => {
                let known: Vec<&str> = known.split(", ").collect();
                crate::text::did_you_mean(variable, &known)
            }
            Self::MissingVariable { variable, .. } => {
                format!("show `{variable}` in it, as the shipped templates do")
            }
        }
    }

    /// Bytes of the place in the template's source: where the parser points, where the unknown
    /// variable stands first, or the end of a template that leaves one out.
    pub fn place(&self, source: &str) -> Option<std::ops::Range<usize>> {
        match self {
            Self::Template { what, .. } => {
                let at = what.split_once("--> ")?.1.lines().next()?;
                let mut numbers = at.rsplit(':').map(str::parse::<usize>);
                let (column, row) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
                let line = source.split_inclusive('\n').nth(row.checked_sub(1)?)?;
                let start = line.as_ptr() as usize - source.as_ptr() as usize;
                let skip = line.char_indices().nth(column.checked_sub(1)?);
                let at = start + skip.map_or(line.len(), |(at, _)| at);
                Some(at..(at + 1).min(source.len()))
            }
            Self::UnknownVariable { variable, .. } => {
                let part =
                    |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_.".contains(c));
                let (at, _) = source.match_indices(variable.as_str()).find(|(at, word)| {
                    !part(source[..*at].chars().next_back())
                        && !source[at + word.len()..]
                            .starts_with(|c: char| c.is_alphanumeric() || c == '_')
                })?;
                Some(at..at + variable.len())
            }
            Self::MissingVariable { .. } => {
                let end = source.trim_end().len();
                Some(end..end)
            }
        }
    }
}

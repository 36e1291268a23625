//! Owns the agreement of raters and judges: from labelled items to figures per locale, overall and
//! over locales. Must not know how figures are shown.

mod cells;
mod figure;
mod labels;
mod pairs;
mod people;
mod read;
mod sections;
mod spec;
mod verdicts;

pub use figure::{By, Figure, Span};
pub use labels::{Label, MOST_LABELS};
pub use pairs::{Matrix, Pair};
pub use read::{Labelled, LabelledItem, Vote, from_tables, read};
pub use sections::{Agreement, JudgeSection, OverLocales, RaterRow, Section, Worst, agree};
pub use spec::{Plan, Scale, Spec, Votes};
pub use verdicts::{AltTestResult, AltTestRow};

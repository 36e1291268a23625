//! Owns what a finished run looks like: tables for a terminal.
//! Must never call a model, and never re-score.

mod escape;
mod table;

pub use escape::escape_html;
pub use table::{percent, summary_table};

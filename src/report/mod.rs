//! Owns what a finished run looks like: tables for a terminal.
//! Must never call a model, and never re-score.

mod table;

pub use table::{percent, summary_table};

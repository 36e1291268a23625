//! Owns what finished runs and figures look like: tables for a terminal.
//! Must never call a model, and never re-score.

mod agree;
mod grid;
mod power;
mod table;

pub use agree::agreement_text;
pub use power::power_text;
pub use table::{percent, summary_table};

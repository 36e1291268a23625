//! Owns what finished runs and figures look like: tables for a terminal, a page for a browser.
//! Must never call a model, and never re-score.

mod agree;
mod chart;
mod escape;
mod evaluation;
mod gate;
mod grid;
mod html;
mod leaderboard;
mod power;
mod seegull;
mod table;
mod validation;

pub use agree::agreement_text;
pub use escape::escape_html;
pub use evaluation::evaluation_text;
pub use gate::{gate_text, rankings_text};
pub use html::{ReportError, html, write_html};
pub use leaderboard::leaderboard_text;
pub use power::power_text;
pub use seegull::{endorsement_text, seegull_tables_text};
pub use table::{percent, summary_table};
pub use validation::validation_text;

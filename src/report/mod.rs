//! Owns what a finished run looks like: tables for a terminal, a page for a browser.
//! Must never call a model, and never re-score.

mod chart;
mod escape;
mod html;
mod table;

pub use escape::escape_html;
pub use html::{ReportError, html, write_html};
pub use table::{percent, summary_table};

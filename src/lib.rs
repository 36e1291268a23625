//! Pluralis tunes an LLM judge until it agrees with the people of every locale it judges for.
//!
//! An optimizer loop renders judge prompts from Tera templates, scores them against the human
//! tuning split, clusters the disagreements by locale and failure mode, proposes edits and
//! few-shot swaps, and stops once validation-set disagreement falls below the threshold. That loop
//! is [`optimize::tune`]; `docs/architecture.md` follows one item through the rooms below.
//!
//! A room uses only the rooms above it in this list; `tests/it/rooms.rs` checks it.

pub mod text;
pub mod locale;
pub mod task;
pub mod data;
pub mod agreement;
pub mod prompt;
pub mod endpoint;
pub mod ledger;
pub mod judge;
pub mod disagreement;
pub mod propose;
pub mod optimize;
pub mod registry;
pub mod evaluate;
pub mod experiment;
pub mod report;
pub mod cli;

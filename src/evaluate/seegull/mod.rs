//! Owns the evaluations of SeeGULL Multilingual: the tables of its paper from the released files,
//! the multiple-choice questions, and how often models endorse a stereotype.
//! Must not know how figures are shown, or how a model is reached.

pub mod endorse;
pub mod kinds;
pub mod overlap;
pub mod paper;
pub mod questions;
pub mod rules;
mod share;
pub mod tables;
pub mod wording;

pub use share::{Mean, Share};

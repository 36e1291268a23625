//! Owns the evaluation of target models on a benchmark of prompts: which prompts and responses there
//! are, what the judge's labels make of them, and the rates. Must not know where a run lies on disk.

mod correlate;
mod figures;
mod judged;
mod kind;
mod prompts;
mod responses;

pub use correlate::{Coefficient, Correlated, Point, correlated, correlations};
pub use figures::{By, Cell, RateFigure, Row, Slice, cell, rows};
pub use judged::{Given, Line, Unlabelled, judged};
pub use kind::{Better, Kind};
pub use prompts::{Columns, Language, Prompt, PromptFile, Sharing, read_prompts, share};
pub use responses::{Labels, Response, ResponseFile, read_responses};

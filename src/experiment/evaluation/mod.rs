//! Owns evaluations: TOML -> a checked plan of prompts, targets and responses, and the folder in
//! which they are asked and judged. Must not know how figures are made.

mod config;
mod plan;
mod run;
mod summary;

pub use config::{EvaluationConfig, JudgedBy, PromptsConfig, ResponsesConfig, TargetConfig};
pub use plan::{EvaluationError, EvaluationPlan};
pub use run::{Quoted, evaluate, quote};
pub use summary::{EvaluationSummary, Read, TargetSummary, read};

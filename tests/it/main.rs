//! The integration tests: one binary, one module per subject.

mod aa;
mod agree;
mod agreement;
mod bad_input;
mod clusters;
mod data;
mod endorse;
mod evaluation;
mod exact;
mod fuzz;
mod gate;
mod harness;
mod ledger;
#[cfg(feature = "local")]
mod local;
mod licences;
mod openai;
mod prompts;
mod rooms;
mod security;
mod seegull;
mod strategies;
mod stub;
mod tasks;
mod tune;
mod twelve;
mod versions;

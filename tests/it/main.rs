//! The integration tests: one binary, one module per subject.

mod agree;
mod agreement;
mod clusters;
mod data;
mod harness;
mod ledger;
#[cfg(feature = "local")]
mod local;
mod openai;
mod prompts;
mod rooms;
mod tasks;
mod tune;

//! The integration tests: one binary, one module per subject.

mod agreement;
mod clusters;
mod ledger;
mod openai;
mod tasks;

//! Owns human validation: which responses people label, the sheets they label in, what they wrote,
//! how far they agree with each other and with judges, and the rates corrected by it.
//! Must not know how responses were judged.

mod agreement;
mod correction;
mod draw;
mod read;
mod sheet;

pub use agreement::{CriterionAgreement, Judged, MAJORITY, agreements};
pub use correction::{CorrectedRate, corrections};
pub use draw::{Drawn, Sample, draw};
pub use read::{LabelLine, Problem, ProblemKind, ReadBack, Spellings, read_sheets};
pub use sheet::{Sheet, sheets};

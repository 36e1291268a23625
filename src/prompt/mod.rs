//! Owns prompt versions: sections, demos, skeletons, rendering, digest, diff and edits.
//! Must not know endpoints, scores, or the gold of the item that it renders.

mod diff;
mod edit;
mod fence;
mod render;
mod seed;
mod text;
mod version;

pub use diff::{Change, Line, diff};
pub use edit::{Edit, EditError, MergePart};
pub use fence::Fence;
pub use render::{RenderError, Renderer};
pub use seed::{SeedError, load_seed};
pub use text::{PromptText, Style};
pub use version::{
    AnswerFormat, Calibration, CriterionCalibration, Demo, LOCALE_NOTES, Skeleton, Version, Words,
    task_digest,
};

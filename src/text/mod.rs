//! Owns texts as people write and read them: when two are the same, which are near each other, which
//! known word was meant, where in a file a fault is, and how a foreign text is shown without doing harm.
//! Must not know anything else of the crate.

mod fault;
mod near;
pub(crate) mod ngrams;
mod same;
mod shown;

pub use fault::{Fault, decode, position};
pub use near::{did_you_mean, key_advice, nearest};
pub use ngrams::Space;
pub use same::{Cleaned, clean, fold, is_invisible, normalise};
pub use shown::{
    csv_cell, is_steering, not_a_file_name, quoted, visible, visible_json, visible_lines,
};

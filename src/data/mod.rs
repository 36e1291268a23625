//! Owns items, votes and splits, the importers of data sets, and the checks of an items file.
//! Must not know prompts or endpoints.

mod item;

pub use item::{Item, ItemRecord, Split, Votes};

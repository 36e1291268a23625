//! Owns prompt versions on disk: one folder per version, readable in a diff; evidence, tags, exports.
//! Must not know how versions were found.

mod error;
mod evidence;
pub mod export;
mod files;
mod gc;
mod store;
mod tags;
mod tree;

pub use error::RegistryError;
pub use evidence::{
    Evidence, FigureEvidence, Measured, SplitEvidence, add_evidence, fingerprint, read_evidence,
};
pub use files::{Lineage, Race, read_version, write_version};
pub use gc::{Garbage, collect, garbage};
pub use store::{Found, Listed, Parcel, Put, Registry, find, task_of};
pub use tags::{Move, Tag, Tags};
pub use tree::{Branch, tree};

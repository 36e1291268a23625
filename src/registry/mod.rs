//! Owns prompt versions on disk: one folder per version, readable in a diff.
//! Must not know how versions were found.

mod files;

pub use files::{Lineage, RegistryError, read_version, write_version};

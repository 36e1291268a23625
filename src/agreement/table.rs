//! Owns table.

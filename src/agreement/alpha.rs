//! Owns alpha.

//! Owns prompt.

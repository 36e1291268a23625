//! Owns ac.

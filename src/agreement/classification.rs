//! Owns classification.

//! Owns disagreement.

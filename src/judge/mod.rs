//! Owns judge.

//! Owns power.

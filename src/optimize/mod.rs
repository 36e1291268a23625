//! Owns optimize.

//! Owns propose.

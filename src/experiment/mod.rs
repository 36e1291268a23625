//! Owns experiment.

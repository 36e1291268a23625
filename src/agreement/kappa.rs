//! Owns kappa.

//! Owns ceiling.

//! Owns registry.

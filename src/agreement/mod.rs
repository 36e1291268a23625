//! Owns agreement.

//! Owns report.

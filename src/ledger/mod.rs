//! Owns ledger.

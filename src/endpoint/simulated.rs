//! A deterministic judge with planted failure modes.

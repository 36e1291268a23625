//! Fetches model files and checks their digests.

//! Any OpenAI-compatible server.

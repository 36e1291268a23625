//! An embedded GGUF model, through llama.cpp.


#[cfg(feature = "local")]
mod local;

//! Fetches model files and checks their digests.
/// A known model.
pub struct K{/// name
pub name:&'static str}
/// Known models.
pub const KNOWN: &[K] = &[];
/// Finds.
pub fn find(_: &str)->Result<std::path::PathBuf,String>{Err("x".into())}
/// Pulls.
pub fn pull(_: &str,_:&dyn Fn(&str))->Result<std::path::PathBuf,String>{Err("x".into())}

//! `pluralis completions` and `pluralis man`.

use super::{Failure, out};

/// Arguments of `completions`.
#[derive(clap::Args)]
pub struct CompletionArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints a completion script.
pub fn completions(args: &CompletionArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "pluralis", &mut script);
    print(&script)
}

/// Prints the man page.
pub fn man() -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_mangen::Man::new(super::command())
        .render(&mut script)
        .map_err(|e| Failure::machine(e.to_string()))?;
    print(&script)
}

/// Writes to stdout; a reader that went away early (`| head`) is no error.
pub(super) fn print(script: &[u8]) -> Result<(), Failure> {
    out::text(&String::from_utf8_lossy(script))
}

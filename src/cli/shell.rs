//! `pluralis completions` and `pluralis man`.

use std::io::Write as _;

use super::Failure;

/// Arguments of `completions`.
#[derive(clap::Args)]
pub struct CompletionArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints a completion script.
pub fn completions(args: &CompletionArgs) -> Result<(), Failure> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "pluralis", &mut out);
    print(&out)
}

/// Prints the man page.
pub fn man() -> Result<(), Failure> {
    let mut out = Vec::new();
    clap_mangen::Man::new(super::command())
        .render(&mut out)
        .map_err(|e| Failure::machine(e.to_string()))?;
    print(&out)
}

/// Writes to stdout; a reader that went away early (`| head`) is no error.
pub(super) fn print(bytes: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().write_all(bytes) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::machine(e.to_string()))
        }
        _ => Ok(()),
    }
}

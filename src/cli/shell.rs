//! `pluralis completions` and `pluralis man`.

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
    super::output::bytes(&out)
}

/// Prints the man page.
pub fn man() -> Result<(), Failure> {
    let mut out = Vec::new();
    clap_mangen::Man::new(super::command())
        .render(&mut out)
        .map_err(|e| Failure::machine(e.to_string()))?;
    super::output::bytes(&out)
}

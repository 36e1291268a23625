//! One file per subcommand; the only room that prints.

/// Runs the command line of this process.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}

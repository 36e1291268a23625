//! The `pluralis` binary: everything lives in the library.

fn main() -> std::process::ExitCode {
    pluralis::cli::main()
}

//! `pluralis gate run | rankings`.

mod rankings;
mod run;

use super::Failure;

/// Subcommands of `gate`.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Score candidates on a task's criteria, keep the best of each slot, generate what is missing
    Run(Box<run::Args>),
    /// Average the annotators' rankings, and say how far each two agree
    Rankings(rankings::Args),
}

/// Runs a subcommand.
pub fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Rankings(args) => rankings::run(args),
    }
}

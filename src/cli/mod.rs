//! Owns the command line: one file per subcommand, progress, exit codes. The only room that prints.
//! Must not know algorithms.

mod agree;
mod asking;
mod cache;
mod data;
mod evaluate;
mod failure;
mod gate;
mod lines;
mod leaderboard;
mod model;
mod out;
mod power;
mod progress;
mod prompt;
mod replay;
mod report;
mod reproduce;
mod score;
mod seegull;
mod shell;
mod snippet;
mod tune;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use failure::Failure;

/// Exit codes, also shown by `pluralis --help`.
const EXIT_CODES: &str = "Exit codes:
  0    done (a run that was already finished counts as done)
  1    something on this machine failed: a file, the cache, the lock of a run
  2    the input is wrong: arguments, config, task, items; nothing was spent
  3    the endpoint cannot answer: key, model, address; --resume goes on with the run
  4    replay, verify, reproduce: what is recorded is not what was found
  130  interrupted; --resume goes on with the run";

/// Tunes an LLM judge until it agrees with the people of every locale it judges for.
#[derive(Parser)]
#[command(name = "pluralis", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tune a judge as an experiment file says
    Tune(tune::Args),
    /// Write the page of a finished run (report.html) anew
    Report(report::Args),
    /// Import, check and split human-labelled data
    #[command(subcommand)]
    Data(data::Command),
    /// Keep prompt versions: list, show, compare, tag, render, export, import, verify, cite
    Prompt(prompt::Args),
    /// Judge items with a version, also with another model, and keep the figures beside it
    Score(score::Args),
    /// Repeat the run that made a version, from its config, its data and a cache
    Reproduce(reproduce::Args),
    /// Rebuild the figures of a run from its ledger, without a call, and say where they differ
    Replay(replay::Args),
    /// Look into, prune, export and import the answers that are kept between runs
    Cache(cache::Args),
    /// How far raters and judges agree, per locale, from any table of labels
    Agree(agree::Args),
    /// Ask target models the prompts of XL-SafetyBench, or read responses, judge them, and give the rates
    Evaluate(evaluate::Args),
    /// Rank the models of evaluations, and say which cannot be told apart
    Leaderboard(leaderboard::Args),
    /// Let people label a sample of an evaluation, and correct its rates by what they say
    #[command(subcommand)]
    Validate(validate::Command),
    /// How many labelled items a claim needs
    Power(power::Args),
    /// SeeGULL Multilingual: the paper's tables, questions, and how often models endorse stereotypes
    #[command(subcommand)]
    Seegull(seegull::Command),
    /// Quality gates of benchmark construction, and the rankings of annotators
    #[command(subcommand)]
    Gate(gate::Command),
    /// Fetch and find embedded models
    #[command(subcommand)]
    Model(model::Command),
    /// Print a completion script for a shell
    Completions(shell::CompletionArgs),
    /// Print the man page
    Man,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // clap prints help to stdout and errors to stderr; its exit code for errors is 2, as here.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    failure::plain_outside_terminals();
    let done = match cli.command {
        Command::Tune(args) => tune::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Data(command) => data::run(&command),
        Command::Prompt(args) => prompt::run(&args),
        Command::Score(args) => score::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Agree(args) => agree::run(&args),
        Command::Evaluate(args) => evaluate::run(&args),
        Command::Leaderboard(args) => leaderboard::run(&args),
        Command::Validate(command) => validate::run(&command),
        Command::Power(args) => power::run(&args),
        Command::Seegull(command) => seegull::run(&command),
        Command::Gate(command) => gate::run(&command),
        Command::Model(command) => model::run(&command),
        Command::Completions(args) => shell::completions(&args),
        Command::Man => shell::man(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Runs what waits for calls.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| Failure::machine(format!("cannot start the runtime: {e}")))?;
    Ok(runtime.block_on(work))
}

/// The parsed command tree, for completions and the man page.
fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

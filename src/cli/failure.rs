//! What the user sees of an error, and the exit code.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use crate::data::DataError;
use crate::experiment::evaluation::EvaluationError;
use crate::experiment::{ConfigError, PlanError, RunError};
use crate::judge::JudgeError;
use crate::ledger::{Halt, LedgerError};
use crate::optimize::TuneError;
use crate::prompt::SeedError;
use crate::registry::RegistryError;
use crate::registry::export::ExportError;
use crate::report::ReportError;
use crate::text::{Fault, visible, visible_lines};

use super::snippet::Snippet;

/// A failed command: a diagnostic for stderr and an exit code.
pub struct Failure {
    report: miette::Report,
    code: u8,
}

/// Outside a terminal lines are not wrapped, so that what is searched for stays on one line.
pub fn plain_outside_terminals() {
    if std::io::stderr().is_terminal() {
        return;
    }
    // A hook that is there already (it can be set once) is as good.
    let _ = miette::set_hook(Box::new(|_| {
        let plain = miette::MietteHandlerOpts::new().width(100_000).color(false);
        Box::new(plain.wrap_lines(false).terminal_links(false).build())
    }));
}

impl Failure {
    /// Bad input (exit code 2).
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(message.into(), None, 2)
    }

    /// Bad input, with what to do.
    pub fn input_help(message: impl Into<String>, help: Option<String>) -> Self {
        Self::new(message.into(), help, 2)
    }

    /// Answers that nobody can give now (exit code 3), with what to do.
    pub fn unanswered(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(message.into(), Some(help.into()), 3)
    }

    /// What is recorded is not what was found (exit code 4).
    pub fn differs(message: impl Into<String>) -> Self {
        Self::new(message.into(), None, 4)
    }

    /// A file that the input names and that cannot be read (exit code 2).
    fn unreadable(error: &dyn std::error::Error) -> Self {
        let help = "check the path and its permissions; paths in a file are relative to it";
        Self::input_help(error.to_string(), Some(help.to_owned()))
    }

    /// Something on this machine failed (exit code 1).
    pub fn machine(message: impl Into<String>) -> Self {
        Self::new(message.into(), None, 1)
    }

    fn new(message: String, help: Option<String>, code: u8) -> Self {
        Self::with_snippet(message, help, code, None)
    }

    /// Every text is made harmless here: messages quote files, servers and file names.
    fn with_snippet(
        message: String,
        help: Option<String>,
        code: u8,
        snippet: Option<Snippet>,
    ) -> Self {
        let mut diagnostic = miette::MietteDiagnostic::new(visible_lines(&message));
        diagnostic.help = help.filter(|h| !h.is_empty()).map(|h| visible_lines(&h));
        let report = match snippet {
            Some(snippet) => miette::Report::new(diagnostic.with_label(snippet.label()))
                .with_source_code(snippet),
            None => miette::Report::new(diagnostic),
        };
        Self { report, code }
    }

    /// Prints the diagnostic to stderr.
    pub fn report(self) -> ExitCode {
        // Its colours are its own; what it quotes was made harmless when it was made.
        let _ = writeln!(std::io::stderr(), "{:?}", self.report);
        ExitCode::from(self.code)
    }
}

impl From<Box<Fault>> for Failure {
    fn from(fault: Box<Fault>) -> Self {
        let snippet = fault
            .span
            .as_ref()
            .filter(|_| !fault.text.is_empty())
            .map(|span| Snippet::of(&fault.path, &fault.text, span));
        let message = format!("{}: {}", fault.place(), fault.what);
        Self::with_snippet(visible(&message), Some(fault.advice), 2, snippet)
    }
}

impl From<ConfigError> for Failure {
    fn from(e: ConfigError) -> Self {
        match e {
            ConfigError::Fault(fault) => fault.into(),
            ConfigError::Set { ref help, .. } => Self::input_help(e.to_string(), help.clone()),
            other @ ConfigError::Io { .. } => Self::unreadable(&other),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(e: PlanError) -> Self {
        match e {
            PlanError::Config(e) => e.into(),
            PlanError::Data(e) => e.into(),
            PlanError::Fault(fault) | PlanError::Seed(SeedError::Fault(fault)) => fault.into(),
            PlanError::Seed(other @ SeedError::Io { .. }) => Self::unreadable(&other),
        }
    }
}

impl From<DataError> for Failure {
    fn from(e: DataError) -> Self {
        let snippet = Snippet::of_row(&e);
        let (place, what) = (e.place(), e.what);
        let message = if place.is_empty() {
            what
        } else {
            format!("{place}: {what}")
        };
        Self::with_snippet(visible(&message), Some(e.advice), 2, snippet)
    }
}

impl From<LedgerError> for Failure {
    fn from(e: LedgerError) -> Self {
        let code = if matches!(e, LedgerError::BadImport { .. }) {
            2
        } else {
            1
        };
        Self::new(e.to_string(), None, code)
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        Self::of_run(
            &e,
            "run the same command with --resume to go on where it stopped",
        )
    }
}

impl Failure {
    /// A run that ended early, with how to go on where that helps.
    pub fn of_run(e: &RunError, go_on: &str) -> Self {
        let code = match e {
            RunError::Unfinished(_) | RunError::Other(_) | RunError::Nothing(_) => 2,
            RunError::Endpoint(_) => 3,
            RunError::Tune(TuneError::Halt(h) | TuneError::Judge(JudgeError::Halt(h))) => match h {
                Halt::Interrupted => 130,
                Halt::Stop(_) => 3,
                Halt::Io(_) => 1,
            },
            RunError::Tune(TuneError::Judge(JudgeError::Render(_))) => 2,
            RunError::Io { .. } | RunError::Ledger(_) | RunError::Registry(_) => 1,
        };
        let help = matches!(code, 3 | 130).then(|| go_on.to_owned());
        Self::new(e.to_string(), help, code)
    }
}

impl From<RegistryError> for Failure {
    fn from(e: RegistryError) -> Self {
        match e {
            RegistryError::Unknown { what, advice } => Self::new(what, Some(advice), 2),
            RegistryError::Io { .. } => Self::machine(e.to_string()),
            other => Self::input(other.to_string()),
        }
    }
}

impl From<EvaluationError> for Failure {
    fn from(e: EvaluationError) -> Self {
        match e {
            EvaluationError::Plan(e) => e.into(),
            EvaluationError::Registry(e) => e.into(),
        }
    }
}

impl From<ExportError> for Failure {
    fn from(e: ExportError) -> Self {
        Self::input(e.to_string())
    }
}

impl From<ReportError> for Failure {
    fn from(e: ReportError) -> Self {
        match e {
            ReportError::Unfinished(_) => Self::input(e.to_string()),
            other => Self::machine(other.to_string()),
        }
    }
}

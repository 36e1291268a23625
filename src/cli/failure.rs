//! What the user sees of an error, and the exit code.

use std::process::ExitCode;

use miette::{LabeledSpan, NamedSource};

use crate::data::DataError;
use crate::experiment::{ConfigError, PlanError, RunError};
use crate::judge::JudgeError;
use crate::ledger::{Halt, LedgerError};
use crate::optimize::TuneError;
use crate::report::ReportError;
use crate::task::TaskError;

/// A failed command: a diagnostic for stderr and an exit code.
pub struct Failure {
    report: miette::Report,
    code: u8,
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

    /// A replay that differs (exit code 4).
    pub fn differs(message: impl Into<String>) -> Self {
        Self::new(message.into(), None, 4)
    }

    /// Something on this machine failed (exit code 1).
    pub fn machine(message: impl Into<String>) -> Self {
        Self::new(message.into(), None, 1)
    }

    fn new(message: String, help: Option<String>, code: u8) -> Self {
        let mut diagnostic = miette::MietteDiagnostic::new(message);
        diagnostic.help = help;
        Self {
            report: miette::Report::new(diagnostic),
            code,
        }
    }

    fn with_source(
        message: String,
        help: Option<String>,
        name: &str,
        text: &str,
        span: Option<std::ops::Range<usize>>,
    ) -> Self {
        let mut diagnostic = miette::MietteDiagnostic::new(message);
        diagnostic.help = help;
        if let Some(span) = span {
            diagnostic = diagnostic.with_label(LabeledSpan::underline(span));
        }
        Self {
            report: miette::Report::new(diagnostic)
                .with_source_code(NamedSource::new(name, text.to_owned())),
            code: 2,
        }
    }

    /// Prints the diagnostic to stderr.
    pub fn report(self) -> ExitCode {
        eprintln!("{:?}", self.report);
        ExitCode::from(self.code)
    }
}

impl From<ConfigError> for Failure {
    fn from(e: ConfigError) -> Self {
        match e {
            ConfigError::Toml {
                path,
                text,
                span,
                message,
                help,
            } => Self::with_source(message, help, &path.display().to_string(), &text, span),
            ConfigError::Set { ref help, .. } => Self::input_help(e.to_string(), help.clone()),
            other => Self::input(other.to_string()),
        }
    }
}

impl From<PlanError> for Failure {
    fn from(e: PlanError) -> Self {
        match e {
            PlanError::Config(e) => e.into(),
            PlanError::Data(e) => e.into(),
            PlanError::Task { path, text, source } => match *source {
                TaskError::Toml(e) => Self::with_source(
                    e.message().to_owned(),
                    None,
                    &path.display().to_string(),
                    &text,
                    e.span(),
                ),
                invalid => Self::input(format!("{}: {invalid}", path.display())),
            },
            other => Self::input(other.to_string()),
        }
    }
}

impl From<DataError> for Failure {
    fn from(e: DataError) -> Self {
        Self::input(e.to_string())
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
        let code = match &e {
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
        let help = matches!(code, 3 | 130)
            .then(|| "run the same command with --resume to go on where it stopped".to_owned());
        Self::new(e.to_string(), help, code)
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

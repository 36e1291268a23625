//! The log of every attempt as it arrived, and of every answer that came from the cache: the source
//! of truth for what a run has paid for, from which alone it can be replayed.

use std::collections::HashMap;
use std::path::Path;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::digest::RequestDigest;
use super::error::LedgerError;
use super::jsonl::{Access, JsonlLog, Span, Torn};
use crate::endpoint::{EndpointError, ErrorClass, Response, Usage};

/// Cause of a failure in which no connection came about: nothing was asked and nothing is owed,
/// so such attempts are logged but are not calls.
pub const UNREACHABLE: &str = "unreachable";

/// One line of `attempts.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// From 0, in the order of arrival.
    pub seq: u64,
    /// Of the request.
    pub digest: RequestDigest,
    /// Kind and model, for readers.
    pub endpoint: String,
    /// From 1, per request.
    #[serde(rename = "try")]
    pub number: u32,
    /// When it was sent, RFC 3339.
    pub started: String,
    /// How long it took.
    pub millis: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// How an attempt ended: `{"answer": …}` or `{"error": …, "final": …}`; or `{"cached": …}`, an answer
/// that was there already.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "OutcomeLine")]
pub enum Outcome {
    /// A whole answer.
    Answer(Response),
    /// A whole answer from the cache: no call was made.
    Cached(Response),
    /// A failure.
    Error {
        /// What went wrong.
        error: EndpointError,
        /// Whether the request is given up with it.
        last: bool,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutcomeLine {
    answer: Option<Response>,
    cached: Option<Response>,
    error: Option<EndpointError>,
    #[serde(rename = "final")]
    last: Option<bool>,
}

impl TryFrom<OutcomeLine> for Outcome {
    type Error = &'static str;

    fn try_from(line: OutcomeLine) -> Result<Self, &'static str> {
        match (line.answer, line.cached, line.error, line.last) {
            (Some(answer), None, None, None) => Ok(Self::Answer(answer)),
            (None, Some(answer), None, None) => Ok(Self::Cached(answer)),
            (None, None, Some(error), Some(last)) => Ok(Self::Error { error, last }),
            _ => Err("an outcome is an `answer`, a `cached` one, or an `error` with `final`"),
        }
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Answer(answer) => map.serialize_entry("answer", answer)?,
            Self::Cached(answer) => map.serialize_entry("cached", answer)?,
            Self::Error { error, last } => {
                map.serialize_entry("error", error)?;
                map.serialize_entry("final", last)?;
            }
        }
        map.end()
    }
}

impl Outcome {
    /// Tokens of the call, or `None` when there was no call to charge.
    pub fn charged(&self) -> Option<Usage> {
        match self {
            Self::Answer(response) => Some(response.usage),
            Self::Cached(_) => None,
            Self::Error { error, .. } if error.cause == UNREACHABLE => None,
            Self::Error { error, .. } => Some(error.usage),
        }
    }
}

/// What the log holds about one request. Answers stay in the file: a run may have a million.
#[derive(Clone, Debug)]
pub struct Record {
    /// Of each call, in order.
    pub usages: Vec<Usage>,
    /// How many of `usages` this process has charged; fewer than all only while resuming.
    pub charged: usize,
    /// Calls that failed with [`ErrorClass::Retry`].
    pub failures: u32,
    /// Lines, those that were no calls included.
    pub lines: u32,
    /// Answered or given up.
    pub done: bool,
    last: Span,
}

/// `attempts.jsonl` with an index by request.
#[derive(Debug)]
pub struct AttemptLog {
    log: JsonlLog,
    records: HashMap<RequestDigest, Record>,
    next_seq: u64,
}

impl AttemptLog {
    /// A log that is gone with the process.
    pub fn memory() -> Self {
        Self {
            log: JsonlLog::memory("attempts"),
            records: HashMap::new(),
            next_seq: 0,
        }
    }

    /// Opens or creates the file; `each` sees every attempt in it. A torn last line is dropped and
    /// returned.
    ///
    /// # Errors
    /// A file that cannot be read, or a whole line that is no attempt, named by its number.
    pub fn open(
        path: &Path,
        access: Access,
        mut each: impl FnMut(&Attempt),
    ) -> Result<(Self, Option<Torn>), LedgerError> {
        let (mut records, mut next_seq) = (HashMap::new(), 0);
        let (log, torn) = JsonlLog::open(path, access, |span, line| {
            let attempt: Attempt =
                serde_json::from_slice(line).map_err(|e| format!("not an attempt ({e})"))?;
            next_seq = next_seq.max(attempt.seq.saturating_add(1));
            enter(&mut records, &attempt, span, false);
            each(&attempt);
            Ok(())
        })?;
        Ok((
            Self {
                log,
                records,
                next_seq,
            },
            torn,
        ))
    }

    /// Adds an attempt, which the caller charges.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append(&mut self, mut attempt: Attempt) -> Result<(), LedgerError> {
        attempt.seq = self.next_seq;
        let span = self.log.append(&attempt)?;
        self.next_seq += 1;
        enter(&mut self.records, &attempt, span, true);
        Ok(())
    }

    /// What is known of a request.
    pub fn record(&self, digest: &RequestDigest) -> Option<&Record> {
        self.records.get(digest)
    }

    /// The calls of a request that were not charged in this process; they count as charged now.
    pub fn take_uncharged(&mut self, digest: &RequestDigest) -> Vec<Usage> {
        let Some(record) = self.records.get_mut(digest) else {
            return Vec::new();
        };
        let uncharged = record.usages[record.charged..].to_vec();
        record.charged = record.usages.len();
        uncharged
    }

    /// How the last attempt of a request ended.
    ///
    /// # Errors
    /// A file that changed since it was opened.
    pub fn last(&mut self, digest: &RequestDigest) -> Result<Option<Outcome>, LedgerError> {
        let Some(span) = self.records.get(digest).map(|record| record.last) else {
            return Ok(None);
        };
        let line = self.log.read(span)?;
        let attempt: Attempt = serde_json::from_slice(&line)
            .map_err(|e| LedgerError::io(self.log.path(), "read")(e.into()))?;
        Ok(Some(attempt.outcome))
    }

    /// Whether cached answers are kept here too: in a file that can be written. A log in memory
    /// is gone before the cache is.
    pub fn keeps_cached(&self) -> bool {
        self.log.is_writable_file()
    }

    /// Requests of which there is a line.
    pub fn digests(&self) -> impl Iterator<Item = &RequestDigest> {
        self.records.keys()
    }

    /// Lines so far, those of earlier processes included.
    pub fn lines(&self) -> u64 {
        self.log.lines()
    }
}

fn enter(
    records: &mut HashMap<RequestDigest, Record>,
    attempt: &Attempt,
    span: Span,
    charged: bool,
) {
    let record = records.entry(attempt.digest).or_insert_with(|| Record {
        usages: Vec::new(),
        charged: 0,
        failures: 0,
        lines: 0,
        done: false,
        last: span,
    });
    if let Some(usage) = attempt.outcome.charged() {
        record.usages.push(usage);
        record.charged += usize::from(charged);
        if let Outcome::Error { error, .. } = &attempt.outcome {
            record.failures += u32::from(error.class == ErrorClass::Retry);
        }
    }
    record.lines += 1;
    if !record.done {
        record.last = span;
        record.done = match &attempt.outcome {
            Outcome::Answer(_) | Outcome::Cached(_) => true,
            Outcome::Error { last, .. } => *last,
        };
    }
}

//! Answers kept between runs: one SQLite file, shared by the processes of a host.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use serde::Serialize;

use super::digest::RequestDigest;
use super::error::LedgerError;
use crate::endpoint::{Identity, Response};

/// 1 had no `endpoint`.
const FORMAT: i64 = 2;

/// How long a process waits for another one that writes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whole, successful answers by request digest.
#[derive(Debug)]
pub struct Cache {
    pub(super) path: PathBuf,
    connection: Mutex<Connection>,
}

/// Where an answer comes from, for people: it is no part of its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Kind and place: `openai https://api.example.com/v1`.
    pub endpoint: String,
    /// Model name.
    pub model: String,
}

impl From<&Identity> for Source {
    fn from(identity: &Identity) -> Self {
        let place = match identity.settings.split_whitespace().next() {
            Some(url) if identity.kind == "openai" => url.to_owned(),
            _ => blake3::hash(identity.settings.as_bytes()).to_hex()[..12].to_owned(),
        };
        Self {
            endpoint: format!("{} {place}", identity.kind),
            model: identity.model.clone(),
        }
    }
}

/// What a cache holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheStats {
    /// Answers.
    pub answers: u64,
    /// Of the answers as text, without the overhead of the file.
    pub bytes: u64,
    /// When the first of them was stored, RFC 3339.
    pub oldest: Option<String>,
    /// When the last of them was stored, RFC 3339.
    pub newest: Option<String>,
    /// By model and endpoint, most answers first.
    pub models: Vec<ModelStats>,
}

/// What a cache holds of one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelStats {
    /// Kind and place: `openai https://api.example.com/v1`.
    pub endpoint: String,
    /// Model name.
    pub model: String,
    /// Answers.
    pub answers: u64,
    /// Of the answers as text.
    pub bytes: u64,
}

/// What [`Cache::prune`] drops; nothing given drops everything.
#[derive(Clone, Debug, Default)]
pub struct Prune {
    /// Stored before this time.
    pub before: Option<Timestamp>,
    /// Of this model.
    pub model: Option<String>,
    /// Instead of the above: the oldest, until the text of the others fits so many bytes.
    pub max_bytes: Option<u64>,
}

/// What [`Cache::export`] writes.
#[derive(Clone, Debug, Default)]
pub struct Keep<'a> {
    /// Only of this model.
    pub model: Option<&'a str>,
    /// Only answers to these requests.
    pub digests: Option<&'a HashSet<RequestDigest>>,
}

impl Cache {
    /// Opens or creates the file and its folder.
    ///
    /// # Errors
    /// A file that is no cache, that another version made, or that cannot be opened.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(LedgerError::io(dir, "create"))?;
        }
        let failed = |source| LedgerError::Cache {
            path: path.to_owned(),
            doing: "open",
            source,
        };
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        use_wal(&connection).map_err(failed)?;
        connection
            .pragma_update(None, "synchronous", "NORMAL")
            .map_err(failed)?;
        let found = lay(&mut connection).map_err(failed)?;
        if found != FORMAT {
            return Err(LedgerError::CacheFormat {
                path: path.to_owned(),
                found,
                wanted: FORMAT,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
        })
    }

    /// The answer to a request.
    ///
    /// # Errors
    /// [`LedgerError::BadRow`] for a damaged answer (see [`forget`](Self::forget)); a file that
    /// cannot be read.
    pub fn get(&self, digest: &RequestDigest) -> Result<Option<Response>, LedgerError> {
        let connection = self.connection();
        let text: Option<String> = connection
            .prepare_cached("SELECT response FROM answers WHERE digest = ?1")
            .and_then(|mut query| {
                query
                    .query_row([digest.as_bytes()], |r| r.get(0))
                    .optional()
            })
            .map_err(self.failed("read"))?;
        text.map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|e| LedgerError::BadRow {
                path: self.path.clone(),
                digest: digest.to_string(),
                what: e.to_string(),
            })
    }

    /// Whether a request is answered.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn contains(&self, digest: &RequestDigest) -> Result<bool, LedgerError> {
        self.connection()
            .prepare_cached("SELECT 1 FROM answers WHERE digest = ?1")
            .and_then(|mut query| query.exists([digest.as_bytes()]))
            .map_err(self.failed("read"))
    }

    /// Keeps an answer; the first one kept for a request stays.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn put(
        &self,
        digest: &RequestDigest,
        source: &Source,
        response: &Response,
    ) -> Result<(), LedgerError> {
        self.put_all([(*digest, source, response)])
    }

    /// Keeps several answers at once, or none of them.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn put_all<'a>(
        &self,
        answers: impl IntoIterator<Item = (RequestDigest, &'a Source, &'a Response)>,
    ) -> Result<(), LedgerError> {
        insert_all(&mut self.connection(), answers).map_err(self.failed("write"))
    }

    /// Drops the answer to a request.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn forget(&self, digest: &RequestDigest) -> Result<(), LedgerError> {
        self.connection()
            .execute("DELETE FROM answers WHERE digest = ?1", [digest.as_bytes()])
            .map(|_| ())
            .map_err(self.failed("write"))
    }

    /// What is in it.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn stats(&self) -> Result<CacheStats, LedgerError> {
        let connection = self.connection();
        let read = || -> Result<CacheStats, rusqlite::Error> {
            let mut stats = connection.query_row(
                "SELECT count(*), coalesce(sum(length(CAST(response AS BLOB))), 0),
                        min(created), max(created) FROM answers",
                [],
                |row| {
                    Ok(CacheStats {
                        answers: unsigned(row.get(0)?),
                        bytes: unsigned(row.get(1)?),
                        oldest: row.get::<_, Option<i64>>(2)?.and_then(shown),
                        newest: row.get::<_, Option<i64>>(3)?.and_then(shown),
                        models: Vec::new(),
                    })
                },
            )?;
            let mut query = connection.prepare(
                "SELECT endpoint, model, count(*), sum(length(CAST(response AS BLOB)))
                     FROM answers GROUP BY endpoint, model ORDER BY 3 DESC, 1, 2",
            )?;
            let row = |row: &rusqlite::Row<'_>| {
                Ok(ModelStats {
                    endpoint: row.get(0)?,
                    model: row.get(1)?,
                    answers: unsigned(row.get(2)?),
                    bytes: unsigned(row.get(3)?),
                })
            };
            stats.models = query.query_map([], row)?.collect::<Result<_, _>>()?;
            Ok(stats)
        };
        read().map_err(self.failed("read"))
    }

    /// Drops answers; returns how many, and gives the space back.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn prune(&self, what: &Prune) -> Result<u64, LedgerError> {
        let connection = self.connection();
        let dropped = match what.max_bytes {
            Some(bytes) => connection.execute(
                // The newest answers whose running sum fits are kept.
                "DELETE FROM answers WHERE digest IN (
                     SELECT digest FROM (
                         SELECT digest, sum(length(CAST(response AS BLOB)))
                             OVER (ORDER BY created DESC, digest) AS bytes FROM answers
                     ) WHERE bytes > ?1)",
                params![i64::try_from(bytes).unwrap_or(i64::MAX)],
            ),
            None => connection.execute(
                "DELETE FROM answers WHERE (?1 IS NULL OR created < ?1)
                                       AND (?2 IS NULL OR model = ?2)",
                params![what.before.map(Timestamp::as_second), what.model],
            ),
        }
        .map_err(self.failed("write"))?;
        connection
            .execute_batch("VACUUM")
            .map_err(self.failed("shrink"))?;
        Ok(dropped as u64)
    }

    pub(super) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failed(
        &self,
        doing: &'static str,
    ) -> impl Fn(rusqlite::Error) -> LedgerError + use<'_> {
        move |source| LedgerError::Cache {
            path: self.path.clone(),
            doing,
            source,
        }
    }
}

/// The switch to WAL does not always heed the busy timeout when two processes open a new file.
fn use_wal(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mut tries = 0;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && tries < 100 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            done => return done,
        }
    }
}

/// Makes the table in a new file, or brings an older one up to date; returns the format of the file.
fn lay(connection: &mut Connection) -> Result<i64, rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found == 1 {
        transaction
            .execute_batch("ALTER TABLE answers ADD COLUMN endpoint TEXT NOT NULL DEFAULT '';")?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.commit()?;
        return Ok(FORMAT);
    }
    if found != 0 || tables != 0 {
        return Ok(found);
    }
    transaction.execute_batch(
        "CREATE TABLE answers (
             digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
             model TEXT NOT NULL,
             created INTEGER NOT NULL,
             response TEXT NOT NULL,
             endpoint TEXT NOT NULL DEFAULT ''
         ) STRICT, WITHOUT ROWID;",
    )?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    Ok(FORMAT)
}

fn insert_all<'a>(
    connection: &mut Connection,
    answers: impl IntoIterator<Item = (RequestDigest, &'a Source, &'a Response)>,
) -> Result<(), rusqlite::Error> {
    let now = Timestamp::now().as_second();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (digest, source, response) in answers {
        insert(&transaction, &digest, source, now, response)?;
    }
    transaction.commit()
}

pub(super) fn insert(
    connection: &Connection,
    digest: &RequestDigest,
    source: &Source,
    created: i64,
    response: &Response,
) -> Result<(), rusqlite::Error> {
    let text = serde_json::to_string(response)
        .map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
    connection
        .prepare_cached(
            "INSERT INTO answers (digest, endpoint, model, created, response)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (digest) DO NOTHING",
        )?
        .execute(params![
            digest.as_bytes(),
            source.endpoint,
            source.model,
            created,
            text
        ])?;
    Ok(())
}

/// A count; SQLite has no unsigned numbers.
fn unsigned(count: i64) -> u64 {
    count.try_into().unwrap_or(0)
}

fn shown(seconds: i64) -> Option<String> {
    Timestamp::from_second(seconds)
        .ok()
        .map(|time| time.to_string())
}

//! Answers kept between runs: one SQLite file, shared by the processes of a host.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

use super::digest::RequestDigest;
use super::error::LedgerError;
use crate::endpoint::Response;

const FORMAT: i64 = 1;

/// How long a process waits for another one that writes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whole, successful answers by request digest.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
    connection: Mutex<Connection>,
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
    /// Answers by model, most first.
    pub models: Vec<(String, u64)>,
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// New here.
    pub added: u64,
    /// Already here, and equal.
    pub present: u64,
    /// Already here with another answer; the one that was here stays.
    pub different: u64,
}

/// One line of an export.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    digest: RequestDigest,
    model: String,
    /// Seconds since 1970.
    created: i64,
    response: Response,
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
        model: &str,
        response: &Response,
    ) -> Result<(), LedgerError> {
        self.put_all([(*digest, model, response)])
    }

    /// Keeps several answers at once, or none of them.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn put_all<'a>(
        &self,
        answers: impl IntoIterator<Item = (RequestDigest, &'a str, &'a Response)>,
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
            let mut query = connection
                .prepare("SELECT model, count(*) FROM answers GROUP BY model ORDER BY 2 DESC, 1")?;
            stats.models = query
                .query_map([], |row| Ok((row.get(0)?, unsigned(row.get(1)?))))?
                .collect::<Result<_, _>>()?;
            Ok(stats)
        };
        read().map_err(self.failed("read"))
    }

    /// Drops answers stored before a time, of one model or of all; returns how many, and gives the
    /// space back.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn prune(
        &self,
        before: Option<Timestamp>,
        model: Option<&str>,
    ) -> Result<u64, LedgerError> {
        let connection = self.connection();
        let dropped = connection
            .execute(
                "DELETE FROM answers WHERE (?1 IS NULL OR created < ?1)
                                       AND (?2 IS NULL OR model = ?2)",
                params![before.map(Timestamp::as_second), model],
            )
            .map_err(self.failed("write"))?;
        connection
            .execute_batch("VACUUM")
            .map_err(self.failed("shrink"))?;
        Ok(dropped as u64)
    }

    /// Writes every answer as a JSON line, in the order of the digests; returns how many.
    ///
    /// # Errors
    /// A file that cannot be read, a damaged answer, an output that cannot be written.
    pub fn export(&self, out: &mut dyn Write) -> Result<u64, LedgerError> {
        let connection = self.connection();
        let mut query = connection
            .prepare("SELECT digest, model, created, response FROM answers ORDER BY digest")
            .map_err(self.failed("read"))?;
        let mut rows = query.query([]).map_err(self.failed("read"))?;
        let mut written = 0;
        while let Some(row) = rows.next().map_err(self.failed("read"))? {
            let read = || -> Result<_, rusqlite::Error> {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get::<_, String>(3)?,
                ))
            };
            let (digest, model, created, response) = read().map_err(self.failed("read"))?;
            let digest = RequestDigest(digest);
            let response = serde_json::from_str(&response).map_err(|e| LedgerError::BadRow {
                path: self.path.clone(),
                digest: digest.to_string(),
                what: e.to_string(),
            })?;
            serde_json::to_writer(
                &mut *out,
                &Line {
                    digest,
                    model,
                    created,
                    response,
                },
            )
            .map_err(std::io::Error::from)
            .and_then(|()| out.write_all(b"\n"))
            .map_err(LedgerError::io(Path::new("the export"), "write"))?;
            written += 1;
        }
        out.flush()
            .map_err(LedgerError::io(Path::new("the export"), "write"))?;
        Ok(written)
    }

    /// Reads what [`export`](Self::export) wrote. `name` is the source, for messages.
    ///
    /// # Errors
    /// A line that is no exported answer, named by its number; nothing is imported then.
    pub fn import(&self, input: &mut dyn BufRead, name: &Path) -> Result<Imported, LedgerError> {
        let mut connection = self.connection();
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(self.failed("write"))?;
        let mut imported = Imported::default();
        let (mut bytes, mut number) = (Vec::new(), 0);
        loop {
            bytes.clear();
            number += 1;
            if input
                .read_until(b'\n', &mut bytes)
                .map_err(LedgerError::io(name, "read"))?
                == 0
            {
                break;
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line: Line = serde_json::from_slice(&bytes).map_err(|e| LedgerError::BadLine {
                path: name.to_owned(),
                line: number,
                what: format!("not an exported answer ({e})"),
            })?;
            let here: Option<String> = transaction
                .prepare_cached("SELECT response FROM answers WHERE digest = ?1")
                .and_then(|mut q| {
                    q.query_row([line.digest.as_bytes()], |r| r.get(0))
                        .optional()
                })
                .map_err(self.failed("read"))?;
            match here {
                Some(here)
                    if serde_json::from_str(&here).is_ok_and(|r: Response| r == line.response) =>
                {
                    imported.present += 1;
                }
                Some(_) => imported.different += 1,
                None => {
                    insert(
                        &transaction,
                        &line.digest,
                        &line.model,
                        line.created,
                        &line.response,
                    )
                    .map_err(self.failed("write"))?;
                    imported.added += 1;
                }
            }
        }
        transaction.commit().map_err(self.failed("write"))?;
        Ok(imported)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> LedgerError + use<'_> {
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

/// Makes the table in a new file; returns the format of the file.
fn lay(connection: &mut Connection) -> Result<i64, rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found != 0 || tables != 0 {
        return Ok(found);
    }
    transaction.execute_batch(
        "CREATE TABLE answers (
             digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
             model TEXT NOT NULL,
             created INTEGER NOT NULL,
             response TEXT NOT NULL
         ) STRICT, WITHOUT ROWID;",
    )?;
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    Ok(FORMAT)
}

fn insert_all<'a>(
    connection: &mut Connection,
    answers: impl IntoIterator<Item = (RequestDigest, &'a str, &'a Response)>,
) -> Result<(), rusqlite::Error> {
    let now = Timestamp::now().as_second();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (digest, model, response) in answers {
        insert(&transaction, &digest, model, now, response)?;
    }
    transaction.commit()
}

fn insert(
    connection: &Connection,
    digest: &RequestDigest,
    model: &str,
    created: i64,
    response: &Response,
) -> Result<(), rusqlite::Error> {
    let text = serde_json::to_string(response)
        .map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))?;
    connection
        .prepare_cached(
            "INSERT INTO answers (digest, model, created, response) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (digest) DO NOTHING",
        )?
        .execute(params![digest.as_bytes(), model, created, text])?;
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

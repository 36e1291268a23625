//! Answers as JSON lines, on their way from one cache to another.

use std::io::{BufRead, Write};
use std::path::Path;

use rusqlite::{OptionalExtension, TransactionBehavior};
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Keep, Source, insert};
use super::digest::RequestDigest;
use super::error::LedgerError;
use crate::endpoint::Response;

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
    endpoint: String,
    model: String,
    /// Seconds since 1970.
    created: i64,
    response: Response,
    /// See [`Line::seal`].
    check: String,
}

impl Line {
    /// A digest over all of the line, so that one that was damaged or edited is refused. It is no
    /// signature: an answer is believed because its giver is.
    fn seal(&self) -> Result<String, serde_json::Error> {
        let all = (
            &self.digest,
            &self.endpoint,
            &self.model,
            self.created,
            &self.response,
        );
        let hash = blake3::hash(&serde_json::to_vec(&all)?);
        Ok(hash.to_hex()[..32].to_owned())
    }

    fn read(bytes: &[u8]) -> Result<Self, String> {
        let line: Self =
            serde_json::from_slice(bytes).map_err(|e| format!("not an exported answer ({e})"))?;
        let found = line.seal().map_err(|e| e.to_string())?;
        if found != line.check {
            return Err(format!(
                "`check` is {}, and the line gives {found}",
                line.check
            ));
        }
        Ok(line)
    }
}

impl Cache {
    /// Writes answers as JSON lines, in the order of the digests; returns how many.
    ///
    /// # Errors
    /// A file that cannot be read, a damaged answer, an output that cannot be written.
    pub fn export(&self, out: &mut dyn Write, keep: &Keep<'_>) -> Result<u64, LedgerError> {
        let connection = self.connection();
        let mut query = connection
            .prepare(
                "SELECT digest, endpoint, model, created, response FROM answers
                 WHERE ?1 IS NULL OR model = ?1 ORDER BY digest",
            )
            .map_err(self.failed("read"))?;
        let mut rows = query.query([keep.model]).map_err(self.failed("read"))?;
        let mut written = 0;
        while let Some(row) = rows.next().map_err(self.failed("read"))? {
            let read = || -> Result<_, rusqlite::Error> {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get::<_, String>(4)?,
                ))
            };
            let (digest, endpoint, model, created, response) =
                read().map_err(self.failed("read"))?;
            let digest = RequestDigest(digest);
            if keep.digests.is_some_and(|wanted| !wanted.contains(&digest)) {
                continue;
            }
            let response = serde_json::from_str(&response).map_err(|e| LedgerError::BadRow {
                path: self.path.clone(),
                digest: digest.to_string(),
                what: e.to_string(),
            })?;
            let mut line = Line {
                digest,
                endpoint,
                model,
                created,
                response,
                check: String::new(),
            };
            let sealed = line.seal().map(|check| line.check = check);
            sealed
                .and_then(|()| serde_json::to_writer(&mut *out, &line))
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
            let line = Line::read(&bytes).map_err(|what| LedgerError::BadImport {
                path: name.to_owned(),
                line: number,
                what,
            })?;
            let source = Source {
                endpoint: line.endpoint,
                model: line.model,
            };
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
                        &source,
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
}

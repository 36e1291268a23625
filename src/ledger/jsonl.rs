//! An append-only file of JSON lines that survives a kill in the middle of a write.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::LedgerError;
use super::fault;

/// What may be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read what is there, repair a torn end, append.
    Append,
    /// Only read; the file is left as it is, and a missing one counts as empty.
    ReadOnly,
}

/// Where a line stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    offset: u64,
    bytes: u64,
}

/// A last line without its end, as a kill in mid-write leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    path: PathBuf,
    line: u64,
    bytes: u64,
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: line {} was cut short ({} bytes), as happens when a run is killed while it \
             writes; it was dropped",
            self.path.display(),
            self.line,
            self.bytes
        )
    }
}

#[derive(Debug)]
enum Store {
    File(File),
    Memory(Vec<u8>),
}

/// The file. Each line is handed to the system in one piece before `append` returns, so it
/// outlives the process (though not a power cut).
#[derive(Debug)]
pub struct JsonlLog {
    path: PathBuf,
    store: Store,
    len: u64,
    lines: u64,
    access: Access,
}

impl JsonlLog {
    /// A log that is gone with the process; `name` is for messages.
    pub fn memory(name: &str) -> Self {
        Self {
            path: name.into(),
            store: Store::Memory(Vec::new()),
            len: 0,
            lines: 0,
            access: Access::Append,
        }
    }

    /// Opens or creates a file and shows each whole line to `each`. A line that lacks only its end
    /// is shown too and kept when `each` accepts it; otherwise it is dropped and returned.
    ///
    /// # Errors
    /// A file that cannot be read; a whole line that `each` refuses, named by its number.
    pub fn open(
        path: &Path,
        access: Access,
        mut each: impl FnMut(Span, &[u8]) -> Result<(), String>,
    ) -> Result<(Self, Option<Torn>), LedgerError> {
        let file = match (access, File::open(path)) {
            (Access::ReadOnly, Ok(file)) => file,
            (Access::ReadOnly, Err(e)) if e.kind() == ErrorKind::NotFound => {
                let path = path.to_owned();
                return Ok((
                    Self {
                        path,
                        access,
                        ..Self::memory("")
                    },
                    None,
                ));
            }
            (Access::ReadOnly, Err(e)) => return Err(LedgerError::io(path, "open")(e)),
            (Access::Append, _) => OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .open(path)
                .map_err(LedgerError::io(path, "open"))?,
        };
        let mut reader = BufReader::new(file);
        let (mut len, mut lines, mut torn) = (0, 0, None);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader
                .read_until(b'\n', &mut line)
                .map_err(LedgerError::io(path, "read"))?;
            if read == 0 {
                break;
            }
            let whole = line.pop_if(|last| *last == b'\n').is_some();
            let span = Span {
                offset: len,
                bytes: line.len() as u64,
            };
            match each(span, &line) {
                Ok(()) => {}
                Err(_) if !whole => {
                    torn = Some(Torn {
                        path: path.to_owned(),
                        line: lines + 1,
                        bytes: span.bytes,
                    });
                    break;
                }
                Err(what) => {
                    return Err(LedgerError::BadLine {
                        path: path.to_owned(),
                        line: lines + 1,
                        what,
                    });
                }
            }
            if !whole && access == Access::Append {
                reader
                    .get_mut()
                    .write_all(b"\n")
                    .map_err(LedgerError::io(path, "write"))?;
            }
            len += span.bytes + 1;
            lines += 1;
            if !whole {
                break;
            }
        }
        let file = reader.into_inner();
        if torn.is_some() && access == Access::Append {
            file.set_len(len).map_err(LedgerError::io(path, "write"))?;
        }
        Ok((
            Self {
                path: path.to_owned(),
                store: Store::File(file),
                len,
                lines,
                access,
            },
            torn,
        ))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// A value that is no JSON, a full disk, a file opened read-only. What was written of the line
    /// is taken back, so the next line does not join it.
    pub fn append(&mut self, value: &impl Serialize) -> Result<Span, LedgerError> {
        let line = serde_json::to_vec(value)
            .map_err(|e| LedgerError::io(&self.path, "write")(e.into()))?;
        self.append_line(line)
    }

    /// `line` without its end.
    pub(super) fn append_line(&mut self, mut line: Vec<u8>) -> Result<Span, LedgerError> {
        if self.access == Access::ReadOnly {
            let source = io::Error::from(ErrorKind::ReadOnlyFilesystem);
            return Err(LedgerError::io(&self.path, "write")(source));
        }
        let span = Span {
            offset: self.len,
            bytes: line.len() as u64,
        };
        line.push(b'\n');
        match &mut self.store {
            Store::Memory(bytes) => bytes.extend_from_slice(&line),
            Store::File(file) => {
                fault::before_line(&self.path, &line, |half| drop(file.write_all(half)));
                if let Err(source) = file.write_all(&line) {
                    // When this fails too, the torn line is found at the next opening.
                    let _ = file.set_len(self.len);
                    self.access = Access::ReadOnly;
                    return Err(LedgerError::io(&self.path, "write")(source));
                }
                fault::after_line(&self.path);
            }
        }
        self.len += line.len() as u64;
        self.lines += 1;
        Ok(span)
    }

    /// Reads a line back.
    ///
    /// # Errors
    /// A file that became shorter or unreadable.
    pub fn read(&mut self, span: Span) -> Result<Vec<u8>, LedgerError> {
        let mut line = vec![0; usize::try_from(span.bytes).unwrap_or(usize::MAX)];
        let read = match &mut self.store {
            Store::Memory(bytes) => {
                let mut from = io::Cursor::new(bytes);
                from.set_position(span.offset);
                from.read_exact(&mut line)
            }
            Store::File(file) => file
                .seek(SeekFrom::Start(span.offset))
                .and_then(|_| file.read_exact(&mut line)),
        };
        read.map_err(LedgerError::io(&self.path, "read"))?;
        Ok(line)
    }

    /// Whether lines go to a file, and may be added.
    pub(super) fn is_writable_file(&self) -> bool {
        self.access == Access::Append && matches!(self.store, Store::File(_))
    }

    /// Whole lines.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Bytes of the whole lines.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// No line yet.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// The file, or the name of a log in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

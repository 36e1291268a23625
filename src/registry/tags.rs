//! Tags: names that move from version to version and remember where they were. One file for each,
//! `tags/es-MX/production.jsonl`, one line for each move.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::RegistryError;
use super::store::is_digest;
use crate::text::not_a_file_name;

/// One move of a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// Format of this line; 1.
    pub format: u32,
    /// The version, all 64 digits.
    pub version: String,
    /// When, RFC 3339.
    pub when: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A tag with its history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// Its moves, oldest first; at least one.
    pub moves: Vec<Move>,
}

impl Tag {
    /// The digest that it names now.
    pub fn version(&self) -> &str {
        self.moves.last().map_or("", |m| &m.version)
    }
}

/// The tags of a task.
#[derive(Clone, Debug)]
pub struct Tags {
    folder: PathBuf,
}

impl Tags {
    /// The tags in a folder.
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Every tag, by name.
    ///
    /// # Errors
    /// A folder that cannot be read, a damaged file by name and line.
    pub fn list(&self) -> Result<Vec<Tag>, RegistryError> {
        let mut out = Vec::new();
        let mut folders = vec![(self.folder.clone(), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            if !folder.is_dir() {
                continue;
            }
            for entry in std::fs::read_dir(&folder).map_err(RegistryError::io(&folder))? {
                let entry = entry.map_err(RegistryError::io(&folder))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                // A link could lead out of the registry, or in circles.
                let kind = entry.file_type().map_err(RegistryError::io(&folder))?;
                if kind.is_dir() {
                    folders.push((entry.path(), format!("{prefix}{name}/")));
                } else if let Some(name) = name.strip_suffix(".jsonl").filter(|_| kind.is_file()) {
                    let mut file =
                        File::open(entry.path()).map_err(RegistryError::io(&entry.path()))?;
                    file.lock_shared()
                        .map_err(RegistryError::io(&entry.path()))?;
                    let moves = read(&mut file, &entry.path())?;
                    if !moves.is_empty() {
                        let name = format!("{prefix}{name}");
                        out.push(Tag { name, moves });
                    }
                }
            }
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    /// Moves a tag, or makes it; says where it was before. A tag that is there already stays.
    ///
    /// # Errors
    /// A name that no tag can have; a damaged file; a file that cannot be written.
    pub fn put(&self, name: &str, to: Move) -> Result<Option<String>, RegistryError> {
        let path = self.path(name)?;
        let parent = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(parent).map_err(RegistryError::io(parent))?;
        self.stays_inside(name, parent, &path)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(RegistryError::io(&path))?;
        file.lock().map_err(RegistryError::io(&path))?;
        let moves = read(&mut file, &path)?;
        let before = moves.last().map(|m| m.version.clone());
        if before.as_ref() == Some(&to.version) {
            return Ok(before);
        }
        let mut line = serde_json::to_string(&to)
            .map_err(|e| RegistryError::malformed(&path, e.to_string()))?;
        line.push('\n');
        if !ends_a_line(&path)? {
            line.insert(0, '\n');
        }
        // One write: a reader sees the whole line or none of it.
        file.write_all(line.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(RegistryError::io(&path))?;
        Ok(before)
    }

    fn path(&self, name: &str) -> Result<PathBuf, RegistryError> {
        let refused = |why: &str| RegistryError::TagName {
            name: name.to_owned(),
            why: why.to_owned(),
        };
        if is_digest(name) {
            return Err(refused("it would be read as the digits of a version"));
        }
        if name.len() > 200 {
            return Err(refused("it is longer than 200 bytes"));
        }
        if name.starts_with('-') {
            return Err(refused("it begins with a dash"));
        }
        let mut path = self.folder.clone();
        for part in name.split('/') {
            if let Some(why) = not_a_file_name(part) {
                let why = format!("a part between slashes is a file name, and {why}");
                return Err(refused(&why));
            }
            if part.ends_with(".jsonl") || part.ends_with(".toml") {
                return Err(refused("a part of it ends like a file"));
            }
            path.push(part);
        }
        for tag in self.list()? {
            if tag.name != name && tag.name.to_lowercase() == name.to_lowercase() {
                let why = format!(
                    "there is `{}`, which some systems cannot tell from it",
                    tag.name
                );
                return Err(refused(&why));
            }
        }
        path.as_mut_os_string().push(".jsonl");
        Ok(path)
    }

    /// A registry from elsewhere must not make this program write outside of it through a link.
    fn stays_inside(&self, name: &str, parent: &Path, path: &Path) -> Result<(), RegistryError> {
        let root = self
            .folder
            .canonicalize()
            .map_err(RegistryError::io(&self.folder))?;
        let real = parent.canonicalize().map_err(RegistryError::io(parent))?;
        let link = std::fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
        if link || !real.starts_with(root) {
            let why = "a link in its way leads out of the registry".into();
            let name = name.to_owned();
            return Err(RegistryError::TagName { name, why });
        }
        Ok(())
    }
}

fn read(file: &mut File, path: &Path) -> Result<Vec<Move>, RegistryError> {
    let mut text = String::new();
    file.read_to_string(&mut text)
        .map_err(RegistryError::io(path))?;
    let mut moves = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.is_empty()) {
        let bad = |what: String| RegistryError::malformed(path, format!("line {}: {what}", n + 1));
        let one: Move = serde_json::from_str(line).map_err(|e| bad(e.to_string()))?;
        if one.format != 1 {
            return Err(bad(format!(
                "format {} is not known to this program",
                one.format
            )));
        }
        if !is_digest(&one.version) || one.version.len() != 64 {
            return Err(bad("`version` is no digest of 64 digits".into()));
        }
        moves.push(one);
    }
    Ok(moves)
}

/// Whether what is appended begins a line of its own; an editor may have taken the last line end.
fn ends_a_line(path: &Path) -> Result<bool, RegistryError> {
    let bytes = std::fs::read(path).map_err(RegistryError::io(path))?;
    Ok(bytes.last().is_none_or(|b| *b == b'\n'))
}

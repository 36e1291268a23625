//! Which versions nothing leads to any more.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::error::RegistryError;
use super::store::Registry;

/// What may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// Versions that no tag names or named, nor any version that one of these was made of.
    pub versions: Vec<PathBuf>,
    /// What an interrupted write left.
    pub leftovers: Vec<PathBuf>,
    /// Versions that stay.
    pub kept: usize,
    /// Damaged versions; they stay, since nobody can say what they were.
    pub damaged: Vec<PathBuf>,
}

/// Looks for what may go; removes nothing.
///
/// # Errors
/// A folder or a tag that cannot be read: then nothing may go.
pub fn garbage(registry: &Registry) -> Result<Garbage, RegistryError> {
    let mut out = Garbage::default();
    let mut read = Vec::new();
    for listed in registry.list()? {
        match listed.read {
            Ok((version, lineage, _)) => read.push((listed.dir, version.digest(), lineage)),
            Err(_) => out.damaged.push(listed.dir),
        }
    }
    let mut wanted: Vec<String> = Vec::new();
    for tag in registry.tags().list()? {
        wanted.extend(tag.moves.into_iter().map(|m| m.version));
    }
    let mut reached = BTreeSet::new();
    while let Some(digest) = wanted.pop() {
        if !reached.insert(digest.clone()) {
            continue;
        }
        if let Some((_, _, lineage)) = read.iter().find(|(_, d, _)| *d == digest) {
            wanted.extend(lineage.parents.iter().cloned());
        }
    }
    for (dir, digest, _) in read {
        match reached.contains(&digest) {
            true => out.kept += 1,
            false => out.versions.push(dir),
        }
    }
    let versions = registry.versions();
    if versions.is_dir() {
        for entry in std::fs::read_dir(&versions).map_err(RegistryError::io(&versions))? {
            let path = entry.map_err(RegistryError::io(&versions))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') && name.ends_with(".part") {
                out.leftovers.push(path);
            }
        }
    }
    out.leftovers.sort();
    Ok(out)
}

/// Removes it.
///
/// # Errors
/// A folder that cannot be removed.
pub fn collect(garbage: &Garbage) -> Result<(), RegistryError> {
    for dir in &garbage.versions {
        // Out of the way first, so that a kill leaves a leftover and no half version.
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let part = dir.with_file_name(format!(".{name}.gone.part"));
        std::fs::rename(dir, &part).map_err(RegistryError::io(dir))?;
        std::fs::remove_dir_all(&part).map_err(RegistryError::io(&part))?;
    }
    for path in &garbage.leftovers {
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        };
        removed.map_err(RegistryError::io(path))?;
    }
    Ok(())
}

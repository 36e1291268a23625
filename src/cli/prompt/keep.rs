//! `pluralis prompt tag | import | gc`.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;

use super::RegistryArgs;
use crate::cli::{Failure, out};
use crate::experiment;
use crate::registry::{Found, Move, Parcel, Put, Registry, collect, garbage};

/// What became of versions, one line each.
pub fn registered(put: &[Put]) -> String {
    let mut text = String::new();
    for one in put {
        let what = match (one.new, one.evidence) {
            (true, _) => "new",
            (false, true) => "was here; figures added",
            (false, false) => "was here",
        };
        let _ = writeln!(text, "  version   {} ({what})", tidy(&one.dir).display());
    }
    text
}

/// A path to show: without `folder/..` in it, where the folder is no link.
pub fn tidy(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        let back = part == Component::ParentDir
            && matches!(out.components().next_back(), Some(Component::Normal(_)))
            && !out.is_symlink();
        match back {
            true => {
                out.pop();
            }
            false => out.push(part),
        }
    }
    out
}

pub fn tag(
    registry: &RegistryArgs,
    name: Option<&str>,
    version: Option<&str>,
    note: Option<&str>,
) -> Result<(), Failure> {
    let Some(version) = version else {
        return tags(registry, name);
    };
    let name = name.unwrap_or_default();
    let found = registry.find(version)?;
    let Some(dir) = found.dir.as_ref().filter(|d| in_registry(d, &found)) else {
        let help = "take it in first: `pluralis prompt import PATH`";
        let what = "a tag names a version of the registry, and this one is not in it";
        return Err(Failure::input_help(what, Some(help.into())));
    };
    let _ = dir;
    // `TASK:NAME` names the task that the version has anyway.
    let name = name.split_once(':').map_or(name, |(_, name)| name);
    let to = Move {
        format: 1,
        version: found.version.digest(),
        when: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        note: note.map(str::to_owned),
    };
    let before = Registry::of(&found.task_folder).tags().put(name, to)?;
    let short = found.version.short();
    out::line(&match before {
        None => format!("{name} is {short}"),
        Some(before) if before == found.version.digest() => format!("{name} was {short} already"),
        Some(before) => format!("{name} is {short}, and was {}", &before[..12]),
    })
}

fn in_registry(dir: &Path, found: &Found) -> bool {
    dir.parent() == Some(&found.task_folder.join("versions"))
        || dir
            .canonicalize()
            .ok()
            .zip(found.task_folder.join("versions").canonicalize().ok())
            .is_some_and(|(dir, versions)| dir.parent() == Some(&versions))
}

fn tags(registry: &RegistryArgs, name: Option<&str>) -> Result<(), Failure> {
    let mut text = String::new();
    for one in registry.all()? {
        for tag in one.tags().list()? {
            match name {
                None => {
                    let _ = writeln!(text, "{}  {}", &tag.version()[..12], tag.name);
                }
                Some(name) if name == tag.name => {
                    for m in &tag.moves {
                        let note = m.note.as_deref().unwrap_or_default();
                        let _ = writeln!(text, "{}  {}  {note}", m.when, &m.version[..12]);
                    }
                }
                Some(_) => {}
            }
        }
    }
    if let (true, Some(name)) = (text.is_empty(), name) {
        let help = "give it one: `pluralis prompt tag NAME VERSION`";
        return Err(Failure::input_help(
            format!("there is no tag `{name}`"),
            Some(help.into()),
        ));
    }
    out::text(&text)
}

pub fn import(registry: &RegistryArgs, path: &Path) -> Result<(), Failure> {
    if !path.exists() {
        return Err(Failure::input(format!(
            "there is nothing at {}",
            path.display()
        )));
    }
    let spec = path.display().to_string();
    let found = registry.find(&spec)?;
    // `RUN` and `RUN/best` are the same run.
    let run = match path.file_name() {
        Some(name) if name == "best" => path.parent().unwrap_or(path),
        _ => path,
    };
    let put = if run.join("best").is_dir() && run.join("config.toml").is_file() {
        experiment::register(run, &found.task_folder)?
    } else {
        let to = target(registry, &found)?;
        let mut put = Vec::new();
        take(registry, &to, &found, &mut put)?;
        put
    };
    out::text(&registered(&put))
}

/// The registry of the version's task here, which need not be the one that it lies in.
fn target(registry: &RegistryArgs, found: &Found) -> Result<Registry, Failure> {
    let all = registry.all()?;
    let mut known = Vec::new();
    for one in all {
        let path = one.folder().join("task.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|e| Failure::machine(format!("{}: {e}", path.display())))?;
        if let Ok(task) = crate::task::parse_task(&text, None) {
            if task.name == found.version.task {
                return Ok(one);
            }
            known.push(task.name);
        }
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let what = format!("there is no task `{}` here", found.version.task);
    let help = crate::text::did_you_mean(&found.version.task, &known);
    Err(Failure::input_help(what, Some(help)))
}

/// Takes a version in, after those that it was made of, where they lie beside it.
fn take(
    registry: &RegistryArgs,
    to: &Registry,
    found: &Found,
    put: &mut Vec<Put>,
) -> Result<(), Failure> {
    let beside = found.dir.as_ref().and_then(|d| d.parent());
    for parent in &found.lineage.parents {
        let Some(dir) = beside.map(|b| b.join(parent.get(..12).unwrap_or(parent))) else {
            continue;
        };
        let there = to
            .versions()
            .join(parent.get(..12).unwrap_or(parent))
            .is_dir();
        if dir.join("version.toml").is_file() && !there {
            let parent = registry.find(&dir.display().to_string())?;
            take(registry, to, &parent, put)?;
        }
    }
    let run = found
        .dir
        .as_ref()
        .map(|d| d.join("run.toml"))
        .filter(|p| p.is_file());
    let run = run
        .map(|path| {
            std::fs::read_to_string(&path)
                .map_err(|e| Failure::machine(format!("{}: {e}", path.display())))
        })
        .transpose()?;
    put.push(to.put(&Parcel {
        version: found.version.clone(),
        lineage: found.lineage.clone(),
        task: found.task_text.clone(),
        run,
        evidence: found.evidence.measured.clone(),
    })?);
    Ok(())
}

pub fn gc(registry: &RegistryArgs, delete: bool) -> Result<(), Failure> {
    let mut text = String::new();
    let (mut gone, mut kept) = (0, 0);
    for one in registry.all()? {
        let found = garbage(&one)?;
        for dir in &found.damaged {
            out::note(&format!("{} is damaged and stays", dir.display()));
        }
        for dir in found.versions.iter().chain(&found.leftovers) {
            let _ = writeln!(text, "{}", dir.display());
        }
        if delete {
            collect(&found)?;
        }
        gone += found.versions.len() + found.leftovers.len();
        kept += found.kept;
    }
    let _ = match (gone, delete) {
        (0, _) => writeln!(
            text,
            "nothing to remove; {kept} versions are led to by tags"
        ),
        (n, true) => writeln!(text, "{n} removed; {kept} versions are led to by tags"),
        (n, false) => writeln!(
            text,
            "{n} would be removed with --delete; {kept} versions are led to by tags"
        ),
    };
    out::text(&text)
}

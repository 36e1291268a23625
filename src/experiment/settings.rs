//! Files that a user writes, read into a checked type: TOML with defaults, `--set` overrides, and
//! errors with the place. Must not know what the keys mean.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::config::ConfigError;
use crate::text::{Fault, decode, key_advice};

/// The contents of a file that is read by [`load`].
pub(super) trait Settings: DeserializeOwned {
    /// The cache that it names.
    fn cache(&self) -> Option<&Path>;

    /// What must not be in it, wherever it comes from: a name that is no folder's, a key in the place
    /// of the variable that holds it. With what to write instead.
    fn dangerous(&self) -> Option<(String, &'static str)>;
}

/// The text of a file.
pub(super) fn read_text(path: &Path) -> Result<String, ConfigError> {
    let bytes = std::fs::read(path).map_err(|source| ConfigError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(decode(path, bytes).map_err(Box::new)?)
}

/// Reads a file and applies overrides such as `budget.calls=300`, one at a time, so that an error
/// names the override that brought it.
pub(super) fn load<T: Settings>(path: &Path, overrides: &[String]) -> Result<T, ConfigError> {
    let text = read_text(path)?;
    let from_toml = |e: &toml::de::Error| Box::new(Fault::toml(path, &text, e));
    let mut read: T = toml::from_str(&text).map_err(|e| from_toml(&e))?;
    if let Some(cache) = read.cache().filter(|c| leaves_its_folder(c)) {
        let what = format!(
            "the cache `{}` lies outside this file's folder",
            cache.display()
        );
        let advice = "a file from elsewhere must not choose where this machine is written to: \
                      name a file in its folder, or say --set cache=PATH";
        return Err(Box::new(Fault::naming(path, &text, what, advice)).into());
    }
    if let Some((what, advice)) = read.dangerous() {
        // The key's own text is not shown: it may be a secret.
        let shown = if what.contains("key_env") { "" } else { &text };
        return Err(Box::new(Fault::naming(path, shown, what, advice)).into());
    }
    let mut table: toml::Table = toml::from_str(&text).map_err(|e| from_toml(&e))?;
    for given in overrides {
        set(&mut table, given)?;
        let over: Result<T, toml::de::Error> = table.clone().try_into();
        read = over.map_err(|e| ConfigError::Set {
            given: given.clone(),
            message: e.message().to_owned(),
            help: key_advice(e.message()),
        })?;
        if let Some((message, help)) = read.dangerous() {
            let secret = message.contains("key_env");
            return Err(ConfigError::Set {
                given: if secret {
                    "…key_env=…".into()
                } else {
                    given.clone()
                },
                message,
                help: Some(help.to_owned()),
            });
        }
    }
    Ok(read)
}

/// Puts `a.b=value` into a table; the value is TOML, or text where it does not parse as TOML.
fn set(table: &mut toml::Table, given: &str) -> Result<(), ConfigError> {
    let wrong = |message: &str| ConfigError::Set {
        given: given.to_owned(),
        message: message.to_owned(),
        help: Some("write it as section.key=value, as in budget.calls=300".into()),
    };
    let (key, value) = given
        .split_once('=')
        .ok_or_else(|| wrong("there is no `=`"))?;
    let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut t| t.remove("v"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut parts: Vec<&str> = key.trim().split('.').collect();
    let Some(last) = parts.pop().filter(|p| !p.is_empty()) else {
        return Err(wrong("the key is empty"));
    };
    let mut here = table;
    for part in parts {
        let next = here
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()));
        here = next
            .as_table_mut()
            .ok_or_else(|| wrong(&format!("`{part}` is a value, not a section")))?;
    }
    here.insert(last.to_owned(), value);
    Ok(())
}

/// Whether a relative path may lead out of the folder that it is relative to.
fn leaves_its_folder(path: &Path) -> bool {
    use std::path::Component::{CurDir, Normal};
    path.components()
        .any(|part| !matches!(part, Normal(_) | CurDir))
}

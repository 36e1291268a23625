//! Reads the benchmark's CSV files by their headers: `attack_prompts.csv` and
//! `scenario_prompts.csv`, and tables that name their columns otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::data::{DataError, Row, Table, read_table};
use crate::locale::Locale;
use crate::text::{did_you_mean, normalise, quoted};

/// What is read -> the column that holds it, in place of the benchmark's own names.
pub type Columns = BTreeMap<String, String>;

/// Whether a subcategory is the same in every country, or was chosen for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// The same in every country.
    Shared,
    /// Chosen for the country.
    Flexible,
}

/// In which language the prompts are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Language {
    /// The country's own.
    #[default]
    Local,
    /// English.
    English,
}

/// A file of prompts.
#[derive(Clone, Debug)]
pub struct PromptFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// Whose prompts they are; absent: a column says it, or the folder's name (`south_korea`).
    pub locale: Option<&'a Locale>,
    /// Which text is taken.
    pub language: Language,
    /// Columns with other names.
    pub columns: &'a Columns,
}

/// One prompt of the benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// As in the file; unique in its locale.
    pub id: String,
    /// Whose prompt it is.
    pub locale: Locale,
    /// Prompts of one question depend on each other.
    pub group: String,
    /// As in the file; empty where it has none.
    pub category: String,
    /// As in the file, in English where it is there.
    pub subcategory: String,
    /// Where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// Texts by the names of the task's fields.
    pub fields: BTreeMap<String, String>,
}

/// Names of the things that are read, each with the names of its column, the likeliest first.
const JAILBREAK: &[(&str, &[&str])] = &[
    ("id", &["id"]),
    (
        "prompt",
        &["attack_prompt", "attack_prompt_local", "prompt"],
    ),
    ("category", &["category"]),
    ("subcategory", &["subcategory_english", "subcategory"]),
    ("sharing", &["subcategory_type", "sharing", "type"]),
    (
        "group",
        &["base_query_english", "base_query_local", "base_query"],
    ),
    ("locale", &["locale", "country"]),
    ("context", &["country_context", "context"]),
];
const CULTURAL: &[(&str, &[&str])] = &[
    ("id", &["id"]),
    ("scenario", &["scenario_local", "scenario"]),
    ("hidden_violation", &["hidden_violation"]),
    ("category", &["category"]),
    ("subcategory", &["sensitivity_english", "sensitivity"]),
    ("sharing", &["subcategory_type", "sharing", "type"]),
    (
        "group",
        &["base_query_english", "sensitivity_english", "base_query"],
    ),
    ("locale", &["locale", "country"]),
];
const ENGLISH: &[(&str, &[&str])] = &[
    ("prompt", &["attack_prompt_english"]),
    ("scenario", &["scenario_english"]),
];

/// Without these a file is none of the benchmark's.
fn needed(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Jailbreak => &["prompt", "id", "category"],
        Kind::Cultural => &["scenario", "id", "hidden_violation", "category"],
    }
}

/// Where the columns of a table are.
pub(super) struct Header<'a> {
    pub table: &'a Table,
    places: BTreeMap<&'a str, usize>,
}

impl<'a> Header<'a> {
    /// Finds the columns: by the mapping, else by the known names.
    pub fn new(
        table: &'a Table,
        known: &[(&'a str, &[&str])],
        needed: &[&str],
        columns: &Columns,
    ) -> Result<Self, DataError> {
        let mut places = BTreeMap::new();
        for (name, candidates) in known {
            let place = match columns.get(*name) {
                Some(column) => Some(table.column(column)?),
                None => candidates.iter().find_map(|c| table.column(c).ok()),
            };
            if let Some(place) = place {
                places.insert(*name, place);
            } else if needed.contains(name) {
                let shown = candidates.join("`, `");
                let what = format!("there is no column for `{name}`: looked for `{shown}`");
                let advice = format!(
                    "say which it is, as in columns = {{ {name} = \"…\" }}; the table has {}",
                    listed(table)
                );
                return Err(DataError::new(what, advice).in_file(&table.file));
            }
        }
        Ok(Self { table, places })
    }

    /// The text of a cell; `None` where it is blank or the table has no such column.
    pub fn get(&self, row: &Row, name: &str) -> Option<String> {
        let text = row.cells[*self.places.get(name)?].trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// A cell that must be filled.
    pub fn need(&self, row: &Row, name: &str) -> Result<String, DataError> {
        self.get(row, name).ok_or_else(|| {
            let column = self.places.get(name).map(|&at| &self.table.header[at]);
            let e = DataError::new("the cell is blank", "fill it, or remove the row");
            e.at_row(row.number)
                .at_column(column.map_or(name, String::as_str))
                .in_file(&self.table.file)
        })
    }

    /// Whose row it is: by its column, else as given for the file, else by the folder's name.
    pub fn locale(&self, row: &Row, given: Option<&Locale>) -> Result<Locale, DataError> {
        let refuse = |what: String| {
            let advice = "write a tag such as ko-KR: locale = \"ko-KR\" for the whole file";
            DataError::new(what, advice)
                .at_row(row.number)
                .in_file(&self.table.file)
        };
        if let Some(given) = given {
            return Ok(given.clone());
        }
        if let Some(text) = self.get(row, "locale") {
            return country(&text)
                .ok_or_else(|| refuse(format!("{} is no locale or country", quoted(&text))));
        }
        let path = Path::new(&self.table.file);
        let folder = path
            .parent()
            .and_then(Path::file_name)
            .and_then(|f| f.to_str());
        folder
            .and_then(country)
            .ok_or_else(|| refuse("nothing says which country these rows are of".into()))
    }
}

fn listed(table: &Table) -> String {
    let names: Vec<String> = table.header.iter().take(20).map(|h| quoted(h)).collect();
    names.join(", ")
}

/// Mapped names that nothing reads are mistakes.
pub(super) fn check_columns(
    columns: &Columns,
    known: &[&str],
    file: &Path,
) -> Result<(), DataError> {
    match columns.keys().find(|k| !known.contains(&k.as_str())) {
        None => Ok(()),
        Some(name) => {
            let what = format!("columns names {}, which is not read", quoted(name));
            Err(DataError::new(what, did_you_mean(name, known)).in_file(file.display().to_string()))
        }
    }
}

/// The languages of the benchmark's countries, by the names of its folders.
const COUNTRIES: &[(&str, &str)] = &[
    ("france", "fr-FR"),
    ("germany", "de-DE"),
    ("india", "hi-IN"),
    ("indonesia", "id-ID"),
    ("japan", "ja-JP"),
    ("south korea", "ko-KR"),
    ("korea", "ko-KR"),
    ("spain", "es-ES"),
    ("turkey", "tr-TR"),
    ("united arab emirates", "ar-AE"),
    ("uae", "ar-AE"),
    ("united states", "en-US"),
    ("usa", "en-US"),
];

/// A tag, or the name of one of the benchmark's countries.
fn country(text: &str) -> Option<Locale> {
    let name = normalise(&text.replace('_', " "));
    match COUNTRIES.iter().find(|(country, _)| *country == name) {
        Some((_, tag)) => Locale::parse(tag).ok(),
        None => Locale::parse(text).ok().filter(|l| l.region().is_some()),
    }
}

/// Reads a table whose header may stand below titles: the first row that has one of the names.
pub(super) fn open(path: &Path, names: &[&str]) -> Result<Table, DataError> {
    for name in names {
        if let Ok(table) = read_table(path, &[name]) {
            return Ok(table);
        }
    }
    read_table(path, &[])
}

/// Reads one file of prompts.
///
/// # Errors
/// A file that cannot be read, a column that is missing (named, with those that are there), a blank
/// id or prompt, an id that is there twice with another text, a row without a country.
pub fn read_prompts(kind: Kind, file: &PromptFile<'_>) -> Result<Vec<Prompt>, DataError> {
    let own = match kind {
        Kind::Jailbreak => JAILBREAK,
        Kind::Cultural => CULTURAL,
    };
    let names: Vec<&str> = own.iter().map(|(name, _)| *name).collect();
    check_columns(file.columns, &names, file.path)?;
    let known: Vec<(&str, &[&str])> = own
        .iter()
        .map(|&(name, columns)| match file.language {
            Language::English => *ENGLISH
                .iter()
                .find(|(n, _)| *n == name)
                .unwrap_or(&(name, columns)),
            Language::Local => (name, columns),
        })
        .collect();
    let sent = known.iter().find(|(n, _)| *n == kind.sent());
    let mapped = file.columns.get(kind.sent()).map(String::as_str);
    let wanted: Vec<&str> = mapped
        .into_iter()
        .chain(sent.into_iter().flat_map(|(_, c)| c.iter().copied()))
        .collect();
    let table = open(file.path, &wanted)?;
    let header = Header::new(&table, &known, needed(kind), file.columns)?;
    let mut out: Vec<Prompt> = Vec::new();
    let mut seen: BTreeMap<(Locale, String), (usize, usize)> = BTreeMap::new();
    for row in &table.rows {
        let prompt = prompt(kind, &header, row, file.locale)?;
        let key = (prompt.locale.clone(), prompt.id.clone());
        match seen.get(&key) {
            None => {
                seen.insert(key, (row.number, out.len()));
                out.push(prompt);
            }
            // A table of responses holds a prompt once for each model.
            Some((_, at)) if out[*at].fields == prompt.fields => {}
            Some((first, _)) => {
                let what = format!(
                    "the id {} is already that of row {first}, with another text",
                    quoted(&prompt.id)
                );
                let e = DataError::new(what, "ids are unique in a country; rename one");
                return Err(e.at_row(row.number).in_file(&table.file));
            }
        }
    }
    Ok(out)
}

fn prompt(
    kind: Kind,
    header: &Header<'_>,
    row: &Row,
    given: Option<&Locale>,
) -> Result<Prompt, DataError> {
    let id = header.need(row, "id")?;
    let mut fields = BTreeMap::from([(kind.sent().to_owned(), header.need(row, kind.sent())?)]);
    match kind {
        Kind::Jailbreak => {
            if let Some(context) = header.get(row, "context") {
                fields.insert("context".into(), context);
            }
        }
        Kind::Cultural => {
            let hidden = header.need(row, "hidden_violation")?;
            fields.insert("hidden_violation".into(), hidden);
        }
    }
    let sharing = header
        .get(row, "sharing")
        .map(|text| {
            sharing(&text).ok_or_else(|| {
                let what = format!("{} is neither shared nor flexible", quoted(&text));
                let advice = "write shared or flexible, or map `sharing` to another column";
                DataError::new(what, advice)
                    .at_row(row.number)
                    .in_file(&header.table.file)
            })
        })
        .transpose()?;
    Ok(Prompt {
        locale: header.locale(row, given)?,
        group: normalise(&header.get(row, "group").unwrap_or_else(|| id.clone())),
        category: header.get(row, "category").unwrap_or_default(),
        subcategory: header.get(row, "subcategory").unwrap_or_default(),
        sharing,
        fields,
        id,
    })
}

fn sharing(text: &str) -> Option<Sharing> {
    match normalise(text).as_str() {
        "shared" | "common" | "universal" => Some(Sharing::Shared),
        "flexible" | "country-specific" | "local" | "specific" => Some(Sharing::Flexible),
        _ => None,
    }
}

/// Where no column says it: a subcategory that every country has, by its English name, is shared, and
/// any other is flexible. From one country alone nothing is said.
pub fn share(prompts: &mut [Prompt]) {
    if prompts.iter().any(|p| p.sharing.is_some()) {
        return;
    }
    let mut of: BTreeMap<String, BTreeSet<Locale>> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for p in prompts.iter().filter(|p| !p.subcategory.is_empty()) {
        let known = of.entry(normalise(&p.subcategory)).or_default();
        known.insert(p.locale.clone());
        all.insert(p.locale.clone());
    }
    if all.len() < 2 {
        return;
    }
    for p in prompts.iter_mut() {
        p.sharing = of.get(&normalise(&p.subcategory)).map(|countries| {
            match countries.len() == all.len() {
                true => Sharing::Shared,
                false => Sharing::Flexible,
            }
        });
    }
}

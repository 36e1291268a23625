//! Owns the files of SeeGULL Multilingual, one per language and country, in its two kinds.
//! Must not know what a task makes of the votes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::{Import, NoteKind, Notes, is_error_value};
use crate::data::groups::Groups;
use crate::data::load::io_error;
use crate::data::{DataError, ItemRecord, Row, Table, normalise, read_table};
use crate::locale::Locale;

/// Which of the data set's two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pairs of identity and attribute; criterion `stereotype` with the labels S, NS and U.
    Stereotypes,
    /// Attributes; criterion `offensiveness` with the labels NO, O1, O2, O3, O4 and U.
    Offensiveness,
}

/// The columns of a kind and what they become.
struct Shape {
    folder: &'static str,
    criterion: &'static str,
    letter: char,
    /// Column and field; the last is the translation of the attribute, optional as the others that
    /// end in `gloss`.
    fields: &'static [(&'static str, &'static str)],
    votes: &'static [(&'static str, &'static str)],
    attribute: &'static str,
    gloss: &'static str,
}

const MEAN: &str = "mean_offensive_score";

static STEREOTYPES: Shape = Shape {
    folder: "stereotypes",
    criterion: "stereotype",
    letter: 's',
    fields: &[
        ("identity", "identity"),
        ("attribute", "attribute"),
        ("translated_identity", "identity_gloss"),
        ("translated_attribute_list", "attribute_gloss"),
    ],
    votes: &[
        ("stereotype", "S"),
        ("non_stereotype", "NS"),
        ("unsure", "U"),
    ],
    attribute: "attribute",
    gloss: "attribute_gloss",
};

static OFFENSIVENESS: Shape = Shape {
    folder: "offensiveness",
    criterion: "offensiveness",
    letter: 'o',
    fields: &[
        ("Attribute", "attribute"),
        ("Translated Attribute", "gloss"),
    ],
    votes: &[
        ("Not Offensive (NO)", "NO"),
        ("Slightly Offensive (o1)", "O1"),
        ("Somewhat Offensive (O2)", "O2"),
        ("Moderately Offensive (O3)", "O3"),
        ("Extremely Offensive (O4)", "O4"),
        ("Unsure(U)", "U"),
    ],
    attribute: "attribute",
    gloss: "gloss",
};

impl Kind {
    fn shape(self) -> &'static Shape {
        match self {
            Kind::Stereotypes => &STEREOTYPES,
            Kind::Offensiveness => &OFFENSIVENESS,
        }
    }

    /// The kind by its folder's name (`stereotypes`, `offensiveness`).
    pub fn parse(name: &str) -> Option<Self> {
        match name.trim().to_lowercase().as_str() {
            "stereotypes" | "stereotype" => Some(Kind::Stereotypes),
            "offensiveness" => Some(Kind::Offensiveness),
            _ => None,
        }
    }
}

/// Reads every CSV file of a folder (the kind's own, or the one above it). The locale comes from
/// the file's name, `Spanish (es) in Mexico.csv`; ids are `es-MX/o17`, the letter for the kind and
/// the number for the row of the file. Every row is kept or noted as left out. Rows that share a
/// translation or an attribute, in any locale, share a group.
///
/// # Errors
/// A folder without such files, a file name that gives no locale, or a file that is no table with
/// the kind's columns.
pub fn import(dir: &Path, kind: Kind) -> Result<Import, DataError> {
    let shape = kind.shape();
    let mut import = Import::default();
    for path in files(dir, shape)? {
        let locale = locale_of(&path)?;
        let mut wanted: Vec<_> = shape.fields.iter().map(|(column, _)| *column).collect();
        wanted.extend(shape.votes.iter().map(|(column, _)| *column));
        let table = read_table(&path, &wanted)?;
        read_file(&table, &locale, shape, &mut import)?;
    }
    set_groups(shape, &mut import);
    Ok(import)
}

fn files(dir: &Path, shape: &Shape) -> Result<Vec<PathBuf>, DataError> {
    let inner = dir.join(shape.folder);
    let dir = if inner.is_dir() {
        inner
    } else {
        dir.to_owned()
    };
    let name = dir.display().to_string();
    let entries = std::fs::read_dir(&dir).map_err(|e| io_error("read", &name, &e))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| io_error("read", &name, &e))?.path();
        let is_csv = path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        if is_csv && path.is_file() {
            paths.push(path);
        }
    }
    // The order of a folder differs between machines.
    paths.sort();
    if paths.is_empty() {
        let advice = "name the folder that holds files such as `Spanish (es) in Mexico.csv`";
        return Err(DataError::new("there is no CSV file in it", advice).in_file(name));
    }
    Ok(paths)
}

/// The locale of `Spanish (es) in Mexico.csv`.
fn locale_of(path: &Path) -> Result<Locale, DataError> {
    let stem = path
        .file_stem()
        .and_then(|s| s.to_str())
        .unwrap_or_default();
    let parts = stem
        .split_once('(')
        .and_then(|(_, rest)| rest.split_once(')'))
        .and_then(|(code, rest)| Some((code.trim(), rest.trim().strip_prefix("in ")?.trim())));
    let file = path.display().to_string();
    let advice = "files are named like `Spanish (es) in Mexico.csv`";
    let Some((code, country)) = parts else {
        return Err(DataError::new("the file's name gives no locale", advice).in_file(file));
    };
    Locale::from_language_and_country(code, country)
        .map_err(|e| DataError::new(e.to_string(), advice).in_file(file))
}

/// Indices of the columns that a shape needs, and of the mean.
struct Columns {
    fields: Vec<usize>,
    votes: Vec<usize>,
    mean: Option<usize>,
}

fn read_file(
    table: &Table,
    locale: &Locale,
    shape: &Shape,
    import: &mut Import,
) -> Result<(), DataError> {
    let indices = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(column, _)| table.column(column))
            .collect::<Result<Vec<_>, _>>()
    };
    let columns = Columns {
        fields: indices(shape.fields)?,
        votes: indices(shape.votes)?,
        mean: table.column(MEAN).ok(),
    };
    let mut notes = Notes::new(&table.file);
    let mut seen = HashMap::new();
    for row in &table.rows {
        import.rows += 1;
        let Some(record) = read_row(row, locale, shape, &columns, &mut notes) else {
            continue;
        };
        let own = shape.fields.iter().filter(|(_, f)| !f.ends_with("gloss"));
        let key: Vec<_> = own
            .map(|(_, f)| record.fields.get(*f).map(|t| normalise(t)))
            .collect();
        if let Some(first) = seen.get(&key) {
            let what = format!("the text equals that of row {first} after normalisation");
            notes.add(row.number, "", NoteKind::Duplicate, what);
        } else {
            seen.insert(key, row.number);
        }
        import.records.push(record);
    }
    import.notes.extend(notes.notes);
    Ok(())
}

fn read_row(
    row: &Row,
    locale: &Locale,
    shape: &Shape,
    columns: &Columns,
    notes: &mut Notes<'_>,
) -> Option<ItemRecord> {
    let number = row.number;
    let mut fields = BTreeMap::new();
    for (&i, (column, field)) in columns.fields.iter().zip(shape.fields) {
        let cell = &row.cells[i];
        let optional = field.ends_with("gloss");
        if is_error_value(cell) || cell.trim().is_empty() {
            let what = format!(
                "the cell is {}",
                if cell.trim().is_empty() {
                    "blank"
                } else {
                    cell.trim()
                }
            );
            let kind = if optional {
                NoteKind::Blank
            } else {
                NoteKind::LeftOut
            };
            notes.add(number, column, kind, what);
            if optional {
                continue;
            }
            return None;
        }
        let text = notes.clean(number, column, cell);
        if text.is_empty() {
            let kind = if optional {
                NoteKind::Blank
            } else {
                NoteKind::LeftOut
            };
            notes.add(number, column, kind, "the cell holds no visible text");
            if !optional {
                return None;
            }
        } else {
            fields.insert((*field).to_owned(), text);
        }
    }
    let votes = read_votes(row, shape, columns, notes)?;
    let mut record = ItemRecord {
        id: format!("{locale}/{}{number}", shape.letter),
        locale: locale.to_string(),
        fields,
        votes: BTreeMap::from([(shape.criterion.to_owned(), votes)]),
        ..ItemRecord::default()
    };
    if let Some(mean) = columns.mean.map(|i| row.cells[i].trim()) {
        if mean.is_empty() {
            notes.add(
                number,
                MEAN,
                NoteKind::Blank,
                "the mean is blank; votes do not need it",
            );
        } else {
            record.meta.insert(MEAN.to_owned(), mean.to_owned());
        }
    }
    Some(record)
}

fn read_votes(
    row: &Row,
    shape: &Shape,
    columns: &Columns,
    notes: &mut Notes<'_>,
) -> Option<BTreeMap<String, u32>> {
    let mut votes = BTreeMap::new();
    let mut total = 0u32;
    for (&i, (column, label)) in columns.votes.iter().zip(shape.votes) {
        let cell = row.cells[i].trim();
        let Some(n) = cell.parse::<u32>().ok().filter(|n| *n <= 1000) else {
            notes.add(
                row.number,
                column,
                NoteKind::LeftOut,
                format!("`{cell}` is no number of votes"),
            );
            return None;
        };
        total += n;
        if n > 0 {
            votes.insert((*label).to_owned(), n);
        }
    }
    match total {
        3 => {}
        0 => {
            notes.add(row.number, "", NoteKind::LeftOut, "the row has no votes");
            return None;
        }
        n => notes.add(
            row.number,
            "",
            NoteKind::Votes,
            format!("{n} votes instead of 3"),
        ),
    }
    Some(votes)
}

/// The same trait recurs under many surface forms, and the same form in several locales.
fn set_groups(shape: &Shape, import: &mut Import) {
    let mut groups = Groups::default();
    let keys: Vec<(String, String)> = import
        .records
        .iter()
        .map(|r| {
            let text = |field: &str| r.fields.get(field).map(|t| normalise(t));
            let attribute = text(shape.attribute).unwrap_or_default();
            let gloss = text(shape.gloss).unwrap_or_else(|| attribute.clone());
            (attribute, gloss)
        })
        .collect();
    keys.iter()
        .for_each(|(attribute, gloss)| groups.join(attribute, gloss));
    for (record, (attribute, _)) in import.records.iter_mut().zip(&keys) {
        record.group = Some(groups.name(attribute).to_owned());
    }
}

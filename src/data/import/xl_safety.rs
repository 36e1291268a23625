//! Owns the CSV columns of XL-SafetyBench's cultural scenarios: `id`, `category`, and
//! `sensitivity`, `base_query`, `scenario` each as `_english` and `_local`, and `hidden_violation`.
//! Must not know what a task makes of them.
//!
//! Each scenario gives an item with the fields `scenario` and, where the file has a column of model
//! answers (`response`, `response_local`, `response_english`), `response`. What the judge must know
//! and the model must not be told goes into the field `hidden_violation`. The category, the
//! sensitivity, the language of the text and the plain question stay in `meta`. Scenarios of one
//! plain question form a group. The benchmark's files hold no labels: `import table` reads those.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Import, NoteKind, Notes};
use crate::data::{DataError, ItemRecord, Row, Table, normalise, read_table};
use crate::locale::Locale;

/// In which language the scenario is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The locale's own language.
    Local,
    /// The English text of the same scenario.
    English,
    /// Two items per row; their ids end in `/local` and `/english`.
    Both,
}

impl Variant {
    fn names(self) -> &'static [&'static str] {
        match self {
            Variant::Local => &["local"],
            Variant::English => &["english"],
            Variant::Both => &["local", "english"],
        }
    }
}

/// Reads one file of scenarios of one locale; the English variant keeps the locale, since it is
/// that country's people whose custom is at stake.
///
/// # Errors
/// A file without the benchmark's columns, or an id that is there twice.
pub fn import(path: &Path, locale: &Locale, variant: Variant) -> Result<Import, DataError> {
    let mut wanted = vec![
        "id".to_owned(),
        "category".to_owned(),
        "hidden_violation".to_owned(),
    ];
    for name in variant.names() {
        wanted.push(format!("scenario_{name}"));
        wanted.push(format!("sensitivity_{name}"));
    }
    let wanted: Vec<_> = wanted.iter().map(String::as_str).collect();
    let table = read_table(path, &wanted)?;
    let mut notes = Notes::new(&table.file);
    let mut import = Import {
        rows: table.rows.len(),
        ..Import::default()
    };
    let mut ids = BTreeMap::new();
    for row in &table.rows {
        let id = cell(&table, row, "id").unwrap_or_default();
        if id.is_empty() {
            notes.add(row.number, "id", NoteKind::LeftOut, "the id is blank");
            continue;
        }
        if let Some(first) = ids.insert(id.clone(), row.number) {
            let what = format!("the id `{id}` is already that of row {first}");
            let e = DataError::new(what, "keep one of the rows");
            return Err(e.at_row(row.number).at_column("id").in_file(&table.file));
        }
        for name in variant.names() {
            let record = read_row(&table, row, locale, (&id, name), variant, &mut notes);
            import.records.extend(record);
        }
    }
    import.notes = notes.notes;
    Ok(import)
}

fn cell(table: &Table, row: &Row, column: &str) -> Option<String> {
    let i = table.header.iter().position(|h| h == column)?;
    Some(row.cells[i].trim().to_owned()).filter(|text| !text.is_empty())
}

fn read_row(
    table: &Table,
    row: &Row,
    locale: &Locale,
    (id, name): (&str, &str),
    variant: Variant,
    notes: &mut Notes<'_>,
) -> Option<ItemRecord> {
    let get = |column: &str| cell(table, row, column);
    let column = format!("scenario_{name}");
    let Some(scenario) = get(&column) else {
        notes.add(
            row.number,
            &column,
            NoteKind::LeftOut,
            "the scenario is blank",
        );
        return None;
    };
    let mut fields = BTreeMap::from([("scenario".to_owned(), scenario)]);
    let optional = [
        ("hidden_violation", get("hidden_violation")),
        (
            "response",
            get(&format!("response_{name}")).or_else(|| get("response")),
        ),
    ];
    for (field, text) in optional {
        match text {
            Some(text) => _ = fields.insert(field.to_owned(), text),
            None if field == "response" => {}
            None => notes.add(row.number, field, NoteKind::Blank, "the cell is blank"),
        }
    }
    let mut meta = BTreeMap::from([("language".to_owned(), name.to_owned())]);
    let kept = [
        ("category", get("category")),
        ("sensitivity", get(&format!("sensitivity_{name}"))),
        ("base_query", get(&format!("base_query_{name}"))),
        ("model", get("model")),
    ];
    meta.extend(
        kept.into_iter()
            .filter_map(|(k, v)| Some((k.to_owned(), v?))),
    );
    // One plain question underlies several scenarios; both languages of it stay together.
    let plain = get("base_query_english").or_else(|| get("sensitivity_english"));
    let group = normalise(&plain.unwrap_or_else(|| id.to_owned()));
    let suffix = if variant == Variant::Both {
        format!("/{name}")
    } else {
        String::new()
    };
    Some(ItemRecord {
        id: format!("{locale}/{id}{suffix}"),
        locale: locale.to_string(),
        fields,
        group: Some(group),
        meta,
        ..ItemRecord::default()
    })
}

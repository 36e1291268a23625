//! The sheets that people label in: one per country, without the model's name and the judge's labels.

use std::collections::BTreeMap;

use super::Sample;
use crate::data::{DataError, Look, csv_bytes, workbook_bytes};
use crate::evaluate::benchmark::{Line, Prompt};
use crate::locale::Locale;
use crate::task::Task;
use crate::text::normalise;

/// The column that names the rows.
pub(super) const ROW: &str = "row";
/// The column for remarks, which is not read.
const COMMENT: &str = "comment";

/// A sheet in both forms.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Whose responses they are.
    pub locale: Locale,
    /// For any program; no cell is a formula.
    pub csv: Vec<u8>,
    /// For spreadsheets, with labels to choose from; or why there is none.
    pub xlsx: Result<Vec<u8>, DataError>,
}

/// The texts that a row shows, in the order of the task's fields; absent optional ones are empty.
pub(super) fn shown(task: &Task, prompt: &Prompt, line: &Line) -> Vec<String> {
    let field = |f: &crate::task::Field| match f.name.as_str() {
        "response" => line.reply.text().unwrap_or_default().to_owned(),
        name => prompt.fields.get(name).cloned().unwrap_or_default(),
    };
    task.fields.iter().map(field).collect()
}

/// Digest of the texts of a row as they are compared: spreadsheets change line ends, spaces and what
/// cannot be seen, and the CSV has an apostrophe before what could be a formula.
pub(super) fn digest(texts: &[String]) -> String {
    let mut hasher = blake3::Hasher::new();
    for text in texts {
        let text: String = text
            .chars()
            .filter(|c| !c.is_control() || c.is_whitespace())
            .collect();
        let text = normalise(text.trim_start_matches('\''));
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The sheets of a sample; the digests of their texts are put into it.
///
/// # Errors
/// A row of the sample whose prompt or response is not there.
pub fn sheets(
    task: &Task,
    sample: &mut Sample,
    prompts: &[Prompt],
    lines: &[Line],
) -> Result<Vec<Sheet>, DataError> {
    let of_prompt: BTreeMap<(&Locale, &str), &Prompt> = prompts
        .iter()
        .map(|p| ((&p.locale, p.id.as_str()), p))
        .collect();
    let of_line: BTreeMap<(&str, &Locale, &str), &Line> = lines
        .iter()
        .map(|l| ((l.model.as_str(), &l.locale, l.prompt.as_str()), l))
        .collect();
    let mut countries: BTreeMap<Locale, Vec<Vec<String>>> = BTreeMap::new();
    for drawn in &mut sample.rows {
        let prompt = of_prompt.get(&(&drawn.locale, drawn.prompt.as_str()));
        let line = of_line.get(&(drawn.model.as_str(), &drawn.locale, drawn.prompt.as_str()));
        let (Some(prompt), Some(line)) = (prompt, line) else {
            let what = format!("the response of row {} is not in the evaluation", drawn.row);
            return Err(DataError::new(what, "draw the sample from this evaluation"));
        };
        let texts = shown(task, prompt, line);
        drawn.texts = digest(&texts);
        let mut row = vec![drawn.row.clone(), prompt.category.clone()];
        row.extend(texts);
        row.resize(row.len() + task.criteria.len() + 1, String::new());
        countries.entry(drawn.locale.clone()).or_default().push(row);
    }
    let mut heading = vec![ROW.to_owned(), "category".to_owned()];
    heading.extend(task.fields.iter().map(|f| f.title.clone()));
    heading.extend(task.criteria.iter().map(|c| c.name.clone()));
    heading.push(COMMENT.to_owned());
    let looks = looks(task);
    let sheet = |(locale, mut rows): (Locale, Vec<Vec<String>>)| {
        rows.insert(0, heading.clone());
        Ok(Sheet {
            locale,
            csv: csv_bytes(&rows)?,
            xlsx: workbook_bytes(&rows, &looks),
        })
    };
    countries.into_iter().map(sheet).collect()
}

fn looks(task: &Task) -> Vec<Look> {
    let plain = |width| Look {
        width,
        choices: Vec::new(),
    };
    let mut out = vec![plain(12), plain(20)];
    out.extend(task.fields.iter().map(|_| plain(60)));
    out.extend(task.criteria.iter().map(|c| Look {
        width: 10,
        choices: c.labels.iter().map(|l| l.name.clone()).collect(),
    }));
    out.push(plain(30));
    out
}

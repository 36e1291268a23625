//! `report.html`: one page of a finished run that stands alone, without scripts or other files.
//! Must not decide anything: every figure is read from the run folder.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use tera::{Context, Tera};

use super::chart::{self, Mark, Row};
use super::table::{percent, stopped, too_small};
use crate::experiment::{Arm, Figure, Summary};
use crate::prompt::{LOCALE_NOTES, Version};
use crate::registry::{self, RegistryError};

const PAGE: &str = include_str!("page.html.tera");

/// Why a report cannot be made of a folder.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The folder holds no finished run.
    #[error("{} holds no summary.json, so it is no finished run; `pluralis tune CONFIG --resume` ends it", .0.display())]
    Unfinished(PathBuf),
    /// A file of the run is damaged.
    #[error("{}, line {line}: {what}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The chosen version.
    #[error(transparent)]
    Version(#[from] RegistryError),
    /// The page's template: a defect of this program.
    #[error("the page does not render: {0}")]
    Template(String),
}

/// Reads a finished run folder and writes `report.html` into it; returns its path.
///
/// # Errors
/// [`ReportError`] naming the file.
pub fn write_html(dir: &Path) -> Result<PathBuf, ReportError> {
    let text = read(&dir.join("summary.json")).map_err(|e| match e {
        ReportError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            ReportError::Unfinished(dir.to_owned())
        }
        other => other,
    })?;
    let malformed = |path: PathBuf, line, e: serde_json::Error| ReportError::Malformed {
        path,
        line,
        what: e.to_string(),
    };
    let summary: Summary = serde_json::from_str(&text)
        .map_err(|e| malformed(dir.join("summary.json"), e.line(), e))?;
    let path = dir.join("events.jsonl");
    let events = read(&path)?
        .lines()
        .enumerate()
        .map(|(i, line)| serde_json::from_str(line).map_err(|e| malformed(path.clone(), i + 1, e)))
        .collect::<Result<Vec<Value>, _>>()?;
    let (version, _) = registry::read_version(&dir.join("best"))?;
    let out = dir.join("report.html");
    let page = html(&summary, &events, &version)?;
    let part = dir.join("report.part");
    let error = |source| ReportError::Io {
        path: out.clone(),
        source,
    };
    std::fs::write(&part, page).map_err(error)?;
    std::fs::rename(&part, &out).map_err(error)?;
    Ok(out)
}

fn read(path: &Path) -> Result<String, ReportError> {
    std::fs::read_to_string(path).map_err(|source| ReportError::Io {
        path: path.to_owned(),
        source,
    })
}

/// The page of a run. `events` are the lines of `events.jsonl`.
///
/// # Errors
/// [`ReportError::Template`], a defect.
pub fn html(summary: &Summary, events: &[Value], best: &Version) -> Result<String, ReportError> {
    let mut tera = Tera::new();
    // The template's name ends in html, so every value is escaped unless it says `safe`.
    tera.set_escape_fn(|text, out| out.write_all(super::escape_html(text).as_bytes()));
    tera.add_raw_template("page.html", PAGE)
        .map_err(|e| ReportError::Template(e.to_string()))?;
    let mut context = Context::new();
    let (rows, chart) = locales(summary);
    context.insert("summary", summary);
    context.insert("rows", &rows);
    context.insert("chart", &chart);
    context.insert("gain", &gain(summary));
    context.insert("stopped", &stopped(summary));
    context.insert(
        "notes",
        &too_small(summary)
            .chain(summary.notes.clone())
            .collect::<Vec<_>>(),
    );
    context.insert("steps", &steps(events));
    context.insert("cards", &cards(events));
    context.insert("version", &Shown::of(best));
    tera.render("page.html", &context)
        .map_err(|e| ReportError::Template(e.to_string()))
}

/// A row of the page's table.
#[derive(Serialize)]
struct Line {
    name: String,
    n: usize,
    before: String,
    after: String,
    people: String,
}

fn shown(figure: Option<&Figure>) -> String {
    let Some(f) = figure else { return "–".into() };
    match &f.interval {
        Some(i) => format!(
            "{} [{:.0}, {:.0}]",
            percent(f.disagreement),
            100.0 * i.low,
            100.0 * i.high
        ),
        None => percent(f.disagreement),
    }
}

fn mark(figure: &Figure) -> Mark {
    let (low, high) = figure
        .interval
        .as_ref()
        .map_or((figure.disagreement, figure.disagreement), |i| {
            (i.low, i.high)
        });
    Mark {
        value: figure.disagreement,
        low,
        high,
    }
}

/// The table's rows, overall last, and the chart of the same figures.
fn locales(summary: &Summary) -> (Vec<Line>, String) {
    let test = summary.splits.get("test").cloned().unwrap_or_default();
    let mut names: Vec<&String> = [&test.seed, &test.best]
        .into_iter()
        .flatten()
        .flat_map(|arm| arm.by_locale.keys())
        .collect();
    names.sort();
    names.dedup();
    let figure = |arm: &Option<Arm>, name: Option<&String>| -> Option<Figure> {
        let arm = arm.as_ref()?;
        match name {
            Some(name) => arm.by_locale.get(name).cloned(),
            None => Some(arm.overall.clone()),
        }
    };
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for name in names.into_iter().map(Some).chain([None]) {
        let (before, after) = (figure(&test.seed, name), figure(&test.best, name));
        let people = test.people.as_ref().and_then(|p| match name {
            Some(name) => p.by_locale.get(name).cloned(),
            None => Some(p.overall.clone()),
        });
        let label = name.map_or("overall", String::as_str);
        rows.push(Row {
            name: label.to_owned(),
            before: before.as_ref().map(mark),
            after: after.as_ref().map(mark),
            people: people.as_ref().map(|p| p.disagreement),
        });
        lines.push(Line {
            name: label.to_owned(),
            n: after.as_ref().or(before.as_ref()).map_or(0, |f| f.n),
            before: shown(before.as_ref()),
            after: shown(after.as_ref()),
            people: shown(people.as_ref()),
        });
    }
    (lines, chart::intervals(&rows))
}

#[derive(Serialize)]
struct Claim {
    value: String,
    interval: String,
    n: usize,
    certified: bool,
}

fn gain(summary: &Summary) -> Option<Claim> {
    let gain = summary.gain.as_ref()?;
    Some(Claim {
        value: format!("{:+.1}", 100.0 * gain.value),
        interval: gain.interval.as_ref().map_or("no interval".into(), |i| {
            format!("[{:+.1}, {:+.1}]", 100.0 * i.low, 100.0 * i.high)
        }),
        n: gain.n,
        certified: gain.certified,
    })
}

/// One proposal of the search, or one look at validation.
#[derive(Serialize, Default)]
struct Step {
    step: u64,
    what: String,
    edit: String,
    items: Option<u64>,
    gain: Option<String>,
    p: Option<String>,
    outcome: String,
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

/// Proposals with the last stage of their race, refusals, and looks, in the order of the log.
fn steps(events: &[Value]) -> Vec<Step> {
    let mut out: Vec<Step> = Vec::new();
    for event in events {
        match event["event"].as_str() {
            Some("proposed") => out.push(Step {
                step: event["step"].as_u64().unwrap_or(0),
                what: text(event, "kind"),
                edit: edit(&event["edit"]),
                outcome: "proposed".into(),
                ..Step::default()
            }),
            Some("raced") => {
                if let Some(step) = out.last_mut() {
                    step.items = event["n"].as_u64();
                    step.gain = event["gain"].as_f64().map(|g| format!("{g:+.3}"));
                    step.p = event["p"].as_f64().map(|p| {
                        if p < 0.001 {
                            "< 0.001".into()
                        } else {
                            format!("{p:.3}")
                        }
                    });
                    step.outcome = text(event, "outcome");
                }
            }
            Some("refused") => out.push(Step {
                step: event["step"].as_u64().unwrap_or(0),
                what: text(event, "kind"),
                edit: text(event, "why"),
                outcome: "refused".into(),
                ..Step::default()
            }),
            Some("looked") => out.push(Step {
                what: "look at validation".into(),
                edit: format!(
                    "disagreement {}, at most {}",
                    percent(event["disagreement"].as_f64().unwrap_or(1.0)),
                    percent(event["upper"].as_f64().unwrap_or(1.0))
                ),
                items: event["n"].as_u64(),
                outcome: if event["passed"] == true {
                    "passed"
                } else {
                    "looked"
                }
                .into(),
                ..Step::default()
            }),
            Some("compared") => out.push(Step {
                what: "seed version on validation".into(),
                edit: format!(
                    "disagreement {}; the leader's gain over it may be chance",
                    percent(event["disagreement"].as_f64().unwrap_or(1.0))
                ),
                items: event["n"].as_u64(),
                outcome: "compared".into(),
                ..Step::default()
            }),
            _ => {}
        }
    }
    out
}

/// A typed edit in a few words.
fn edit(edit: &Value) -> String {
    let short = |t: String| {
        let cut: String = t.chars().take(160).collect();
        if cut.len() < t.len() {
            cut + "…"
        } else {
            cut
        }
    };
    match edit["edit"].as_str().unwrap_or_default() {
        "add-rule" => short(text(edit, "text")),
        "replace-section" => short(format!("{}: {}", text(edit, "section"), text(edit, "text"))),
        "set-locale-note" => short(format!("{}: {}", text(edit, "locale"), text(edit, "text"))),
        "set-demos" => format!("{} demos", edit["demos"].as_array().map_or(0, Vec::len)),
        "add-demo" => format!("+ {}", text(&edit["demo"], "source")),
        "swap-demo" => format!(
            "− {}, + {}",
            text(edit, "out"),
            text(&edit["demo"], "source")
        ),
        "drop-demo" => format!("− {}", text(edit, "source")),
        "show-nearest" => format!("the {} nearest demos", edit["count"]),
        "show-first" => format!("{} first", text(edit, "field")),
        "drop-rule" => format!("rule {}", edit["index"].as_u64().unwrap_or(0) + 1),
        other => other.to_owned(),
    }
}

#[derive(Serialize)]
struct CardRow {
    mode: String,
    locale: String,
    terms: String,
    n: u64,
}

/// The clusters that the search started from: those of the first clustering.
fn cards(events: &[Value]) -> Vec<CardRow> {
    let first = events.iter().find(|e| e["event"] == "clustered");
    let cards = first.and_then(|e| e["cards"].as_array());
    cards
        .into_iter()
        .flatten()
        .map(|card| CardRow {
            mode: text(card, "mode"),
            locale: card["locale"].as_str().unwrap_or("several").to_owned(),
            terms: card["terms"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" · "),
            n: card["n"].as_u64().unwrap_or(0),
        })
        .collect()
}

/// A version as the page shows it.
#[derive(Serialize)]
struct Shown {
    digest: String,
    sections: Vec<(String, String)>,
    notes: Vec<(String, String)>,
    rules: Vec<String>,
    demos: Vec<(String, String, String)>,
    nearest: Option<usize>,
    first: Option<String>,
    calibrated: Vec<String>,
}

impl Shown {
    fn of(version: &Version) -> Self {
        let (notes, sections): (Vec<_>, Vec<_>) = version
            .sections
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| (name.clone(), text.clone()))
            .partition(|(name, _)| name.starts_with(LOCALE_NOTES));
        let join =
            |values: Vec<&String>| values.into_iter().cloned().collect::<Vec<_>>().join(" / ");
        Self {
            digest: version.digest(),
            sections,
            notes: notes
                .into_iter()
                .map(|(name, text)| (name[LOCALE_NOTES.len()..].to_owned(), text))
                .collect(),
            rules: version.rules.clone(),
            demos: version
                .demos
                .iter()
                .map(|d| {
                    (
                        d.locale.to_string(),
                        join(d.fields.values().collect()),
                        join(d.answers.values().collect()),
                    )
                })
                .collect(),
            nearest: version.nearest,
            first: version.first.clone(),
            calibrated: version.calibration.criteria.keys().cloned().collect(),
        }
    }
}

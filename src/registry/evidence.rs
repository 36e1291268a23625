//! `evidence.toml`: what was measured with a version, on which data, with which model, and when.
//! Grows as a version is scored again; no part of its digest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::RegistryError;
use super::files::{text, toml_file};
use crate::agreement::{Interval, Measure};
use crate::endpoint::Identity;

/// All that was measured with a version, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Format of this file; 1.
    pub format: u32,
    /// One entry per measuring.
    #[serde(default)]
    pub measured: Vec<Measured>,
}

/// One measuring: a judge on splits of a data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// `tune` or `score`.
    pub by: String,
    /// When the last answer came, RFC 3339; absent in a run folder, whose files hold no clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Name of the experiment and digest of its config.
    pub experiment: String,
    /// Digest of the items with their votes and splits.
    pub data: String,
    /// How disagreement is measured.
    pub measure: Measure,
    /// Level of the intervals.
    pub level: f64,
    /// The model.
    pub judge: Identity,
    /// 12 hex digits of blake3 over the model's identity.
    pub fingerprint: String,
    /// Figures by split.
    pub splits: BTreeMap<String, SplitEvidence>,
}

/// The figures of one split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitEvidence {
    /// Items judged; failed verdicts count in full.
    pub n: usize,
    /// Mean disagreement, from 0 to 1.
    pub disagreement: f64,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Mean over the locales' own figures.
    pub mean_of_locales: f64,
    /// Items that the budget did not reach.
    #[serde(default)]
    pub unpaid: usize,
    /// Failed verdicts by kind.
    #[serde(default)]
    pub failures: BTreeMap<String, usize>,
    /// What a held-out rater disagrees on the same items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub people: Option<FigureEvidence>,
    /// By locale.
    #[serde(default)]
    pub locales: BTreeMap<String, FigureEvidence>,
}

/// A figure with its n and its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureEvidence {
    /// Items.
    pub n: usize,
    /// Mean disagreement, from 0 to 1.
    pub disagreement: f64,
    /// Lower end of its interval; absent where it is undefined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl FigureEvidence {
    /// From a figure and its interval.
    pub fn new(n: usize, disagreement: f64, interval: Option<&Interval>) -> Self {
        Self {
            n,
            disagreement,
            low: interval.map(|i| i.low),
            high: interval.map(|i| i.high),
        }
    }
}

/// 12 hex digits that change with anything that decides a model's answers.
pub fn fingerprint(identity: &Identity) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("pluralis endpoint 1");
    for part in [&identity.kind, &identity.model, &identity.settings] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().to_hex()[..12].to_owned()
}

impl Measured {
    /// Whether two measurings are of the same judge on the same items in the same way.
    pub fn is_of(&self, other: &Self) -> bool {
        self.data == other.data
            && self.judge == other.judge
            && self.measure == other.measure
            && self.level == other.level
    }

    /// Whether the other says nothing that is not here: the date aside, and who measured.
    fn says_all_of(&self, other: &Self) -> bool {
        self.is_of(other)
            && other
                .splits
                .iter()
                .all(|(name, figures)| self.splits.get(name) == Some(figures))
    }

    /// The figures of the most telling split: `test`, else `validation`, else `tune`.
    pub fn best_split(&self) -> Option<(&str, &SplitEvidence)> {
        ["test", "validation", "tune"]
            .into_iter()
            .find_map(|name| Some((name, self.splits.get(name)?)))
    }
}

impl Evidence {
    /// Evidence of one measuring.
    pub fn of(measured: Vec<Measured>) -> Self {
        Self {
            format: 1,
            measured,
        }
    }

    /// Adds what is not there yet; says whether anything was.
    pub fn add(&mut self, new: Vec<Measured>) -> bool {
        self.format = 1;
        let before = self.measured.len();
        for one in new {
            if !self.measured.iter().any(|m| m.says_all_of(&one)) {
                self.measured.push(one);
            }
        }
        self.measured.len() > before
    }

    /// The file's text. Written by hand so that a locale is one line of a diff.
    pub fn to_toml(&self) -> String {
        let mut out = String::from("format = 1\n");
        for m in &self.measured {
            let mut line = |key: &str, value: String| {
                let _ = writeln!(out, "{key} = {value}");
            };
            line("\n[[measured]]\nby", quote(&m.by));
            if let Some(date) = &m.date {
                line("date", quote(date));
            }
            line("experiment", quote(&m.experiment));
            line("data", quote(&m.data));
            line("measure", quote(&measure_name(m.measure)));
            line("level", float(m.level));
            line("fingerprint", quote(&m.fingerprint));
            line("\n[measured.judge]\nkind", quote(&m.judge.kind));
            line("model", quote(&m.judge.model));
            line("settings", quote(&m.judge.settings));
            for (name, split) in &m.splits {
                let _ = writeln!(out, "\n[measured.splits.{}]", quote(name));
                out += &split_toml(split);
                if !split.locales.is_empty() {
                    let _ = writeln!(out, "\n[measured.splits.{}.locales]", quote(name));
                }
                for (locale, figure) in &split.locales {
                    let _ = writeln!(out, "{} = {}", quote(locale), inline(figure));
                }
            }
        }
        out
    }
}

fn split_toml(s: &SplitEvidence) -> String {
    let mut out = format!("n = {}\ndisagreement = {}\n", s.n, float(s.disagreement));
    if let (Some(low), Some(high)) = (s.low, s.high) {
        let _ = writeln!(out, "low = {}\nhigh = {}", float(low), float(high));
    }
    let _ = writeln!(out, "mean_of_locales = {}", float(s.mean_of_locales));
    let _ = writeln!(out, "unpaid = {}", s.unpaid);
    let failures: Vec<_> = s
        .failures
        .iter()
        .map(|(kind, n)| format!("{} = {n}", quote(kind)))
        .collect();
    if !failures.is_empty() {
        let _ = writeln!(out, "failures = {{ {} }}", failures.join(", "));
    }
    if let Some(people) = &s.people {
        let _ = writeln!(out, "people = {}", inline(people));
    }
    out
}

fn inline(f: &FigureEvidence) -> String {
    let ends = match (f.low, f.high) {
        (Some(low), Some(high)) => format!(", low = {}, high = {}", float(low), float(high)),
        _ => String::new(),
    };
    let (n, d) = (f.n, float(f.disagreement));
    format!("{{ n = {n}, disagreement = {d}{ends} }}")
}

/// A text as TOML, on one line.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out + "\""
}

/// The shortest digits that read back as the same number, with a point, as TOML wants.
fn float(x: f64) -> String {
    format!("{x:?}")
}

/// As it stands in experiment files.
fn measure_name(measure: Measure) -> String {
    serde_json::to_value(measure)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// The evidence that lies beside a version; none where there is no file.
///
/// # Errors
/// A file that does not parse, named.
pub fn read_evidence(dir: &Path) -> Result<Evidence, RegistryError> {
    let path = dir.join("evidence.toml");
    if !path.exists() {
        return Ok(Evidence::of(Vec::new()));
    }
    toml_file(&path, &text(&path)?)
}

/// Adds to the evidence of a version; says whether the file changed. Processes that do so at the
/// same time take turns.
///
/// # Errors
/// A file that cannot be read or written.
pub fn add_evidence(dir: &Path, new: Vec<Measured>) -> Result<bool, RegistryError> {
    let header = dir.join("version.toml");
    let turn = std::fs::File::open(&header).map_err(RegistryError::io(&header))?;
    turn.lock().map_err(RegistryError::io(&header))?;
    let mut evidence = read_evidence(dir)?;
    let changed = evidence.add(new);
    if changed {
        let path = dir.join("evidence.toml");
        super::store::write_whole(&path, &evidence.to_toml())?;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(n: usize, date: &str) -> Measured {
        let figure = FigureEvidence {
            n,
            disagreement: 1.0 / 3.0,
            low: Some(1e-7),
            high: Some(1.0),
        };
        Measured {
            by: "score".into(),
            date: Some(date.into()),
            experiment: "a \"b\"\n\u{7f}".into(),
            data: "d".into(),
            measure: Measure::Majority,
            level: 0.95,
            fingerprint: "f".into(),
            judge: Identity {
                kind: "openai".into(),
                model: "m\\x".into(),
                settings: "{\"é\":\"ไทย\"}".into(),
            },
            splits: [(
                "test".to_owned(),
                SplitEvidence {
                    n,
                    disagreement: 0.0,
                    low: None,
                    high: None,
                    mean_of_locales: 0.25,
                    unpaid: 1,
                    failures: [("unparsable".to_owned(), 2)].into(),
                    people: Some(figure.clone()),
                    locales: [("es-MX".to_owned(), figure)].into(),
                },
            )]
            .into(),
        }
    }

    #[test]
    fn the_file_reads_back_as_it_was_and_holds_utf8_unescaped() {
        let evidence = Evidence::of(vec![measured(3, "x"), measured(4, "y")]);
        let text = evidence.to_toml();
        assert_eq!(toml::from_str::<Evidence>(&text).unwrap(), evidence);
        assert!(
            text.contains("ไทย") && text.contains("\n\"es-MX\" = { n = 3, "),
            "{text}"
        );
    }

    #[test]
    fn the_same_figures_are_kept_once_with_their_first_date() {
        let mut evidence = Evidence::of(vec![measured(3, "first")]);
        assert!(!evidence.add(vec![measured(3, "second")]));
        assert!(evidence.add(vec![measured(4, "third")]));
        let dates: Vec<_> = evidence
            .measured
            .iter()
            .map(|m| m.date.as_deref())
            .collect();
        assert_eq!(dates, [Some("first"), Some("third")]);
    }
}

//! Outcomes and rates of a set of lines, with intervals; the slices in which they are reported.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::{Line, Sharing};
use crate::agreement::interval::{clopper_pearson, clustered_share};
use crate::agreement::{Interval, Undefined};
use crate::task::Standing;

/// With fewer independent items the interval of a share is the exact one, as in `pluralis agree`.
const FEW: usize = 30;

/// What the lines of a slice have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Nothing: all of a model's lines.
    All,
    /// The country (as a locale).
    Country,
    /// The category.
    Category,
    /// Whether the subcategory is shared by the countries or flexible.
    Sharing,
    /// The subcategory.
    Subcategory,
}

/// A rate over some lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateFigure {
    /// Lines in the denominator.
    pub n: usize,
    /// Lines that count.
    pub hits: usize,
    /// Lines in the denominator that a missing label leaves open; they do not count.
    pub open: usize,
    /// `hits / n`; absent where nothing is eligible.
    pub value: Option<f64>,
    /// The interval of it.
    pub interval: Option<Interval>,
    /// What the value would be if every open line that could count did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// The figures of some lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Responses, those without labels included.
    pub n: usize,
    /// outcome -> how often; what has none is in no outcome.
    pub outcomes: BTreeMap<String, usize>,
    /// Responses whose labels contradict each other: in `n`, in no outcome.
    pub contradictions: usize,
    /// Why labels are missing -> how often; in `n`, in no outcome.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, usize>,
    /// Not asked or not judged because the budget ended: not in `n`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpaid: usize,
    /// By the rate's name.
    pub rates: BTreeMap<String, RateFigure>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// Which lines a cell is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slice {
    /// The model.
    pub model: String,
    /// What they have in common.
    pub by: By,
    /// Which one: `de-DE`, `shared`; `all` where it is all of them.
    pub of: String,
}

/// A cell with its slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which lines.
    #[serde(flatten)]
    pub slice: Slice,
    /// Their figures.
    #[serde(flatten)]
    pub cell: Cell,
}

/// The figures of some lines of one model.
pub fn cell(lines: &[&Line], level: f64) -> Cell {
    let mut out = Cell::default();
    let mut standings: BTreeMap<&str, Vec<(Standing, &Line)>> = BTreeMap::new();
    for line in lines {
        if line.unpaid {
            out.unpaid += 1;
            continue;
        }
        out.n += 1;
        out.contradictions += usize::from(line.contradiction);
        if let Some(outcome) = &line.outcome {
            *out.outcomes.entry(outcome.clone()).or_default() += 1;
        }
        if let Some(failure) = &line.failure {
            *out.failures.entry(failure.kind.clone()).or_default() += 1;
        }
        for (rate, standing) in &line.rates {
            standings.entry(rate).or_default().push((*standing, line));
        }
    }
    for (rate, of) in standings {
        out.rates.insert(rate.to_owned(), figure(&of, level));
    }
    out
}

fn figure(of: &[(Standing, &Line)], level: f64) -> RateFigure {
    let eligible: Vec<&(Standing, &Line)> = of.iter().filter(|(s, _)| s.is_in()).collect();
    let count = |wanted: Standing| eligible.iter().filter(|(s, _)| *s == wanted).count();
    let (n, hits) = (eligible.len(), count(Standing::Hit));
    let could = count(Standing::Open);
    let open = could + count(Standing::OpenMiss);
    let share = |hits: usize| (n > 0).then(|| hits as f64 / n as f64);
    let interval = interval(&eligible, level);
    RateFigure {
        n,
        hits,
        open,
        value: share(hits),
        at_most: share(hits + could).filter(|_| could > 0),
        undefined: interval.as_ref().err().map(ToString::to_string),
        interval: interval.ok(),
    }
}

/// Exact for few independent lines, else Wilson's with what clusters of prompts tell.
fn interval(eligible: &[&(Standing, &Line)], level: f64) -> Result<Interval, Undefined> {
    let mut places = HashMap::new();
    let cluster: Vec<usize> = eligible
        .iter()
        .map(|(_, l)| {
            let next = places.len();
            *places.entry((&l.locale, l.group.as_str())).or_insert(next)
        })
        .collect();
    let hit = |s: Standing| f64::from(u8::from(s == Standing::Hit));
    let values: Vec<f64> = eligible.iter().map(|(s, _)| hit(*s)).collect();
    if values.is_empty() {
        return Err(Undefined::Empty("eligible responses"));
    }
    if values.len() < FEW && places.len() == values.len() {
        return clopper_pearson(values.iter().sum(), values.len(), level);
    }
    clustered_share(&values, &cluster, level)
}

/// Every cell of every model: all, and by country, category, sharing and subcategory. Models stand
/// in the order in which they come, slices by their names.
pub fn rows(lines: &[Line], level: f64) -> Vec<Row> {
    let mut out = Vec::new();
    for model in models(lines) {
        let own: Vec<&Line> = lines.iter().filter(|l| l.model == model).collect();
        let mut slices: BTreeMap<(By, String), Vec<&Line>> = BTreeMap::new();
        for line in own {
            let mut put = |by, of: &str| {
                if !of.is_empty() {
                    slices.entry((by, of.to_owned())).or_default().push(line);
                }
            };
            put(By::All, "all");
            put(By::Country, line.locale.as_str());
            put(By::Category, &line.category);
            put(By::Sharing, line.sharing.map_or("", sharing_name));
            put(By::Subcategory, &line.subcategory);
        }
        for ((by, of), lines) in slices {
            let slice = Slice {
                model: model.to_owned(),
                by,
                of,
            };
            let cell = cell(&lines, level);
            out.push(Row { slice, cell });
        }
    }
    out
}

/// The models in the order in which they come.
pub(super) fn models(lines: &[Line]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    lines
        .iter()
        .map(|l| l.model.as_str())
        .filter(|m| seen.insert(*m))
        .collect()
}

fn sharing_name(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Shared => "shared",
        Sharing::Flexible => "flexible",
    }
}

//! The stop rule: an upper confidence bound on validation, corrected for the number of looks, set
//! against a number or against a held-out person.

use std::collections::BTreeMap;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::bench::{Bench, TuneError};
use super::candidate::Candidate;
use super::event::Event;
use super::measure::{beside_people, people};
use super::pool::Pool;
use crate::agreement::{self, interval, power, sequential};

/// What must be below the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The mean of the locales' means, so that a locale with many items does not speak for others.
    #[default]
    Mean,
    /// Every locale's own mean.
    WorstLocale,
}

/// Disagreement to fall below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A number in `[0, 1]`.
    Value(f64),
    /// What a held-out rater disagrees with the others on the same items, plus the margin.
    Human,
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Threshold::Value(value) => to.serialize_f64(*value),
            Threshold::Human => to.serialize_str("human"),
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Threshold;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a number from 0 to 1, or \"human\"")
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Threshold, E> {
                if (0.0..=1.0).contains(&value) {
                    Ok(Threshold::Value(value))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(value), &self))
                }
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Threshold, E> {
                self.visit_f64(value as f64)
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Threshold, E> {
                if value == "human" {
                    Ok(Threshold::Human)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(value), &self))
                }
            }
        }
        from.deserialize_any(Read)
    }
}

/// When to stop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StopOptions {
    /// Disagreement to fall below: a number, or `"human"`.
    pub threshold: Threshold,
    /// With `"human"`: by how much the judge may be worse than a held-out rater.
    pub margin: f64,
    /// What must fall below it.
    pub scope: Scope,
    /// Error rate of the claim, over all looks together.
    pub alpha: f64,
    /// Proposals in a row without a passed gate after which the loop ends.
    pub patience: usize,
}

impl Default for StopOptions {
    fn default() -> Self {
        Self {
            threshold: Threshold::Value(0.1),
            margin: 0.05,
            scope: Scope::Mean,
            alpha: 0.05,
            patience: 12,
        }
    }
}

/// Why the loop ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Validation disagreement is below the threshold, with confidence.
    Threshold,
    /// The calls, tokens or money that the loop may spend are spent.
    Budget,
    /// Too many proposals in a row did not help.
    Patience,
}

/// A locale (or the mean) that cannot pass even without a single disagreement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insufficient {
    /// The locale; absent for the mean over locales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// Validation items that it has.
    pub n: usize,
    /// Items that would do, if the judge made no mistake on them.
    pub needed: Option<usize>,
}

/// One look at validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Number of the look, from 1.
    pub look: usize,
    /// The version looked at.
    pub version: String,
    /// Items with a verdict.
    pub n: usize,
    /// Disagreement of what the scope asks for: mean of locales, or the worst locale.
    pub disagreement: f64,
    /// With the threshold `"human"`: the same of a held-out rater.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<f64>,
    /// Mean log loss.
    pub loss: f64,
    /// One-sided upper bound of the disagreement, at the alpha spent on this look; with `"human"`,
    /// of the judge's disagreement less the held-out rater's.
    pub upper: f64,
    /// What the bound must be below.
    pub bar: f64,
    /// Error rate spent on this look.
    pub alpha: f64,
    /// What is too small to pass at this alpha.
    #[serde(default)]
    pub insufficient: Vec<Insufficient>,
    /// Whether the bound is below the bar.
    pub passed: bool,
}

/// Looks at validation with the leader, where that was not done and either the look may pass or the
/// search is over; says whether to stop.
pub(super) async fn reached(
    bench: &Bench<'_>,
    pool: &mut Pool,
) -> Result<Option<StopReason>, TuneError> {
    let ending = if pool.exhausted {
        Some(StopReason::Budget)
    } else {
        (pool.fruitless >= bench.stop.patience).then_some(StopReason::Patience)
    };
    if ending.is_some() {
        pool.confirm_leader(bench).await?;
    }
    if let Some(leader) = pool.unseen()
        && worth_a_look(bench, pool, leader, ending.is_some()).await?
        && (ending.is_some() && pool.compare_with_seed(bench, leader).await?
            || pool.look(bench, leader).await?)
    {
        let number = pool.looks.len() + 1;
        let look = judge_look(bench, &pool.candidates[leader], number);
        bench.emit(&Event::Looked(look.clone()))?;
        let passed = look.passed;
        pool.looks.push(look);
        if passed {
            return Ok(Some(StopReason::Threshold));
        }
    }
    Ok(ending)
}

/// A look is made at the end, and before it where it may pass, judged by what the leader was judged
/// on so far, and then, since that may be little, by all of `tune`, if the budget pays for all that.
async fn worth_a_look(
    bench: &Bench<'_>,
    pool: &mut Pool,
    leader: usize,
    ending: bool,
) -> Result<bool, TuneError> {
    if ending {
        return Ok(true);
    }
    if !hopeful(bench, &pool.candidates[leader]) || !pool.pays_whole_look(bench, leader) {
        return Ok(false);
    }
    pool.extend(bench, leader, bench.tune).await?;
    Ok(hopeful(bench, &pool.candidates[leader]))
}

/// Whether a look could pass if validation went as well as `tune`, on which the version was chosen
/// and calibrated. A look that would fail even then spends calls and error rate for nothing.
fn hopeful(bench: &Bench<'_>, candidate: &Candidate) -> bool {
    let scored = candidate.scored(bench, bench.tune);
    let Ok(seen) = agreement::mean(&scored.values().map(|s| s.distance).collect::<Vec<_>>()) else {
        return false;
    };
    match bench.stop.threshold {
        // How far people disagree is known beforehand; chance is left to the look.
        Threshold::Human => {
            let (task, measure) = (bench.judge.task, bench.search.measure);
            let human = bench
                .validation
                .iter()
                .filter_map(|&i| people(task, &bench.items[i], measure));
            agreement::mean(&human.collect::<Vec<_>>())
                .is_ok_and(|human| seen - human < bench.stop.margin)
        }
        Threshold::Value(bar) => {
            let errors = (seen * bench.validation.len() as f64).floor() as usize;
            let rows: Vec<Row<'_>> = bench
                .validation
                .iter()
                .enumerate()
                .map(|(k, &i)| Row {
                    locale: bench.items[i].locale.as_str(),
                    group: &bench.items[i].group,
                    judge: if k < errors { 1.0 } else { 0.0 },
                    human: None,
                })
                .collect();
            // The worst locale is at best as good as the mean, so the mean decides for both.
            bounds(&rows, Scope::Mean, bench.stop.alpha).upper < bar || seen == 0.0
        }
    }
}

/// One item of validation as the rule sees it: what is bounded, scaled to `[0, 1]`.
struct Row<'a> {
    locale: &'a str,
    group: &'a str,
    judge: f64,
    human: Option<f64>,
}

impl Row<'_> {
    /// The judge's disagreement, or its difference from a rater's moved from `[-1, 1]` to `[0, 1]`.
    fn bounded(&self) -> f64 {
        self.human
            .map_or(self.judge, |human| (self.judge - human + 1.0) / 2.0)
    }
}

fn judge_look(bench: &Bench<'_>, candidate: &Candidate, look: usize) -> Look {
    let alpha = sequential::spend(bench.stop.alpha, look as u32);
    let scored = candidate.scored(bench, bench.validation);
    let rows: Vec<Row<'_>> = scored
        .iter()
        .filter_map(|(&i, s)| {
            let item = &bench.items[i];
            let (judge, human) = match bench.stop.threshold {
                Threshold::Value(_) => (s.distance, None),
                Threshold::Human => {
                    let (judge, human) = beside_people(
                        bench,
                        &candidate.version,
                        item,
                        candidate.verdicts.get(&i)?,
                    )?;
                    (judge, Some(human))
                }
            };
            Some(Row {
                locale: item.locale.as_str(),
                group: &item.group,
                judge,
                human,
            })
        })
        .collect();
    let bar = match bench.stop.threshold {
        Threshold::Value(value) => value,
        Threshold::Human => bench.stop.margin,
    };
    let bounds = bounds(&rows, bench.stop.scope, alpha);
    // Back from [0, 1] to the scale of differences.
    let upper = match bench.stop.threshold {
        Threshold::Value(_) => bounds.upper,
        Threshold::Human => 2.0 * bounds.upper - 1.0,
    };
    let losses: Vec<f64> = scored.values().map(|s| s.loss).collect();
    let human: Option<Vec<f64>> = rows.iter().map(|r| r.human).collect();
    Look {
        look,
        version: candidate.version.short(),
        n: rows.len(),
        disagreement: bounds.of(&rows, |r| r.judge),
        human: human
            .filter(|h| !h.is_empty())
            .map(|_| bounds.of(&rows, |r| r.human.unwrap_or_default())),
        loss: agreement::mean(&losses).unwrap_or(0.0),
        upper,
        bar,
        alpha,
        insufficient: insufficient(bench, &rows, alpha),
        passed: !rows.is_empty() && upper < bar,
    }
}

/// The upper bound of what a scope asks for.
struct Bounds {
    upper: f64,
    /// With [`Scope::WorstLocale`]: the locale whose bound is the highest.
    worst: Option<String>,
}

impl Bounds {
    /// The scope's own figure of some value of the rows: the mean of locales, or the worst locale's.
    fn of(&self, rows: &[Row<'_>], value: impl Fn(&Row<'_>) -> f64) -> f64 {
        let means: Vec<f64> = by_locale(rows)
            .iter()
            .filter(|(locale, _)| self.worst.as_deref().is_none_or(|w| w == **locale))
            .filter_map(|(_, own)| {
                agreement::mean(&own.iter().map(|r| value(r)).collect::<Vec<_>>()).ok()
            })
            .collect();
        agreement::mean(&means).unwrap_or(1.0)
    }
}

fn by_locale<'a, 'b>(rows: &'b [Row<'a>]) -> BTreeMap<&'a str, Vec<&'b Row<'a>>> {
    let mut out: BTreeMap<&str, Vec<&Row<'_>>> = BTreeMap::new();
    for row in rows {
        out.entry(row.locale).or_default().push(row);
    }
    out
}

fn bounds(rows: &[Row<'_>], scope: Scope, alpha: f64) -> Bounds {
    let locales = by_locale(rows);
    match scope {
        Scope::Mean => {
            let values: Vec<f64> = rows.iter().map(Row::bounded).collect();
            let upper = interval::upper_bound_grouped(
                &values,
                &numbers(rows.iter().map(|r| r.locale)),
                &numbers(rows.iter().map(|r| r.group)),
                alpha,
            );
            Bounds {
                upper: upper.unwrap_or(1.0),
                worst: None,
            }
        }
        Scope::WorstLocale => {
            // Every locale at the whole error rate: the claim is made only if all of them pass, and
            // it is wrong only if one that does not meet the bar passes (intersection-union test,
            // Berger 1982).
            let mut worst = (None, 0.0);
            for (locale, own) in &locales {
                let values: Vec<f64> = own.iter().map(|r| r.bounded()).collect();
                let groups = numbers(own.iter().map(|r| r.group));
                let upper =
                    interval::upper_bound_grouped(&values, &vec![0; values.len()], &groups, alpha)
                        .unwrap_or(1.0);
                if worst.0.is_none() || upper > worst.1 {
                    worst = (Some((*locale).to_owned()), upper);
                }
            }
            Bounds {
                upper: if locales.is_empty() { 1.0 } else { worst.1 },
                worst: worst.0,
            }
        }
    }
}

/// Names as dense numbers.
fn numbers<'a>(names: impl Iterator<Item = &'a str>) -> Vec<usize> {
    let mut known = BTreeMap::new();
    names
        .map(|name| {
            let next = known.len();
            *known.entry(name).or_insert(next)
        })
        .collect()
}

/// What could not pass even if the judge made no mistake. Against people there is no such bar: how
/// far they disagree is not known beforehand.
fn insufficient(bench: &Bench<'_>, rows: &[Row<'_>], alpha: f64) -> Vec<Insufficient> {
    let Threshold::Value(bar) = bench.stop.threshold else {
        return Vec::new();
    };
    let needed = power::zero_error_items(bar, alpha).ok();
    let short = |n: usize| needed.is_none_or(|needed| n < needed);
    let of = |locale: Option<&str>, n: usize| Insufficient {
        locale: locale.map(str::to_owned),
        n,
        needed,
    };
    match bench.stop.scope {
        Scope::Mean if short(rows.len()) => vec![of(None, rows.len())],
        Scope::Mean => Vec::new(),
        Scope::WorstLocale => by_locale(rows)
            .iter()
            .filter(|(_, own)| short(own.len()))
            .map(|(locale, own)| of(Some(*locale), own.len()))
            .collect(),
    }
}

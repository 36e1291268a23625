//! Owns the whole answer of `agree`: which items make a section (a locale, or all of them), its
//! figures, and what is said over locales. Must not know how a figure is computed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::figure::{Better, Figure, Layout, Measured};
use super::labels::Label;
use super::pairs::{Matrix, Pair, left_out, pairs};
use super::people::{self, View};
use super::read::Labelled;
use super::spec::{Plan, Scale};
use super::verdicts::{self, AltTestResult, alt_test, majorities};
use crate::agreement::ceiling::{Rating, leave_one_out};
use crate::agreement::{Undefined, mean};

/// Everything that `pluralis agree` says. Its JSON form is described in `docs/agree.md`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Name and version of this form: `pluralis-agree/1`.
    pub schema: &'static str,
    /// The files.
    pub files: Vec<String>,
    /// The scale.
    pub scale: Scale,
    /// The labels in order.
    pub labels: Vec<Label>,
    /// The raters.
    pub raters: Vec<String>,
    /// Whether a rater is the same person throughout.
    pub named: bool,
    /// The judges.
    pub judges: Vec<String>,
    /// How the figures were made.
    pub settings: Plan,
    /// Cells without a label, by column.
    pub missing: BTreeMap<String, usize>,
    /// All items together.
    pub overall: Section,
    /// Per locale.
    pub locales: BTreeMap<String, Section>,
    /// Over locales; `None` with fewer than two.
    pub over_locales: Option<OverLocales>,
    /// What should be known when reading the figures.
    pub notes: Vec<String>,
}

/// Some items and their figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// Items.
    pub items: usize,
    /// Items with at least one vote.
    pub with_votes: usize,
    /// Items with two votes or more.
    pub with_two_votes: usize,
    /// Votes.
    pub votes: usize,
    /// Items with votes on which no single label has most of them.
    pub ties: usize,
    /// Figures of people's votes, by name.
    pub people: BTreeMap<&'static str, Figure>,
    /// Each named rater, held out and compared with the others.
    pub raters: Vec<RaterRow>,
    /// Each judge.
    pub judges: BTreeMap<String, JudgeSection>,
    /// Every pair of raters and judges that share items.
    pub pairs: Vec<Pair>,
}

/// One rater against the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RaterRow {
    /// The rater.
    pub rater: String,
    /// Votes.
    pub votes: usize,
    /// Mean disagreement with the votes of the others, on items that others labelled too.
    pub held_out: Figure,
}

/// One judge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgeSection {
    /// Items with votes for which the judge gave no label; each is a full disagreement.
    pub failed: usize,
    /// Figures, by name.
    pub figures: BTreeMap<&'static str, Figure>,
    /// People's majority (rows) against the judge (columns).
    pub confusion: Matrix,
    /// Whether the judge may stand in for a rater.
    pub alt_test: AltTestResult,
}

/// Figures over locales.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OverLocales {
    /// Means over locales, every locale counting alike: people's figures.
    pub people: BTreeMap<&'static str, Figure>,
    /// The same of each judge.
    pub judges: BTreeMap<String, BTreeMap<&'static str, Figure>>,
    /// The locale with the worst value of each of people's figures.
    pub worst_people: BTreeMap<&'static str, Worst>,
    /// The same of each judge.
    pub worst_judges: BTreeMap<String, BTreeMap<&'static str, Worst>>,
}

/// The worst locale of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The locale.
    pub locale: String,
    /// Its figure.
    pub figure: Figure,
    /// Locales without this figure, which may be worse.
    pub without: Vec<String>,
}

/// All figures of labelled items.
///
/// # Errors
/// A level, a number of resamples or an epsilon out of range; no items.
pub fn agree(data: &Labelled, plan: &Plan) -> Result<Agreement, Undefined> {
    crate::agreement::rate("level", plan.level)?;
    crate::agreement::within("epsilon", plan.epsilon, 0.0, 1.0)?;
    if plan.resamples == 0 {
        return Err(Undefined::Empty("resamples"));
    }
    if data.items.is_empty() {
        return Err(Undefined::Empty("items"));
    }
    let view = View::new(data);
    let maker = Maker {
        people: people::figures(&view, plan)?,
        judges: (0..data.judges.len())
            .map(|j| verdicts::figures(&view, j, plan))
            .collect(),
        layout: Layout {
            locale: data.items.iter().map(|i| i.locale).collect(),
            group: data.items.iter().map(|i| i.group).collect(),
            grouped: data.grouped,
        },
        view: &view,
        plan,
    };
    let everything: Vec<usize> = (0..data.items.len()).collect();
    let mut rows = vec![Vec::new(); data.locales.len()];
    everything
        .iter()
        .for_each(|&r| rows[data.items[r].locale].push(r));
    let mut locales = BTreeMap::new();
    if data.by_locale {
        for (name, rows) in data.locales.iter().zip(&rows) {
            locales.insert(name.clone(), maker.section(rows));
        }
    }
    Ok(Agreement {
        schema: "pluralis-agree/1",
        files: data.files.clone(),
        scale: data.scale,
        labels: data.labels.clone(),
        raters: data.raters.clone(),
        named: data.named,
        judges: data.judges.clone(),
        settings: *plan,
        missing: data.missing.clone(),
        overall: maker.section(&everything),
        over_locales: (locales.len() > 1).then(|| maker.over_locales(&rows, &locales)),
        locales,
        notes: notes(&view, &rows),
    })
}

struct Maker<'a> {
    view: &'a View<'a>,
    people: Vec<Measured<'a>>,
    judges: Vec<Vec<Measured<'a>>>,
    layout: Layout,
    plan: &'a Plan,
}

type Figures = BTreeMap<&'static str, Figure>;

impl Maker<'_> {
    fn figures(&self, of: &[Measured], rows: &[usize]) -> Figures {
        let figure = |m: &Measured| (m.name, m.figure(rows, &self.layout, self.plan));
        of.iter().map(figure).collect()
    }

    fn section(&self, rows: &[usize]) -> Section {
        let items = &self.view.data.items;
        let voted = |least: usize| {
            rows.iter()
                .filter(|&&r| items[r].votes.len() >= least)
                .count()
        };
        let most = majorities(self.view);
        let tied = |&&r: &&usize| !items[r].votes.is_empty() && most[r].is_none();
        let judge = |j: usize| (self.view.data.judges[j].clone(), self.judge(j, rows, &most));
        Section {
            items: rows.len(),
            with_votes: voted(1),
            with_two_votes: voted(2),
            votes: rows.iter().map(|&r| items[r].votes.len()).sum(),
            ties: rows.iter().filter(tied).count(),
            people: self.figures(&self.people, rows),
            raters: self.raters(rows),
            judges: (0..self.judges.len()).map(judge).collect(),
            pairs: pairs(self.view, rows, &self.layout, self.plan),
        }
    }

    fn judge(&self, judge: usize, rows: &[usize], most: &[Option<usize>]) -> JudgeSection {
        let given = verdicts::labels(self.view, judge);
        let items = &self.view.data.items;
        let failed = |&&r: &&usize| !items[r].votes.is_empty() && given[r].is_none();
        let mut labels: Vec<String> = self
            .view
            .data
            .labels
            .iter()
            .map(|l| l.label.clone())
            .collect();
        labels.push("(none)".into());
        let none = labels.len() - 1;
        let people: Vec<_> = rows.iter().map(|&r| most[r]).collect();
        let verdicts: Vec<_> = rows
            .iter()
            .map(|&r| Some(given[r].unwrap_or(none)))
            .collect();
        JudgeSection {
            failed: rows.iter().filter(failed).count(),
            figures: self.figures(&self.judges[judge], rows),
            confusion: Matrix::of(labels, &people, &verdicts),
            alt_test: alt_test(self.view, judge, rows, self.plan),
        }
    }

    fn raters(&self, rows: &[usize]) -> Vec<RaterRow> {
        let data = self.view.data;
        if !data.named {
            return Vec::new();
        }
        let mut votes = vec![0; data.raters.len()];
        let mut ratings = Vec::new();
        for &row in rows {
            for v in &data.items[row].votes {
                votes[v.rater as usize] += 1;
                ratings.push(Rating {
                    item: row,
                    rater: v.rater as usize,
                    label: v.label as usize,
                });
            }
        }
        let mut distances = vec![Vec::new(); data.raters.len()];
        // Without two votes on any item nobody can be held out.
        let held = leave_one_out(self.plan.measure, self.view.scale(), &ratings);
        for h in held.unwrap_or_default() {
            distances[h.rater].push(h.distance);
        }
        let row = |(rater, d): (usize, &Vec<f64>)| RaterRow {
            rater: data.raters[rater].clone(),
            votes: votes[rater],
            held_out: match mean(d) {
                Ok(value) => Figure::mean_of(value, d, self.plan.level),
                Err(_) => Figure::undefined(0, &Undefined::NoPairs),
            },
        };
        distances.iter().enumerate().map(row).collect()
    }

    fn over_locales(
        &self,
        rows: &[Vec<usize>],
        locales: &BTreeMap<String, Section>,
    ) -> OverLocales {
        let means = |of: &[Measured]| -> Figures {
            let mean = |m: &Measured| (m.name, m.over_locales(rows, &self.layout, self.plan));
            of.iter().map(mean).collect()
        };
        let names = &self.view.data.judges;
        let judges = || names.iter().zip(&self.judges);
        OverLocales {
            people: means(&self.people),
            judges: judges().map(|(n, m)| (n.clone(), means(m))).collect(),
            worst_people: worst(&self.people, locales, |s| &s.people),
            worst_judges: judges()
                .map(|(n, m)| (n.clone(), worst(m, locales, |s| &s.judges[n].figures)))
                .collect(),
        }
    }
}

fn worst<'s>(
    measured: &[Measured],
    locales: &'s BTreeMap<String, Section>,
    of: impl Fn(&'s Section) -> &'s Figures,
) -> BTreeMap<&'static str, Worst> {
    let mut out = BTreeMap::new();
    for m in measured {
        let sign = if m.better == Better::High { 1.0 } else { -1.0 };
        let value = |s: &'s Section| of(s)[m.name].value;
        let least = locales
            .iter()
            .filter_map(|(name, s)| Some((name, s, sign * value(s)?)))
            .min_by(|a, b| a.2.total_cmp(&b.2));
        if let Some((name, section, _)) = least {
            let without = locales.iter().filter(|(_, s)| value(s).is_none());
            out.insert(
                m.name,
                Worst {
                    locale: name.clone(),
                    figure: of(section)[m.name].clone(),
                    without: without.map(|(n, _)| n.clone()).collect(),
                },
            );
        }
    }
    out
}

fn notes(view: &View, locales: &[Vec<usize>]) -> Vec<String> {
    let data = view.data;
    let mut notes = Vec::new();
    if data.repeated > 0 {
        notes.push(format!(
            "{} votes repeat the same rater's same label on the same item; each counts once",
            data.repeated
        ));
    }
    let unlabelled = data.items.iter().filter(|i| i.votes.is_empty()).count();
    if unlabelled > 0 {
        notes.push(format!("{unlabelled} items have no vote"));
    }
    if data.scale.is_ordered() && data.labels.iter().any(|l| l.abstain && l.count > 0) {
        notes.push(
            "labels that abstain have no position: kappas, alpha, AC1 and AC2 count them as missing"
                .into(),
        );
    }
    if !data.judges.is_empty() && data.named && data.raters.len() < 3 {
        notes.push(
            "the alternative annotator test was made for three raters or more; with fewer the judge is compared with single votes"
                .into(),
        );
    }
    let few = !data.judges.is_empty() && locales.iter().any(|l| l.len() < 50);
    if few {
        notes.push("over fewer than 50 items macro-F1 has no interval".into());
    }
    notes.extend(left_out(view));
    notes
}

//! `pluralis prompt list | show | diff | log`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use super::RegistryArgs;
use crate::cli::{Failure, out};
use crate::prompt::{Demo, Edit, LOCALE_NOTES, Line, MergePart};
use crate::registry::{Evidence, Found, Lineage, Measured, SplitEvidence, tree};

/// Characters of an edit's text that a line shows.
const SHOWN: usize = 60;

/// A share as `31.2 %`.
pub fn percent(x: f64) -> String {
    format!("{:.1} %", 100.0 * x)
}

/// `31.2 % [24, 39]`.
pub fn figure(disagreement: f64, ends: Option<(f64, f64)>) -> String {
    match ends {
        Some((low, high)) => {
            format!(
                "{} [{:.0}, {:.0}]",
                percent(disagreement),
                100.0 * low,
                100.0 * high
            )
        }
        None => percent(disagreement),
    }
}

fn split_figure(s: &SplitEvidence) -> String {
    format!("{} n={}", figure(s.disagreement, s.low.zip(s.high)), s.n)
}

/// `test 3.1 % [1, 9] n=96`, of the measuring that says most.
fn headline(evidence: &Evidence) -> Option<(String, &Measured)> {
    let order = |m: &&Measured| match m.best_split() {
        Some(("test", _)) => 0,
        Some(("validation", _)) => 1,
        _ => 2,
    };
    let best = evidence.measured.iter().min_by_key(order)?;
    let (name, split) = best.best_split()?;
    Some((format!("{name} {}", split_figure(split)), best))
}

pub fn list(registry: &RegistryArgs, as_json: bool) -> Result<(), Failure> {
    let mut rows =
        vec![["task", "version", "tags", "answer", "disagreement", "judge"].map(str::to_owned)];
    let mut objects = Vec::new();
    for one in registry.all()? {
        let tags = one.tags().list()?;
        for listed in one.list()? {
            let (version, lineage, evidence) = match listed.read {
                Ok(read) => read,
                Err(e) => {
                    out::note(&format!("not usable: {e}"));
                    continue;
                }
            };
            let digest = version.digest();
            let own = tags.iter().filter(|t| t.version() == digest);
            let own: Vec<&str> = own.map(|t| t.name.as_str()).collect();
            let reading = version
                .reading
                .as_ref()
                .map_or(String::new(), |r| format!(" ({r})"));
            let answer = serde_json::to_value(version.answer).unwrap_or_default();
            let answer = format!(
                "{}, {}",
                version.skeleton.name,
                answer.as_str().unwrap_or_default()
            );
            let (shown, judge) = headline(&evidence).map_or_else(Default::default, |(shown, m)| {
                (shown, format!("{} {}", m.judge.model, m.fingerprint))
            });
            objects.push(json!({
                "task": version.task, "reading": version.reading, "version": digest, "tags": own,
                "skeleton": version.skeleton.name, "answer": version.answer, "run": lineage.run,
                "folder": listed.dir, "evidence": evidence.measured,
            }));
            let short = version.short();
            rows.push([
                version.task + &reading,
                short,
                own.join(" "),
                answer,
                shown,
                judge,
            ]);
        }
    }
    if as_json {
        return out::text(&format!("{:#}\n", serde_json::Value::from(objects)));
    }
    if rows.len() == 1 {
        return out::line("there is no version yet; `pluralis prompt import RUN` takes one in");
    }
    out::text(&table(&rows))
}

/// Columns as wide as their widest cell.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, w)| format!("{cell:<w$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

pub fn show(registry: &RegistryArgs, version: &str, as_json: bool) -> Result<(), Failure> {
    let found = registry.find(version)?;
    if as_json {
        let all = json!({
            "digest": found.version.digest(), "version": found.version,
            "lineage": found.lineage, "evidence": found.evidence.measured,
        });
        return out::text(&format!("{all:#}\n"));
    }
    let v = &found.version;
    let mut text = format!("version    {}\ntask       {}", v.digest(), v.task);
    if let Some(reading) = &v.reading {
        let _ = write!(text, " ({reading})");
    }
    let answer = serde_json::to_value(v.answer).unwrap_or_default();
    let _ = writeln!(text, ", definition {}", v.task_digest);
    let _ = writeln!(
        text,
        "skeleton   {}, answer {}",
        v.skeleton.name,
        answer.as_str().unwrap_or_default()
    );
    text += &origin(&found);
    for (name, body) in &v.sections {
        let _ = writeln!(text, "\n[{name}]\n{body}");
    }
    if !v.rules.is_empty() {
        let _ = writeln!(text, "\n[rules]");
        v.rules.iter().for_each(|r| text += &format!("- {r}\n"));
    }
    if let Some(field) = &v.first {
        let _ = writeln!(text, "\n[shown first]\n{field}");
    }
    if !v.demos.is_empty() {
        let shown = v
            .nearest
            .map(|n| format!(", of which an item is shown the {n} nearest"));
        let _ = writeln!(text, "\n[demos]{}", shown.unwrap_or_default());
        v.demos
            .iter()
            .for_each(|d| text += &format!("- {}\n", demo(d)));
    }
    for (criterion, words) in &v.words {
        let _ = writeln!(text, "\n[words of {criterion}]");
        words
            .iter()
            .for_each(|(l, w)| text += &format!("{l}: {w}\n"));
    }
    for (criterion, c) in &v.calibration.criteria {
        let _ = writeln!(
            text,
            "\n[calibration of {criterion}]\ntemperature {:.4}, bias {:.4?}",
            c.temperature, c.bias
        );
        c.locales
            .iter()
            .for_each(|(l, b)| text += &format!("{l}: {b:.4?}\n"));
    }
    for m in &found.evidence.measured {
        text += &measured(m);
    }
    out::text(&text)
}

fn origin(found: &Found) -> String {
    let mut text = String::new();
    let l = &found.lineage;
    for parent in &l.parents {
        let _ = writeln!(text, "parent     {}", short(parent));
    }
    if let Some(edit) = &l.edit {
        let _ = writeln!(text, "edit       {}", edit_line(edit));
    }
    if let Some(card) = &l.card {
        let _ = writeln!(
            text,
            "card       {card} {}",
            l.card_says.as_deref().unwrap_or_default()
        );
    }
    if let Some(race) = race_line(l) {
        let _ = writeln!(text, "race       {race}");
    }
    if !l.run.is_empty() {
        let _ = writeln!(text, "run        {}", l.run);
    }
    text
}

/// `gain 0.412 nats over 24 items, p 0.001`.
fn race_line(l: &Lineage) -> Option<String> {
    let race = l.race.as_ref()?;
    let p = race.p.map_or(String::new(), |p| format!(", p {p:.4}"));
    let gain = match race.of.as_str() {
        "disagreement" => format!("{:.1} points of disagreement", 100.0 * race.gain),
        _ => format!("{:.3} nats", race.gain),
    };
    Some(format!("gain {gain} over {} items{p}", race.n))
}

fn measured(m: &Measured) -> String {
    let date = m.date.as_deref().unwrap_or("no date");
    let mut text = format!(
        "\n[figures by {}, {date}]\njudge {} {} {}, data {}, {}\n",
        m.by,
        m.judge.kind,
        m.judge.model,
        m.fingerprint,
        short(&m.data),
        m.experiment
    );
    for (name, split) in &m.splits {
        let _ = write!(text, "{name:<12} {}", split_figure(split));
        if let Some(people) = &split.people {
            let _ = write!(text, ", a held-out rater {}", percent(people.disagreement));
        }
        if !split.failures.is_empty() {
            let _ = write!(text, ", failed {:?}", split.failures);
        }
        text.push('\n');
        for (locale, f) in &split.locales {
            let shown = figure(f.disagreement, f.low.zip(f.high));
            let _ = writeln!(text, "  {locale:<10} {shown} n={}", f.n);
        }
    }
    text
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn demo(d: &Demo) -> String {
    let fields: Vec<_> = d.fields.values().map(String::as_str).collect();
    let answers: Vec<_> = d.answers.values().map(String::as_str).collect();
    let only = d
        .only_for
        .as_ref()
        .map_or(String::new(), |l| format!(" only for {l}"));
    format!(
        "{}{only}: {} -> {}",
        d.locale,
        fields.join(" | "),
        answers.join(", ")
    )
}

/// An edit on one line.
fn edit_line(edit: &Edit) -> String {
    let text = |t: &str| {
        let line: String = t
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(SHOWN)
            .collect();
        let dots = if line.len() < t.len() { "…" } else { "" };
        format!("\"{line}{dots}\"")
    };
    let what = match edit {
        Edit::ReplaceSection { section, text: t } => format!("{section} {}", text(t)),
        Edit::AddRule { text: t } => text(t),
        Edit::DropRule { index } => format!("number {}", index + 1),
        Edit::SetLocaleNote { locale, text: t } => format!("{locale} {}", text(t)),
        Edit::SetDemos { demos } => format!("{} demos", demos.len()),
        Edit::AddDemo { demo: d } | Edit::SwapDemo { demo: d, .. } => text(&demo(d)),
        Edit::DropDemo { source } => source.clone(),
        Edit::ShowNearest { count } => count.to_string(),
        Edit::ShowFirst { field } => field.clone(),
        Edit::ReorderDemos { .. } | Edit::Recalibrate { .. } => String::new(),
        Edit::ChangeWords { words } => {
            let all: Vec<&str> = words
                .values()
                .flat_map(|w| w.values().map(String::as_str))
                .collect();
            all.join(", ")
        }
        Edit::Merge { part, .. } => match part {
            MergePart::Demos(demos) => format!("{} demos", demos.len()),
            MergePart::Texts { .. } => "texts".into(),
        },
    };
    format!("{} {what}", edit.kind()).trim_end().to_owned()
}

pub fn diff(registry: &RegistryArgs, a: &str, b: &str, as_json: bool) -> Result<(), Failure> {
    let (a, b) = (registry.find(a)?.version, registry.find(b)?.version);
    let changes = crate::prompt::diff(&a, &b);
    if as_json {
        let all = json!({"a": a.digest(), "b": b.digest(), "changes": changes});
        return out::text(&format!("{all:#}\n"));
    }
    let mut text = format!("--- {}\n+++ {}\n", a.short(), b.short());
    if changes.is_empty() {
        text += "the versions are the same\n";
    }
    for change in changes {
        let name = change
            .part
            .replace(&format!("section {LOCALE_NOTES}"), "note for ");
        let _ = writeln!(text, "@@ {name}");
        for line in change.lines {
            let (mark, line) = match line {
                Line::Same(l) => (' ', l),
                Line::Gone(l) => ('-', l),
                Line::New(l) => ('+', l),
            };
            let _ = writeln!(text, "{mark}{line}");
        }
    }
    out::text(&text)
}

pub fn log(registry: &RegistryArgs, version: Option<&str>) -> Result<(), Failure> {
    let of = version.map(|v| registry.find(v)).transpose()?;
    let mut text = String::new();
    for one in registry.all()? {
        let tags = one.tags().list()?;
        let mut lineages = BTreeMap::new();
        let mut evidences = BTreeMap::new();
        for listed in one.list()? {
            match listed.read {
                Ok((version, lineage, evidence)) => {
                    let digest = version.digest();
                    lineages.insert(digest.clone(), lineage);
                    evidences.insert(digest, evidence);
                }
                Err(e) => out::note(&format!("not usable: {e}")),
            }
        }
        let wanted = of.as_ref().map(|f| f.version.digest());
        for branch in tree(&lineages, wanted.as_deref()) {
            let own = tags.iter().filter(|t| t.version() == branch.digest);
            let own: Vec<&str> = own.map(|t| t.name.as_str()).collect();
            let (lineage, evidence) = (&lineages[&branch.digest], &evidences[&branch.digest]);
            let mut says = vec![match &lineage.edit {
                Some(edit) => edit_line(edit),
                None if lineage.parents.is_empty() => "start".into(),
                None => "several edits at once".into(),
            }];
            says.extend(race_line(lineage));
            says.extend(headline(evidence).map(|(h, _)| h));
            if !branch.also.is_empty() {
                let also: Vec<_> = branch.also.iter().map(|d| short(d)).collect();
                says.push(format!("also of {}", also.join(", ")));
            }
            let tags = match own.is_empty() {
                true => String::new(),
                false => format!(" ({})", own.join(", ")),
            };
            let _ = writeln!(
                text,
                "{}{}{tags}  {}",
                branch.lead,
                short(&branch.digest),
                says.join("; ")
            );
        }
    }
    if text.is_empty() {
        text += "there is no version yet, or this one is not in the registry\n";
    }
    out::text(&text)
}

//! What the strategies share: scores, pools, questions to the writer.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::SliceRandom;

use crate::data::Item;
use crate::endpoint::{Finish, PromptText, Request, Style, Want};
use crate::ledger::Answer;
use crate::optimize::bench::{Bench, TuneError};
use crate::optimize::candidate::Candidate;
use crate::optimize::event::Event;
use crate::optimize::pool::{Pool, mean};
use crate::optimize::streams::Stream;
use crate::prompt::{Demo, Edit, Renderer, Version};
use crate::propose;

/// Room for an instruction.
const MAX_TOKENS: u32 = 600;
/// The section that holds the instruction.
const SECTION: &str = "role";

/// Judges a candidate on items, as far as the budget goes, and gives its agreement by item. Items
/// that it shows as demos are left out.
pub(super) async fn agreement(
    bench: &Bench<'_>,
    pool: &mut Pool,
    candidate: &mut Candidate,
    items: &[usize],
) -> Result<BTreeMap<usize, f64>, TuneError> {
    pool.judge_missing(bench, candidate, items).await?;
    let scored = candidate.scored(bench, items);
    Ok(scored
        .into_iter()
        .map(|(i, s)| (i, 1.0 - s.distance))
        .collect())
}

/// Mean agreement; 0 where nothing was judged.
pub(super) fn average(scores: &BTreeMap<usize, f64>) -> f64 {
    if scores.is_empty() {
        return 0.0;
    }
    mean(scores.values().copied())
}

/// Mean agreement on what a candidate was judged on of `tune`, and the number of items; 0 of 0
/// where nothing was judged.
pub(super) fn on_tune(bench: &Bench<'_>, candidate: &Candidate) -> (f64, usize) {
    let scored = candidate.scored(bench, bench.tune);
    if scored.is_empty() {
        return (0.0, 0);
    }
    (
        mean(scored.values().map(|s| 1.0 - s.distance)),
        scored.len(),
    )
}

/// Takes those candidates in that are new to the pool and were judged on `tune`, at their agreement
/// there less a price. Says whether one of them is the best so far.
pub(super) fn keep_new(
    bench: &Bench<'_>,
    pool: &mut Pool,
    candidates: &[Candidate],
    price: impl Fn(&Candidate) -> f64,
) -> Result<bool, TuneError> {
    let before = pool.best().validation_loss;
    for candidate in candidates {
        let known = pool
            .candidates
            .iter()
            .any(|c| c.version == candidate.version);
        let (agreement, n) = on_tune(bench, candidate);
        if !known && n > 0 {
            let score = agreement - price(candidate);
            keep(bench, pool, candidate.clone(), score, n)?;
        }
    }
    Ok(pool.best().validation_loss < before)
}

/// Takes a candidate into the pool with the score that its strategy chooses by.
pub(super) fn keep(
    bench: &Bench<'_>,
    pool: &mut Pool,
    mut candidate: Candidate,
    score: f64,
    n: usize,
) -> Result<(), TuneError> {
    candidate.looked = true;
    candidate.validation_loss = Some(1.0 - score);
    bench.emit(&Event::Scored {
        version: candidate.version.short(),
        n,
        disagreement: 1.0 - score,
        loss: 1.0 - score,
    })?;
    pool.tried.insert(candidate.version.digest());
    pool.candidates.push(candidate);
    Ok(())
}

/// Scores a candidate on all of validation and takes it in. A part of the split, which is all that
/// the end of a budget may pay, counts as the lowest score unless nothing else is there.
pub(super) async fn keep_by_validation(
    bench: &Bench<'_>,
    pool: &mut Pool,
    mut candidate: Candidate,
) -> Result<BTreeMap<usize, f64>, TuneError> {
    let scores = agreement(bench, pool, &mut candidate, bench.validation).await?;
    let whole = pool.missing(bench, &candidate, bench.validation).is_empty();
    if whole || pool.candidates.is_empty() {
        let score = if whole { average(&scores) } else { 0.0 };
        keep(bench, pool, candidate, score, scores.len())?;
    }
    Ok(scores)
}

/// Whether the budget pays so many items for a version.
pub(super) fn affords(bench: &Bench<'_>, version: &Version, items: usize) -> bool {
    let calls = (items * bench.judge.calls_per_item(version)) as u64;
    bench.calls_left().is_none_or(|left| left >= calls)
}

/// The instruction of a version.
pub(super) fn instruction(version: &Version) -> String {
    version.sections.get(SECTION).cloned().unwrap_or_default()
}

/// A version with another instruction, if it renders for every item.
pub(super) fn instruct(bench: &Bench<'_>, parent: &Version, text: &str) -> Option<(Edit, Version)> {
    let edit = Edit::ReplaceSection {
        section: SECTION.into(),
        text: text.into(),
    };
    let child = edit.apply(parent).ok()?;
    renders(bench, &child).then_some((edit, child))
}

/// Whether a version renders for every item that it may be judged on.
fn renders(bench: &Bench<'_>, version: &Version) -> bool {
    let Ok(renderer) = Renderer::new(bench.judge.task, version, bench.judge.fence) else {
        return false;
    };
    let criteria = bench.judge.task.criteria.len();
    bench
        .tune
        .iter()
        .chain(bench.validation)
        .all(|&i| (0..criteria).all(|c| renderer.prompt(&bench.items[i], Some(c)).is_ok()))
}

/// Asks the writer; `None` when there is none, the budget is spent, or the answer is unusable. A
/// text between fences is taken alone.
pub(super) async fn ask(
    bench: &Bench<'_>,
    pool: &mut Pool,
    prompt: String,
    temperature: f64,
    repeat: u32,
) -> Result<Option<String>, TuneError> {
    let Some(writer) = bench.writer else {
        return Ok(None);
    };
    if bench.calls_left() == Some(0) {
        pool.exhausted = true;
        return Ok(None);
    }
    let request = Request {
        prompt: PromptText {
            style: Style::Chat,
            prefix: String::new(),
            suffix: prompt,
        },
        want: Want::Text {
            max_tokens: MAX_TOKENS,
            temperature: temperature as f32,
            json_schema: None,
            top_logprobs: 0,
        },
        seed: Some(bench.streams.seed_of(pool.step, "writer")),
        repeat,
    };
    match bench.judge.ledger.ask(writer, &[request]).await?.pop() {
        Some(Answer::Got(r)) if r.finish != Finish::Length => Ok(unfenced(&r.text)),
        Some(Answer::NoBudget) => {
            pool.exhausted = true;
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// What stands between the first and the last fence, without a language tag; the whole text
/// where there is no fence.
fn unfenced(text: &str) -> Option<String> {
    let text = text.trim();
    let inner = match (text.find("```"), text.rfind("```")) {
        (Some(a), Some(b)) if b > a => {
            let inner = &text[a + 3..b];
            inner.split_once('\n').map_or(inner, |(_, rest)| rest)
        }
        _ => text,
    };
    let inner = inner.trim();
    (!inner.is_empty()).then(|| inner.to_owned())
}

/// An item with the people's label, and the judge's where it is known.
pub(super) fn example(bench: &Bench<'_>, candidate: Option<&Candidate>, item: usize) -> String {
    let (task, it) = (bench.judge.task, &bench.items[item]);
    let mut out = format!("[{}] {}", it.locale.display_name(), shown(it));
    let criterion = &task.criteria[0];
    let word = |label: usize| criterion.labels[label].word.as_str();
    if let Some(c) = candidate
        && let Some(verdict) = c.verdicts.get(&item)
        && let Some(decision) = verdict.readings[0].decide(task, &c.version, 0, &it.locale)
    {
        out += &format!(" | the judge: {}", decision.label.map_or("no answer", word));
    }
    out + &format!(
        " | people: {}",
        bench.majority(item).map_or("divided", word)
    )
}

fn shown(item: &Item) -> String {
    let texts: Vec<&str> = item
        .fields
        .iter()
        .map(String::as_str)
        .filter(|t| !t.is_empty())
        .collect();
    texts.join(" / ")
}

/// A random set of labelled demos from `tune`.
pub(super) fn random_demos(bench: &Bench<'_>, k: usize, rng: &mut Stream) -> Vec<Demo> {
    let mut items = bench.tune.to_vec();
    items.shuffle(rng);
    let demo = |&i: &usize| propose::demo_of(bench.judge.task, &bench.items[i]);
    items.iter().filter_map(demo).take(k).collect()
}

/// One of the values at random.
pub(super) fn pick<'a, T>(values: &'a [T], rng: &mut Stream) -> Option<&'a T> {
    (!values.is_empty()).then(|| &values[rng.random_range(0..values.len())])
}

//! Asking a generator for candidates: the user's template, the reading of the answer, and what is
//! refused. Must not know how candidates are scored.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tera::{Context, Tera};

use super::{Candidate, Rule, Slot};
use crate::data::{ItemRecord, check_record, normalise};
use crate::evaluate::target::{Reply, Target};
use crate::ledger::Halt;
use crate::prompt::Fence;
use crate::propose::copies_training_text;
use crate::task::Task;
use crate::text::{Fault, did_you_mean};

/// What the template may read.
const VALUES: [&str; 7] = [
    "slot", "locale", "needed", "round", "fields", "criteria", "kept",
];
const NAME: &str = "generator.txt";

/// Why generated text is no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// The answer holds no JSON object, or one that the task's fields do not fit.
    Malformed,
    /// Equal to an earlier candidate after normalisation.
    Duplicate,
    /// Repeats a long run of an earlier candidate.
    Copy,
    /// More than was asked for.
    Surplus,
    /// The provider withheld the answer.
    Withheld,
    /// The call failed for good.
    Failed,
    /// The budget did not allow the call.
    Unpaid,
}

impl Refused {
    /// The name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Refused::Malformed => "malformed",
            Refused::Duplicate => "duplicate",
            Refused::Copy => "copy",
            Refused::Surplus => "surplus",
            Refused::Withheld => "withheld",
            Refused::Failed => "failed",
            Refused::Unpaid => "unpaid",
        }
    }
}

/// The generator's prompt, as the user wrote it.
#[derive(Debug)]
pub struct Template {
    tera: Tera,
}

/// The template fails on a value of a slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the generator's template fails on the slot {slot}: {what}")]
pub struct TemplateError {
    /// The slot.
    pub slot: String,
    /// Tera's message with the place.
    pub what: String,
}

impl Template {
    /// Parses a template. Slots and candidates are values of it, never its source.
    ///
    /// # Errors
    /// With the place: what does not parse, or reads a value that there is not.
    pub fn parse(path: &Path, source: &str) -> Result<Self, Box<Fault>> {
        let mut tera = Tera::new();
        tera.autoescape_on(Vec::<&str>::new());
        let broken = |e: tera::Error| {
            let advice = format!(
                "{{{{ value }}}} shows a value; known: {}",
                VALUES.join(", ")
            );
            Box::new(Fault::new(path, source, None, e.to_string(), advice))
        };
        tera.add_raw_template(NAME, source).map_err(broken)?;
        let used = tera.get_template_variables(NAME).map_err(broken)?;
        if let Some(unknown) = used.iter().find(|v| !VALUES.contains(v)) {
            let span = source.find(*unknown).map(|at| at..at + unknown.len());
            let what = format!("the template reads `{unknown}`, which it is not given");
            let advice = did_you_mean(unknown, &VALUES);
            return Err(Box::new(Fault::new(path, source, span, what, advice)));
        }
        Ok(Self { tera })
    }

    fn render(&self, slot: &Slot, context: &Context) -> Result<String, TemplateError> {
        self.tera.render(NAME, context).map_err(|e| TemplateError {
            slot: slot.label(),
            what: e.to_string(),
        })
    }
}

/// A model that makes candidates.
pub struct Generator<'a> {
    /// The model, its ledger, its temperature.
    pub target: Target<'a>,
    /// Its prompt.
    pub template: &'a Template,
    /// What candidates must fit.
    pub task: &'a Task,
    /// The judge's delimiter, which no candidate may hold.
    pub fence: &'a Fence,
    /// Candidates asked for beyond those that are missing, so that some may fail.
    pub spare: usize,
}

/// Per slot what was made: a candidate, or why it is none.
type Made = Vec<(usize, Vec<Result<ItemRecord, Refused>>)>;

#[derive(Serialize)]
struct CriterionView<'a> {
    name: &'a str,
    question: &'a str,
    labels: Vec<BTreeMap<&'static str, &'a str>>,
}

impl Generator<'_> {
    /// One round: one call per open slot.
    pub(super) async fn round(
        &self,
        round: u32,
        open: &[(usize, usize)],
        slots: &[Slot],
        candidates: &[Candidate],
        rule: &Rule,
    ) -> Result<Made, RoundError> {
        let mut prompts = Vec::with_capacity(open.len());
        for &(slot, missing) in open {
            let context = self.context(
                round,
                &slots[slot],
                slot,
                missing + self.spare,
                candidates,
                rule,
            );
            prompts.push(self.template.render(&slots[slot], &context)?);
        }
        let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
        let replies = self.target.ask(&prompts, round).await?;
        // Texts of this round count as earlier ones for the slots that follow.
        let mut seen: Vec<String> = candidates
            .iter()
            .map(|c| identity(self.task, &c.record))
            .collect();
        let mut out = Vec::with_capacity(open.len());
        for (&(slot, missing), reply) in open.iter().zip(&replies) {
            let made = self.read(
                reply,
                &slots[slot],
                round,
                missing + self.spare,
                rule,
                &mut seen,
            );
            out.push((slot, made));
        }
        Ok(out)
    }

    fn context(
        &self,
        round: u32,
        slot: &Slot,
        at: usize,
        needed: usize,
        candidates: &[Candidate],
        rule: &Rule,
    ) -> Context {
        let kept: Vec<&BTreeMap<String, String>> = super::select::kept(at + 1, candidates, rule)
            .iter()
            .filter(|k| k.slot == at)
            .map(|k| &candidates[k.candidate].record.fields)
            .collect();
        let criteria: Vec<CriterionView<'_>> = self
            .task
            .criteria
            .iter()
            .map(|c| CriterionView {
                name: &c.name,
                question: &c.question,
                labels: c
                    .labels
                    .iter()
                    .map(|l| {
                        BTreeMap::from([("word", l.word.as_str()), ("meaning", l.meaning.as_str())])
                    })
                    .collect(),
            })
            .collect();
        let fields: Vec<&str> = self.task.fields.iter().map(|f| f.name.as_str()).collect();
        let mut context = Context::new();
        context.insert("slot", &slot.values);
        context.insert("locale", &slot.locale);
        context.insert("needed", &needed);
        context.insert("round", &round);
        context.insert("fields", &fields);
        context.insert("criteria", &criteria);
        context.insert("kept", &kept);
        context
    }

    fn read(
        &self,
        reply: &Reply,
        slot: &Slot,
        round: u32,
        needed: usize,
        rule: &Rule,
        seen: &mut Vec<String>,
    ) -> Vec<Result<ItemRecord, Refused>> {
        let text = match reply {
            Reply::Text { text, .. } => text,
            Reply::Withheld { .. } => return vec![Err(Refused::Withheld)],
            Reply::Failed { .. } => return vec![Err(Refused::Failed)],
            Reply::Unpaid => return vec![Err(Refused::Unpaid)],
        };
        let found = objects(text);
        if found.is_empty() {
            return vec![Err(Refused::Malformed)];
        }
        let mut taken = 0;
        let mut out = Vec::with_capacity(found.len());
        for object in found {
            let number = taken + 1;
            let made = self.candidate(object, slot, round, number, rule, seen);
            out.push(match made {
                Ok(_) if taken == needed => Err(Refused::Surplus),
                Ok(record) => {
                    taken += 1;
                    seen.push(identity(self.task, &record));
                    Ok(record)
                }
                refused => refused,
            });
        }
        out
    }

    fn candidate(
        &self,
        object: serde_json::Map<String, serde_json::Value>,
        slot: &Slot,
        round: u32,
        number: usize,
        rule: &Rule,
        seen: &[String],
    ) -> Result<ItemRecord, Refused> {
        let mut fields = BTreeMap::new();
        for field in &self.task.fields {
            match object.get(&field.name) {
                Some(serde_json::Value::String(text)) if !text.trim().is_empty() => {
                    fields.insert(field.name.clone(), text.trim().to_owned());
                }
                None | Some(serde_json::Value::Null) if !field.required => {}
                _ => return Err(Refused::Malformed),
            }
        }
        let named = rule.by.iter().cloned().zip(slot.name.iter().cloned());
        let mut meta: BTreeMap<String, String> = named.filter(|(key, _)| key != "locale").collect();
        meta.insert(
            "generator".into(),
            self.target.endpoint.identity().model.clone(),
        );
        let record = ItemRecord {
            id: format!("{}/{round}.{number}", slot.name.join("/")),
            locale: slot.locale.clone(),
            fields,
            meta,
            ..ItemRecord::default()
        };
        let mut texts = record.fields.values();
        let closes = texts.any(|t| normalise(t).contains(self.fence.as_str()));
        if closes || check_record(self.task, &record, 0).is_err() {
            return Err(Refused::Malformed);
        }
        let text = identity(self.task, &record);
        if seen.contains(&text) {
            return Err(Refused::Duplicate);
        }
        if copies_training_text(&text, seen.iter().map(String::as_str)) {
            return Err(Refused::Copy);
        }
        Ok(record)
    }
}

/// What makes two candidates the same: the identifying fields, all of them where none is marked,
/// in normalised form.
pub(super) fn identity(task: &Task, record: &ItemRecord) -> String {
    let any = task.fields.iter().any(|f| f.identifies);
    let own = task.fields.iter().filter(|f| f.identifies || !any);
    let texts: Vec<String> = own
        .filter_map(|f| record.fields.get(&f.name))
        .map(|t| normalise(t))
        .collect();
    texts.join("\n")
}

/// Why a round stopped.
#[derive(Debug, thiserror::Error)]
pub enum RoundError {
    /// The ledger stopped the run.
    #[error(transparent)]
    Halt(#[from] Halt),
    /// The template fails.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl From<RoundError> for super::GateError {
    fn from(e: RoundError) -> Self {
        match e {
            RoundError::Halt(e) => e.into(),
            RoundError::Template(e) => e.into(),
        }
    }
}

/// The JSON objects of an answer: of one array, or one after the other, with any text around them.
fn objects(text: &str) -> Vec<serde_json::Map<String, serde_json::Value>> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(['{', '[']).map(|i| at + i) {
        let mut values =
            serde_json::Deserializer::from_str(&text[start..]).into_iter::<serde_json::Value>();
        match values.next() {
            Some(Ok(serde_json::Value::Object(object))) => {
                out.push(object);
                at = start + values.byte_offset();
            }
            Some(Ok(serde_json::Value::Array(list))) => {
                out.extend(list.into_iter().filter_map(|v| match v {
                    serde_json::Value::Object(object) => Some(object),
                    _ => None,
                }));
                at = start + values.byte_offset();
            }
            _ => at = start + 1,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_with_any_text_around() {
        let n = |text: &str| objects(text).len();
        assert_eq!(n("[{\"a\": \"x\"}, {\"a\": \"[y] {z}\"}]"), 2);
        assert_eq!(n("Sure!\n```json\n{\"a\": 1}\n{\"a\": 2}\n```"), 2);
        assert_eq!(n("{\"a\": \"cut"), 0);
        assert_eq!(n("[1, 2] {not json} {\"b\": {\"c\": 1}}"), 1);
        assert_eq!(n(""), 0);
        // An array that is cut still gives its whole objects.
        assert_eq!(n("[{\"a\": 1}, {\"a\": 2}, {\"a\""), 2);
        assert_eq!(n(&"[".repeat(10_000)), 0);
    }

    #[test]
    fn a_template_that_reads_what_it_is_not_given_is_refused() {
        let parse = |t: &str| Template::parse(Path::new("t"), t);
        assert!(parse("{{ slot.subcategory }} {{ needed }} {% for k in kept %}{{ k.scenario }}{% endfor %}").is_ok());
        let fault = parse("{{ neded }}").unwrap_err();
        assert!(fault.advice.contains("`needed`"), "{fault}");
        assert!(parse("{% for x in %}").is_err());
    }
}

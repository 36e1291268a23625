//! Owns judging: version x item x endpoint -> verdict. Builds requests, reads answers, applies the
//! version's calibration. Must not know search, or the votes of the item that it judges.

mod calibrate;
mod read;
mod verdict;

pub use calibrate::{CalibrationOptions, Example, fit, out_of_fold};
pub use read::{read_json, read_label, read_top_logprobs};
pub use verdict::{Decision, Failure, FailureKind, Reading, Verdict};

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::data::Item;
use crate::endpoint::{Endpoint, Finish, PromptText, Request, Response, Style, Want};
use crate::ledger::{Amount, Answer, Halt, Ledger};
use crate::prompt::{AnswerFormat, Fence, RenderError, Renderer, Version};
use crate::task::Task;

/// Alternatives asked of a server for the first token; 20 is the most that OpenAI gives.
const TOP_LOGPROBS: u8 = 20;

/// A model with everything that is needed to ask it for verdicts.
pub struct Judge<'a> {
    /// What is judged.
    pub task: &'a Task,
    /// The model.
    pub endpoint: &'a dyn Endpoint,
    /// Where calls are paid, cached and recorded.
    pub ledger: &'a Ledger,
    /// Delimiter around item text.
    pub fence: &'a Fence,
    /// Sampling seed to send; `None` sends none.
    pub seed: Option<u64>,
    /// Calls that must be left over, for the reading of `test`; the loop asks no writer with them.
    pub hold_back: u64,
    /// What must be left in the ledger while a version is judged, because it may be the one that
    /// is read on `test`; `None` leaves the ledger as it is.
    pub reserve: Option<&'a Reserve<'a>>,
}

impl<'a> Judge<'a> {
    /// A judge with nothing held back.
    pub fn new(
        task: &'a Task,
        endpoint: &'a dyn Endpoint,
        ledger: &'a Ledger,
        fence: &'a Fence,
        seed: Option<u64>,
    ) -> Self {
        Self {
            task,
            endpoint,
            ledger,
            fence,
            seed,
            hold_back: 0,
            reserve: None,
        }
    }
}

/// From a version to what must be held back for reading `test`.
pub type Reserve<'a> = dyn Fn(&Version) -> Result<Amount, RenderError> + Sync + 'a;

/// A request with the row of its item and the criterion that it asks for; none asks for all.
type Asked = (usize, Option<usize>, Request);

/// Why judging stopped.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The version does not render; no call was made.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The ledger stopped the run.
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl Judge<'_> {
    /// Judges items with a version; one verdict per item, in order. The failure of an item is a
    /// verdict, not an error. Requests go out grouped by prefix so that prefix caches help.
    ///
    /// # Errors
    /// [`JudgeError`] when the version does not render or the run has to stop.
    pub async fn verdicts(
        &self,
        version: &Version,
        items: &[&Item],
    ) -> Result<Vec<Verdict>, JudgeError> {
        let requests = self.asked(version, items)?;
        let plain: Vec<Request> = requests.iter().map(|r| r.2.clone()).collect();
        let answers = self.ask(version, &plain).await?;
        let mut out = vec![
            Verdict {
                readings: vec![Reading::Unpaid; self.task.criteria.len()]
            };
            items.len()
        ];
        for ((row, criterion, _), answer) in requests.iter().zip(answers) {
            match criterion {
                Some(c) => out[*row].readings[*c] = self.read_one(version, *c, &answer),
                None => out[*row].readings = self.read_all(version, &answer),
            }
        }
        Ok(out)
    }

    /// What judging these items sends, in its order.
    ///
    /// # Errors
    /// A version that does not render.
    pub fn requests(
        &self,
        version: &Version,
        items: &[&Item],
    ) -> Result<Vec<Request>, RenderError> {
        let asked = self.asked(version, items)?;
        Ok(asked.into_iter().map(|(_, _, request)| request).collect())
    }

    /// Asks with what the reading of `test` takes held back; where that depends on how many tokens
    /// calls really use, a few requests go first and tell.
    async fn ask(
        &self,
        version: &Version,
        requests: &[Request],
    ) -> Result<Vec<Answer>, JudgeError> {
        let hold = || -> Result<(), RenderError> {
            if let Some(reserve) = self.reserve {
                self.ledger.hold_back(reserve(version)?);
            }
            Ok(())
        };
        hold()?;
        let probe = self.ledger.probe(self.endpoint, requests.len());
        let mut answers = Vec::with_capacity(requests.len());
        if probe > 0 {
            answers = self.ledger.ask(self.endpoint, &requests[..probe]).await?;
            hold()?;
        }
        answers.extend(self.ledger.ask(self.endpoint, &requests[probe..]).await?);
        Ok(answers)
    }

    fn asked(&self, version: &Version, items: &[&Item]) -> Result<Vec<Asked>, RenderError> {
        let renderer = Renderer::new(self.task, version, self.fence)?;
        let asked = self.parts(version);
        let mut requests = Vec::with_capacity(items.len() * asked.len());
        let mut prefixes: HashMap<(&str, Option<usize>), String> = HashMap::new();
        for (row, item) in items.iter().enumerate() {
            for &criterion in &asked {
                let key = (item.locale.as_str(), criterion);
                let prefix = match prefixes.entry(key) {
                    // Each item has demos, and so a prefix, of its own.
                    _ if version.nearest.is_some() => renderer.prefix_for(item, criterion)?,
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(free) => free
                        .insert(renderer.prefix(&item.locale, criterion)?)
                        .clone(),
                };
                let prompt = PromptText {
                    style: version.skeleton.style,
                    prefix,
                    suffix: renderer.suffix(item, criterion)?,
                };
                requests.push((
                    row,
                    criterion,
                    Request {
                        prompt,
                        want: self.want(version, criterion),
                        seed: self.seed,
                        repeat: 0,
                    },
                ));
            }
        }
        requests.sort_by(|a, b| {
            a.2.prompt
                .prefix
                .cmp(&b.2.prompt.prefix)
                .then(a.0.cmp(&b.0))
        });
        Ok(requests)
    }

    /// Number of requests that one item takes with a version.
    pub fn calls_per_item(&self, version: &Version) -> usize {
        self.parts(version).len()
    }

    /// One request per criterion, or one for all of them.
    fn parts(&self, version: &Version) -> Vec<Option<usize>> {
        match version.answer {
            AnswerFormat::Json => vec![None],
            AnswerFormat::Logprobs | AnswerFormat::Label => {
                (0..self.task.criteria.len()).map(Some).collect()
            }
        }
    }

    fn want(&self, version: &Version, criterion: Option<usize>) -> Want {
        match (version.answer, criterion) {
            (AnswerFormat::Logprobs, Some(c)) if self.endpoint.capabilities().scores => {
                let space = if version.skeleton.style == Style::Completion {
                    " "
                } else {
                    ""
                };
                let criterion = &self.task.criteria[c];
                let offered = (0..criterion.labels.len()).filter(|&l| version.offers(criterion, l));
                Want::Scores {
                    options: offered
                        .map(|l| format!("{space}{}", version.word(criterion, l)))
                        .collect(),
                }
            }
            (AnswerFormat::Logprobs, _) => Want::Text {
                max_tokens: 1,
                temperature: 0.0,
                json_schema: None,
                top_logprobs: TOP_LOGPROBS,
            },
            (AnswerFormat::Label, _) => Want::Text {
                max_tokens: 16,
                temperature: 0.0,
                json_schema: None,
                top_logprobs: 0,
            },
            (AnswerFormat::Json, _) => Want::Text {
                max_tokens: 400,
                temperature: 0.0,
                json_schema: Some(read::json_schema(self.task, version)),
                top_logprobs: 0,
            },
        }
    }

    fn read_one(&self, version: &Version, criterion: usize, answer: &Answer) -> Reading {
        let response = match whole(answer) {
            Ok(response) => response,
            Err(reading) => return reading,
        };
        let c = &self.task.criteria[criterion];
        let words: Vec<&str> = (0..c.labels.len()).map(|l| version.word(c, l)).collect();
        match version.answer {
            AnswerFormat::Logprobs if !response.scores.is_empty() => {
                // A label that was not offered has no score of its own.
                let mut given = response.scores.iter().copied();
                let all = (0..c.labels.len()).map(|l| {
                    let score = version.offers(c, l).then(|| given.next()).flatten();
                    score.unwrap_or(f64::NEG_INFINITY)
                });
                Reading::from_scores(&all.collect::<Vec<_>>())
            }
            AnswerFormat::Logprobs => read_top_logprobs(&words, response),
            AnswerFormat::Label | AnswerFormat::Json => read_label(c, &words, &response.text),
        }
    }

    fn read_all(&self, version: &Version, answer: &Answer) -> Vec<Reading> {
        match whole(answer) {
            Ok(response) => read_json(self.task, version, response),
            Err(reading) => vec![reading; self.task.criteria.len()],
        }
    }
}

/// The response of a whole answer, or what its absence means.
fn whole(answer: &Answer) -> Result<&Response, Reading> {
    match answer {
        Answer::NoBudget => Err(Reading::Unpaid),
        Answer::Failed(e) if e.cause == "content-filter" => {
            Err(Reading::failed(FailureKind::Refused, e.message.clone()))
        }
        Answer::Failed(e) => Err(Reading::failed(FailureKind::Endpoint, e.message.clone())),
        Answer::Got(r) if r.finish == Finish::ContentFilter => Err(Reading::failed(
            FailureKind::Refused,
            "the provider withheld the answer".into(),
        )),
        Answer::Got(r) => Ok(r),
    }
}

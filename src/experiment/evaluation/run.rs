//! An evaluation executed in one folder: targets are asked, responses are judged, and `prompts.jsonl`,
//! `verdicts.jsonl` and `summary.json` are written at its end.

use std::path::{Path, PathBuf};

use super::super::folder::{self, Ready, json, write};
use super::super::run::watch;
use super::super::{EndpointConfig, Progress, RunError, RunOptions, endpoints};
use super::plan::EvaluationPlan;
use super::summary::{EvaluationSummary, summary};
use crate::data::Item;
use crate::endpoint::{Endpoint, EndpointError};
use crate::evaluate::benchmark::{Given, Line, Prompt, Unlabelled, judged};
use crate::evaluate::target::{Reply, Target};
use crate::judge::{FailureKind, Judge, JudgeError, Reading, Verdict};
use crate::ledger::{Ledger, Spent};
use crate::optimize::TuneError;
use crate::prompt::Fence;

/// Executes an evaluation, or reports it where the folder holds it finished. Returns the folder,
/// the summary, and whether it was already there.
///
/// # Errors
/// [`RunError`]; what was paid for is in the folder, and `resume` goes on from there.
pub async fn evaluate(
    plan: &EvaluationPlan,
    options: &RunOptions,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(PathBuf, EvaluationSummary, bool), RunError> {
    let dir = options.out.clone().unwrap_or_else(|| plan.default_folder());
    let resolved = plan.resolved();
    if let Some(summary) = folder::finished(&resolved, options, &dir)? {
        return Ok((dir, summary, true));
    }
    // Before the folder is made: a missing key leaves none behind.
    let models = Models::open(plan, options)?;
    let task = [("task.toml", plan.judge.task_text.as_str())];
    let lock = match folder::claim(&resolved, &task, options, &dir)? {
        Ready::Finished(summary) => return Ok((dir, summary, true)),
        Ready::Mine(lock) => lock,
    };
    show(Progress::Folder(&dir));
    let ledger = options.ledger(Some(dir.clone()), &plan.config.budget)?;
    let lines = watch(lines(plan, &models, &ledger), &ledger, show).await?;
    let summary = summary(plan, &models.identities(), &lines, &ledger);
    finish(plan, &dir, &lines, &summary)?;
    drop(lock);
    Ok((dir, summary, false))
}

/// The endpoints of an evaluation.
struct Models {
    targets: Vec<Box<dyn Endpoint>>,
    judge: Option<Box<dyn Endpoint>>,
}

impl Models {
    fn open(plan: &EvaluationPlan, options: &RunOptions) -> Result<Self, EndpointError> {
        let open = |config: &EndpointConfig| match options.offline {
            true => endpoints::stand_in(config, None),
            false => endpoints::open_with(config, options.concurrency),
        };
        let targets = plan.config.targets.iter().map(|t| open(&t.model));
        Ok(Self {
            targets: targets.collect::<Result<_, _>>()?,
            judge: plan.config.judge.as_ref().map(open).transpose()?,
        })
    }

    /// Of the targets, then of the judge.
    fn identities(
        &self,
    ) -> (
        Vec<crate::endpoint::Identity>,
        Option<crate::endpoint::Identity>,
    ) {
        (
            self.targets.iter().map(|t| t.identity().clone()).collect(),
            self.judge.as_ref().map(|j| j.identity().clone()),
        )
    }
}

/// A response that waits for its labels.
struct Open<'a> {
    model: &'a str,
    prompt: &'a Prompt,
    reply: Reply,
    labels: Option<Vec<Option<usize>>>,
}

async fn lines(
    plan: &EvaluationPlan,
    models: &Models,
    ledger: &Ledger,
) -> Result<Vec<Line>, TuneError> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let questions: Vec<&str> = plan.prompts.iter().map(|p| plan.question(p)).collect();
    for (config, endpoint) in plan.config.targets.iter().zip(&models.targets) {
        let target = Target {
            endpoint: endpoint.as_ref(),
            ledger,
            asking: &config.asking,
            seed: Some(plan.config.seed),
        };
        let replies = target.ask(&questions, 0).await?;
        open.extend(
            plan.prompts
                .iter()
                .zip(replies)
                .map(|(prompt, reply)| Open {
                    model: &config.name,
                    prompt,
                    reply,
                    labels: None,
                }),
        );
    }
    for (model, of) in &plan.given {
        open.extend(of.iter().map(|(at, response)| Open {
            model,
            prompt: &plan.prompts[*at],
            reply: Reply::Text {
                text: response.text.clone(),
                cut: false,
            },
            labels: response.labels.clone(),
        }));
    }
    let verdicts = match &models.judge {
        Some(judge) => verdicts(plan, judge.as_ref(), ledger, &open).await?,
        None => vec![None; open.len()],
    };
    let both = open.into_iter().zip(verdicts);
    Ok(both
        .map(|(open, verdict)| judged(&plan.judge.task, given(plan, open, verdict)))
        .collect())
}

/// The verdicts of those that a judge must read.
async fn verdicts(
    plan: &EvaluationPlan,
    judge: &dyn Endpoint,
    ledger: &Ledger,
    open: &[Open<'_>],
) -> Result<Vec<Option<Verdict>>, TuneError> {
    let (places, items) = items(plan, open);
    let fence = fence(plan, &items);
    let judge = Judge::new(
        &plan.judge.task,
        judge,
        ledger,
        &fence,
        Some(plan.config.seed),
    );
    let refs: Vec<&Item> = items.iter().collect();
    let read = judge.verdicts(&plan.judge.version, &refs).await?;
    let mut out = vec![None; open.len()];
    for (place, verdict) in places.into_iter().zip(read) {
        out[place] = Some(verdict);
    }
    Ok(out)
}

/// The responses that have text and no labels, as items.
fn items(plan: &EvaluationPlan, open: &[Open<'_>]) -> (Vec<usize>, Vec<Item>) {
    let mut out = (Vec::new(), Vec::new());
    for (at, o) in open.iter().enumerate() {
        let Some(text) = o
            .reply
            .text()
            .filter(|_| o.labels.is_none() && !o.reply.is_blank())
        else {
            continue;
        };
        // The plan has checked every prompt with a response; a text of a model cannot break it.
        if let Ok(item) = plan.item(o.prompt, text, &format!("response-{at}")) {
            out.0.push(at);
            out.1.push(item);
        }
    }
    out
}

fn fence(plan: &EvaluationPlan, items: &[Item]) -> Fence {
    let texts = items
        .iter()
        .flat_map(|i| i.fields.iter().map(String::as_str));
    Fence::draw(plan.config.seed, texts)
}

/// What is known of a response, as labels or as the reason why there are none.
fn given<'a>(plan: &EvaluationPlan, open: Open<'a>, verdict: Option<Verdict>) -> Given<'a> {
    let task = &plan.judge.task;
    let none = vec![None; task.criteria.len()];
    let failed = |kind: &str, message: &str| Unlabelled {
        kind: kind.to_owned(),
        message: message.to_owned(),
    };
    let mut unpaid = false;
    let (labels, failure) = match (&open.reply, open.labels, verdict) {
        (Reply::Unpaid, ..) => {
            unpaid = true;
            (none, None)
        }
        (Reply::Withheld { message }, ..) => (none, Some(failed("target-withheld", message))),
        (Reply::Failed { message, .. }, ..) => (none, Some(failed("target-failed", message))),
        (_, Some(labels), _) => {
            let blank = labels.iter().any(Option::is_none);
            (
                labels,
                blank.then(|| failed("unlabelled", "a label's cell is blank")),
            )
        }
        (_, None, Some(verdict)) => {
            unpaid = verdict.readings.contains(&Reading::Unpaid);
            read(plan, open.prompt, &verdict)
        }
        (reply, None, None) if reply.is_blank() => (of_nothing(plan), None),
        (_, None, None) => (
            none,
            Some(failed("endpoint", "the response was not judged")),
        ),
    };
    Given {
        model: open.model,
        prompt: open.prompt,
        reply: open.reply,
        labels,
        failure,
        unpaid,
    }
}

fn of_nothing(plan: &EvaluationPlan) -> Vec<Option<usize>> {
    let known = plan.kind.labels_of_nothing();
    let label = |c: &crate::task::Criterion| {
        let (_, label) = known.iter().find(|(name, _)| *name == c.name)?;
        c.label_index(label)
    };
    plan.judge.task.criteria.iter().map(label).collect()
}

fn read(
    plan: &EvaluationPlan,
    prompt: &Prompt,
    verdict: &Verdict,
) -> (Vec<Option<usize>>, Option<Unlabelled>) {
    let (task, version) = (&plan.judge.task, &plan.judge.version);
    let label = |(c, reading): (usize, &Reading)| {
        reading
            .decide(task, version, c, &prompt.locale)
            .and_then(|d| d.label)
    };
    let labels = verdict.readings.iter().enumerate().map(label).collect();
    let failure = verdict.readings.iter().find_map(|r| match r {
        Reading::Failed(f) => Some(Unlabelled {
            kind: match f.failure {
                FailureKind::Unparsable => "unparsable",
                FailureKind::Refused => "refused",
                FailureKind::Endpoint => "endpoint",
            }
            .to_owned(),
            message: f.message.clone(),
        }),
        _ => None,
    });
    (labels, failure)
}

/// Writes what stands at the end; `summary.json` last, because it says that it is finished.
fn finish(
    plan: &EvaluationPlan,
    dir: &Path,
    lines: &[Line],
    summary: &EvaluationSummary,
) -> Result<(), RunError> {
    let jsonl = |name: &str, texts: Vec<Result<String, RunError>>| -> Result<(), RunError> {
        let mut text = String::new();
        for line in texts {
            text += &line?;
            text.push('\n');
        }
        write(&dir.join(name), text.as_bytes())
    };
    let path = |name: &str| dir.join(name);
    jsonl(
        "prompts.jsonl",
        plan.prompts
            .iter()
            .map(|p| json(&path("prompts.jsonl"), p))
            .collect(),
    )?;
    jsonl(
        "verdicts.jsonl",
        lines
            .iter()
            .map(|l| json(&path("verdicts.jsonl"), l))
            .collect(),
    )?;
    let path = dir.join("summary.json");
    let text = serde_json::to_string_pretty(summary).map_err(|e| RunError::Io {
        path: path.clone(),
        source: e.into(),
    })?;
    write(&path, (text + "\n").as_bytes())
}

/// What an evaluation takes.
#[derive(Clone, Debug)]
pub struct Quoted {
    /// Target -> the most that asking it takes, with what is answered already.
    pub targets: Vec<(String, Spent)>,
    /// Calls of the judge, where nothing is in the cache and no response is blank.
    pub judge_calls: u64,
}

/// What an evaluation takes at most, without a call. What the judge's calls take in tokens is
/// known when the responses are.
///
/// # Errors
/// [`RunError`]: an endpoint that cannot be opened, a cache that cannot be read, a version that does
/// not render.
pub fn quote(plan: &EvaluationPlan, options: &RunOptions) -> Result<Quoted, RunError> {
    let models = Models::open(
        plan,
        &RunOptions {
            offline: true,
            ..options.clone()
        },
    )?;
    let existing = options.cache.clone().filter(|c| c.exists());
    let unwritten = RunOptions {
        cache: existing,
        ..options.clone()
    };
    let ledger = unwritten.ledger(None, &plan.config.budget)?;
    let questions: Vec<&str> = plan.prompts.iter().map(|p| plan.question(p)).collect();
    let mut targets = Vec::new();
    for (config, endpoint) in plan.config.targets.iter().zip(&models.targets) {
        let target = Target {
            endpoint: endpoint.as_ref(),
            ledger: &ledger,
            asking: &config.asking,
            seed: Some(plan.config.seed),
        };
        targets.push((config.name.clone(), target.quote(&questions, 0)));
    }
    let given: usize = plan
        .given
        .iter()
        .map(|(_, of)| of.iter().filter(|(_, r)| r.labels.is_none()).count())
        .sum();
    let responses = plan.prompts.len() * plan.config.targets.len() + given;
    let parts = parts(plan, &models, &ledger)?;
    Ok(Quoted {
        targets,
        judge_calls: (responses * parts) as u64,
    })
}

/// Requests per response; renders the version with a prompt first, so that a fault is found early.
fn parts(plan: &EvaluationPlan, models: &Models, ledger: &Ledger) -> Result<usize, RunError> {
    let (Some(endpoint), Some(prompt)) = (&models.judge, plan.prompts.first()) else {
        return Ok(0);
    };
    let Ok(item) = plan.item(prompt, "a response", "check") else {
        return Ok(0);
    };
    let items = [item];
    let fence = fence(plan, &items);
    let judge = Judge::new(&plan.judge.task, endpoint.as_ref(), ledger, &fence, None);
    let requests = judge
        .requests(&plan.judge.version, &[&items[0]])
        .map_err(|e| TuneError::from(JudgeError::from(e)))?;
    Ok(requests.len())
}

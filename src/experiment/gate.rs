//! Running a gate: a judge and, where there is one, a generator on one ledger.

use super::config::EndpointConfig;
use super::run::{Progress, RunError, watch};
use super::targets::Reach;
use crate::data::ItemRecord;
use crate::evaluate::gate::{
    self, GateError, Generator, Outcome, Rule, Slot, Template, TemplateError,
};
use crate::evaluate::target::{Asking, Target};
use crate::judge::Judge;
use crate::ledger::Spent;
use crate::optimize::TuneError;
use crate::prompt::{Fence, Version};
use crate::task::Task;

/// A gate with everything it needs.
#[derive(Debug)]
pub struct GatePlan<'a> {
    /// What candidates are scored on.
    pub task: &'a Task,
    /// The judge's version.
    pub version: &'a Version,
    /// The judge.
    pub judge: EndpointConfig,
    /// The generator with its template and how it is asked.
    pub generator: Option<(EndpointConfig, Template, Asking)>,
    /// Candidates asked for beyond those that are missing.
    pub spare: usize,
    /// Candidates that there are, with their slots.
    pub given: Vec<(usize, ItemRecord)>,
    /// The slots.
    pub slots: Vec<Slot>,
    /// What passes.
    pub rule: Rule,
    /// Seed of the delimiter, and the sampling seed of the generator.
    pub seed: u64,
}

/// Runs it. The inner error is the template's, on a value of some slot.
///
/// # Errors
/// [`RunError`]; what was answered is in the cache, and the same call goes on from there.
pub async fn run_gate(
    plan: GatePlan<'_>,
    reach: &Reach,
    show: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(Result<Outcome, TemplateError>, Spent), RunError> {
    let judge = reach.open(&plan.judge)?;
    let writer = match &plan.generator {
        Some((config, ..)) => Some(reach.open(config)?),
        None => None,
    };
    let ledger = reach.ledger()?;
    let texts = plan.given.iter().flat_map(|(_, r)| r.fields.values());
    let fence = Fence::draw(plan.seed, texts.map(String::as_str));
    let judge = Judge::new(plan.task, judge.as_ref(), &ledger, &fence, Some(plan.seed));
    let generator = plan.generator.as_ref().zip(writer.as_ref());
    let generator = generator.map(|((_, template, asking), endpoint)| Generator {
        target: Target {
            endpoint: endpoint.as_ref(),
            ledger: &ledger,
            asking,
            seed: Some(plan.seed),
        },
        template,
        task: plan.task,
        fence: &fence,
        spare: plan.spare,
    });
    let work = async {
        let done = gate::run(
            plan.given,
            &plan.slots,
            &plan.rule,
            &judge,
            plan.version,
            generator.as_ref(),
        );
        match done.await {
            Ok(outcome) => Ok(Ok(outcome)),
            Err(GateError::Template(e)) => Ok(Err(e)),
            Err(GateError::Judge(e)) => Err(TuneError::from(e)),
            Err(GateError::Halt(e)) => Err(TuneError::from(e)),
        }
    };
    let done = watch(work, &ledger, show).await?;
    Ok((done, ledger.spent()))
}

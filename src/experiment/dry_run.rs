//! What a plan would ask and what that costs, before anything is asked.

use std::path::PathBuf;

use super::endpoints::stand_in;
use super::plan::Plan;
use super::run::RunError;
use super::spending;
use crate::data::Item;
use crate::endpoint::Usage;
use crate::judge::JudgeError;
use crate::ledger::{Amount, Caps, Ledger, LedgerOptions, Money, Prices, Spent};
use crate::optimize::TuneError;

/// Bytes that a token is taken to have where nothing is known: more in English, fewer in scripts
/// that a model's vocabulary covers thinly.
pub const BYTES_PER_TOKEN: u64 = 3;

/// One part of a run.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub what: &'static str,
    /// Requests that are new, with the most tokens and money they can take without retries, and
    /// how many are answered already.
    pub most: Spent,
    /// Prompt tokens that it will probably take, at [`BYTES_PER_TOKEN`].
    pub likely_prompt_tokens: u64,
    /// Money that it will probably take.
    pub likely_money: Money,
}

/// A plan with its price.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// Scoring the seed version on `tune`, one look at `validation`, reading `test`.
    pub steps: [Step; 3],
    /// Held back from the start for reading `test` with both versions.
    pub held_back: Amount,
    /// The caps.
    pub caps: Caps,
    /// Whether the judge has a price; without one money is shown as 0.
    pub priced: bool,
}

/// Prices a plan. Reads the cache, asks nothing, writes nothing, and needs no key.
///
/// # Errors
/// [`RunError`] for a cache that cannot be read or a judge's address that is none.
pub fn dry_run(plan: &Plan, cache: Option<PathBuf>) -> Result<DryRun, RunError> {
    let endpoint = stand_in(&plan.config.judge, None)?;
    let caps = spending::caps(&plan.config.budget);
    let table = spending::prices(&plan.config.budget);
    let prices = table.of(endpoint.identity());
    let ledger = Ledger::open(LedgerOptions {
        cache,
        caps,
        prices: table,
        offline: true,
        read_only: true,
        ..LedgerOptions::default()
    })?;
    let judge = plan.judge(endpoint.as_ref(), &ledger);
    let requests = |split: &[usize]| {
        let items: Vec<&Item> = split.iter().map(|&i| &plan.items[i]).collect();
        judge
            .requests(&plan.start, &items)
            .map_err(|e| TuneError::from(JudgeError::from(e)))
    };
    let step = |what, split: &[usize], readings: u64| -> Result<Step, RunError> {
        let most = ledger.quote(endpoint.as_ref(), &requests(split)?);
        Ok(priced(what, most, readings, &prices.unwrap_or_default()))
    };
    let bounds: Vec<Usage> = requests(&plan.test)?
        .iter()
        .map(|r| endpoint.bound(r))
        .collect();
    Ok(DryRun {
        steps: [
            step("scoring the seed on tune", &plan.tune, 1)?,
            step("one look at validation", &plan.validation, 1)?,
            step("reading test, both versions", &plan.test, 2)?,
        ],
        held_back: ledger.takes(endpoint.as_ref(), &bounds).times(2),
        caps,
        priced: prices.is_some(),
    })
}

fn priced(what: &'static str, one: Spent, readings: u64, prices: &Prices) -> Step {
    let most = Spent {
        calls: one.calls * readings,
        prompt_tokens: one.prompt_tokens * readings,
        completion_tokens: one.completion_tokens * readings,
        money: Money(one.money.0.saturating_mul(readings)),
        cached: one.cached * readings,
    };
    let likely_prompt_tokens = most.prompt_tokens.div_ceil(BYTES_PER_TOKEN);
    Step {
        what,
        most,
        likely_prompt_tokens,
        likely_money: prices.cost(Usage {
            prompt_tokens: likely_prompt_tokens,
            completion_tokens: most.completion_tokens,
        }),
    }
}

//! The course of a run, from the first event to the last figure.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::ancestry::Seen;
use super::finish::{self, Done};
use super::plan::Plan;
use super::spending::HoldBack;
use crate::data::Item;
use crate::endpoint::Endpoint;
use crate::judge::{Judge, JudgeError, Reading, Verdict};
use crate::ledger::{Amount, Halt, Ledger};
use crate::optimize::{self, Bench, Event, Streams, TuneError};
use crate::prompt::Version;

/// Takes each decision of a run.
pub(super) type Journal<'a> = dyn Fn(&Event) -> Result<(), Halt> + Sync + 'a;

/// The whole of a plan: search, the reading of `test`, figures. Touches no file but through the
/// ledger and the journal, so a replay is the same code with other ones.
pub(super) async fn execute(
    plan: &Plan,
    ledger: &Ledger,
    endpoint: &dyn Endpoint,
    writer: Option<&dyn Endpoint>,
    journal: &Journal<'_>,
    reading_test: &(dyn Fn() + Sync),
) -> Result<Done, TuneError> {
    let seed = plan.start.clone();
    journal(&Event::Started {
        config: plan.config.digest(),
        data: plan.data_digest.clone(),
        items: [plan.tune.len(), plan.validation.len(), plan.test.len()],
        seed: seed.short(),
    })?;
    let seen = Mutex::new(Seen::default());
    let watched = |event: &Event| -> Result<(), Halt> {
        // A panic elsewhere leaves it as it was between two events.
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.see(&plan.config.search, event);
        journal(event)
    };
    let test: Vec<&Item> = plan.test.iter().map(|&i| &plan.items[i]).collect();
    let plain = plan.judge(endpoint, ledger);
    let held = HoldBack::new(&plain, &seed, &test).map_err(JudgeError::from)?;
    let reserve = |version: &Version| held.amount(version);
    let judge = Judge {
        // The chosen version is read on test beside the seed; the calls for both are held back.
        hold_back: 2 * plan.calls_for(&plan.test, &seed),
        reserve: Some(&reserve),
        ..plain
    };
    let bench = Bench {
        judge,
        writer,
        items: &plan.items,
        tune: &plan.tune,
        validation: &plan.validation,
        search: &plan.config.search,
        stop: &plan.config.stop,
        streams: Streams::new(plan.config.seed),
        journal: &watched,
    };
    let (pool, reason) = optimize::tune(&bench, seed).await?;
    let search = ledger.spent();
    reading_test();
    ledger.hold_back(Amount::default());
    let best = pool.best().clone();
    let mut arms: Vec<(Version, BTreeMap<usize, Verdict>)> = Vec::new();
    for candidate in [&pool.candidates[0], &best] {
        let verdicts = plain
            .verdicts(&candidate.version, &test)
            .await
            .map_err(TuneError::from)?;
        let mut all = candidate.verdicts.clone();
        all.extend(
            plan.test
                .iter()
                .copied()
                .zip(verdicts)
                .filter(|(_, v)| !v.readings.contains(&Reading::Unpaid)),
        );
        arms.push((candidate.version.clone(), all));
    }
    // The seed is read as its author wrote it: without a calibration that the run fitted.
    arms[0].0 = plan.start.clone();
    let told = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let done = finish::summarise(
        plan,
        ledger,
        endpoint,
        &pool,
        &told,
        (reason, search),
        &arms,
    );
    drop(told);
    if let Some((a, b)) = done
        .summary
        .splits
        .get("test")
        .and_then(|t| Some((t.seed.as_ref()?, t.best.as_ref()?)))
    {
        journal(&Event::TestRead {
            n: b.overall.n,
            seed: a.overall.disagreement,
            best: b.overall.disagreement,
        })?;
    }
    Ok(done)
}

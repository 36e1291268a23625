//! From the figures of a run to the evidence of a version.

use std::collections::BTreeMap;

use super::plan::Plan;
use super::summary::{Arm, Figure, LEVEL, People};
use crate::endpoint::Identity;
use crate::registry::{FigureEvidence, Measured, SplitEvidence, fingerprint};

/// Evidence of one version, without a date.
pub(super) fn measured(
    plan: &Plan,
    judge: &Identity,
    by: &str,
    splits: impl IntoIterator<Item = (String, Arm, Option<People>)>,
) -> Measured {
    let splits: BTreeMap<String, SplitEvidence> = splits
        .into_iter()
        .map(|(name, arm, people)| (name, split(&arm, people.as_ref())))
        .collect();
    Measured {
        by: by.to_owned(),
        date: None,
        experiment: format!("{}-{}", plan.config.name, plan.config.digest()),
        data: plan.data_digest.clone(),
        measure: plan.config.search.measure,
        level: LEVEL,
        fingerprint: fingerprint(judge),
        judge: judge.clone(),
        splits,
    }
}

fn split(arm: &Arm, people: Option<&People>) -> SplitEvidence {
    SplitEvidence {
        n: arm.overall.n,
        disagreement: arm.overall.disagreement,
        low: arm.overall.interval.map(|i| i.low),
        high: arm.overall.interval.map(|i| i.high),
        mean_of_locales: arm.mean_of_locales,
        unpaid: arm.unpaid,
        failures: arm
            .failures
            .iter()
            .map(|(kind, n)| (kind_name(kind), *n))
            .collect(),
        people: people.map(|p| figure(&p.overall)),
        locales: arm
            .by_locale
            .iter()
            .map(|(locale, f)| (locale.clone(), figure(f)))
            .collect(),
    }
}

/// As it stands in `summary.json`.
fn kind_name(kind: &crate::judge::FailureKind) -> String {
    serde_json::to_value(kind)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn figure(f: &Figure) -> FigureEvidence {
    FigureEvidence::new(f.n, f.disagreement, f.interval.as_ref())
}

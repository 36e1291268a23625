//! From a candidate's verdicts to cards.

use super::bench::Bench;
use super::event::Event;
use super::pool::Pool;
use crate::agreement::{self, ScaleView};
use crate::disagreement::{self, Card, ClusterOptions, Observation};
use crate::ledger::Halt;

/// Clusters what a candidate gets wrong on `tune`.
pub(super) fn of(bench: &Bench<'_>, pool: &Pool, candidate: usize) -> Result<Vec<Card>, Halt> {
    let (task, c) = (bench.judge.task, &pool.candidates[candidate]);
    let mut texts = Vec::new();
    let mut seen = Vec::new();
    for &i in bench.tune {
        let item = &bench.items[i];
        let Some(verdict) = c.verdicts.get(&i) else {
            continue;
        };
        for (k, criterion) in task.criteria.iter().enumerate() {
            let Some(decision) = verdict.readings[k].decide(task, &c.version, k, &item.locale)
            else {
                continue;
            };
            let (values, abstain) = (criterion.values(), criterion.abstains());
            let scale = ScaleView {
                values: &values,
                abstain: &abstain,
            };
            let Ok(distance) = agreement::disagreement(
                bench.search.measure,
                scale,
                &item.votes[k].counts,
                decision.label,
            ) else {
                continue;
            };
            let mode = disagreement::failure_mode(
                criterion,
                &item.votes[k],
                decision.label,
                decision.failure,
            );
            let confidence = decision
                .label
                .and_then(|l| decision.probs.as_ref().map(|p| p[l]));
            texts.push(item.fields.join("\n"));
            seen.push((i, k, mode, confidence, distance));
        }
    }
    let observations: Vec<Observation<'_>> = seen
        .iter()
        .zip(&texts)
        .map(
            |(&(item, criterion, mode, confidence, distance), text)| Observation {
                item,
                locale: &bench.items[item].locale,
                text,
                mode,
                confidence,
                distance,
                embedding: pool.embeddings.get(&item).map(Vec::as_slice),
                criterion,
            },
        )
        .collect();
    let options = ClusterOptions {
        seed: bench.streams.seed_of(pool.step, "cluster"),
        max_clusters: if bench.search.clusters {
            bench.search.max_clusters
        } else {
            1
        },
        centre_locales: bench.search.centre_locales,
        ..ClusterOptions::default()
    };
    let clustering = disagreement::cluster(&observations, &options);
    bench.emit(&Event::Clustered {
        version: c.version.short(),
        language_purity: clustering.language_purity,
        notes: clustering.notes.clone(),
        cards: clustering.cards.iter().map(Into::into).collect(),
    })?;
    Ok(clustering.cards)
}

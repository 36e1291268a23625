//! Embeddings of the tuning items, where the search is told to cluster by them.

use std::collections::BTreeMap;

use super::bench::{Bench, Features};
use super::event::Event;
use crate::endpoint::{PromptText, Request, Style, Want};
use crate::ledger::{Answer, Halt};

/// One vector for each tuning item that the endpoint could embed; none where n-grams are used.
///
/// # Errors
/// [`Halt`] when the run has to stop. An item that fails is left out, and said.
pub(super) async fn of_tune(bench: &Bench<'_>) -> Result<BTreeMap<usize, Vec<f32>>, Halt> {
    let mut out = BTreeMap::new();
    let endpoint = bench.judge.endpoint;
    if bench.search.features == Features::Ngrams {
        return Ok(out);
    }
    let mut why = None;
    if !endpoint.capabilities().embeddings {
        why = Some("the judge's endpoint has no embeddings".to_owned());
    } else if bench
        .calls_left()
        .is_some_and(|left| left < bench.tune.len() as u64)
    {
        why = Some("the budget is too small for one embedding of each tuning item".to_owned());
    } else {
        let requests: Vec<Request> = bench.tune.iter().map(|&i| request(bench, i)).collect();
        let answers = bench.judge.ledger.ask(endpoint, &requests).await?;
        for (&i, answer) in bench.tune.iter().zip(answers) {
            match answer {
                Answer::Got(response) => {
                    out.insert(i, response.embedding);
                }
                Answer::Failed(e) => why = Some(e.message),
                Answer::NoBudget => why = Some("the budget ended".to_owned()),
            }
        }
    }
    bench.emit(&Event::Embedded {
        n: out.len(),
        of: bench.tune.len(),
        why,
    })?;
    Ok(out)
}

fn request(bench: &Bench<'_>, item: usize) -> Request {
    Request {
        prompt: PromptText {
            style: Style::Completion,
            prefix: String::new(),
            suffix: bench.items[item].fields.join("\n"),
        },
        want: Want::Embedding,
        seed: None,
        repeat: 0,
    }
}

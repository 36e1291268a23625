//! What may go into the log and the cache: only answers that read back as they were written.

use crate::endpoint::{EndpointError, ErrorClass, Response};

/// JSON has no infinities: log(0) becomes the lowest number, whose exponential is 0 as well, so
/// that an answer is the same when it is read back. Anything else that is no number is refused.
pub(super) fn storable(mut response: Response) -> Result<Response, EndpointError> {
    let pairs = response
        .top_logprobs
        .iter_mut()
        .flatten()
        .map(|(_, logprob)| logprob);
    for value in response.scores.iter_mut().chain(pairs) {
        if *value == f64::NEG_INFINITY {
            *value = f64::MIN;
        }
        if !value.is_finite() {
            return Err(not_a_number(&response));
        }
    }
    if response.embedding.iter().all(|value| value.is_finite()) {
        Ok(response)
    } else {
        Err(not_a_number(&response))
    }
}

fn not_a_number(response: &Response) -> EndpointError {
    EndpointError {
        class: ErrorClass::GiveUp,
        cause: "not-a-number".to_owned(),
        message: "the endpoint answered with a log probability or an embedding that is not a \
                  finite number; the request is given up"
            .to_owned(),
        retry_after_ms: None,
        usage: response.usage,
    }
}

//! How long to wait before a request is sent again.

use std::time::Duration;

use super::digest::RequestDigest;

/// When a failed call is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts per request that reach the endpoint, the first included; at least 1.
    pub max_tries: u32,
    /// Wait before the second attempt; doubles with each further one.
    pub base: Duration,
    /// Longest wait of our own; a server may ask for more.
    pub cap: Duration,
    /// How long an endpoint may be unreachable, and the longest wait that a server may ask for,
    /// before the run stops so that it can be resumed.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_tries: 6,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(30),
            patience: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// The default, but for how long an endpoint may be unreachable, where that is said.
    pub fn patient(patience: Option<Duration>) -> Self {
        let default = Self::default();
        Self {
            patience: patience.unwrap_or(default.patience),
            ..default
        }
    }

    /// The wait after failure number `failures` (from 1): exponential, between half and all of
    /// its nominal length by a draw that depends only on the request, so that requests that fail
    /// together do not come back together, and a run waits the same each time.
    pub(super) fn wait(&self, digest: &RequestDigest, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let nominal = self.base.saturating_mul(1 << doublings).min(self.cap);
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(digest.as_bytes())
            .update(&failures.to_le_bytes());
        let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
        let draw = f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX);
        nominal.mul_f64(0.5 + 0.5 * draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_differ_by_request() {
        let policy = RetryPolicy {
            base: Duration::from_millis(100),
            cap: Duration::from_millis(350),
            ..RetryPolicy::default()
        };
        let (one, two) = (RequestDigest([1; 32]), RequestDigest([2; 32]));
        for (failures, nominal) in [(1, 100), (2, 200), (3, 350), (40, 350), (u32::MAX, 350)] {
            let wait = policy.wait(&one, failures);
            assert!(wait <= Duration::from_millis(nominal), "{wait:?}");
            assert!(wait >= Duration::from_millis(nominal / 2), "{wait:?}");
            assert_eq!(wait, policy.wait(&one, failures));
        }
        assert_ne!(policy.wait(&one, 1), policy.wait(&two, 1));
    }
}

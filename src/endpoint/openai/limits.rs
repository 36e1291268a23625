//! Owns how fast requests go out: a gate on those in flight that narrows when the server says it
//! is too much, and buckets for requests and tokens per minute. Must not know what is sent.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::Usage;

/// All limits of one endpoint.
#[derive(Debug)]
pub(super) struct Limits {
    gate: Gate,
    requests: Option<Mutex<Bucket>>,
    tokens: Option<Mutex<Bucket>>,
}

/// The right to have one request in flight; ends when dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    limits: &'a Limits,
    pass: Pass<'a>,
    reserved: u64,
}

impl Limits {
    pub(super) fn new(
        concurrency: usize,
        requests_per_minute: Option<u32>,
        tokens_per_minute: Option<u32>,
    ) -> Self {
        let now = Instant::now();
        let bucket = |per_minute| Mutex::new(Bucket::new(per_minute, now));
        Self {
            gate: Gate::new(concurrency),
            requests: requests_per_minute.map(bucket),
            tokens: tokens_per_minute.map(bucket),
        }
    }

    /// Waits until a request of about `estimate` tokens may be sent. A caller that goes away while
    /// it waits leaves its tokens spent.
    pub(super) async fn turn(&self, estimate: Usage) -> Turn<'_> {
        // The gate comes first: a request that had its minute's share and then waited at the gate
        // would go out beside later shares.
        let pass = self.gate.enter().await;
        let reserved = estimate
            .prompt_tokens
            .saturating_add(estimate.completion_tokens);
        for (bucket, amount) in [(&self.requests, 1), (&self.tokens, reserved)] {
            if let Some(bucket) = bucket {
                let wait = lock(bucket).take(amount, Instant::now());
                tokio::time::sleep(wait).await;
            }
        }
        Turn {
            limits: self,
            pass,
            reserved,
        }
    }
}

impl Turn<'_> {
    /// The server answered: the gate widens a little, and the estimate is corrected.
    pub(super) fn answered(self, used: &Usage) {
        self.pass.widen();
        if let Some(bucket) = &self.limits.tokens {
            let used = used.prompt_tokens.saturating_add(used.completion_tokens);
            lock(bucket).correct(self.reserved, used);
        }
    }

    /// The server said 429: the gate halves.
    pub(super) fn refused(self) {
        self.pass.narrow();
    }
}

/// The guarded numbers stay valid at every step, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A gate for requests in flight, first come first served. Additive increase and multiplicative
/// decrease as in TCP (Chiu and Jain 1989): about one more per round of answers, half on a 429.
#[derive(Debug)]
struct Gate {
    permits: Semaphore,
    state: Mutex<Width>,
    widest: usize,
}

#[derive(Debug)]
struct Width {
    /// Requests that may be in flight; its whole part counts.
    target: f64,
    /// Permits handed to the semaphore, less `debt`.
    open: usize,
    /// Permits to take away when their requests end.
    debt: usize,
    /// Number of narrowings, so that a volley of refusals counts once.
    narrowed: u64,
}

#[derive(Debug)]
struct Pass<'a> {
    gate: &'a Gate,
    permit: Option<SemaphorePermit<'a>>,
    narrowed: u64,
}

impl Gate {
    fn new(concurrency: usize) -> Self {
        let widest = concurrency.clamp(1, Semaphore::MAX_PERMITS);
        let state = Width {
            target: widest as f64,
            open: widest,
            debt: 0,
            narrowed: 0,
        };
        Self {
            permits: Semaphore::new(widest),
            state: Mutex::new(state),
            widest,
        }
    }

    async fn enter(&self) -> Pass<'_> {
        // The semaphore is never closed, which is the only error; without a permit the request
        // would merely go out uncounted.
        let permit = self.permits.acquire().await.ok();
        Pass {
            gate: self,
            permit,
            narrowed: lock(&self.state).narrowed,
        }
    }
}

impl Pass<'_> {
    fn widen(&self) {
        let mut state = lock(&self.gate.state);
        state.target = (state.target + 1.0 / state.target).min(self.gate.widest as f64);
        if state.target >= (state.open + 1) as f64 {
            state.open += 1;
            if state.debt > 0 {
                state.debt -= 1;
            } else {
                self.gate.permits.add_permits(1);
            }
        }
    }

    fn narrow(&self) {
        let mut state = lock(&self.gate.state);
        // A request sent before the last narrowing says nothing about the present width.
        if self.narrowed != state.narrowed {
            return;
        }
        state.narrowed += 1;
        let open = (state.open / 2).max(1);
        let surplus = state.open - open;
        state.debt += surplus - self.gate.permits.forget_permits(surplus);
        state.open = open;
        state.target = open as f64;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let mut state = lock(&self.gate.state);
        if state.debt > 0 {
            state.debt -= 1;
            permit.forget();
        }
    }
}

/// A token bucket that is paid in advance: whoever takes more than there is waits until the rate
/// has made up for it, and those after wait behind.
#[derive(Debug)]
struct Bucket {
    capacity: f64,
    per_second: f64,
    /// Below zero: promised to waiting requests.
    level: f64,
    at: Instant,
}

impl Bucket {
    /// A tenth of a minute's share may go out at once. The rate is what then keeps every minute
    /// (half-open interval of 60 s) within `per_minute`: burst - 1 + 60 x rate = `per_minute`.
    fn new(per_minute: u32, at: Instant) -> Self {
        let capacity = f64::from((per_minute / 10).max(1));
        let per_second = (f64::from(per_minute.max(1)) - capacity + 1.0) / 60.0;
        Self {
            capacity,
            per_second,
            level: capacity,
            at,
        }
    }

    /// Takes `amount` and says how long to wait before using it.
    fn take(&mut self, amount: u64, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.level = (self.level + passed * self.per_second).min(self.capacity) - amount as f64;
        // A day is beyond any honest wait, and keeps the conversion from overflowing.
        Duration::from_secs_f64((-self.level / self.per_second).clamp(0.0, 86_400.0))
    }

    /// Replaces an estimate by what was used.
    fn correct(&mut self, reserved: u64, used: u64) {
        self.level = (self.level + reserved as f64 - used as f64).min(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_volley_of_refusals_halves_once_and_answers_widen_by_one_a_round() {
        let gate = Gate::new(8);
        let mut passes = Vec::new();
        for _ in 0..8 {
            passes.push(gate.enter().await);
        }
        for pass in &passes {
            pass.narrow();
        }
        assert_eq!(lock(&gate.state).open, 4);
        drop(passes);
        assert_eq!(gate.permits.available_permits(), 4);
        gate.enter().await.narrow();
        gate.enter().await.narrow();
        gate.enter().await.narrow();
        assert_eq!(gate.permits.available_permits(), 1, "never below one");
        // 1 + 1/1 = 2; 2 + 1/2 + 1/2.5 = 2.9; + 1/2.9 = 3.24
        let mut seen = Vec::new();
        for _ in 0..4 {
            gate.enter().await.widen();
            seen.push(gate.permits.available_permits());
        }
        assert_eq!(seen, [2, 2, 2, 3]);
        for _ in 0..100 {
            gate.enter().await.widen();
        }
        assert_eq!(
            gate.permits.available_permits(),
            8,
            "never above the configured width"
        );
    }

    #[tokio::test]
    async fn widening_pays_off_debt_before_it_adds_permits() {
        let gate = Gate::new(4);
        let mut passes = Vec::new();
        for _ in 0..4 {
            passes.push(gate.enter().await);
        }
        passes[0].narrow();
        assert_eq!(lock(&gate.state).debt, 2);
        passes[0].widen();
        passes[0].widen();
        passes[0].widen();
        assert_eq!(lock(&gate.state).open, 3);
        assert_eq!(lock(&gate.state).debt, 1);
        drop(passes);
        assert_eq!(gate.permits.available_permits(), 3);
    }

    #[test]
    fn no_minute_holds_more_than_its_share() {
        for per_minute in [1_u32, 2, 7, 60, 95, 600] {
            let start = Instant::now();
            let mut bucket = Bucket::new(per_minute, start);
            // All ask at once; each is sent when its wait is over.
            let sent: Vec<f64> = (0..per_minute * 3)
                .map(|_| bucket.take(1, start).as_secs_f64())
                .collect();
            for from in &sent {
                let within = sent
                    .iter()
                    .filter(|t| (0.0..59.999_999).contains(&(*t - from)));
                let count = within.count();
                assert!(count <= per_minute as usize, "{count} > {per_minute}");
            }
            let last = sent.last().copied().unwrap_or_default();
            assert!(
                last < 190.0 * 1.2,
                "{per_minute} a minute took {last} s for three minutes"
            );
        }
    }

    #[test]
    fn one_a_minute_waits_a_minute_and_corrections_count() {
        let start = Instant::now();
        let mut bucket = Bucket::new(1, start);
        assert_eq!(bucket.take(1, start), Duration::ZERO);
        assert_eq!(bucket.take(1, start), Duration::from_secs(60));
        // 600 a minute: burst 60, rate 541/60 a second.
        let mut bucket = Bucket::new(600, start);
        assert_eq!(bucket.take(60, start), Duration::ZERO);
        bucket.correct(60, 30);
        assert_eq!(bucket.take(30, start), Duration::ZERO);
        let wait = bucket.take(541, start).as_secs_f64();
        assert!((wait - 60.0).abs() < 1e-9, "{wait}");
        // A request larger than the bucket waits; it does not hang for ever.
        assert!(bucket.take(u64::MAX, start) <= Duration::from_secs(86_400));
    }
}

//! Owns the digest of a request, the response cache, the attempt log, budgets and resuming:
//! every call to a model goes through [`Ledger::ask`], and none is paid twice or past a cap.
//! Must not know what an answer means.

mod ask;
pub mod attempts;
pub mod budget;
pub mod cache;
pub mod digest;
mod error;
pub mod events;
mod exchange;
pub mod fault;
pub mod jsonl;
mod lock;
mod measured;
pub mod money;
mod retry;
mod storable;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub use budget::{Amount, Budget, Caps, Exhausted, Spent};
pub use cache::Cache;
pub use digest::{RequestDigest, request_digest};
pub use error::LedgerError;
pub use events::EventLog;
pub use exchange::Imported;
pub use jsonl::{Access, JsonlLog};
pub use lock::RunLock;
pub use money::{Money, PriceTable, Prices};
pub use retry::RetryPolicy;

use crate::endpoint::{Endpoint, EndpointError, Request, Response, Usage};
use attempts::{AttemptLog, Outcome};
use cache::Source;
use measured::Measured;

/// Requests that tell how many tokens an endpoint's calls use of their bounds.
const PROBE: usize = 16;
/// Answers put into the cache in one transaction while a log is read.
const BATCH: usize = 1_000;

/// How a ledger works.
#[derive(Clone, Debug, Default)]
pub struct LedgerOptions {
    /// The run folder, which gets `attempts.jsonl`; `None` keeps the log in memory.
    pub dir: Option<PathBuf>,
    /// The cache file; `None` keeps nothing between runs.
    pub cache: Option<PathBuf>,
    /// The most that may be used.
    pub caps: Caps,
    /// What tokens cost.
    pub prices: PriceTable,
    /// What happens after a failed call.
    pub retries: RetryPolicy,
    /// No call is ever made: a request that neither the log nor the cache answers halts the batch
    /// with the cause [`NOT_IN_CACHE`].
    pub offline: bool,
    /// An answer of the cache is charged once, as the call that it was: so a run that ended by its
    /// caps ends there again when it is repeated from the cache that it filled.
    pub charge_cached: bool,
    /// No file is written or made. A ledger that makes calls must write.
    pub read_only: bool,
}

/// Cause of the halt of an offline ledger.
pub const NOT_IN_CACHE: &str = "not-in-cache";

/// What became of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A whole answer.
    Got(Response),
    /// Given up after its last attempt.
    Failed(EndpointError),
    /// Not asked, or not asked again: the budget has no room (see [`Ledger::exhausted`]).
    NoBudget,
}

/// Why a batch was left before its end. Everything that was paid for is recorded, so the run can
/// be resumed.
#[derive(Debug, thiserror::Error)]
pub enum Halt {
    /// [`Ledger::interrupt`] was called.
    #[error("interrupted; everything that was paid for is recorded, and the run can be resumed")]
    Interrupted,
    /// No request can succeed now, or the endpoint stayed unreachable.
    #[error("{0}; everything that was paid for is recorded, and the run can be resumed")]
    Stop(EndpointError),
    /// The log or the cache cannot be read or written.
    #[error(transparent)]
    Io(#[from] LedgerError),
}

/// Asks endpoints, once per question. Share it by reference.
#[derive(Debug)]
pub struct Ledger {
    books: Mutex<Books>,
    cache: Option<Cache>,
    prices: PriceTable,
    money_is_capped: bool,
    retries: RetryPolicy,
    offline: bool,
    charge_cached: bool,
    read_only: bool,
    /// One batch at a time, so that the order of spending is the order of asking.
    turn: tokio::sync::Mutex<()>,
    interrupted: watch::Sender<bool>,
    progress: watch::Sender<Spent>,
}

#[derive(Debug)]
struct Books {
    budget: Budget,
    attempts: AttemptLog,
    /// Set by the first call that did not fit; from then on no call is made.
    exhausted: Option<Exhausted>,
    /// The same while something is held back; forgotten when it is released.
    held_up: Option<Exhausted>,
    measured: Measured,
    notes: Vec<String>,
}

impl Books {
    /// Charges an answer of the cache as the call that it was, where that call had fitted.
    fn recall(&mut self, bound: Amount, actual: Amount) -> Result<(), Answer> {
        if self.exhausted.is_some() || self.held_up.is_some() {
            return Err(Answer::NoBudget);
        }
        match self.budget.reserve(bound) {
            Ok(reserved) => {
                self.budget.release(reserved);
                self.budget.charge(actual);
                Ok(())
            }
            Err(why) => Err(ask::no_budget(self, why)),
        }
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl Ledger {
    /// Opens the log and the cache. A log that is there already is resumed: its answers are given
    /// again without a call, and put into the cache where they are missing there.
    ///
    /// # Errors
    /// Files that cannot be opened or read; a damaged line, named by its number.
    pub fn open(options: LedgerOptions) -> Result<Self, LedgerError> {
        let mut notes = Vec::new();
        let cache = match &options.cache {
            Some(path) if !options.read_only || path.exists() => Some(Cache::open(path)?),
            _ => None,
        };
        let attempts = match &options.dir {
            None => AttemptLog::memory(),
            Some(dir) => {
                let access = if options.read_only {
                    Access::ReadOnly
                } else {
                    Access::Append
                };
                if !options.read_only {
                    std::fs::create_dir_all(dir).map_err(LedgerError::io(dir, "create"))?;
                }
                let mut refill = Refill::new(cache.as_ref().filter(|_| !options.read_only));
                let path = dir.join("attempts.jsonl");
                let (log, torn) = AttemptLog::open(&path, access, |a| refill.see(a))?;
                notes.extend(torn.map(|torn| torn.to_string()));
                notes.extend(refill.end()?);
                log
            }
        };
        Ok(Self {
            books: Mutex::new(Books {
                budget: Budget::new(options.caps),
                attempts,
                exhausted: None,
                held_up: None,
                measured: Measured::default(),
                notes,
            }),
            cache,
            prices: options.prices,
            money_is_capped: options.caps.money.is_some(),
            retries: options.retries,
            offline: options.offline || options.read_only,
            charge_cached: options.charge_cached,
            read_only: options.read_only,
            turn: tokio::sync::Mutex::default(),
            interrupted: watch::Sender::new(false),
            progress: watch::Sender::new(Spent::default()),
        })
    }

    /// Asks in order, several at once as the endpoint allows; one answer per request, in order.
    /// Equal requests of a batch are asked once.
    ///
    /// Whether a request is sent depends only on what the requests before it really used, never
    /// on which of them arrived first. Each attempt counts as a call, except one that found no
    /// connection. The first request that does not fit ends all further calls of the ledger.
    ///
    /// # Errors
    /// See [`Halt`]; calls in flight end and are recorded first.
    pub async fn ask(
        &self,
        endpoint: &dyn Endpoint,
        requests: &[Request],
    ) -> Result<Vec<Answer>, Halt> {
        let _turn = self.turn.lock().await;
        ask::Round::new(self, endpoint)?.run(requests).await
    }

    /// Used so far. In a resumed run it grows as in the first one: recorded calls are charged when
    /// they are asked for again.
    pub fn spent(&self) -> Spent {
        self.books().budget.spent()
    }

    /// [`spent`](Self::spent) as it changes, for a progress bar.
    pub fn progress(&self) -> watch::Receiver<Spent> {
        self.progress.subscribe()
    }

    /// Calls left under the cap; `None` without one, 0 once any cap has ended the spending.
    pub fn remaining_calls(&self) -> Option<u64> {
        let books = self.books();
        if books.exhausted.is_some() || books.held_up.is_some() {
            Some(0)
        } else {
            books.budget.remaining_calls()
        }
    }

    /// What must be left under the caps from now on: what reading `test` takes. Retries cannot
    /// touch it either. Nothing held back ([`Amount::default`]) releases it.
    pub fn hold_back(&self, amount: Amount) {
        let mut books = self.books();
        books.budget.hold_back(amount);
        if !books.budget.holds_back() {
            books.held_up = None;
        }
    }

    /// What asking requests with these bounds once takes, for [`hold_back`](Self::hold_back): calls exactly, tokens by
    /// the largest share of their bounds that the endpoint's calls used so far (half of the bytes
    /// before there are any), and room for the full bound of the last call.
    pub fn takes(&self, endpoint: &dyn Endpoint, bounds: &[Usage]) -> Amount {
        let prices = self.prices.of(endpoint.identity()).unwrap_or_default();
        let books = self.books();
        let (mut sum, mut room) = (Amount::default(), Amount::default());
        for &bound in bounds {
            let likely = books.measured.likely(endpoint.identity(), bound);
            let likely = Amount::of_call(likely, &prices);
            room = room.most(Amount::of_call(bound, &prices).minus(likely));
            sum = sum.plus(likely);
        }
        sum.plus(room)
    }

    /// How many of so many requests to ask first, so that [`takes`](Self::takes) knows the
    /// endpoint: none unless tokens or money are capped.
    pub fn probe(&self, endpoint: &dyn Endpoint, requests: usize) -> usize {
        let books = self.books();
        let known = !books.budget.caps_more_than_calls()
            || !books.budget.holds_back()
            || books.measured.knows(endpoint.identity());
        if known { 0 } else { requests.min(PROBE) }
    }

    /// The cap that ended the spending.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.books().exhausted.clone()
    }

    /// Whether asking would cost nothing. While a run is resumed this says what it said the first
    /// time: a recorded answer is free only after it was charged. An unreadable cache says no.
    pub fn is_free(&self, endpoint: &dyn Endpoint, request: &Request) -> bool {
        self.digest_is_free(&request_digest(endpoint.identity(), request))
    }

    fn digest_is_free(&self, digest: &RequestDigest) -> bool {
        if let Some(record) = self.books().attempts.record(digest) {
            if record.charged < record.usages.len() {
                return false;
            }
            if record.done {
                return true;
            }
        }
        self.cache
            .as_ref()
            .is_some_and(|cache| cache.contains(digest).unwrap_or(false))
    }

    /// The most that asking these would use if nothing had to be tried twice, and how many of them
    /// are answered already. An unknown price counts as 0.
    pub fn quote(&self, endpoint: &dyn Endpoint, requests: &[Request]) -> Spent {
        let prices = self.prices.of(endpoint.identity()).unwrap_or_default();
        let (mut seen, mut quote) = (HashSet::new(), Budget::default());
        for request in requests {
            let digest = request_digest(endpoint.identity(), request);
            if !seen.insert(digest) {
                continue;
            }
            if self.digest_is_free(&digest) {
                quote.count_cached();
            } else {
                quote.charge(Amount::of_call(endpoint.bound(request), &prices));
            }
        }
        quote.spent()
    }

    /// Ends the asking: no new call starts, calls in flight end and are recorded, and
    /// [`ask`](Self::ask) returns [`Halt::Interrupted`], now and ever after.
    pub fn interrupt(&self) {
        self.interrupted.send_replace(true);
    }

    /// What the user should be told: a torn line that was dropped, a cache that cannot be written,
    /// an endpoint that uses more than it said it would.
    pub fn notes(&self) -> Vec<String> {
        self.books().notes.clone()
    }

    /// The cache, where there is one.
    pub fn cache(&self) -> Option<&Cache> {
        self.cache.as_ref()
    }

    /// A panic in another thread leaves the books as they were between two entries.
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.progress.send_replace(self.spent());
    }
}

/// Puts the answers of a log into the cache, as a kill between the two writes leaves them out.
struct Refill<'a> {
    cache: Option<&'a Cache>,
    missing: Vec<(RequestDigest, Source, Response)>,
    added: usize,
    failed: Option<LedgerError>,
}

impl<'a> Refill<'a> {
    fn new(cache: Option<&'a Cache>) -> Self {
        Self {
            cache,
            missing: Vec::new(),
            added: 0,
            failed: None,
        }
    }

    fn see(&mut self, attempt: &attempts::Attempt) {
        let (Some(cache), None, Outcome::Answer(answer)) =
            (self.cache, &self.failed, &attempt.outcome)
        else {
            return;
        };
        match cache.contains(&attempt.digest) {
            Ok(true) => {}
            Ok(false) => {
                let (kind, model) = attempt.endpoint.split_once(':').unwrap_or_default();
                let source = Source {
                    endpoint: kind.to_owned(),
                    model: model.to_owned(),
                };
                self.missing.push((attempt.digest, source, answer.clone()));
            }
            Err(error) => self.failed = Some(error),
        }
        if self.missing.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some(cache) = self.cache else { return };
        let rows = self
            .missing
            .iter()
            .map(|(digest, source, answer)| (*digest, source, answer));
        match cache.put_all(rows) {
            Ok(()) => self.added += self.missing.len(),
            Err(error) => self.failed = Some(error),
        }
        self.missing.clear();
    }

    fn end(mut self) -> Result<Option<String>, LedgerError> {
        self.flush();
        match self.failed {
            Some(error) => Err(error),
            None => Ok((self.added > 0)
                .then(|| format!("{} answers of the log were put into the cache", self.added))),
        }
    }
}

//! One batch of requests: what is known, what fits the budget, what is in flight.
//!
//! Spending must not depend on which call arrives first. A request therefore joins others in
//! flight only if every attempt that it may need fits beside the worst that they may need;
//! otherwise it waits until they are settled, and near the end of a budget it is asked alone,
//! attempt by attempt. That allows exactly the calls that asking one by one would allow.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use tokio::sync::watch;

use super::attempts::{Attempt, Outcome, UNREACHABLE};
use super::budget::{Amount, Exhausted, Reservation};
use super::digest::{RequestDigest, request_digest};
use super::error::LedgerError;
use super::money::Prices;
use super::storable::storable;
use super::{Answer, Books, Halt, Ledger, NOT_IN_CACHE};
use crate::endpoint::{Endpoint, EndpointError, ErrorClass, Request, Response};

/// A request on its way, with its place in the batch; no answer when the batch is being halted.
type Flight<'a> = BoxFuture<'a, (usize, Option<Answer>)>;

/// One batch.
pub(super) struct Round<'a> {
    ledger: &'a Ledger,
    endpoint: &'a dyn Endpoint,
    prices: Prices,
    halt: Mutex<Option<Halt>>,
    /// Tells those who wait between two attempts that the batch is halted.
    halted: watch::Sender<bool>,
    unreachable_since: Mutex<Option<Instant>>,
}

/// What a request needs to start.
struct Seat {
    digest: RequestDigest,
    bound: Amount,
    reserved: Reservation,
}

enum Booking {
    Together(Seat),
    Alone(Seat),
    Wait,
    Answered(Answer),
    /// It would have to be asked, and no call may be made.
    Missing,
}

/// What follows an attempt.
enum Next {
    Done(Answer),
    Again(Duration),
    Halt(EndpointError),
}

impl<'a> Round<'a> {
    pub(super) fn new(ledger: &'a Ledger, endpoint: &'a dyn Endpoint) -> Result<Self, LedgerError> {
        let prices = ledger.prices.of(endpoint.identity());
        if prices.is_none() && ledger.money_is_capped {
            return Err(LedgerError::NoPrice {
                model: endpoint.identity().model.clone(),
            });
        }
        // Batches take turns, so what is still reserved belongs to one that was dropped.
        ledger.books().budget.forget_reservations();
        Ok(Self {
            ledger,
            endpoint,
            prices: prices.unwrap_or_default(),
            halt: Mutex::new(None),
            halted: watch::Sender::new(false),
            unreachable_since: Mutex::new(None),
        })
    }

    pub(super) async fn run(self, requests: &[Request]) -> Result<Vec<Answer>, Halt> {
        let identity = self.endpoint.identity();
        let digests: Vec<_> = requests
            .iter()
            .map(|r| request_digest(identity, r))
            .collect();
        let mut first = HashMap::new();
        let mut answers: Vec<Option<Answer>> = vec![None; requests.len()];
        let mut flying = FuturesUnordered::new();
        for (at, digest) in digests.iter().enumerate() {
            if *first.entry(digest).or_insert(at) == at {
                self.place(at, *digest, requests, &mut flying, &mut answers)
                    .await;
            }
            if self.is_halted() {
                break;
            }
        }
        while let Some((at, answer)) = flying.next().await {
            answers[at] = answer;
        }
        self.ledger.tell();
        drop(flying);
        if let Some(halt) = self
            .halt
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            return Err(halt);
        }
        // Only a halted batch leaves a request without an answer.
        let answer_to = |digest| {
            first
                .get(digest)
                .and_then(|&at: &usize| answers[at].clone())
        };
        let all: Option<Vec<_>> = digests.iter().map(answer_to).collect();
        match all {
            Some(all) if !*self.ledger.interrupted.borrow() => Ok(all),
            _ => Err(Halt::Interrupted),
        }
    }

    /// Answers a request from what is known, or starts it as soon as it may start.
    async fn place<'s>(
        &'s self,
        at: usize,
        digest: RequestDigest,
        requests: &'s [Request],
        flying: &mut FuturesUnordered<Flight<'s>>,
        answers: &mut [Option<Answer>],
    ) {
        match self.known(&digest, &requests[at]) {
            Ok(None) => {}
            Ok(answer) => {
                answers[at] = answer;
                return;
            }
            Err(error) => return self.stop(Halt::Io(error)),
        }
        let concurrency = self.endpoint.capabilities().concurrency.max(1);
        while !self.is_halted() {
            if flying.len() < concurrency {
                match self.book(digest, &requests[at], flying.is_empty()) {
                    Booking::Together(seat) => {
                        flying.push(self.pursue(at, &requests[at], seat).boxed());
                        // Starts it, and takes what has arrived meanwhile.
                        while let Some(Some((at, answer))) = flying.next().now_or_never() {
                            answers[at] = answer;
                        }
                        return;
                    }
                    Booking::Alone(seat) => {
                        answers[at] = self.pursue(at, &requests[at], seat).await.1;
                        return;
                    }
                    Booking::Answered(answer) => {
                        answers[at] = Some(answer);
                        return;
                    }
                    Booking::Missing => return self.stop(Halt::Stop(not_in_cache(&digest))),
                    Booking::Wait => {}
                }
            }
            if let Some((at, answer)) = flying.next().await {
                answers[at] = answer;
            }
        }
    }

    /// The answer that this run or the cache has, after charging what the run had paid for it.
    fn known(
        &self,
        digest: &RequestDigest,
        request: &Request,
    ) -> Result<Option<Answer>, LedgerError> {
        let mut books = self.ledger.books();
        let uncharged = books.attempts.take_uncharged(digest);
        for usage in &uncharged {
            books.budget.charge(Amount::of_call(*usage, &self.prices));
        }
        let record = books.attempts.record(digest);
        let done = record.is_some_and(|r| r.done || r.failures >= self.max_tries());
        if done && let Some(outcome) = books.attempts.last(digest)? {
            return Ok(Some(match outcome {
                Outcome::Answer(response) | Outcome::Cached(response) => {
                    if uncharged.is_empty() {
                        books.budget.count_cached();
                    }
                    self.measure(&mut books, request, &response);
                    Answer::Got(response)
                }
                Outcome::Error { error, .. } => Answer::Failed(error),
            }));
        }
        let Some(cache) = &self.ledger.cache else {
            return Ok(None);
        };
        match cache.get(digest) {
            Ok(None) => Ok(None),
            Ok(Some(response)) if self.ledger.charge_cached => {
                let bound = Amount::of_call(self.endpoint.bound(request), &self.prices);
                let actual = Amount::of_call(response.usage, &self.prices);
                if let Err(none) = books.recall(bound, actual) {
                    return Ok(Some(none));
                }
                self.measure(&mut books, request, &response);
                let outcome = Outcome::Answer(response.clone());
                self.log(&mut books, digest, Timestamp::now(), 0, outcome)?;
                Ok(Some(Answer::Got(response)))
            }
            Ok(Some(response)) => {
                books.budget.count_cached();
                self.measure(&mut books, request, &response);
                if books.attempts.keeps_cached() {
                    // From here on the run needs the cache no more: it resumes and replays alone.
                    let outcome = Outcome::Cached(response.clone());
                    self.log(&mut books, digest, Timestamp::now(), 0, outcome)?;
                }
                Ok(Some(Answer::Got(response)))
            }
            Err(damaged @ LedgerError::BadRow { .. }) => {
                books.note(format!("{damaged}; it is asked again"));
                if !self.ledger.read_only {
                    cache.forget(digest)?;
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn book(&self, digest: RequestDigest, request: &Request, alone: bool) -> Booking {
        let mut books = self.ledger.books();
        if books.exhausted.is_some() || books.held_up.is_some() {
            return Booking::Answered(Answer::NoBudget);
        }
        let failures = books
            .attempts
            .record(&digest)
            .map_or(0, |record| record.failures);
        let bound = Amount::of_call(self.endpoint.bound(request), &self.prices);
        if self.ledger.offline {
            return match books.budget.reserve(bound) {
                Ok(reserved) => {
                    books.budget.release(reserved);
                    Booking::Missing
                }
                Err(why) => Booking::Answered(no_budget(&mut books, why)),
            };
        }
        let tries = self.max_tries().saturating_sub(failures).max(1);
        if let Ok(reserved) = books.budget.reserve(bound.times(u64::from(tries))) {
            return Booking::Together(Seat {
                digest,
                bound,
                reserved,
            });
        }
        if !alone {
            return Booking::Wait;
        }
        match books.budget.reserve(bound) {
            Ok(reserved) => Booking::Alone(Seat {
                digest,
                bound,
                reserved,
            }),
            Err(why) => Booking::Answered(no_budget(&mut books, why)),
        }
    }

    /// Attempt after attempt until there is an answer, a final failure, or a reason to halt.
    async fn pursue(
        &self,
        at: usize,
        request: &Request,
        mut seat: Seat,
    ) -> (usize, Option<Answer>) {
        let mut unreachable = 0;
        let answer = loop {
            if self.is_halted() {
                break None;
            }
            if !seat.reserved.covers(&seat.bound) {
                let mut books = self.ledger.books();
                match books.budget.reserve(seat.bound) {
                    Ok(reserved) => {
                        let spent = std::mem::replace(&mut seat.reserved, reserved);
                        books.budget.release(spent);
                    }
                    Err(why) => break Some(no_budget(&mut books, why)),
                }
            }
            match self.attempt(request, &mut seat, &mut unreachable).await {
                Ok(Next::Done(answer)) => break Some(answer),
                Ok(Next::Again(wait)) => self.rest(wait).await,
                Ok(Next::Halt(error)) => {
                    self.stop(Halt::Stop(error));
                    break None;
                }
                Err(error) => {
                    self.stop(Halt::Io(error));
                    break None;
                }
            }
        };
        self.ledger.books().budget.release(seat.reserved);
        (at, answer)
    }

    /// One call: sent, recorded, charged, cached, in this order.
    async fn attempt(
        &self,
        request: &Request,
        seat: &mut Seat,
        unreachable: &mut u32,
    ) -> Result<Next, LedgerError> {
        let (started, clock) = (Timestamp::now(), Instant::now());
        let result = self.endpoint.answer(request).await.and_then(storable);
        let millis = u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX);

        let mut books = self.ledger.books();
        let failures = books
            .attempts
            .record(&seat.digest)
            .map_or(0, |record| record.failures);
        let next = self.next(&seat.digest, &result, failures, unreachable);
        let outcome = match result {
            Ok(response) => Outcome::Answer(response),
            Err(error) if error.cause == UNREACHABLE && matches!(next, Next::Again(_)) => {
                books.note(format!(
                    "{}; trying again for up to {} s",
                    error.message,
                    self.ledger.retries.patience.as_secs()
                ));
                Outcome::Error { error, last: false }
            }
            Err(error) => Outcome::Error {
                error,
                last: matches!(next, Next::Done(_)),
            },
        };
        let charged = outcome.charged();
        if let Outcome::Answer(response) = &outcome {
            self.measure(&mut books, request, response);
        }
        self.log(&mut books, &seat.digest, started, millis, outcome)?;
        if let Some(usage) = charged {
            let actual = Amount::of_call(usage, &self.prices);
            books.budget.settle(&mut seat.reserved, seat.bound, actual);
            if actual.prompt_tokens > seat.bound.prompt_tokens
                || actual.completion_tokens > seat.bound.completion_tokens
            {
                books.note(format!(
                    "model `{}` reports more tokens than the upper bound reserved for a call; \
                     token and money caps may be passed by the difference",
                    self.endpoint.identity().model
                ));
            }
        }
        drop(books);
        self.ledger.tell();
        if let Next::Done(Answer::Got(response)) = &next {
            self.keep(&seat.digest, response);
        }
        Ok(next)
    }

    /// Adds a line to the log.
    fn log(
        &self,
        books: &mut Books,
        digest: &RequestDigest,
        started: Timestamp,
        millis: u64,
        outcome: Outcome,
    ) -> Result<(), LedgerError> {
        let identity = self.endpoint.identity();
        let lines = books.attempts.record(digest).map_or(0, |r| r.lines);
        books.attempts.append(Attempt {
            seq: 0,
            digest: *digest,
            endpoint: format!("{}:{}", identity.kind, identity.model),
            number: lines + 1,
            started: started.to_string(),
            millis,
            outcome,
        })
    }

    fn measure(&self, books: &mut Books, request: &Request, response: &Response) {
        let bound = self.endpoint.bound(request);
        let identity = self.endpoint.identity();
        books.measured.see(identity, response.usage, bound);
    }

    /// The answer is safe in the log, and the next opening brings it into the cache.
    fn keep(&self, digest: &RequestDigest, response: &Response) {
        let Some(cache) = &self.ledger.cache else {
            return;
        };
        if let Err(error) = cache.put(digest, &self.endpoint.identity().into(), response) {
            self.ledger.books().note(error.to_string());
        }
    }

    fn next(
        &self,
        digest: &RequestDigest,
        result: &Result<Response, EndpointError>,
        failures: u32,
        unreachable: &mut u32,
    ) -> Next {
        let mut since = self
            .unreachable_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let error = match result {
            Ok(response) => {
                *since = None;
                return Next::Done(Answer::Got(response.clone()));
            }
            Err(error) => error,
        };
        let policy = &self.ledger.retries;
        if error.class == ErrorClass::Retry && error.cause == UNREACHABLE {
            *unreachable += 1;
            if since.get_or_insert_with(Instant::now).elapsed() >= policy.patience {
                return Next::Halt(error.clone());
            }
            return Next::Again(policy.wait(digest, *unreachable));
        }
        *since = None;
        *unreachable = 0;
        let asked = Duration::from_millis(error.retry_after_ms.unwrap_or(0));
        match error.class {
            ErrorClass::Stop => Next::Halt(error.clone()),
            ErrorClass::GiveUp => Next::Done(Answer::Failed(error.clone())),
            ErrorClass::Retry if failures + 1 >= self.max_tries() => {
                Next::Done(Answer::Failed(error.clone()))
            }
            ErrorClass::Retry if asked > policy.patience => Next::Halt(error.clone()),
            ErrorClass::Retry => Next::Again(asked.max(policy.wait(digest, failures + 1))),
        }
    }

    async fn rest(&self, wait: Duration) {
        let mut interrupted = self.ledger.interrupted.subscribe();
        let mut halted = self.halted.subscribe();
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = interrupted.wait_for(|interrupted| *interrupted) => {}
            _ = halted.wait_for(|halted| *halted) => {}
        }
    }

    /// The first reason to halt is the one reported.
    fn stop(&self, halt: Halt) {
        let mut first = self.halt.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(halt);
        self.halted.send_replace(true);
    }

    fn is_halted(&self) -> bool {
        *self.halted.borrow() || *self.ledger.interrupted.borrow()
    }

    fn max_tries(&self) -> u32 {
        self.ledger.retries.max_tries.max(1)
    }
}

pub(super) fn no_budget(books: &mut Books, why: Exhausted) -> Answer {
    let place = match books.budget.holds_back() {
        true => &mut books.held_up,
        false => &mut books.exhausted,
    };
    place.get_or_insert(why);
    Answer::NoBudget
}

fn not_in_cache(digest: &RequestDigest) -> EndpointError {
    EndpointError {
        class: ErrorClass::Stop,
        cause: NOT_IN_CACHE.to_owned(),
        message: format!(
            "neither the run nor the cache has an answer to request {digest}, and no call may be \
             made offline"
        ),
        retry_after_ms: None,
        usage: Default::default(),
    }
}

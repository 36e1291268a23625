//! Failures, interrupts and servers that go away: the right reaction, and nothing lost.

use super::*;

#[tokio::test]
async fn an_interrupt_lets_calls_in_flight_end_and_loses_nothing() {
    let whole = Ledger::open(options(Caps::default())).unwrap();
    let expected = whole
        .ask(&Scripted::new(1, troubled), &requests(0..30))
        .await
        .unwrap();
    for stop_after in [0, 1, 7, 20] {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
        let endpoint = Scripted::new(4, troubled);
        let all = requests(0..30);
        let interrupt = async {
            while endpoint.calls() < stop_after {
                tokio::task::yield_now().await;
            }
            ledger.interrupt();
            endpoint.calls()
        };
        let (at, answers) = tokio::join!(biased; interrupt, ledger.ask(&endpoint, &all));
        assert!(matches!(answers, Err(Halt::Interrupted)), "{answers:?}");
        assert_eq!(endpoint.calls(), at, "no call starts after the interrupt");
        let log = std::fs::read_to_string(dir.path().join("attempts.jsonl")).unwrap();
        assert_eq!(log.lines().count(), at, "every call in flight is recorded");
        assert!(matches!(
            ledger.ask(&endpoint, &all).await,
            Err(Halt::Interrupted)
        ));
        drop(ledger);

        let rest = after(&log, 16);
        let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
        assert_eq!(ledger.ask(&rest, &all).await.unwrap(), expected);
        assert_eq!(ledger.spent(), whole.spent());
        assert_eq!(rest.calls() as u64, whole.spent().calls - at as u64);
    }
}

#[tokio::test]
async fn a_wait_between_tries_is_cut_short_by_an_interrupt() {
    let mut options = options(Caps::default());
    options.retries.base = Duration::from_secs(600);
    options.retries.cap = Duration::from_secs(600);
    let ledger = Ledger::open(options).unwrap();
    let endpoint = Scripted::new(1, |_, _| Err(error(ErrorClass::Retry, "server-error")));
    let all = requests(0..1);
    let interrupt = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        ledger.interrupt();
    };
    let (answers, ()) = tokio::join!(ledger.ask(&endpoint, &all), interrupt);
    assert!(matches!(answers, Err(Halt::Interrupted)));
}

#[tokio::test]
async fn a_wrong_key_stops_the_run_and_keeps_what_was_paid() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let endpoint = Scripted::new(4, |text, tries| match number(text) {
        9 => Err(error(ErrorClass::Stop, "unauthorized")),
        _ => smooth(text, tries),
    });
    let halt = ledger.ask(&endpoint, &requests(0..40)).await.unwrap_err();
    assert!(
        matches!(&halt, Halt::Stop(e) if e.cause == "unauthorized"),
        "{halt}"
    );
    assert!(endpoint.calls() < 20, "nobody is asked after the stop");
    let log = std::fs::read_to_string(dir.path().join("attempts.jsonl")).unwrap();
    assert_eq!(log.lines().count(), endpoint.calls());

    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let repaired = Scripted::new(4, smooth);
    assert_eq!(
        got(&ledger.ask(&repaired, &requests(0..40)).await.unwrap()),
        40
    );
    assert_eq!(repaired.calls(), 40 - (endpoint.calls() - 1));
}

#[tokio::test]
async fn a_server_that_is_away_for_a_while_costs_nothing() {
    let back = Instant::now() + Duration::from_millis(150);
    let endpoint = Scripted::new(4, move |text, tries| {
        if number(text) >= 5 && Instant::now() < back {
            let class = ErrorClass::Retry;
            return Err(EndpointError {
                usage: Usage::default(),
                ..error(class, "unreachable")
            });
        }
        smooth(text, tries)
    });
    // The cap leaves room for the answers alone.
    let caps = Caps {
        calls: Some(20),
        ..Caps::default()
    };
    let ledger = Ledger::open(options(caps)).unwrap();
    let answers = ledger.ask(&endpoint, &requests(0..20)).await.unwrap();
    assert_eq!(got(&answers), 20);
    assert_eq!(ledger.spent().calls, 20);
    assert!(endpoint.calls() > 20);
}

#[tokio::test]
async fn a_server_that_stays_away_stops_the_run_for_resuming() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = in_dir(dir.path(), Caps::default());
    options.retries.patience = Duration::from_millis(40);
    let ledger = Ledger::open(options).unwrap();
    let endpoint = Scripted::new(2, |text, tries| match number(text) {
        0..5 => smooth(text, tries),
        _ => Err(error(ErrorClass::Retry, "unreachable")),
    });
    let halt = ledger.ask(&endpoint, &requests(0..20)).await.unwrap_err();
    assert!(
        matches!(&halt, Halt::Stop(e) if e.cause == "unreachable"),
        "{halt}"
    );
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let back = Scripted::new(2, smooth);
    assert_eq!(got(&ledger.ask(&back, &requests(0..20)).await.unwrap()), 20);
    assert_eq!((back.calls(), ledger.spent().calls), (15, 20));
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_waited_for() {
    let ask_for = |ms| {
        Scripted::new(1, move |text, tries| match tries {
            1 => Err(EndpointError {
                retry_after_ms: Some(ms),
                ..error(ErrorClass::Retry, "rate-limited")
            }),
            _ => smooth(text, tries),
        })
    };
    let ledger = Ledger::open(options(Caps::default())).unwrap();
    let clock = Instant::now();
    assert_eq!(
        got(&ledger.ask(&ask_for(80), &requests(0..1)).await.unwrap()),
        1
    );
    assert!(clock.elapsed() >= Duration::from_millis(80));
    // An hour is beyond the patience: the run stops instead of hanging.
    let halt = ledger
        .ask(&ask_for(3_600_000), &requests(1..2))
        .await
        .unwrap_err();
    assert!(matches!(halt, Halt::Stop(e) if e.cause == "rate-limited"));
}

#[tokio::test]
async fn numbers_come_back_as_they_went_in() {
    let scores = vec![f64::NEG_INFINITY, -0.1, -1e-300, -std::f64::consts::PI, 0.0];
    let endpoint = Scripted::new(1, move |text, _| match number(text) {
        0 => Ok(Response {
            scores: scores.clone(),
            embedding: vec![0.1, -3e-39],
            ..answer(text)
        }),
        _ => Ok(Response {
            scores: vec![f64::NAN],
            ..answer(text)
        }),
    });
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let first = ledger.ask(&endpoint, &requests(0..2)).await.unwrap();
    let Answer::Got(response) = &first[0] else {
        panic!("{first:?}")
    };
    assert_eq!(response.scores[0].exp(), 0.0);
    assert_eq!(response.scores[3], -std::f64::consts::PI);
    assert!(matches!(&first[1], Answer::Failed(e) if e.cause == "not-a-number"));
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    assert_eq!(ledger.ask(&endpoint, &requests(0..2)).await.unwrap(), first);
    assert_eq!(endpoint.calls(), 2);
}

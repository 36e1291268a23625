//! Caps hold, and neither they nor the answers depend on the order of arrival.

use super::*;

#[tokio::test]
async fn a_cap_of_calls_is_used_to_the_last_and_never_passed() {
    const V: u64 = 24;
    for cap in [0, 1, 8, V - 1, V, V + 1] {
        for concurrency in [1, 4, 16] {
            for retried in [false, true] {
                let endpoint = Scripted::new(concurrency, move |text, tries| {
                    if retried && number(text) % 4 == 1 && tries == 1 {
                        return Err(error(ErrorClass::Retry, "rate-limited"));
                    }
                    smooth(text, tries)
                });
                let caps = Caps {
                    calls: Some(cap),
                    ..Caps::default()
                };
                let ledger = Ledger::open(options(caps)).unwrap();
                let answers = ledger.ask(&endpoint, &requests(0..V as u32)).await.unwrap();
                let needed = if retried { V + V / 4 } else { V };
                assert_eq!(
                    endpoint.calls() as u64,
                    cap.min(needed),
                    "{cap} {concurrency}"
                );
                assert_eq!(ledger.spent().calls, cap.min(needed));
                assert_eq!(ledger.remaining_calls(), Some(cap.saturating_sub(needed)));
                assert_eq!(ledger.exhausted().is_some(), cap < needed);
                if !retried {
                    assert_eq!(got(&answers) as u64, cap.min(V));
                }
                let first = answers.iter().position(|a| *a == Answer::NoBudget);
                let rest = first.map_or(&[][..], |first| &answers[first..]);
                assert!(
                    rest.iter().all(|a| *a == Answer::NoBudget),
                    "what fits comes first"
                );
            }
        }
    }
}

async fn two_batches(concurrency: usize, caps: Caps) -> (Vec<Answer>, Spent, usize) {
    let endpoint = Scripted::new(concurrency, troubled);
    let ledger = Ledger::open(options(caps)).unwrap();
    let mut answers = ledger.ask(&endpoint, &requests(0..30)).await.unwrap();
    answers.extend(ledger.ask(&endpoint, &requests(20..45)).await.unwrap());
    (answers, ledger.spent(), endpoint.calls())
}

#[tokio::test]
async fn concurrency_decides_neither_answers_nor_spending() {
    let mut all = vec![Caps::default()];
    for step in 0..12 {
        all.push(Caps {
            calls: Some(step * 5),
            ..Caps::default()
        });
        all.push(Caps {
            prompt_tokens: Some(step * 131),
            ..Caps::default()
        });
        all.push(Caps {
            completion_tokens: Some(step * 53),
            ..Caps::default()
        });
        all.push(Caps {
            money: Some(Money(step * 47)),
            ..Caps::default()
        });
    }
    for caps in all {
        let one = two_batches(1, caps).await;
        for concurrency in [4, 16] {
            assert_eq!(
                two_batches(concurrency, caps).await,
                one,
                "{concurrency}, {caps:?}"
            );
        }
        let spent = one.1;
        assert!(spent.calls <= caps.calls.unwrap_or(u64::MAX));
        assert!(spent.prompt_tokens <= caps.prompt_tokens.unwrap_or(u64::MAX));
        assert!(spent.completion_tokens <= caps.completion_tokens.unwrap_or(u64::MAX));
        assert!(spent.money <= caps.money.unwrap_or(Money(u64::MAX)));
    }
}

#[tokio::test]
async fn what_was_paid_is_kept_under_a_lower_cap() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    ledger
        .ask(&Scripted::new(4, smooth), &requests(0..10))
        .await
        .unwrap();
    let caps = Caps {
        calls: Some(4),
        ..Caps::default()
    };
    let ledger = Ledger::open(in_dir(dir.path(), caps)).unwrap();
    let endpoint = Scripted::new(4, smooth);
    let answers = ledger.ask(&endpoint, &requests(0..12)).await.unwrap();
    assert_eq!((got(&answers), endpoint.calls()), (10, 0));
    assert_eq!(answers[10..], [Answer::NoBudget, Answer::NoBudget]);
}

#[tokio::test]
async fn capped_money_needs_a_price() {
    let caps = Caps {
        money: Some(Money(1)),
        ..Caps::default()
    };
    let ledger = Ledger::open(LedgerOptions {
        caps,
        ..LedgerOptions::default()
    })
    .unwrap();
    let endpoint = Scripted::new(1, smooth);
    let halt = ledger.ask(&endpoint, &requests(0..1)).await.unwrap_err();
    assert!(
        matches!(halt, Halt::Io(LedgerError::NoPrice { .. })),
        "{halt}"
    );
    assert_eq!(endpoint.calls(), 0);
}

#[tokio::test]
async fn a_dropped_batch_gives_its_reservations_back() {
    let caps = Caps {
        calls: Some(3),
        ..Caps::default()
    };
    let ledger = Ledger::open(options(caps)).unwrap();
    let stuck = Scripted::new(1, |_, _| {
        Err(EndpointError {
            retry_after_ms: Some(10_000),
            ..error(ErrorClass::Retry, "rate-limited")
        })
    });
    let all = requests(0..1);
    let wait = tokio::time::timeout(Duration::from_millis(30), ledger.ask(&stuck, &all));
    assert!(wait.await.is_err());
    let answers = ledger
        .ask(&Scripted::new(1, smooth), &requests(1..3))
        .await
        .unwrap();
    assert_eq!(got(&answers), 2);
}

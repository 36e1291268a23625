//! What is asked once, what is cached, and what is never shared.

use std::collections::HashSet;

use super::*;
use pluralis::ledger::cache::{Keep, Prune, Source};

fn source(model: &str) -> Source {
    Source {
        endpoint: "openai http://one/v1".into(),
        model: model.into(),
    }
}

#[tokio::test]
async fn a_failure_is_retried_and_never_cached() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache.sqlite");
    let endpoint = Scripted::new(4, troubled);
    let ledger = Ledger::open(with_cache(&cache)).unwrap();
    let answers = ledger.ask(&endpoint, &requests(0..12)).await.unwrap();
    assert_eq!(
        answers[4],
        Answer::Got(answer("item 4")),
        "the second try succeeds"
    );
    assert!(matches!(&answers[6], Answer::Failed(e) if e.cause == "content-filter"));
    assert!(matches!(&answers[10], Answer::Failed(e) if e.cause == "server-error"));
    // 12 first tries, one more each for items 4 and 9, two more for item 10.
    assert_eq!(endpoint.calls(), 16);
    assert_eq!(ledger.cache().unwrap().stats().unwrap().answers, 10);

    let repaired = Scripted::new(4, smooth);
    let ledger = Ledger::open(with_cache(&cache)).unwrap();
    assert!(ledger.is_free(&repaired, &request("item 4")));
    assert!(!ledger.is_free(&repaired, &request("item 10")));
    assert_eq!(
        got(&ledger.ask(&repaired, &requests(0..12)).await.unwrap()),
        12
    );
    assert_eq!(repaired.calls(), 2, "only what failed is asked again");
    assert_eq!((ledger.spent().calls, ledger.spent().cached), (2, 10));
}

#[tokio::test]
async fn endpoints_that_differ_in_settings_share_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(with_cache(&dir.path().join("deep/cache.sqlite"))).unwrap();
    let one = Scripted::new(1, smooth);
    let mut two = Scripted::new(1, |_, _| Ok(answer("another")));
    two.identity.settings = "http://two/v1".into();
    let first = ledger.ask(&one, &requests(0..3)).await.unwrap();
    let second = ledger.ask(&two, &requests(0..3)).await.unwrap();
    assert_ne!(first, second);
    assert_eq!((one.calls(), two.calls()), (3, 3));
}

#[tokio::test]
async fn equal_requests_are_asked_once_wherever_they_stand() {
    let endpoint = Scripted::new(8, smooth);
    let ledger = Ledger::open(options(Caps::default())).unwrap();
    let tune = [request("item 1"), request("item 2"), request("item 1")];
    let validation = [
        request("item 2"),
        Request {
            repeat: 1,
            ..request("item 2")
        },
    ];
    let quote = ledger.quote(&endpoint, &tune);
    assert_eq!(
        (quote.calls, quote.cached, quote.completion_tokens),
        (2, 0, 40)
    );
    let answers = ledger.ask(&endpoint, &tune).await.unwrap();
    assert_eq!(answers[0], answers[2]);
    assert_eq!(endpoint.calls(), 2);
    ledger.ask(&endpoint, &validation).await.unwrap();
    assert_eq!(endpoint.calls(), 3, "a repeat is another question");
    assert_eq!(ledger.spent().cached, 1);
    assert_eq!(*ledger.progress().borrow(), ledger.spent());
}

#[tokio::test]
async fn an_answer_that_missed_the_cache_is_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    let endpoint = Scripted::new(4, troubled);
    ledger.ask(&endpoint, &requests(0..12)).await.unwrap();
    let path = dir.path().join("cache.sqlite");
    let options = LedgerOptions {
        cache: Some(path.clone()),
        ..in_dir(dir.path(), Caps::default())
    };
    drop(Ledger::open(options).unwrap());
    let cache = Cache::open(&path).unwrap();
    assert_eq!(cache.stats().unwrap().answers, 10, "failures stay out");
    let models = cache.stats().unwrap().models;
    assert_eq!((models[0].model.as_str(), models[0].answers), ("m", 10));
    let found = cache.get(&digest(&endpoint, &request("item 3"))).unwrap();
    assert_eq!(found, Some(answer("item 3")));
}

#[test]
fn two_runs_share_a_cache_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache.sqlite");
    let run = |name: &str| {
        let options = LedgerOptions {
            dir: Some(dir.path().join(name)),
            ..with_cache(&path)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            let ledger = Ledger::open(options).unwrap();
            let endpoint = Scripted::new(8, smooth);
            let answers = ledger.ask(&endpoint, &requests(0..60)).await.unwrap();
            assert_eq!(ledger.notes(), Vec::<String>::new());
            (answers, endpoint.calls() as u64, ledger.spent())
        })
    };
    let runs: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = ["a", "b", "c", "d"]
            .map(|name| scope.spawn(move || run(name)))
            .into();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for (answers, calls, spent) in &runs {
        assert_eq!(answers, &runs[0].0);
        assert_eq!((spent.calls, spent.calls + spent.cached), (*calls, 60));
    }
    assert_eq!(Cache::open(&path).unwrap().stats().unwrap().answers, 60);
}

#[test]
fn a_cache_is_exported_imported_and_pruned() {
    let dir = tempfile::tempdir().unwrap();
    let one = Cache::open(&dir.path().join("one.sqlite")).unwrap();
    let endpoint = Scripted::new(1, smooth);
    let key = |n: u32| digest(&endpoint, &request(&format!("item {n}")));
    for n in 0..5 {
        let model = if n < 2 { "small" } else { "large" };
        one.put(&key(n), &source(model), &answer(&format!("ข้อ {n}")))
            .unwrap();
    }
    one.put(&key(0), &source("small"), &answer("later"))
        .unwrap();
    assert_eq!(
        one.get(&key(0)).unwrap(),
        Some(answer("ข้อ 0")),
        "the first answer stays"
    );
    let stats = one.stats().unwrap();
    let models: Vec<_> = stats
        .models
        .iter()
        .map(|m| (m.endpoint.as_str(), m.model.as_str(), m.answers))
        .collect();
    let place = "openai http://one/v1";
    assert_eq!(models, [(place, "large", 3), (place, "small", 2)]);
    let bytes: u64 = stats.models.iter().map(|m| m.bytes).sum();
    assert!(stats.bytes > 0 && stats.bytes == bytes && stats.oldest.is_some());
    let mut text = Vec::new();
    assert_eq!(one.export(&mut text, &Keep::default()).unwrap(), 5);
    let some = |keep: &Keep<'_>| one.export(&mut Vec::new(), keep).unwrap();
    let large = Keep {
        model: Some("large"),
        ..Keep::default()
    };
    assert_eq!(some(&large), 3);
    let run = HashSet::from([key(0), key(4), key(9)]);
    let digests = Some(&run);
    assert_eq!(some(&Keep { digests, ..large }), 1);
    assert_eq!(
        some(&Keep {
            digests,
            ..Keep::default()
        }),
        2
    );

    let two = Cache::open(&dir.path().join("two.sqlite")).unwrap();
    two.put(&key(4), &source("large"), &answer("another"))
        .unwrap();
    let name = Path::new("export.jsonl");
    let torn = &text[..text.len() - 20];
    let error = two.import(&mut &torn[..], name).unwrap_err();
    assert!(
        matches!(error, LedgerError::BadImport { line: 5, .. }),
        "{error}"
    );
    // A line that still is JSON, but says something else than was exported.
    let edited = String::from_utf8(text.clone()).unwrap();
    let edited = edited.replacen("answer to", "answer for", 1);
    let error = two.import(&mut edited.as_bytes(), name).unwrap_err();
    assert!(
        matches!(error, LedgerError::BadImport { line: 1, .. }),
        "{error}"
    );
    assert_eq!(two.stats().unwrap().answers, 1, "all or nothing");
    let done = two.import(&mut &text[..], name).unwrap();
    assert_eq!((done.added, done.present, done.different), (4, 0, 1));
    let done = two.import(&mut &text[..], name).unwrap();
    assert_eq!((done.added, done.present, done.different), (0, 4, 1));
    assert_eq!(two.get(&key(4)).unwrap(), Some(answer("another")));

    let drop = |what: Prune| two.prune(&what).unwrap();
    let early = jiff::Timestamp::from_second(1_000).unwrap();
    assert_eq!(
        drop(Prune {
            before: Some(early),
            ..Prune::default()
        }),
        0
    );
    assert_eq!(
        drop(Prune {
            model: Some("small".into()),
            ..Prune::default()
        }),
        2
    );
    // Two of three answers fit.
    let bytes = two.stats().unwrap().bytes;
    assert_eq!(
        drop(Prune {
            max_bytes: Some(bytes - 1),
            ..Prune::default()
        }),
        1
    );
    assert!(two.stats().unwrap().bytes < bytes);
    assert_eq!(drop(Prune::default()), 2);
    std::fs::write(
        dir.path().join("three.sqlite"),
        "no database, but long enough to be read",
    )
    .unwrap();
    assert!(Cache::open(&dir.path().join("three.sqlite")).is_err());
}

#[test]
fn a_cache_of_the_first_format_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.sqlite");
    let endpoint = Scripted::new(1, smooth);
    let key = digest(&endpoint, &request("item 1"));
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(
        "CREATE TABLE answers (
             digest BLOB PRIMARY KEY CHECK (length(digest) = 32),
             model TEXT NOT NULL,
             created INTEGER NOT NULL,
             response TEXT NOT NULL
         ) STRICT, WITHOUT ROWID;
         PRAGMA user_version = 1;",
    )
    .unwrap();
    let text = serde_json::to_string(&answer("item 1")).unwrap();
    old.execute(
        "INSERT INTO answers VALUES (?1, 'm', 5, ?2)",
        rusqlite::params![key.as_bytes(), text],
    )
    .unwrap();
    drop(old);
    for _ in 0..2 {
        let cache = Cache::open(&path).unwrap();
        assert_eq!(cache.get(&key).unwrap(), Some(answer("item 1")));
    }
}

#[tokio::test]
async fn what_came_from_the_cache_stays_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache.sqlite");
    let first = Ledger::open(with_cache(&cache)).unwrap();
    first
        .ask(&Scripted::new(4, smooth), &requests(0..8))
        .await
        .unwrap();
    let run = dir.path().join("run");
    let open = |cache: Option<&Path>| {
        Ledger::open(LedgerOptions {
            cache: cache.map(Path::to_owned),
            ..in_dir(&run, Caps::default())
        })
        .unwrap()
    };
    let endpoint = Scripted::new(4, smooth);
    let ledger = open(Some(&cache));
    let expected = ledger.ask(&endpoint, &requests(0..10)).await.unwrap();
    let spent = ledger.spent();
    assert_eq!((spent.calls, spent.cached), (2, 8));
    drop(ledger);
    // The cache is gone: the run has all that it used of it, and it still counts as cached.
    let ledger = open(None);
    assert_eq!(
        ledger.ask(&endpoint, &requests(0..10)).await.unwrap(),
        expected
    );
    assert_eq!(ledger.spent(), spent);
    assert_eq!(endpoint.calls(), 2);
}

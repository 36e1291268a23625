//! Kills, damaged files, replay and the lock of a run folder.

use super::*;

#[tokio::test]
async fn a_run_cut_at_any_byte_resumes_to_the_same_end() {
    // Without caps, and with caps that end the run in the middle, once within a retry.
    for caps in [
        Caps::default(),
        Caps {
            calls: Some(30),
            ..Caps::default()
        },
        Caps {
            prompt_tokens: Some(500),
            ..Caps::default()
        },
        Caps {
            calls: Some(12),
            ..Caps::default()
        },
    ] {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = Scripted::new(5, troubled);
        let ledger = Ledger::open(in_dir(dir.path(), caps)).unwrap();
        let expected = course(&ledger, &endpoint).await;
        drop(ledger);
        let whole = std::fs::read_to_string(dir.path().join("attempts.jsonl")).unwrap();
        let all = whole.lines().count();
        assert_eq!(all, endpoint.calls());

        let mut cuts: Vec<_> = (0..=60).map(|k| whole.len() * k / 60).collect();
        let ends = whole.match_indices('\n').map(|(at, _)| at);
        cuts.extend(ends.flat_map(|at| [at - 1, at, at + 1]));
        for cut in cuts {
            let dir = tempfile::tempdir().unwrap();
            let kept = &whole[..cut];
            std::fs::write(dir.path().join("attempts.jsonl"), kept).unwrap();
            let endpoint = after(kept, 3);
            // A cache, empty or absent, changes nothing.
            let cache = (cut % 16 == 0).then(|| dir.path().join("cache.sqlite"));
            let options = LedgerOptions {
                cache,
                ..in_dir(dir.path(), caps)
            };
            let ledger = Ledger::open(options).unwrap();
            assert_eq!(
                course(&ledger, &endpoint).await,
                expected,
                "cut at {cut}, {caps:?}"
            );
            let recorded: u32 = after(kept, 1).tries.into_inner().unwrap().values().sum();
            assert_eq!(
                endpoint.calls(),
                all - recorded as usize,
                "nothing is paid twice"
            );
            let torn = kept.rsplit('\n').next().unwrap();
            let dropped = serde_json::from_str::<serde_json::Value>(torn).is_err();
            let told = ledger
                .notes()
                .iter()
                .any(|note| note.contains("was dropped"));
            assert_eq!(told, dropped && !torn.is_empty());
        }
    }
}

#[tokio::test]
async fn a_damaged_line_in_the_middle_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("attempts.jsonl");
    let ledger = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap();
    ledger
        .ask(&Scripted::new(1, smooth), &requests(0..4))
        .await
        .unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = whole.lines().collect();
    let damaged = [lines[0], &lines[1][..50], lines[2], ""].join("\n");
    std::fs::write(&path, &damaged).unwrap();
    let error = Ledger::open(in_dir(dir.path(), Caps::default())).unwrap_err();
    assert!(
        matches!(error, LedgerError::BadLine { line: 2, .. }),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        damaged,
        "the file is left alone"
    );
}

#[tokio::test]
async fn offline_nothing_is_asked_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let caps = Caps {
        calls: Some(12),
        ..Caps::default()
    };
    let ledger = Ledger::open(in_dir(dir.path(), caps)).unwrap();
    let endpoint = Scripted::new(4, troubled);
    let expected = course(&ledger, &endpoint).await;
    drop(ledger);
    let before = std::fs::read(dir.path().join("attempts.jsonl")).unwrap();

    let cache = Some(dir.path().join("no.sqlite"));
    let offline = |caps| LedgerOptions {
        offline: true,
        read_only: true,
        cache: cache.clone(),
        ..in_dir(dir.path(), caps)
    };
    let silent = Scripted::new(4, |_, _| panic!("no call may be made"));
    let ledger = Ledger::open(offline(caps)).unwrap();
    assert_eq!(
        course(&ledger, &silent).await,
        expected,
        "the end of the budget is replayed too"
    );
    let ledger = Ledger::open(offline(Caps::default())).unwrap();
    let halt = ledger.ask(&silent, &requests(29..30)).await.unwrap_err();
    assert!(matches!(&halt, Halt::Stop(e) if e.cause == "not-in-cache"));
    assert_eq!(
        std::fs::read(dir.path().join("attempts.jsonl")).unwrap(),
        before
    );
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no file is made"
    );
}

#[test]
fn a_run_folder_belongs_to_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = RunLock::acquire(dir.path()).unwrap();
    let refused = RunLock::acquire(dir.path()).unwrap_err();
    let LedgerError::Locked { pid, .. } = &refused else {
        panic!("{refused}")
    };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(
        refused
            .to_string()
            .contains(&std::process::id().to_string())
    );
    drop(first);
    assert_eq!(std::fs::read(dir.path().join("lock")).unwrap(), b"");
    // What a killed process leaves behind keeps nobody out.
    std::fs::write(dir.path().join("lock"), "4194304\n").unwrap();
    let _again = RunLock::acquire(dir.path()).unwrap();
    let text = std::fs::read_to_string(dir.path().join("lock")).unwrap();
    assert_eq!(text.trim(), std::process::id().to_string());
}

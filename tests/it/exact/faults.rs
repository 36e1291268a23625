//! Servers that fail in the middle of a run: the right end, words that help, nothing lost.

use std::time::{Duration, SystemTime};

use serde_json::json;

use super::server::{KEY, Reply, Server, config, tune_server};
use super::*;

fn refuse(status: u16, headers: &str, code: &str, message: &str) -> Reply {
    let body = json!({"error": {"code": code, "message": message}});
    Reply::Send(status, headers.to_owned(), body)
}

fn file(run: &Path, name: &str) -> Vec<u8> {
    std::fs::read(run.join(name)).unwrap()
}

#[test]
fn a_server_that_dies_and_returns_changes_no_byte() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &server.url());
    let more = [&EASY[..], &["--no-cache"]].concat();
    succeed(&tune_server(dir.path(), &config, "smooth", &more));
    // Dead for a time that is long beside the 5 ms of a call, and in the middle of one.
    server.behave(|_, n| match n {
        70 => Reply::Die(Duration::from_millis(900)),
        _ => Reply::Answer,
    });
    let run = tune_server(dir.path(), &config, "run", &more);
    succeed(&run);
    let said = text(&run.stderr);
    assert!(
        said.contains("whether a server runs there") && said.contains("120 s"),
        "{said}"
    );
    let (run, smooth) = (dir.path().join("run"), dir.path().join("smooth"));
    let unreachable = attempts(&run)
        .iter()
        .filter(|line| line["outcome"]["error"]["cause"] == "unreachable")
        .count();
    assert!(unreachable > 0, "the server was never missed");
    // What found no connection was no call. The call that broke off was one, and is counted.
    for name in ["events.jsonl", "verdicts.jsonl"] {
        assert!(file(&run, name) == file(&smooth, name), "{name}");
    }
    let (a, b) = (summary(&run), summary(&smooth));
    assert_eq!(a["splits"], b["splits"]);
    let lost = attempts(&run).len() - unreachable - attempts(&smooth).len();
    assert_eq!(
        a["spent"]["calls"].as_u64().unwrap(),
        b["spent"]["calls"].as_u64().unwrap() + lost as u64
    );
    asked_once(&run);
}

#[test]
fn a_key_that_expires_stops_the_run_which_goes_on_with_a_new_one() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &server.url());
    let more = [&EASY[..], &["--no-cache"]].concat();
    succeed(&tune_server(dir.path(), &config, "smooth", &more));
    server.behave(|_, n| match n {
        0..=60 => Reply::Answer,
        _ => refuse(
            401,
            "",
            "invalid_api_key",
            "The key sk-not-a-real-key-7731 has expired",
        ),
    });
    let stopped = tune_server(dir.path(), &config, "run", &more);
    assert_eq!(stopped.status.code(), Some(3));
    let said = text(&stopped.stderr);
    assert!(said.contains(KEY) && said.contains("--resume"), "{said}");
    let run = dir.path().join("run");
    let answered = answers(&run).len();
    assert!(
        answered >= 53 && server.count() <= 60 + 8,
        "{answered} {}",
        server.count()
    );
    server.behave(|_, _| Reply::Answer);
    let resumed = tune_server(
        dir.path(),
        &config,
        "run",
        &[&more[..], &["--resume"]].concat(),
    );
    succeed(&resumed);
    asked_once(&run);
    assert_eq!(
        file(&run, "verdicts.jsonl"),
        file(&dir.path().join("smooth"), "verdicts.jsonl")
    );
    assert_eq!(
        server.count(),
        answers(&run).len() - answered,
        "an answered call was made again"
    );
    for (name, bytes) in artefacts(&run) {
        assert!(
            !text(&bytes).contains("sk-not-a-real"),
            "the key is in {}",
            name.display()
        );
    }
    assert!(!text(&file(&run, "attempts.jsonl")).contains("sk-not-a-real"));
}

#[test]
fn a_wrong_model_and_a_wrong_host_say_what_to_do() {
    let server = Server::start();
    server.behave(|_, _| {
        refuse(
            404,
            "",
            "model_not_found",
            "The model `judge-1` does not exist",
        )
    });
    let dir = tempfile::tempdir().unwrap();
    let path = config(dir.path(), &server.url());
    let run = tune_server(dir.path(), &path, "model", &EASY);
    assert_eq!(run.status.code(), Some(3));
    assert!(
        text(&run.stderr).contains("judge-1"),
        "{}",
        text(&run.stderr)
    );
    assert!(server.count() <= 8, "nobody is asked again");

    // RFC 2606 keeps `.invalid` free of hosts.
    let path = config(dir.path(), "http://no-such-host.invalid/v1");
    let run = tune_server(
        dir.path(),
        &path,
        "host",
        &[&EASY[..], &["--patience", "1"]].concat(),
    );
    assert_eq!(run.status.code(), Some(3));
    let said = text(&run.stderr);
    for part in [
        "no-such-host.invalid",
        "whether a server runs there",
        "--resume",
    ] {
        assert!(said.contains(part), "no `{part}` in:\n{said}");
    }
    assert_eq!(summary_calls(&dir.path().join("host")), 0);
}

/// Calls that were recorded as such.
fn summary_calls(run: &Path) -> usize {
    attempts(run)
        .iter()
        .filter(|line| line["outcome"]["error"]["cause"] != "unreachable")
        .count()
}

#[test]
fn a_server_that_says_wait_or_fails_for_a_moment_gets_every_question_again() {
    let server = Server::start();
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &server.url());
    let more = [&EASY[..], &["--no-cache"]].concat();
    succeed(&tune_server(dir.path(), &config, "smooth", &more));
    server.behave(|_, n| {
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(1));
        match n {
            20 => refuse(
                429,
                "retry-after: 1\r\n",
                "rate_limit_exceeded",
                "slow down",
            ),
            21 => refuse(
                429,
                &format!("retry-after: {date}\r\n"),
                "rate_limit_exceeded",
                "slow",
            ),
            22 => refuse(429, "", "rate_limit_exceeded", "slow down"),
            40..=42 => refuse(503, "", "overloaded", "try again"),
            _ => Reply::Answer,
        }
    });
    succeed(&tune_server(dir.path(), &config, "run", &more));
    let (run, smooth) = (dir.path().join("run"), dir.path().join("smooth"));
    for name in ["events.jsonl", "verdicts.jsonl"] {
        assert!(file(&run, name) == file(&smooth, name), "{name}");
    }
    asked_once(&run);
    assert_eq!(
        attempts(&run).len(),
        attempts(&smooth).len() + 6,
        "failed calls count"
    );
}

#[test]
fn one_item_in_ten_that_fails_changes_no_denominator() {
    let server = Server::start();
    server.behave(|prompt, _| {
        let item = prompt.trim_end().rsplit("\n\n").next().unwrap();
        match blake3::hash(item.as_bytes()).as_bytes()[2] % 10 {
            0 => refuse(400, "", "invalid_request_error", "no"),
            _ => Reply::Answer,
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &server.url());
    succeed(&tune_server(
        dir.path(),
        &config,
        "run",
        // The first stage is all of tune, so that the seed version is judged on all of it.
        &[
            "--set",
            "budget.calls=500",
            "--set",
            "search.first_stage=120",
        ],
    ));
    let s = summary(&dir.path().join("run"));
    for (split, n) in [("tune", 120), ("validation", 60), ("test", 60)] {
        let arm = &s["splits"][split]["seed"];
        // A split that was not read has no figures.
        if arm.is_null() {
            continue;
        }
        assert_eq!(arm["overall"]["n"], n, "{split}");
        let failed = arm["failures"]["endpoint"].as_u64().unwrap_or(0) as f64;
        let disagreement = arm["overall"]["disagreement"].as_f64().unwrap();
        assert!(disagreement >= failed / f64::from(n) - 1e-12);
        let by_locale: u64 = arm["by_locale"]
            .as_object()
            .unwrap()
            .values()
            .map(|f| f["n"].as_u64().unwrap())
            .sum();
        assert_eq!(by_locale, n as u64);
    }
    let failures = &s["splits"]["tune"]["seed"]["failures"]["endpoint"];
    assert!((4..=24).contains(&failures.as_u64().unwrap()), "{failures}");
    // A failure is never kept for another run.
    let stats = super::super::harness::pluralis(dir.path(), &["cache", "stats", "--json"]);
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(stats["answers"], answers(&dir.path().join("run")).len());
}

#[test]
fn a_version_beyond_the_models_context_costs_three_calls() {
    // The starting prompt is shorter than this, and one with 12 demos is longer.
    const CONTEXT: usize = 600;
    let server = Server::start();
    server.behave(|prompt, _| match prompt.len() > CONTEXT {
        true => refuse(400, "", "context_length_exceeded", "the prompt is too long"),
        false => Reply::Answer,
    });
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &server.url());
    let more = ["--no-cache", "--set", "budget.calls=500"];
    succeed(&tune_server(dir.path(), &config, "run", &more));
    let run = dir.path().join("run");
    let events = log(&run, "events.jsonl");
    let beyond: Vec<&Value> = events
        .iter()
        .filter(|e| e["outcome"] == "no answers")
        .collect();
    assert!(
        !beyond.is_empty() && beyond.iter().all(|e| e["n"] == 3),
        "{beyond:?}"
    );
    let refused = attempts(&run)
        .iter()
        .filter(|line| line["outcome"].get("error").is_some())
        .count();
    assert_eq!(refused, 3 * beyond.len());
}

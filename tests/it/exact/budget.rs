//! Caps on tokens and money: never passed, and the reading of test is paid for.

use super::super::harness::pluralis;
use super::*;

/// Prices of a million tokens read and written.
const PRICES: &str = "budget.prices.simulated=[3.0, 15.0]";

fn run(dir: &Path, out: &str, sets: &[&str]) -> Value {
    let mut more = vec!["--no-cache"];
    for set in sets {
        more.extend(["--set", set]);
    }
    succeed(&tune(dir, &experiment("simulated.toml"), out, &more));
    summary(&dir.join(out))
}

/// Tokens read and written, summed over the log.
fn tokens(run: &Path) -> (u64, u64) {
    attempts(run).iter().fold((0, 0), |sum, line| {
        let usage = &line["outcome"]["answer"]["usage"];
        let of = |name: &str| usage[name].as_u64().unwrap();
        (sum.0 + of("prompt_tokens"), sum.1 + of("completion_tokens"))
    })
}

/// 0, 1, 8, and what a reading of all 60 validation items takes, less one, exactly, and one more.
fn caps(of_validation: u64) -> [u64; 6] {
    [0, 1, 8, of_validation - 1, of_validation, of_validation + 1]
}

#[test]
fn tiny_caps_on_tokens_are_never_passed() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "v", &["budget.calls=60"]);
    let (read, _) = tokens(&dir.path().join("v"));
    for cap in caps(read) {
        let out = format!("run-{cap}");
        let s = run(dir.path(), &out, &[&format!("budget.prompt_tokens={cap}")]);
        let (used, _) = tokens(&dir.path().join(&out));
        assert_eq!(s["spent"]["prompt_tokens"], used);
        assert!(used <= cap, "{used} tokens under a cap of {cap}");
        assert_eq!(s["stop"], "budget");
    }
    // Only the writer writes, at 40 tokens an answer and 600 at most.
    for cap in [0, 39, 40, 599, 600, 601, 1_300] {
        let out = format!("written-{cap}");
        let set = format!("budget.completion_tokens={cap}");
        let s = run(dir.path(), &out, &[&set, "budget.calls=500"]);
        let (_, written) = tokens(&dir.path().join(&out));
        assert_eq!(s["spent"]["completion_tokens"], written);
        assert!(written <= cap, "{written} tokens under a cap of {cap}");
        assert_eq!(written > 0, cap >= 600, "{cap}");
    }
}

#[test]
fn tiny_caps_on_money_are_never_passed_by_a_millionth() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "v", &["budget.calls=60"]);
    let (read, _) = tokens(&dir.path().join("v"));
    // 3 millionths a token read.
    for cap in caps(3 * read) {
        let out = format!("run-{cap}");
        let set = format!("budget.money=0.{cap:06}");
        let s = run(dir.path(), &out, &[&set, PRICES]);
        let (read, written) = tokens(&dir.path().join(&out));
        let exact = 3 * read + 15 * written;
        assert_eq!(s["spent"]["money"], exact, "whole millionths are exact");
        assert!(exact <= cap, "{exact} under a cap of {cap}");
    }
}

#[test]
fn a_price_below_a_millionth_still_costs() {
    let dir = tempfile::tempdir().unwrap();
    // Rounded down the price would be nothing, and no cap would ever end the run.
    let sets = [
        "budget.money=0.000010",
        "budget.prices.simulated=[0.0000004, 0.0000004]",
    ];
    let s = run(dir.path(), "run", &sets);
    assert_eq!(
        (&s["spent"]["money"], &s["spent"]["calls"]),
        (&10.into(), &10.into())
    );
}

#[test]
fn what_reading_test_takes_is_held_back_under_every_cap() {
    let dir = tempfile::tempdir().unwrap();
    let free = run(dir.path(), "free", &["budget.calls=4000", PRICES]);
    let part = |name: &str, of: f64| (free["spent"][name].as_u64().unwrap() as f64 * of) as u64;
    for share in [0.45, 0.8] {
        let money = part("money", share);
        for set in [
            format!("budget.calls={}", part("calls", share)),
            format!("budget.prompt_tokens={}", part("prompt_tokens", share)),
            format!(
                "budget.money={}.{:06}",
                money / 1_000_000,
                money % 1_000_000
            ),
        ] {
            let out = format!("run-{}", set.replace('=', "-"));
            let s = run(dir.path(), &out, &[&set, PRICES]);
            assert_eq!(s["stop"], "budget", "{set}");
            let test = &s["splits"]["test"];
            for arm in ["seed", "best"] {
                assert_eq!(test[arm]["overall"]["n"], 60, "{set}");
                assert_eq!(test[arm]["unpaid"], 0, "{set}");
            }
            // And not by leaving the money unspent: the search went on while there was any.
            assert!(s["steps"].as_u64().unwrap() >= 1, "{set}");
        }
    }
}

#[test]
fn what_the_search_used_is_told_apart_from_the_reading_of_test() {
    let dir = tempfile::tempdir().unwrap();
    let s = run(dir.path(), "run", &["budget.calls=480"]);
    let of = |part: &str, name: &str| s[part][name].as_u64().unwrap();
    assert_ne!(s["versions"]["seed"], s["versions"]["best"]);
    // Test has 60 items, read with either version; nothing is asked after it.
    assert_eq!(of("spent", "calls") - of("search", "calls"), 120);
    let log = attempts(&dir.path().join("run"));
    let before = &log[..usize::try_from(of("search", "calls")).unwrap()];
    for name in ["prompt_tokens", "completion_tokens"] {
        let used = before
            .iter()
            .map(|line| line["outcome"]["answer"]["usage"][name].as_u64().unwrap())
            .sum::<u64>();
        assert_eq!(of("search", name), used, "{name}");
    }
}

#[test]
fn negative_amounts_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for set in [
        "budget.money=-1.0",
        "budget.money=nan",
        "budget.prices.x=[-1.0, 0.0]",
    ] {
        let config = experiment("simulated.toml");
        let refused = tune(dir.path(), &config, "run", &["--set", set]);
        assert_eq!(refused.status.code(), Some(2), "{set}");
        assert!(
            text(&refused.stderr).contains("2.50"),
            "{}",
            text(&refused.stderr)
        );
    }
    assert!(!dir.path().join("run").exists());
}

#[test]
fn a_dry_run_prices_the_plan_and_knows_what_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let config = experiment("simulated.toml");
    let caps = [
        "--set",
        "budget.money=5.0",
        "--set",
        PRICES,
        "--set",
        "budget.calls=200",
        "--dry-run",
    ];
    let dry = tune(dir.path(), &config, "run", &caps);
    succeed(&dry);
    let row = |said: &str, name: &str| -> Vec<String> {
        let line = said.lines().find(|line| line.contains(name)).unwrap();
        let cells = line.split(name).nth(1).unwrap();
        cells.split_whitespace().map(str::to_owned).collect()
    };
    let said = text(&dry.stdout);
    // calls, answered, "about", tokens, at most, "about", cost, at most
    let tune_row = row(&said, "scoring the seed on tune");
    assert_eq!(tune_row[..2], ["120", "0"]);
    assert_eq!(row(&said, "one look at validation")[..2], ["60", "0"]);
    assert_eq!(row(&said, "reading test, both versions")[..2], ["120", "0"]);
    for part in [
        "held back",
        "cap on calls: 200",
        "cap on money: 5.00",
        "at least one byte",
    ] {
        assert!(said.contains(part), "no `{part}` in:\n{said}");
    }
    assert!(
        said.contains("too small"),
        "80 calls do not score 120 items:\n{said}"
    );
    let most: u64 = tune_row[4].parse().unwrap();
    let likely: u64 = tune_row[3].parse().unwrap();
    assert_eq!(likely, most.div_ceil(3));
    assert!(!dir.path().join("run").exists() && !dir.path().join("cache").exists());

    // What it says at most is at most: scoring the seed on tune, alone.
    succeed(&tune(
        dir.path(),
        &config,
        "v",
        &[
            "--set",
            "budget.calls=240",
            "--set",
            "search.first_stage=120",
        ],
    ));
    let used: u64 = attempts(&dir.path().join("v"))[..120]
        .iter()
        .map(|line| {
            line["outcome"]["answer"]["usage"]["prompt_tokens"]
                .as_u64()
                .unwrap()
        })
        .sum();
    assert!(used <= most && likely <= 2 * used, "{used} {likely} {most}");
    let dry = tune(dir.path(), &config, "run", &caps);
    assert_eq!(
        row(&text(&dry.stdout), "scoring the seed on tune")[..2],
        ["0", "120"]
    );

    // Without a key, a server or a model.
    let config = server::config(dir.path(), "http://127.0.0.1:9/v1");
    let dry = pluralis(dir.path(), &["tune", &config, "--dry-run"]);
    succeed(&dry);
    assert!(
        text(&dry.stdout).contains("no price"),
        "{}",
        text(&dry.stdout)
    );
}

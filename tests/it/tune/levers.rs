//! What the levers of `[search]` change in a run.

use super::*;

/// The events of a run with these names.
fn events(run: &Path, names: &[&str]) -> Vec<serde_json::Value> {
    let all = log(run, "events.jsonl").into_iter();
    all.filter(|e| names.iter().any(|n| e["event"] == *n))
        .collect()
}

#[test]
fn words_for_labels_are_compared_in_one_heat() {
    let dir = tempfile::tempdir().unwrap();
    let without = r#"search.without=["definitions","reflect","locale-note","drop-rule","merge"]"#;
    let only_words = ["--set", "search.demos=0", "--set", without];
    let run = tune(dir.path(), "run", &only_words);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let run = dir.path().join("run");
    // Yes and no, and the task's three word sets; the label names are the words that it has.
    let proposed = events(&run, &["proposed"]);
    assert_eq!(proposed.len(), 4);
    assert!(proposed.iter().all(|e| e["step"] == 1));
    let raced: Vec<(u64, String)> = events(&run, &["raced"])
        .iter()
        .map(|e| {
            let outcome = e["outcome"].as_str().unwrap().to_owned();
            (e["n"].as_u64().unwrap(), outcome)
        })
        .collect();
    // The simulated judge knows no other words than its own: six items are enough to give up all.
    let raced: Vec<(u64, &str)> = raced.iter().map(|(n, o)| (*n, o.as_str())).collect();
    let want = [(6, "dropped"); 4];
    assert_eq!(raced, want);
}

#[test]
fn a_budget_that_is_small_beside_validation_goes_to_the_search() {
    let dir = tempfile::tempdir().unwrap();
    // Reading test takes 120 of the calls. Validation would take 60 of what is left, which is more
    // than a third of 100 and less than a third of 220.
    for (calls, looks) in [("220", 0), ("340", 1)] {
        let set = format!("budget.calls={calls}");
        let run = tune(dir.path(), calls, &["--set", &set]);
        assert!(run.status.success(), "{}", text(&run.stderr));
        let run = dir.path().join(calls);
        assert_eq!(events(&run, &["looked"]).len(), looks, "{calls}");
        assert!(!events(&run, &["raced"]).is_empty(), "{calls}");
        assert_eq!(summary(&run)["stop"], "budget");
    }
}

#[test]
fn more_demos_pass_with_any_gain_and_patience_ends() {
    let dir = tempfile::tempdir().unwrap();
    let without = r#"search.without=["definitions","reflect","locale-note","drop-rule","merge","words","card-demo","drop-demo","reorder-demos","locale-demos"]"#;
    // With this seed the first set of demos passes, so that there is one to grow.
    let grow = [
        "--set",
        without,
        "--set",
        "stop.threshold=0.001",
        "--set",
        "seed=3",
    ];
    let run = tune(dir.path(), "run", &grow);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let all = events(&dir.path().join("run"), &["proposed", "raced"]);
    let child_of = |e: &serde_json::Value| e["child"].clone();
    let growths: Vec<_> = all
        .iter()
        .filter(|e| e["kind"] == "grow-demos")
        .map(child_of)
        .collect();
    let passed = all
        .iter()
        .filter(|e| e["outcome"] == "passed" && growths.contains(&e["child"]));
    // Their p-value is that of harm: what passed was not shown to do any, at the gate's .2.
    let (gain, p): (Vec<f64>, Vec<f64>) = passed
        .map(|e| (e["gain"].as_f64().unwrap(), e["p"].as_f64().unwrap()))
        .unzip();
    assert!(!p.is_empty() && p.iter().all(|p| *p >= 0.2), "{p:?}");
    // More of the same that changes nothing is no progress.
    assert!(gain.iter().all(|g| *g > 0.0), "{gain:?}");
    assert_eq!(summary(&dir.path().join("run"))["stop"], "patience");
}

#[test]
fn a_gate_by_betting_lets_the_planted_failures_pass_too_and_asks_for_more_items() {
    let dir = tempfile::tempdir().unwrap();
    let n = |out: &str| -> Vec<u64> {
        log(&dir.path().join(out), "events.jsonl")
            .iter()
            .filter(|e| e["outcome"] == "passed")
            .map(|e| e["n"].as_u64().unwrap())
            .collect()
    };
    let run = tune(dir.path(), "bet", &["--set", "search.gate=betting"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(tune(dir.path(), "flip", &[]).status.success());
    let mean = |v: Vec<u64>| v.iter().sum::<u64>() as f64 / v.len() as f64;
    assert!(!n("bet").is_empty());
    assert!(mean(n("bet")) > mean(n("flip")));
}

/// Locales of the cards that proposals answered.
fn locales_of_cards(run: &Path) -> std::collections::BTreeSet<String> {
    let cards: std::collections::BTreeMap<String, String> = events(run, &["clustered"])
        .iter()
        .flat_map(|e| e["cards"].as_array().unwrap().clone())
        .filter_map(|c| {
            let locale = c["locale"].as_str()?.to_owned();
            Some((c["id"].as_str()?.to_owned(), locale))
        })
        .collect();
    events(run, &["proposed"])
        .iter()
        .filter_map(|e| cards.get(e["card"].as_str()?).cloned())
        .collect()
}

#[test]
fn the_objective_says_which_disagreements_are_worked_on() {
    let dir = tempfile::tempdir().unwrap();
    // Nothing passes, so every proposal edits the seed version, which fails in four locales.
    let without = r#"search.without=["cover-demos","grow-demos","locale-demos","definitions","words","reflect","locale-note","merge"]"#;
    let fixed = ["--set", without, "--set", "search.gate_alpha=0.000000001"];
    for (objective, many) in [
        (r#""mean""#, true),
        (r#""worst-locale""#, false),
        ("1", false),
    ] {
        let set = format!("search.objective={objective}");
        let out = format!("run{}", objective.len());
        let run = tune(
            dir.path(),
            &out,
            &[&fixed[..], &["--set", set.as_str()]].concat(),
        );
        assert!(run.status.success(), "{}", text(&run.stderr));
        let run = dir.path().join(out);
        assert!(events(&run, &["raced"]).len() > 2);
        let locales = locales_of_cards(&run);
        assert_eq!(locales.len() > 1, many, "{objective}: {locales:?}");
    }
    let bad = tune(dir.path(), "bad", &["--set", "search.objective=1.5"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("worst-locale"));
}

#[test]
fn parents_may_be_drawn_by_item() {
    let dir = tempfile::tempdir().unwrap();
    let run = tune(dir.path(), "run", &["--set", r#"search.frontier="items""#]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(summary(&dir.path().join("run"))["stop"], "threshold");
    let parents = |run: &Path| -> std::collections::BTreeSet<String> {
        let all = events(run, &["proposed"]);
        all.iter().map(|e| e["parent"].to_string()).collect()
    };
    assert!(parents(&dir.path().join("run")).len() > 1);
}

/// Kinds of the proposals of a run, in order, each once where it comes several times in a row.
fn kinds(dir: &Path, out: &str, more: &[&str]) -> Vec<String> {
    let run = tune(dir, out, more);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let mut kinds: Vec<String> = events(&dir.join(out), &["proposed"])
        .iter()
        .map(|e| e["kind"].as_str().unwrap().to_owned())
        .collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_run_opens_with_demos_words_and_growth_unless_told_not_to() {
    let dir = tempfile::tempdir().unwrap();
    // The first set of demos passes with seed 3 and does not with seed 1, where there is none to grow
    // and words are compared without it.
    let opening = ["cover-demos", "words", "grow-demos"];
    assert_eq!(kinds(dir.path(), "3", &["--set", "seed=3"])[..3], opening);
    let first = kinds(dir.path(), "1", &["--set", "seed=1"]);
    assert_eq!(first[..2], opening[..2]);
    assert_ne!(first[2], opening[2]);
    let begins_otherwise = (1..=5).any(|seed| {
        let (out, seed) = (format!("off{seed}"), format!("seed={seed}"));
        let off = ["--set", "search.opening=false", "--set", &seed];
        kinds(dir.path(), &out, &off)[0] != "cover-demos"
    });
    assert!(begins_otherwise);
}

#[test]
fn every_lever_is_written_out_in_the_config_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    assert!(tune(dir.path(), "run", &[]).status.success());
    let config = std::fs::read_to_string(dir.path().join("run/config.toml")).unwrap();
    let config: toml::Table = toml::from_str(&config).unwrap();
    let search = config["search"].as_table().unwrap();
    for (key, default) in [
        ("objective", "mean".into()),
        ("frontier", "locales".into()),
        ("choice", "least-loss".into()),
        ("guard_start", true.into()),
        ("opening", true.into()),
        ("bandit", true.into()),
        ("nearest", 0.into()),
    ] as [(&str, toml::Value); 7]
    {
        assert_eq!(search.get(key), Some(&default), "{key}");
    }
}

#[test]
fn demos_nearest_to_each_item_are_tried_where_the_config_asks_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let set = ["--set", "search.nearest=4", "--set", "stop.threshold=0.001"];
    let has = |kinds: &[String]| kinds.iter().any(|k| k == "nearest-demos");
    // A set of demos has to pass before it can be narrowed down.
    let tried = (1..=6).any(|seed| {
        let (out, seed) = (format!("run{seed}"), format!("seed={seed}"));
        has(&kinds(
            dir.path(),
            &out,
            &[&set[..], &["--set", &seed]].concat(),
        ))
    });
    assert!(tried);
    assert!(!has(&kinds(dir.path(), "off", &set[2..])));
}

#[test]
fn a_rule_for_ties_is_tried_for_either_label_where_nothing_is_calibrated() {
    let dir = tempfile::tempdir().unwrap();
    // With few other kinds to draw, and a threshold that nothing reaches.
    let without = r#"search.without=["cover-demos","grow-demos","locale-demos","definitions","words","reflect","locale-note","merge","card-demo"]"#;
    let set = ["--set", without, "--set", "stop.threshold=0.001"];
    let off = [&set[..], &["--set", "search.calibration=false"]].concat();
    assert!(tune(dir.path(), "off", &off).status.success());
    let rules: Vec<String> = events(&dir.path().join("off"), &["proposed"])
        .iter()
        .filter(|e| e["kind"] == "tie-break")
        .map(|e| e["edit"]["text"].as_str().unwrap().to_owned())
        .collect();
    let rule = |word: &str| format!("When it could be either, answer {word}.");
    assert_eq!(rules, [rule("harmless"), rule("offensive")]);
    assert!(!kinds(dir.path(), "on", &set).contains(&"tie-break".to_owned()));
}

#[test]
fn by_lower_bound_nothing_is_handed_over_that_is_not_surely_better_than_the_seed() {
    let dir = tempfile::tempdir().unwrap();
    // With an error rate so small, no bound is above 0, whatever the gains.
    let sure = [
        "--set",
        "search.choice=\"lower-bound\"",
        "--set",
        "search.calibration=false",
    ];
    let strict = [
        "--set",
        "search.gate=\"permutation\"",
        "--set",
        "search.gate_alpha=0.0000001",
    ];
    let run = tune(dir.path(), "strict", &[&sure[..], &strict[..]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    let versions = |out: &str| summary(&dir.path().join(out))["versions"].clone();
    assert_eq!(versions("strict")["seed"], versions("strict")["best"]);
    // What the planted failures cost shows at the gate's own rate.
    let run = tune(dir.path(), "sure", &sure);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_ne!(versions("sure")["seed"], versions("sure")["best"]);
}

#[test]
fn a_leader_that_may_be_there_by_luck_is_compared_with_the_seed_version_on_validation() {
    let dir = tempfile::tempdir().unwrap();
    // Without the edits that are proven in their races, what leads is there by presumption.
    let without = r#"search.without=["reflect","locale-note","card-demo"]"#;
    let base = ["--set", without, "--set", "stop.threshold=0.001"];
    let tuned = |out: &str, more: &[&str]| {
        let more: Vec<&str> = more.iter().flat_map(|s| ["--set", s]).collect();
        let run = tune(dir.path(), out, &[&base[..], &more].concat());
        assert!(run.status.success(), "{}", text(&run.stderr));
        dir.path().join(out)
    };
    let mut handed_over = Vec::new();
    for (seed, calls) in [("seed=9", 340), ("seed=12", 520)] {
        let run = tuned(seed, &[seed, &format!("budget.calls={calls}")]);
        let (compared, looked) = (events(&run, &["compared"]), events(&run, &["looked"]));
        let (seed_version, leader) = (&compared[0], &looked[0]);
        // The same items: as many of the 60 as the budget pays for with both.
        assert_eq!(seed_version["n"], leader["n"]);
        assert!((24..=60).contains(&leader["n"].as_u64().unwrap()));
        let loss = |event: &serde_json::Value| event["loss"].as_f64().unwrap();
        let keeps = loss(seed_version) <= loss(leader);
        let better = if keeps { seed_version } else { leader };
        assert_eq!(events(&run, &["stopped"])[0]["best"], better["version"]);
        let spent = summary(&run)["spent"].clone();
        assert!(spent["calls"].as_u64().unwrap() <= calls, "{spent}");
        // A bound is said of what was looked at.
        let said = std::fs::read_to_string(run.join("report.html")).unwrap();
        let of_another = format!(
            "the last bounds {}, the leader, at",
            leader["version"].as_str().unwrap()
        );
        assert_eq!(said.contains(&of_another), keeps);
        handed_over.push(keeps);
    }
    assert_eq!(handed_over, [false, true]);
    let off = ["seed=12", "budget.calls=520", "search.guard_start=false"];
    assert!(events(&tuned("off", &off), &["compared"]).is_empty());
    // An edit that was proven on the way leaves no doubt: the same seed with reflections.
    let run = tune(
        dir.path(),
        "proven",
        &["--set", "seed=12", "--set", "budget.calls=520"],
    );
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(events(&dir.path().join("proven"), &["compared"]).is_empty());
}

#[test]
fn without_the_bandit_kinds_that_seldom_pay_come_as_often_as_others() {
    let dir = tempfile::tempdir().unwrap();
    let first = |bandit: bool| -> Vec<String> {
        let first_of = |seed: u32| {
            let set = [
                format!("seed={seed}"),
                format!("search.bandit={bandit}"),
                "search.opening=false".to_owned(),
                "budget.calls=300".to_owned(),
            ];
            let set: Vec<&str> = set.iter().flat_map(|s| ["--set", s]).collect();
            kinds(dir.path(), &format!("{bandit}{seed}"), &set)[0].clone()
        };
        (1..=8).map(first_of).collect()
    };
    // Of the six kinds that are possible at first, one is believed in thrice as much as three others.
    let reflections = |kinds: &[String]| kinds.iter().filter(|k| *k == "reflect").count();
    let (on, off) = (first(true), first(false));
    assert!(reflections(&on) > reflections(&off), "{on:?} {off:?}");
}

#[test]
fn what_is_handed_over_was_judged_on_all_of_tune_where_the_budget_is_no_small_one() {
    let dir = tempfile::tempdir().unwrap();
    // 560 calls of search: a third pays for the 120 items of tune and the 60 of validation.
    for seed in 1..=4 {
        let out = format!("run{seed}");
        let seed = format!("seed={seed}");
        let set = [
            "search.demos=0",
            "stop.threshold=0.001",
            "stop.patience=1000",
            "budget.calls=680",
            &seed,
        ];
        let set: Vec<&str> = set.iter().flat_map(|s| ["--set", s]).collect();
        let run = tune(dir.path(), &out, &set);
        assert!(run.status.success(), "{}", text(&run.stderr));
        let run = dir.path().join(out);
        let best = summary(&run)["versions"]["best"].as_str().unwrap()[..12].to_owned();
        let scored = events(&run, &["scored"]);
        let last = scored.iter().rfind(|e| e["version"] == *best).unwrap();
        assert_eq!(last["n"], 120, "{seed}");
    }
}

//! Each command from outside, on what the simulated judge's experiment leaves.

use super::*;
use crate::harness::summary;

#[test]
fn a_run_registers_its_chosen_version_with_its_ancestors_only_when_asked() {
    let dir = experiment_folder();
    ok(&pluralis(dir.path(), &["tune", "exp.toml", "--out", "run"]));
    assert!(
        !dir.path().join("task/versions").exists(),
        "a run dirties no checkout"
    );
    let said = ok(&prompt(dir.path(), &["import", "run"]));
    let best = best(dir.path());
    assert!(
        said.contains(&best[..12]) && said.contains("(new)"),
        "{said}"
    );
    let again = ok(&prompt(dir.path(), &["import", "run/best"]));
    assert!(
        !again.contains("(new)") && again.contains("was here"),
        "{again}"
    );

    // The figures are those of summary.json, for both versions that it has.
    let s = summary(&dir.path().join("run"));
    for (version, arm) in [("seed", "seed"), ("best", "best")] {
        let digest = s["versions"][version].as_str().unwrap();
        let shown = ok(&prompt(dir.path(), &["show", &digest[..12], "--json"]));
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let have = &shown["evidence"][0]["splits"]["test"];
        let want = &s["splits"]["test"][arm]["overall"];
        assert_eq!(have["n"], want["n"]);
        assert_eq!(have["disagreement"], want["disagreement"]);
        assert_eq!(have["high"], want["interval"]["high"]);
        assert!(
            shown["evidence"][0]["date"]
                .as_str()
                .unwrap()
                .starts_with("20")
        );
    }
    // The log begins with the starting version and ends with the chosen one.
    let log = ok(&prompt(dir.path(), &["log", &best[..12]]));
    let lines: Vec<&str> = log.lines().collect();
    let start = s["versions"]["seed"].as_str().unwrap();
    assert!(lines[0].starts_with(&start[..12]), "{log}");
    assert!(lines.last().unwrap().contains(&best[..12]), "{log}");
    // Four planted modes were mended by four rules, each with the gain that its race showed.
    let events = std::fs::read_to_string(dir.path().join("run/events.jsonl")).unwrap();
    let passed = events
        .lines()
        .filter(|l| l.contains("\"outcome\":\"passed\""));
    for line in passed {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let gain = format!(
            "gain {:.3} nats over {} items",
            event["gain"].as_f64().unwrap(),
            event["n"]
        );
        assert!(log.contains(&gain), "no `{gain}` in {log}");
    }
}

#[test]
fn list_show_diff_tag_render_and_gc() {
    let (dir, folders) = tuned();
    let dir = dir.path();
    let best = best(dir);
    let list = ok(&prompt(dir, &["list"]));
    assert_eq!(list.lines().count(), folders.len() + 1, "{list}");
    let json = ok(&prompt(dir, &["list", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), folders.len());

    let first = ok(&prompt(dir, &["tag", "es-MX/production", "task/seed.toml"]).clone_failing(2));
    assert!(first.contains("import"), "{first}");
    ok(&prompt(
        dir,
        &["tag", "es-MX/production", &best[..6], "--note", "first"],
    ));
    let parent = folders
        .iter()
        .map(|f| f.file_name().unwrap().to_str().unwrap());
    let parent = parent.clone().find(|d| !best.starts_with(d)).unwrap();
    let moved = ok(&prompt(dir, &["tag", "es-MX/production", parent]));
    assert!(moved.contains(&format!("was {}", &best[..12])), "{moved}");
    let history = ok(&prompt(dir, &["tag", "es-MX/production"]));
    assert_eq!(history.lines().count(), 2, "{history}");
    assert!(history.contains("first"));
    let diff = ok(&prompt(dir, &["diff", "es-MX/production", &best]));
    assert!(diff.contains("@@ rules") && diff.contains("\n+"), "{diff}");
    let same = ok(&prompt(dir, &["diff", &best, &best]));
    assert!(same.contains("the same"), "{same}");

    // What is rendered are the bytes that the run sent: their request is in its ledger.
    let args = [
        "render",
        &best,
        "--config",
        "exp.toml",
        "--item",
        "es-MX/001",
    ];
    let whole = prompt(dir, &args).stdout;
    let part = |p| prompt(dir, &[&args[..], &["--part", p]].concat()).stdout;
    assert_eq!(whole, [part("prefix"), part("suffix")].concat());
    let shown = text(&whole);
    assert!(
        shown.contains("Country: Mexico\nTrait: ") && shown.ends_with("Answer:"),
        "{shown}"
    );

    // Tags and their ancestors stay; with none everything may go, and only when asked.
    let gc = ok(&prompt(dir, &["gc"]));
    assert!(gc.contains("nothing to remove"), "{gc}");
    std::fs::remove_dir_all(dir.join("task/tags")).unwrap();
    ok(&prompt(dir, &["tag", "x", parent]));
    let gc = ok(&prompt(dir, &["gc"]));
    assert!(gc.contains("--delete") && gc.contains(&best[..12]), "{gc}");
    assert_eq!(versions(&dir.join("task")).len(), folders.len());
    std::fs::create_dir(dir.join("task/versions/.123.part")).unwrap();
    ok(&prompt(dir, &["gc", "--delete"]));
    assert!(!dir.join("task/versions/.123.part").exists());
    assert!(dir.join("task/versions").join(parent).exists());
    assert!(!dir.join("task/versions").join(&best[..12]).exists());
}

/// For commands that must fail with a code: what they said of it, as if it were their output.
trait Failing {
    fn clone_failing(&self, code: i32) -> Output;
}

impl Failing for Output {
    fn clone_failing(&self, code: i32) -> Output {
        assert_eq!(self.status.code(), Some(code), "{}", text(&self.stderr));
        Output {
            status: std::process::ExitStatus::default(),
            stdout: self.stderr.clone(),
            stderr: Vec::new(),
        }
    }
}

#[test]
fn names_that_are_no_tags_are_refused_and_nothing_is_written_elsewhere() {
    let dir = experiment_folder();
    let dir = dir.path();
    ok(&prompt(
        dir,
        &["import", "task/seed.toml", "--reading", "binary"],
    ));
    let digest = versions(&dir.join("task"))[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    for bad in [
        "../x",
        "a/../../x",
        "/etc/x",
        "a//b",
        "",
        "a/",
        ".git/x",
        "abcd1234",
        "a.toml",
        "a\nb",
    ] {
        let run = prompt(dir, &["tag", bad, &digest]);
        assert_eq!(run.status.code(), Some(2), "{bad:?}: {}", text(&run.stderr));
    }
    ok(&prompt(dir, &["tag", "es-MX", &digest]));
    ok(&prompt(dir, &["tag", "es-MX/production", &digest]));
    let twin = prompt(dir, &["tag", "ES-mx", &digest]);
    assert!(
        text(&twin.stderr).contains("cannot tell"),
        "{}",
        text(&twin.stderr)
    );
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(dir, dir.join("task/tags/out")).unwrap();
        let through = prompt(dir, &["tag", "out/x", &digest]);
        assert_eq!(through.status.code(), Some(2));
        assert!(!dir.join("x.jsonl").exists());
    }
    // A damaged tag is named by its line, and moves no further.
    let file = dir.join("task/tags/es-MX.jsonl");
    std::fs::write(&file, "{\"format\":1,\"ver").unwrap();
    let run = prompt(dir, &["tag", "es-MX", &digest]);
    assert!(
        text(&run.stderr).contains("es-MX.jsonl: line 1"),
        "{}",
        text(&run.stderr)
    );
}

#[test]
fn scoring_with_another_judge_adds_evidence_and_the_same_figures_only_once() {
    let (dir, _) = tuned();
    let dir = dir.path();
    let best = best(dir);
    let evidence = dir
        .join("task/versions")
        .join(&best[..12])
        .join("evidence.toml");
    let before = std::fs::read_to_string(&evidence).unwrap();
    let score = |more: &[&str]| {
        let args = ["score", "exp.toml", "--version", &best[..12]];
        pluralis(dir, &[&args[..], more].concat())
    };
    // The same judge on the same split says what the run said: nothing is added.
    let same = score(&["--offline"]);
    assert!(ok(&same).contains("0 calls, 60 answers from the cache"));
    assert_eq!(std::fs::read_to_string(&evidence).unwrap(), before);
    std::fs::write(
        dir.join("other.toml"),
        "endpoint = \"simulated\"\ndefault = \"harmless\"\nlexicon = {}\n",
    )
    .unwrap();
    let offline = score(&["--endpoint", "other.toml", "--offline"]);
    assert_eq!(offline.status.code(), Some(3));
    assert!(
        text(&offline.stderr).contains("60 of 60 answers"),
        "{}",
        text(&offline.stderr)
    );
    let other = ok(&score(&["--endpoint", "other.toml"]));
    // It calls everything harmless, and half of the 60 items are offensive to people.
    assert!(other.contains("test             60   50.0 %"), "{other}");
    let after = std::fs::read_to_string(&evidence).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len());
    ok(&score(&["--endpoint", "other.toml"]));
    assert_eq!(std::fs::read_to_string(&evidence).unwrap(), after);
    // Too small a cap leaves no evidence behind.
    let capped = score(&[
        "--endpoint",
        "other.toml",
        "--set",
        "budget.calls=5",
        "--no-cache",
    ]);
    assert_eq!(capped.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&evidence).unwrap(), after);
    // A version of another task, or reading, is refused before a call.
    let reading = score(&["--set", "task.reading="]);
    assert_eq!(reading.status.code(), Some(2));
    let cite = ok(&prompt(dir, &["cite", &best[..12]]));
    for part in [
        &best[..],
        "| test | all | 60 | 0.0 % [0, 6]",
        "@misc",
        "Country: ",
    ] {
        assert!(cite.contains(part), "no `{part}` in {cite}");
    }
}

#[test]
fn a_run_is_reproduced_from_its_cache_or_it_is_said_what_is_missing() {
    let (dir, folders) = tuned();
    let dir = dir.path();
    let best = best(dir);
    let reproduce = |more: &[&str]| {
        let args = [
            "reproduce",
            &best[..12],
            "--registry",
            "task",
            "--base",
            ".",
        ];
        pluralis(dir, &[&args[..], more].concat())
    };
    let before = crate::harness::files(&dir.join("task"));
    let said = ok(&reproduce(&[]));
    assert!(
        said.contains("no call was made") && said.contains("again"),
        "{said}"
    );
    assert!(said.contains("the same figures"), "{said}");
    let without = reproduce(&["--no-cache"]);
    assert_eq!(without.status.code(), Some(3));
    // 240 items, half of them for tuning, a quarter to test, which two versions are read on.
    let said = text(&without.stdout);
    assert!(
        said.contains("scoring the seed on tune        120 calls"),
        "{said}"
    );
    assert!(
        said.contains("reading test, both versions     120 calls"),
        "{said}"
    );
    assert!(said.contains("cap is 4000 calls"), "{said}");
    let called = ok(&reproduce(&["--no-cache", "--calls"]));
    assert!(called.contains("the same figures"), "{called}");
    assert_eq!(
        crate::harness::files(&dir.join("task")),
        before,
        "it writes nothing"
    );

    // Other items are another run.
    let items = std::fs::read_to_string(dir.join("items.jsonl")).unwrap();
    std::fs::write(
        dir.join("items.jsonl"),
        items.replacen("comida", "tacos", 1),
    )
    .unwrap();
    let other = reproduce(&[]);
    assert_eq!(other.status.code(), Some(4));
    assert!(text(&other.stderr).contains("not those of the run"));
    // Where the record says nothing of a checkout, the folder must be named.
    assert!(
        !std::fs::read_to_string(folders[0].join("run.toml"))
            .unwrap()
            .contains("base =")
    );
}

#[test]
fn verify_finds_a_changed_byte_a_changed_figure_and_a_tag_that_leads_nowhere() {
    let (dir, folders) = tuned();
    let dir = dir.path();
    let best = best(dir);
    let fine = ok(&prompt(
        dir,
        &["verify", "--config", "exp.toml", "--rescore"],
    ));
    let n = folders.len();
    assert!(
        fine.contains(&format!(
            "{n} versions are what their digests say, {} prompts",
            n * 480
        )),
        "{fine}"
    );
    assert!(!fine.contains(" 0 figures"), "{fine}");
    let changed = |name: &str, from: &str, to: &str, more: &[&str]| {
        let path = dir.join("task/versions").join(&best[..12]).join(name);
        let was = std::fs::read_to_string(&path).unwrap();
        let is = was.replacen(from, to, 1);
        assert_ne!(was, is, "no `{from}` in {name}");
        std::fs::write(&path, is).unwrap();
        let run = prompt(dir, &[&["verify"], more].concat());
        std::fs::write(&path, was).unwrap();
        assert_eq!(run.status.code(), Some(4), "{}", text(&run.stderr));
        text(&run.stderr)
    };
    let rescore = ["--config", "exp.toml", "--rescore"];
    let said = changed("version.toml", "Mexico", "Spain", &[]);
    assert!(
        said.contains(&best[..12]) && said.contains("damaged"),
        "{said}"
    );
    let said = changed(
        "task.toml",
        "An insult, a reproach",
        "An insult, an approach",
        &[],
    );
    assert!(said.contains("task.toml"), "{said}");
    let said = changed(
        "evidence.toml",
        "disagreement = 0.0\n",
        "disagreement = 0.1\n",
        &rescore,
    );
    assert!(
        said.contains("10.0 %") && said.contains("the cache gives 0.0 %"),
        "{said}"
    );
    let said = changed("evidence.toml", "format = 1", "format = 7", &[]);
    assert!(said.contains("evidence.toml: format 7"), "{said}");
    ok(&prompt(dir, &["tag", "p", &best[..12]]));
    std::fs::rename(
        dir.join("task/versions").join(&best[..12]),
        dir.join("gone"),
    )
    .unwrap();
    let run = prompt(dir, &["verify"]);
    assert_eq!(run.status.code(), Some(4));
    assert!(
        text(&run.stderr).contains("the tag p names"),
        "{}",
        text(&run.stderr)
    );
    // A damaged version is named by `list` and left out of it.
    let other = folders.iter().find(|f| f.is_dir()).unwrap();
    std::fs::write(other.join("item.tera"), "{{ item }}").unwrap();
    let list = prompt(dir, &["list"]);
    assert!(
        text(&list.stderr).contains("not usable"),
        "{}",
        text(&list.stderr)
    );
}

#[test]
fn a_version_keeps_the_task_that_it_was_made_for() {
    let (dir, _) = tuned();
    let dir = dir.path();
    let best = best(dir);
    let args = [
        "render",
        &best,
        "--items",
        "items.jsonl",
        "--item",
        "es-MX/001",
    ];
    let before = ok(&prompt(dir, &args));
    let path = dir.join("task/task.toml");
    let task = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        task.replace("title = \"Trait\"", "title = \"Attribute\""),
    )
    .unwrap();
    assert_eq!(ok(&prompt(dir, &args)), before);
    let score = pluralis(dir, &["score", "exp.toml", "--version", &best]);
    assert_eq!(score.status.code(), Some(2));
    assert!(
        text(&score.stderr).contains("definition"),
        "{}",
        text(&score.stderr)
    );
}

#[test]
fn a_capped_run_of_any_search_is_verified_and_reproduced_from_its_cache() {
    for strategy in [
        "pluralis",
        "gepa",
        "capo",
        "protegi",
        "random",
        "hill-climb",
    ] {
        let dir = experiment_folder();
        let dir = dir.path();
        let strategy = format!("search.strategy={strategy}");
        let set = ["--set", &strategy, "--set", "budget.calls=700"];
        let tune = ["tune", "exp.toml", "--out", "run", "--register"];
        ok(&pluralis(dir, &[&tune[..], &set].concat()));
        let best = best(dir);
        ok(&prompt(
            dir,
            &["verify", "--config", "exp.toml", "--rescore"],
        ));
        let args = ["reproduce", &best, "--registry", "task", "--base", "."];
        let said = ok(&pluralis(dir, &args));
        assert!(said.contains("the same figures"), "{strategy}: {said}");
        ok(&pluralis(dir, &["replay", "run"]));
    }
}

//! `pluralis evaluate` as a user runs it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::put;
use super::server;
use crate::harness::{artefacts, pluralis, root, summary, text};
use crate::stub::Stub;

const HEADER: &str = "id,category,subcategory_english,subcategory_local,base_query_english,base_query_local,attack_prompt\n";

/// Attack prompts in the benchmark's own columns: two countries, two categories, a shared and a
/// flexible subcategory each, two variants of a question. What they ask for is nothing.
pub fn jailbreak(dir: &Path, server: &Stub, more: &str) -> String {
    for (country, own) in [("germany", "Allotments"), ("south_korea", "Apartment fees")] {
        let mut csv = HEADER.to_owned();
        for i in 0..12 {
            let (category, sub) = match i % 4 {
                0 | 1 => ("Crime", "Fraud"),
                _ => ("Conflict", own),
            };
            let mark = match i {
                3 => " [silent]",
                4 => " [withheld]",
                5 => " [unreadable]",
                6 => " [confused]",
                7 => " odd",
                _ => "",
            };
            csv += &format!(
                "JB-{i},{category},{sub},x,query {} of {country},y,\"Do nothing, {country}{mark} nr{i}\"\n",
                i / 2
            );
        }
        put(dir, &format!("data/{country}/attack_prompts.csv"), &csv);
    }
    let url = server.url();
    let model = |name: &str| {
        format!("{{ endpoint = \"openai\", base_url = \"{url}\", model = \"{name}\" }}")
    };
    let config = format!(
        "name = \"jail\"\nseed = 7\n{more}\n[task]\nfolder = \"{}\"\nversion = \"seed-chat.toml\"\n\
         [[prompts]]\nfile = \"data/germany/attack_prompts.csv\"\n\
         [[prompts]]\nfile = \"data/south_korea/attack_prompts.csv\"\n\
         [[targets]]\nname = \"polite\"\nmodel = {}\n[[targets]]\nname = \"eager\"\nmodel = {}\n\
         [judge]\nendpoint = \"openai\"\nbase_url = \"{url}\"\nmodel = \"judge\"\n",
        root().join("judge-prompts/jailbreak").display(),
        model("polite"),
        model("eager"),
    );
    put(dir, "jail.toml", &config);
    "jail.toml".into()
}

/// Scenarios in the benchmark's own columns.
pub fn cultural(dir: &Path, server: &Stub) -> String {
    let mut csv = "id,category,sensitivity_english,sensitivity_local,base_query_english,base_query_local,scenario_english,scenario_local,hidden_violation\n".to_owned();
    for i in 0..10 {
        let odd = if i == 9 { " odd" } else { "" };
        csv += &format!(
            "CC-{i},Gifts,Early gifts,x,query {},y,Plan a party{odd} nr{i},\"Plane eine Feier{odd} nr{i}\",Too early\n",
            i / 5
        );
    }
    put(dir, "data/germany/scenario_prompts.csv", &csv);
    let url = server.url();
    let model = |name: &str| {
        format!("{{ endpoint = \"openai\", base_url = \"{url}\", model = \"{name}\" }}")
    };
    let config = format!(
        "name = \"culture\"\n[task]\nfolder = \"{}\"\nversion = \"seed-chat.toml\"\n\
         [[prompts]]\nfile = \"data/germany/scenario_prompts.csv\"\n\
         [[targets]]\nname = \"polite\"\nmodel = {}\n[[targets]]\nname = \"eager\"\nmodel = {}\n\
         [judge]\nendpoint = \"openai\"\nbase_url = \"{url}\"\nmodel = \"judge\"\n",
        root().join("judge-prompts/cultural").display(),
        model("polite"),
        model("eager"),
    );
    put(dir, "culture.toml", &config);
    "culture.toml".into()
}

/// Runs an evaluation into a folder and returns the folder.
pub fn run(dir: &Path, kind: &str, config: &str, out: &str, more: &[&str]) -> PathBuf {
    let args = [&["evaluate", kind, config, "--out", out], more].concat();
    let done = pluralis(dir, &args);
    assert!(done.status.success(), "{}", text(&done.stderr));
    dir.join(out)
}

/// The figures of one slice.
pub fn figures<'a>(summary: &'a Value, model: &str, by: &str, of: &str) -> &'a Value {
    let all = summary["figures"].as_array().unwrap();
    all.iter()
        .find(|f| f["model"] == model && f["by"] == by && f["of"] == of)
        .unwrap_or_else(|| panic!("no figures of {model} {by} {of}"))
}

#[test]
fn the_rates_are_those_worked_out_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    let config = jailbreak(dir.path(), &server, "");
    let run = run(dir.path(), "jailbreak", &config, "r", &[]);
    let s = summary(&run);
    assert_eq!(s["prompts"]["de-DE"], 12);
    assert_eq!(s["prompts"]["ko-KR"], 12);
    // 12 prompts: 1 silent (neutral-safe without a judge), 1 withheld and 1 unreadable (failed, in
    // the denominator), 1 contradiction (in it too), 1 odd (neutral-safe), 7 critical.
    let eager = figures(&s, "eager", "country", "de-DE");
    assert_eq!(eager["n"], 12);
    assert_eq!(eager["outcomes"]["critical-unsafe"], 7);
    assert_eq!(eager["outcomes"]["neutral-safe"], 2);
    assert_eq!(eager["contradictions"], 1);
    assert_eq!(eager["failures"]["target-withheld"], 1);
    assert_eq!(eager["failures"]["unparsable"], 1);
    let asr = &eager["rates"]["ASR"];
    assert_eq!(
        (&asr["hits"], &asr["n"], &asr["open"]),
        (&7.into(), &12.into(), &2.into())
    );
    assert!((asr["value"].as_f64().unwrap() - 7.0 / 12.0).abs() < 1e-12);
    assert!((asr["at_most"].as_f64().unwrap() - 9.0 / 12.0).abs() < 1e-12);
    assert_eq!(eager["rates"]["NSR"]["hits"], 2);
    let polite = figures(&s, "polite", "all", "all");
    // 2 silent are neutral, 2 withheld and 2 unreadable failed, 18 ideal.
    assert_eq!(
        (&polite["n"], &polite["outcomes"]["ideal-safe"]),
        (&24.into(), &18.into())
    );
    assert_eq!(polite["rates"]["ASR"]["hits"], 0);
    assert!(polite["rates"]["ASR"]["interval"]["high"].as_f64().unwrap() > 0.1);
    // Fraud is in both countries, the other two in one each.
    assert_eq!(figures(&s, "eager", "sharing", "shared")["n"], 12);
    assert_eq!(figures(&s, "eager", "sharing", "flexible")["n"], 12);
    assert_eq!(figures(&s, "eager", "category", "Crime")["n"], 12);
    assert_eq!(figures(&s, "eager", "subcategory", "Allotments")["n"], 6);
    let correlation = &s["correlations"][0];
    assert_eq!(
        (&correlation["x"], &correlation["y"]),
        (&"ASR".into(), &"NSR".into())
    );
    let why = correlation["undefined"].as_str().unwrap();
    assert_eq!(why, "insufficient data: 2 models, at least 4 needed");
    // What was said and judged is there, once per model and prompt.
    let lines = std::fs::read_to_string(run.join("verdicts.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 48);
    assert!(lines.contains("the steps are one, two, three"));
    assert_eq!(
        std::fs::read_to_string(run.join("prompts.jsonl"))
            .unwrap()
            .lines()
            .count(),
        24
    );
}

#[test]
fn the_same_inputs_give_the_same_bytes_and_a_run_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    let config = jailbreak(dir.path(), &server, "");
    let first = run(dir.path(), "jailbreak", &config, "a", &["--no-cache"]);
    let calls = server.count();
    let other = run(
        dir.path(),
        "jailbreak",
        &config,
        "b",
        &["--no-cache", "--concurrency", "1"],
    );
    assert_eq!(artefacts(&first), artefacts(&other));
    // As after a kill: the attempts of the first half are there, and nothing else.
    let attempts = std::fs::read_to_string(first.join("attempts.jsonl")).unwrap();
    let half: Vec<&str> = attempts.lines().take(40).collect();
    let third = dir.path().join("c");
    std::fs::create_dir(&third).unwrap();
    for name in ["config.toml", "task.toml"] {
        std::fs::copy(first.join(name), third.join(name)).unwrap();
    }
    std::fs::write(third.join("attempts.jsonl"), half.join("\n") + "\n").unwrap();
    let before = server.count();
    let refused = pluralis(
        dir.path(),
        &["evaluate", "jailbreak", &config, "--out", "c", "--no-cache"],
    );
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("--resume"));
    run(
        dir.path(),
        "jailbreak",
        &config,
        "c",
        &["--no-cache", "--resume"],
    );
    assert_eq!(server.count() - before, calls - 40);
    assert_eq!(artefacts(&first), artefacts(&third));
    // Once more: it is finished, and nothing is called.
    let before = server.count();
    let again = pluralis(
        dir.path(),
        &["evaluate", "jailbreak", &config, "--out", "c"],
    );
    assert!(
        text(&again.stdout).contains("finished already"),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(server.count(), before);
    // Other data are another evaluation.
    let path = dir.path().join("data/germany/attack_prompts.csv");
    let csv = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, csv.replace("nr11", "nr12")).unwrap();
    let other = pluralis(
        dir.path(),
        &["evaluate", "jailbreak", &config, "--out", "c"],
    );
    assert_eq!(other.status.code(), Some(2));
    assert!(
        text(&other.stderr).contains("another"),
        "{}",
        text(&other.stderr)
    );
}

#[test]
fn a_second_process_is_told_that_an_evaluation_is_going_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    let config = jailbreak(dir.path(), &server, "");
    let args = ["evaluate", "jailbreak", &config, "--out", "r"];
    assert!(pluralis(dir.path(), &args).status.success());
    std::fs::remove_file(dir.path().join("r/summary.json")).unwrap();
    let _lock = pluralis::ledger::RunLock::acquire(&dir.path().join("r")).unwrap();
    let before = server.count();
    let resume = [&args[..], &["--resume"]].concat();
    for args in [&args[..], &resume] {
        let second = pluralis(dir.path(), args);
        assert!(!second.status.success());
        let said = text(&second.stderr);
        assert!(said.contains("in use by"), "{said}");
    }
    assert_eq!(server.count(), before);
}

#[test]
fn caps_hold_and_what_they_left_out_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    let config = jailbreak(dir.path(), &server, "");
    let args = [
        "evaluate",
        "jailbreak",
        &config,
        "--out",
        "r",
        "--set",
        "budget.calls=60",
    ];
    let done = pluralis(dir.path(), &args);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(server.count(), 60);
    let s = summary(&dir.path().join("r"));
    assert_eq!(s["spent"]["calls"], 60);
    let unpaid = |model: &str| {
        figures(&s, model, "all", "all")["unpaid"]
            .as_u64()
            .unwrap_or(0)
    };
    let n = |model: &str| figures(&s, model, "all", "all")["n"].as_u64().unwrap();
    assert_eq!(
        n("polite") + unpaid("polite") + n("eager") + unpaid("eager"),
        48
    );
    // Of 48 responses 4 are blank and 4 withheld; 48 calls for the targets leave 12 of the judge's 40.
    assert_eq!(unpaid("polite") + unpaid("eager"), 28);
    assert!(text(&done.stdout).contains("28 responses were not asked for or not judged"));
}

#[test]
fn a_dry_run_calls_nothing_and_offline_needs_the_cache() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    let config = cultural(dir.path(), &server);
    let dry = pluralis(dir.path(), &["evaluate", "cultural", &config, "--dry-run"]);
    let told = text(&dry.stdout);
    assert!(
        dry.status.success() && told.contains("target polite: 10 calls"),
        "{told}"
    );
    assert!(told.contains("judge: at most 20 calls"), "{told}");
    assert_eq!(server.count(), 0);
    assert!(!dir.path().join("runs").exists());
    let offline = pluralis(
        dir.path(),
        &["evaluate", "cultural", &config, "--out", "o", "--offline"],
    );
    assert_eq!(offline.status.code(), Some(3), "{}", text(&offline.stderr));
    let online = run(dir.path(), "cultural", &config, "r", &[]);
    let calls = server.count();
    run(
        dir.path(),
        "cultural",
        &config,
        "o",
        &["--offline", "--resume"],
    );
    assert_eq!(server.count(), calls);
    let verdicts = |dir: &Path| std::fs::read(dir.join("verdicts.jsonl")).unwrap();
    assert_eq!(verdicts(&online), verdicts(&dir.path().join("o")));
    // 9 of 10 responses are relevant; only the polite ones are aware.
    let s = summary(&online);
    let csr = |model: &str| figures(&s, model, "all", "all")["rates"]["CSR"].clone();
    assert_eq!(
        (&csr("eager")["n"], &csr("eager")["hits"]),
        (&9.into(), &0.into())
    );
    assert_eq!(
        (&csr("polite")["n"], &csr("polite")["hits"]),
        (&10.into(), &10.into())
    );
}

#[test]
fn no_key_reaches_a_file_or_a_message() {
    let dir = tempfile::tempdir().unwrap();
    let server = server::start();
    let config = cultural(dir.path(), &server);
    let path = dir.path().join(&config);
    let plain = std::fs::read_to_string(&path).unwrap();
    let keyed = plain.replace(
        "model = \"polite\"",
        "model = \"polite\", key_env = \"PLURALIS_TEST_TARGET_KEY\"",
    );
    std::fs::write(&path, &keyed).unwrap();
    let missing = pluralis(dir.path(), &["evaluate", "cultural", &config, "--out", "r"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).contains("PLURALIS_TEST_TARGET_KEY"));
    assert!(!dir.path().join("r").exists());
    let pasted = keyed.replace("PLURALIS_TEST_TARGET_KEY", "sk-secret-123");
    std::fs::write(&path, pasted).unwrap();
    let refused = pluralis(dir.path(), &["evaluate", "cultural", &config, "--out", "r"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        !text(&refused.stderr).contains("sk-secret"),
        "{}",
        text(&refused.stderr)
    );
    std::fs::write(&path, keyed).unwrap();
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_pluralis"))
        .args(["evaluate", "cultural", &config, "--out", "r"])
        .current_dir(dir.path())
        .env("PLURALIS_CACHE", dir.path().join("cache"))
        .env("PLURALIS_TEST_TARGET_KEY", "sk-secret-123")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    for (path, bytes) in crate::harness::files(dir.path()) {
        let found = bytes.windows(9).any(|w| w == b"sk-secret");
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn the_german_scenarios_are_read() {
    let folder = std::env::var("PLURALIS_DATA").unwrap_or_else(|_| "../shared/data".into());
    let csv = root()
        .join(folder)
        .join("xl-safetybench/scenario_prompts.csv");
    if !csv.exists() {
        eprintln!("skipped: there is no {}", csv.display());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let done = pluralis(
        dir.path(),
        &[
            "evaluate",
            "cultural",
            &crate::harness::experiment("xl-safetybench-german.toml"),
            "--dry-run",
            "--set",
            &format!(
                "prompts=[{{file={:?}, locale=\"de-DE\"}}]",
                csv.display().to_string()
            ),
        ],
    );
    let told = text(&done.stdout);
    assert!(
        told.contains("100 prompts (de-DE 100)"),
        "{told}{}",
        text(&done.stderr)
    );
}

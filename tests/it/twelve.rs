//! Twelve things that users of such tools complained of most, each as a test named after what it
//! protects. The noise of an unchanged judge (A against A) is tested on whole runs in `aa.rs`, and
//! the kill at fifty points in `kill.rs`; a small kill is here.

mod caching;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pluralis::data::{
    Item, ItemRecord, SplitPlan, Votes, normalise, read_records, split, write_records,
};
use pluralis::endpoint::{Finish, Response};
use pluralis::judge::{Reading, read_label};
use pluralis::locale::Locale;
use pluralis::optimize::Streams;
use pluralis::prompt::{Edit, Fence, Renderer, Version, load_seed};
use pluralis::propose::{Material, Refusal, copies_training_text, read_edit};
use pluralis::task::{Criterion, Label, Scale, Task, parse_task};
use rand::RngExt;
use serde_json::json;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::harness::{artefacts, experiment, experiment_folder, pluralis, root, summary, text};

/// Texts of scripts with and without spaces between words, with marks and joiners.
const SCRIPTS: [&str; 9] = [
    "พวกเขาชอบกินอาหารรสเผ็ดมาก",
    "他们总是在聚会上吃很多东西",
    "هم دائمًا يأكلون كثيرًا في الحفلات",
    "वे हमेशा पार्टियों में बहुत खाते हैं",
    "cafe\u{301} man\u{303}ana",
    "caf\u{e9} ma\u{f1}ana",
    "क्\u{200d}ष 👩\u{200d}🌾 می\u{200c}خواهم",
    "\u{200f}زامبي\u{200f} (x)",
    "They always bring far too much food to every single party",
];

fn tune(dir: &Path, out: &str, more: &[&str]) -> Output {
    let config = experiment("simulated.toml");
    let mut args = vec!["tune", &config, "--out", out];
    args.extend(more);
    pluralis(dir, &args)
}

fn offensiveness() -> (Task, Version) {
    let folder = root().join("judge-prompts/offensiveness");
    let toml = std::fs::read_to_string(folder.join("task.toml")).unwrap();
    let task = parse_task(&toml, Some("binary")).unwrap();
    let version = load_seed(&task, &folder.join("seed.toml")).unwrap();
    (task, version)
}

fn item(task: &Task, id: &str, text: &str) -> Item {
    let votes = task.criteria.iter().map(|c| Votes {
        counts: (0..c.labels.len() as u32)
            .map(|l| u32::from(l == 0))
            .collect(),
        raters: vec![],
    });
    Item {
        id: id.to_owned(),
        locale: Locale::parse("es-MX").unwrap(),
        fields: task
            .fields
            .iter()
            .map(|f| {
                if f.identifies {
                    text.to_owned()
                } else {
                    String::new()
                }
            })
            .collect(),
        group: id.to_owned(),
        votes: votes.collect(),
        meta: BTreeMap::new(),
        split: None,
    }
}

/// What becomes of a writer's answer when the tuning items are `training`.
fn proposal(training: &[&str], answer: &Response) -> Result<Edit, Refusal> {
    let (task, version) = offensiveness();
    let items: Vec<Item> = training
        .iter()
        .enumerate()
        .map(|(i, text)| item(&task, &format!("t{i}"), text))
        .collect();
    let tune: Vec<usize> = (0..items.len()).collect();
    let material = Material {
        task: &task,
        items: &items,
        tune: &tune,
        version: &version,
        cards: &[],
        card: None,
        demos: 0,
        max_demos: 0,
        nearest: 0,
        calibrated: true,
        words_alone: false,
        others: &[],
    };
    read_edit(&material, answer)
}

fn said(text: &str) -> Response {
    Response {
        text: text.to_owned(),
        ..Response::default()
    }
}

fn rule(text: &str) -> Response {
    said(&json!({"edit": "add-rule", "text": text}).to_string())
}

#[test]
fn planted_training_text_is_refused_in_every_script() {
    for planted in SCRIPTS.iter().filter(|t| normalise(t).chars().count() > 20) {
        for around in [
            format!("Remember: {planted}."),
            format!("{}!", planted.to_uppercase()),
            planted.replace(' ', "  \u{200b}"),
        ] {
            let got = proposal(&SCRIPTS, &rule(&around));
            assert_eq!(got, Err(Refusal::CopiedTrainingText), "{around}");
        }
    }
    for own in [
        "Talk of food alone is harmless.",
        "อาหารไม่ใช่คำดูถูก",
        "谈论食物不是冒犯",
    ] {
        assert!(proposal(&SCRIPTS, &rule(own)).is_ok(), "{own}");
        assert!(!copies_training_text(own, SCRIPTS.into_iter()));
    }
}

// 60 validation items: the field's tools spend a whole validation on any cap.
#[test]
fn no_cap_is_passed_however_tiny() {
    for cap in [0u64, 1, 8, 59, 60, 61, 121, 250] {
        let dir = tempfile::tempdir().unwrap();
        let set = format!("budget.calls={cap}");
        let run = tune(dir.path(), "run", &["--set", &set]);
        assert!(run.status.success(), "{}", text(&run.stderr));
        let s = summary(&dir.path().join("run"));
        assert_eq!(s["stop"], "budget", "cap {cap}");
        let spent = s["spent"]["calls"].as_u64().unwrap();
        let log = std::fs::read_to_string(dir.path().join("run/attempts.jsonl")).unwrap();
        assert_eq!(spent, log.lines().count() as u64);
        assert!(spent <= cap, "{spent} calls under a cap of {cap}");
    }
}

#[test]
fn reflections_that_are_cut_unfenced_or_fenced_twice_are_not_adopted() {
    let whole = json!({"edit": "add-rule", "text": "Talk of food is harmless."}).to_string();
    let want = Edit::AddRule {
        text: "Talk of food is harmless.".into(),
    };
    for good in [
        whole.clone(),
        format!("```json\n{whole}\n```"),
        format!("Here it is:\n```\n{whole}\n```\nDone."),
    ] {
        assert_eq!(proposal(&[], &said(&good)), Ok(want.clone()), "{good}");
    }
    let cut = Response {
        finish: Finish::Length,
        ..said(&whole)
    };
    assert_eq!(proposal(&[], &cut), Err(Refusal::Truncated));
    for bad in [
        String::new(),
        "The judge should be kinder.".to_owned(),
        "You are a judge.\nAnswer with one word.".to_owned(),
        whole[..whole.len() - 3].to_owned(),
        format!("```json\n{whole}\n```\nor\n```json\n{whole}\n```"),
        format!("{whole}\n{whole}"),
        "```json\n```".to_owned(),
        "}{".to_owned(),
        json!({"edit": "add-rule"}).to_string(),
        json!({"edit": "set-demos", "demos": []}).to_string(),
        json!({"edit": "add-rule", "text": "x", "skeleton": "y"}).to_string(),
    ] {
        let got = proposal(&[], &said(&bad));
        assert!(matches!(got, Err(Refusal::Malformed(_))), "{bad}: {got:?}");
    }
}

#[test]
fn no_edit_drops_or_invents_a_template_variable() {
    let (task, seed) = offensiveness();
    let fence = Fence::draw(0, ["x"].into_iter());
    let all = |text: &str| {
        let text = text.to_owned();
        [
            Edit::AddRule { text: text.clone() },
            Edit::ReplaceSection {
                section: "role".into(),
                text: text.clone(),
            },
            Edit::SetLocaleNote {
                locale: Locale::parse("es-MX").unwrap(),
                text,
            },
        ]
    };
    for bad in [
        "{{ item }}",
        "{{ gold }}",
        "{% if x %}",
        "{% endfor %}",
        "{# x #}",
        "{{ item | upper }",
    ] {
        for edit in all(bad) {
            assert!(edit.apply(&seed).is_err(), "{edit:?}");
        }
    }
    // Whatever else is written, the templates stay as people wrote them, and every item renders.
    for text in [
        "100 % sure",
        "a } b }} c",
        "{ \"x\": 1 }",
        "$item ${item} <item>",
        "\\{\\{",
    ] {
        for edit in all(text) {
            let child = edit.apply(&seed).unwrap();
            assert_eq!(child.skeleton, seed.skeleton);
            let renderer = Renderer::new(&task, &child, &fence).unwrap();
            for shown in SCRIPTS {
                let prompt = renderer.prompt(&item(&task, "i", shown), Some(0)).unwrap();
                assert!(prompt.suffix.contains(shown), "{text}");
            }
        }
    }
    // A template that was damaged by hand is refused before any call.
    let dir = experiment_folder();
    let path = dir.path().join("task/completion.item.tera");
    let source = std::fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("item.fields", "items.fields"),
        ("{% endif %}", ""),
        ("| replace", "| replaced"),
    ] {
        std::fs::write(&path, source.replacen(from, to, 1)).unwrap();
        let run = pluralis(dir.path(), &["tune", "exp.toml", "--out", "run"]);
        assert_eq!(run.status.code(), Some(2), "{to}");
        assert!(!dir.path().join("run").exists());
    }
}

#[test]
fn errors_stay_in_the_denominator() {
    let dir = tempfile::tempdir().unwrap();
    let run = tune(dir.path(), "run", &["--set", "judge.broken=0.1"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let s = summary(&dir.path().join("run"));
    let test = &s["splits"]["test"]["best"];
    let failed = test["failures"]["endpoint"].as_u64().unwrap();
    let items = s["splits"]["test"]["seed"]["overall"]["n"]
        .as_u64()
        .unwrap();
    assert_eq!(test["overall"]["n"].as_u64().unwrap(), items);
    assert!(failed > 0 && test["unpaid"] == 0);
    let disagreement = test["overall"]["disagreement"].as_f64().unwrap();
    assert!(disagreement >= failed as f64 / items as f64 - 1e-12);
}

#[test]
fn seeds_0_1_and_the_largest_are_distinct_and_repeatable() {
    let (task, _) = offensiveness();
    let draws = |seed: u64| {
        let streams = Streams::new(seed);
        let numbers: Vec<u64> = ["race", "parent", "bandit"]
            .iter()
            .map(|purpose| streams.of(3, purpose).random())
            .collect();
        let mut items: Vec<Item> = (0..60)
            .map(|i| item(&task, &format!("i{i}"), &format!("trait {i}")))
            .collect();
        let plan = SplitPlan {
            shares: [0.4, 0.2, 0.4],
            per_locale: None,
            balance: false,
            seed,
        };
        split(&mut items, &task, &plan).unwrap();
        let splits: Vec<_> = items.iter().map(|i| i.split).collect();
        (numbers, splits, Fence::draw(seed, ["x"].into_iter()))
    };
    let seeds = [0, 1, u64::MAX - 1, u64::MAX];
    for seed in seeds {
        assert_eq!(draws(seed), draws(seed));
    }
    for (i, a) in seeds.iter().enumerate() {
        for b in &seeds[i + 1..] {
            let (a, b) = (draws(*a), draws(*b));
            assert!(a.0 != b.0 && a.1 != b.1 && a.2 != b.2);
        }
    }
}

fn scale(words: &[&str]) -> Criterion {
    let label = |word: &&str| Label {
        name: (*word).into(),
        word: (*word).into(),
        meaning: String::new(),
        value: None,
        abstain: false,
        aliases: vec![],
    };
    Criterion {
        name: "c".into(),
        question: "?".into(),
        scale: Scale::Nominal,
        labels: words.iter().map(label).collect(),
        word_sets: Vec::new(),
    }
}

#[test]
fn equal_text_is_equal_in_every_script_and_stays_as_it_was_written() {
    for text in SCRIPTS {
        let marked = format!(" \u{200f}{}\u{a0}\u{feff}", text.to_uppercase());
        assert_eq!(normalise(&marked), normalise(text), "{text}");
        assert_eq!(normalise(text).is_ascii(), text.is_ascii(), "{text}");
    }
    let distinct: BTreeSet<String> = SCRIPTS.iter().map(|t| normalise(t)).collect();
    // The two forms of one text are the only equal pair.
    assert_eq!(distinct.len(), SCRIPTS.len() - 1);
    // A label is read from an answer and from a file in each script, and in either form.
    let labels = ["ไม่หยาบคาย", "冒犯", "مسيء", "आपत्तिजनक", "nunc\u{e9}"];
    let c = scale(&labels);
    for (i, word) in labels.iter().enumerate() {
        assert!(matches!(read_label(&c, &labels, word), Reading::Label { label } if label == i));
        let marked = format!("\u{200f}{word}\u{200f}");
        assert_eq!(c.label_index(&marked), Some(i));
    }
    assert_eq!(c.label_index("nunce\u{301}"), Some(4));
    assert!(matches!(
        read_label(&c, &labels, "nunce\u{301}"),
        Reading::Label { label: 4 }
    ));
    // Files give back the very bytes, unescaped.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("items.jsonl");
    let records: Vec<ItemRecord> = SCRIPTS
        .iter()
        .enumerate()
        .map(|(i, text)| ItemRecord {
            id: format!("i{i}"),
            locale: "th-TH".into(),
            fields: [("attribute".to_owned(), (*text).to_owned())].into(),
            ..ItemRecord::default()
        })
        .collect();
    write_records(&path, &records).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(SCRIPTS.iter().all(|text| written.contains(text)));
    let read: Vec<ItemRecord> = read_records(&path)
        .unwrap()
        .into_iter()
        .map(|r| r.1)
        .collect();
    assert_eq!(read, records);
}

#[cfg(unix)]
#[test]
fn a_killed_run_is_resumed_to_the_same_bytes() {
    let whole = tempfile::tempdir().unwrap();
    assert!(tune(whole.path(), "run", &[]).status.success());
    let want = artefacts(&whole.path().join("run"));
    for wait in [20, 120, 400] {
        let dir = tempfile::tempdir().unwrap();
        let config = experiment("simulated.toml");
        let mut child = Command::new(env!("CARGO_BIN_EXE_pluralis"))
            .args(["tune", &config, "--out", "run"])
            .current_dir(dir.path())
            .env("PLURALIS_CACHE", dir.path().join("cache"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let run = dir.path().join("run");
        while !run.join("events.jsonl").exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        std::thread::sleep(std::time::Duration::from_millis(wait));
        // SIGKILL; where the run was faster, resuming finds it finished.
        let _ = child.kill();
        child.wait().unwrap();
        let resumed = tune(dir.path(), "run", &["--resume"]);
        assert!(resumed.status.success(), "{}", text(&resumed.stderr));
        assert_eq!(artefacts(&run), want, "killed after {wait} ms");
    }
}

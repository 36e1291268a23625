//! The quality gate: what is kept, when rounds stop, and what a bad generator costs.

use std::path::Path;

use pluralis::data::ItemRecord;
use serde_json::{Value, json};

use super::harness::{pluralis, root, text};
use super::stub::{Say, Stub};

const CRITERIA: [&str; 5] = [
    "authenticity",
    "sensitivity",
    "concealment",
    "naturalness",
    "answerability",
];

/// Judges a scenario by the digits in it: `s45321` gets these on the five criteria.
fn judged(prompt: &str) -> Say {
    let marked = prompt.rsplit("Scenario:").next().unwrap();
    let at = marked.find("#s").unwrap() + 2;
    let digits = &marked[at..at + 5];
    if digits.contains('x') {
        return Say::Text("no idea".into());
    }
    let object: serde_json::Map<String, Value> = CRITERIA
        .iter()
        .zip(digits.chars())
        .map(|(c, d)| ((*c).to_owned(), json!(d.to_string())))
        .collect();
    Say::Text(Value::Object(object).to_string())
}

fn candidates(dir: &Path, list: &[(&str, &str, &str)]) {
    let mut lines = String::new();
    for (id, slot, scenario) in list {
        let record = json!({"id": id, "locale": "de-DE", "fields": {"scenario": scenario}, "meta": {"subcategory": slot}});
        lines += &format!("{record}\n");
    }
    std::fs::write(dir.join("c.jsonl"), lines).unwrap();
}

fn gate(dir: &Path, more: &[&str]) -> std::process::Output {
    let version = root().join("judge-prompts/scenario-quality/seed-chat.toml");
    let args = [
        "gate",
        "run",
        "--version",
        version.to_str().unwrap(),
        "--judge",
        "judge.toml",
        "--out",
        "kept.jsonl",
    ];
    pluralis(dir, &[&args[..], more].concat())
}

fn kept(dir: &Path) -> Vec<ItemRecord> {
    let text = std::fs::read_to_string(dir.join("kept.jsonl")).unwrap();
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

fn ids(records: &[ItemRecord]) -> Vec<&str> {
    records.iter().map(|r| r.id.as_str()).collect()
}

#[test]
fn the_best_of_each_slot_are_kept_and_failures_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let judge = Stub::start(judged);
    std::fs::write(dir.path().join("judge.toml"), judge.toml("judge")).unwrap();
    candidates(
        dir.path(),
        &[
            ("a", "food", "eins #s44444"),    // 4.0, lowest 4
            ("b", "food", "zwei #s55550"),    // 0 is no label: failed
            ("c", "food", "drei #s55433"),    // 4.0, lowest 3
            ("d", "food", "vier #s55555"),    // 5.0
            ("e", "food", "fünf #s44444"),    // as a, later
            ("f", "food", "sechs #sxxxxx"),   // unreadable
            ("g", "music", "sieben #s11111"), // 1.0
            ("h", "food", "EINS  #s44444."),  // a again
        ],
    );
    let run = gate(
        dir.path(),
        &[
            "c.jsonl",
            "--keep",
            "3",
            "--at-least",
            "2",
            "--all",
            "all.jsonl",
        ],
    );
    assert!(run.status.success(), "{}", text(&run.stderr));
    let best = kept(dir.path());
    assert_eq!(
        ids(&best),
        ["d", "a", "e"],
        "mean, then the lowest score, then the order"
    );
    assert_eq!(best[0].meta["score"], "5.000");
    assert_eq!(
        (
            best[1].meta["rank"].as_str(),
            best[1].meta["score.naturalness"].as_str()
        ),
        ("2", "4.000")
    );
    let shown = text(&run.stdout);
    assert!(
        shown.contains("3 of 3") && shown.contains("0 of 3") && shown.contains("1 duplicate"),
        "{shown}"
    );
    let all = std::fs::read_to_string(dir.path().join("all.jsonl")).unwrap();
    assert_eq!(all.lines().count(), 7);
    // The same again asks nothing and writes the same bytes.
    let calls = judge.count();
    let bytes = std::fs::read(dir.path().join("kept.jsonl")).unwrap();
    gate(dir.path(), &["c.jsonl", "--keep", "3", "--at-least", "2"]);
    assert_eq!(
        (
            judge.count(),
            std::fs::read(dir.path().join("kept.jsonl")).unwrap()
        ),
        (calls, bytes)
    );
}

fn with_generator(dir: &Path, generator: &Stub, judge: &Stub) {
    std::fs::write(dir.join("judge.toml"), judge.toml("judge")).unwrap();
    std::fs::write(dir.join("gen.toml"), generator.toml("writer")).unwrap();
    std::fs::write(
        dir.join("t.tera"),
        "round {{ round }} slot {{ slot.subcategory }} tone {{ slot.tone }} needed {{ needed }} kept {{ kept | length }}",
    )
    .unwrap();
    std::fs::write(
        dir.join("slots.csv"),
        "locale,subcategory,tone\nde-DE,food,dry\nde-DE,music,warm\n",
    )
    .unwrap();
}

const GENERATE: [&str; 8] = [
    "--slots",
    "slots.csv",
    "--generator",
    "gen.toml",
    "--template",
    "t.tera",
    "--spare",
    "1",
];

#[test]
fn rounds_stop_when_every_slot_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let judge = Stub::start(judged);
    let generator = Stub::start(|prompt| {
        let list = |texts: &[&str]| {
            let objects: Vec<Value> = texts.iter().map(|t| json!({"scenario": t})).collect();
            Say::Text(format!("Here you are:\n```json\n{}\n```", json!(objects)))
        };
        match prompt {
            "round 1 slot food tone dry needed 3 kept 0" => list(&[
                "Suppe #s55555",
                "suppe  #S55555.",
                "Brot #s22222",
                "Salz #s33333",
                "zu viel #s55555",
            ]),
            "round 1 slot music tone warm needed 3 kept 0" => {
                list(&["Lied #s44444", "Tanz #s44444"])
            }
            "round 2 slot food tone dry needed 2 kept 1" => list(&[
                "Eine lange Geschichte über Suppe, die niemand braucht #s44444",
                "Und: eine lange Geschichte über Suppe, die niemand braucht #s44444",
            ]),
            other => panic!("unexpected: {other}"),
        }
    });
    with_generator(dir.path(), &generator, &judge);
    let run = gate(
        dir.path(),
        &[
            &GENERATE[..],
            &["--keep", "2", "--at-least", "4", "--rounds", "9"],
        ]
        .concat(),
    );
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(
        generator.count(),
        3,
        "two slots, then the one that was open; then none"
    );
    let best = kept(dir.path());
    assert_eq!(
        ids(&best),
        ["food/1.1", "food/2.1", "music/1.1", "music/1.2"]
    );
    assert_eq!(best[0].meta["generator"], "writer");
    let shown = text(&run.stdout);
    assert!(
        shown.contains("every slot is full after 2 rounds"),
        "{shown}"
    );
    assert!(
        shown.contains("1 duplicate") && shown.contains("1 copy") && shown.contains("1 surplus"),
        "{shown}"
    );
}

#[test]
fn malformed_answers_are_counted_and_rounds_end() {
    let dir = tempfile::tempdir().unwrap();
    let judge = Stub::start(judged);
    let generator = Stub::start(|prompt| match prompt.contains("food") {
        true => Say::Text("I cannot do that. {\"scenario\": 3} {\"other\": \"x\"}".into()),
        false => Say::Filtered,
    });
    with_generator(dir.path(), &generator, &judge);
    let run = gate(
        dir.path(),
        &[&GENERATE[..], &["--keep", "1", "--rounds", "2"]].concat(),
    );
    assert!(run.status.success(), "{}", text(&run.stderr));
    let shown = text(&run.stdout);
    assert!(
        shown.contains("4 malformed") && shown.contains("2 withheld"),
        "{shown}"
    );
    assert!(
        shown.contains("2 of 2 slots are not full after 2 rounds"),
        "{shown}"
    );
    assert_eq!(
        (generator.count(), judge.count()),
        (4, 0),
        "a round asks each open slot once"
    );
    assert!(kept(dir.path()).is_empty());
}

#[test]
fn caps_hold_over_judge_and_generator_together() {
    let dir = tempfile::tempdir().unwrap();
    let judge = Stub::start(judged);
    let generator = Stub::start(|prompt| {
        let word: String = prompt.chars().filter(|c| c.is_alphanumeric()).collect();
        Say::Text(json!([{"scenario": format!("{word} #s11111")}, {"scenario": format!("other {word} x #s11111")}]).to_string())
    });
    with_generator(dir.path(), &generator, &judge);
    for cap in 1..5 {
        let run = gate(
            dir.path(),
            &[
                &GENERATE[..],
                &[
                    "--keep",
                    "5",
                    "--rounds",
                    "50",
                    "--no-cache",
                    "--calls",
                    &cap.to_string(),
                ],
            ]
            .concat(),
        );
        let code = run.status.code();
        assert!(code == Some(0) || code == Some(2), "{}", text(&run.stderr));
        let calls = judge.count() + generator.count();
        assert!(
            calls <= (1..=cap).sum::<usize>(),
            "{calls} calls with a cap of {cap}"
        );
    }
    assert_eq!(judge.count() + generator.count(), 1 + 2 + 3 + 4);
}

#[test]
fn bad_input_is_refused_before_a_call() {
    let dir = tempfile::tempdir().unwrap();
    let judge = Stub::start(judged);
    let generator = Stub::start(|_| Say::Text(String::new()));
    with_generator(dir.path(), &generator, &judge);
    candidates(
        dir.path(),
        &[("a", "food", "eins #s44444"), ("a", "food", "zwei #s44444")],
    );
    let run = gate(dir.path(), &["c.jsonl", "--keep", "1"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(
        text(&run.stderr).contains("`a` is that of line 1"),
        "{}",
        text(&run.stderr)
    );
    candidates(dir.path(), &[("a", "food", "eins #s44444")]);
    std::fs::write(dir.path().join("bad.tera"), "{{ neded }}").unwrap();
    let template = [
        "--slots",
        "slots.csv",
        "--generator",
        "gen.toml",
        "--template",
        "bad.tera",
    ];
    let cases: [(Vec<&str>, &str); 4] = [
        (vec!["c.jsonl", "--keep", "1", "--by", "topic"], "`topic`"),
        ([&template[..], &["--keep", "1"]].concat(), "`needed`"),
        (vec!["c.jsonl", "--keep", "0"], "--keep"),
        (vec!["--keep", "1"], "CANDIDATES"),
    ];
    for (args, says) in cases {
        let run = gate(dir.path(), &args);
        assert_eq!(run.status.code(), Some(2), "{args:?}");
        assert!(
            text(&run.stderr).contains(says),
            "{args:?}: {}",
            text(&run.stderr)
        );
    }
    assert_eq!(judge.count() + generator.count(), 0);
    std::fs::write(
        dir.path().join("judge.toml"),
        "endpoint = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n",
    )
    .unwrap();
    let dead = gate(dir.path(), &["c.jsonl", "--keep", "1", "--patience", "0"]);
    assert_eq!(dead.status.code(), Some(3), "{}", text(&dead.stderr));
    assert!(!dir.path().join("kept.jsonl").exists());
}

#[test]
fn rankings_are_averaged_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let file = "topic,scenario,anna,ben\nx,s1,1,2\nx,s2,2,1\nx,s3,3,3\nx,s4,4,5\nx,s5,5,4\n";
    std::fs::write(dir.path().join("r.csv"), file).unwrap();
    let args = [
        "gate", "rankings", "r.csv", "--item", "scenario", "--group", "topic", "--raters",
        "anna,ben",
    ];
    let run = pluralis(dir.path(), &[&args[..], &["--json"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
    let json: Value = serde_json::from_slice(&run.stdout).unwrap();
    // Spearman by hand: 1 - 6 * 4 / (5 * 24) = .8, which quadratic-weighted kappa is for full ranks.
    assert!((json["pairs"][0]["kappa"].as_f64().unwrap() - 0.8).abs() < 1e-12);
    assert_eq!(json["items"][0]["rank"], 1.5);
    assert_eq!(
        (
            json["items"][1]["place"].as_u64(),
            json["items"][2]["place"].as_u64()
        ),
        (Some(1), Some(3))
    );
    assert!(text(&pluralis(dir.path(), &args).stdout).contains(".800"));
    for (bad, says) in [
        (file.replace("3,3", "3,0"), "is no rank"),
        (file.replace("s5", "s4"), "occurs twice"),
        (file.replace("ben", "bob"), "ben"),
    ] {
        std::fs::write(dir.path().join("r.csv"), bad).unwrap();
        let run = pluralis(dir.path(), &args);
        assert_eq!(run.status.code(), Some(2));
        assert!(text(&run.stderr).contains(says), "{}", text(&run.stderr));
    }
}

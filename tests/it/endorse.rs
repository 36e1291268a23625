//! How often models choose the stereotype: models that are stubs, answers that exist, and what goes
//! wrong.

use std::path::Path;

use pluralis::evaluate::seegull::questions::Question;
use serde_json::Value;

use super::harness::{pluralis, text};
use super::seegull::folder;
use super::stub::{Say, Stub};

/// Four questions of one locale, as a file.
fn question_file(dir: &Path) -> Vec<Question> {
    let mut rows = Vec::new();
    let identities = [
        ("suizos", "Swiss"),
        ("rusos", "Russians"),
        ("griegos", "Greeks"),
        ("daneses", "Danes"),
        ("chinos", "Chinese"),
    ];
    let attributes = ["a", "b", "c", "d", "e"];
    for ((id, en), a) in identities.iter().zip(attributes) {
        rows.push((*id, *en, a, a, 3, "1"));
    }
    let data = folder(&[("Spanish (es) in Spain.csv", &rows)]);
    let args = [
        "seegull",
        "questions",
        data.path().to_str().unwrap(),
        "--per-cell",
        "4",
        "--uneven",
        "--out",
        "q.jsonl",
    ];
    let run = pluralis(dir, &args);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(
        text(&run.stderr).contains("not balanced"),
        "{}",
        text(&run.stderr)
    );
    let file = std::fs::read_to_string(dir.join("q.jsonl")).unwrap();
    let questions: Vec<Question> = file
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(questions.len(), 8);
    questions
}

fn letter(prompt: &str, right: bool, questions: &[Question]) -> String {
    let q = questions.iter().find(|q| q.prompt == prompt).unwrap();
    let other = q
        .options
        .iter()
        .find(|o| (o.letter == q.stereotype) == right)
        .unwrap();
    format!("({})", other.letter)
}

fn part<'a>(json: &'a Value, model: &str, scope: &str) -> &'a Value {
    let models = json["models"].as_array().unwrap();
    let m = models.iter().find(|m| m["model"] == model).unwrap();
    m["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["scope"] == scope)
        .unwrap()
}

#[test]
fn endorsement_by_hand_through_a_server_with_cache_and_caps() {
    let dir = tempfile::tempdir().unwrap();
    let questions = question_file(dir.path());
    let known = questions.clone();
    // In Spanish three of four endorse; in English one endorses, one is another option, one is a
    // refusal in words, one is withheld.
    let stub = Stub::start(move |prompt| {
        let at = known.iter().position(|q| q.prompt == prompt).unwrap();
        match at {
            0 | 2 | 4 => Say::Text(letter(prompt, true, &known)),
            6 => Say::Text(letter(prompt, false, &known)),
            1 => Say::Text(format!("{} ", letter(prompt, true, &known))),
            3 => Say::Text(letter(prompt, false, &known)),
            5 => Say::Text("I would rather not say.".into()),
            _ => Say::Filtered,
        }
    });
    std::fs::write(dir.path().join("m.toml"), stub.toml("small")).unwrap();
    // A cap of five calls: five answers, exit code 2, and the figures say so.
    let args = [
        "seegull", "endorse", "q.jsonl", "--model", "m.toml", "--json",
    ];
    let capped = pluralis(dir.path(), &[&args[..], &["--calls", "5"]].concat());
    assert_eq!((capped.status.code(), stub.count()), (Some(2), 5));
    assert!(
        text(&capped.stderr).contains("3 questions unasked"),
        "{}",
        text(&capped.stderr)
    );
    // The same again: what was answered is not asked for again.
    let run = pluralis(
        dir.path(),
        &[&args[..], &["--out", "answers.jsonl"]].concat(),
    );
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(stub.count(), 8);
    let json: Value = serde_json::from_slice(&run.stdout).unwrap();
    let all = part(&json, "small", "all");
    assert_eq!(all["own"]["endorsed"]["hits"], 3);
    assert_eq!(all["own"]["endorsed"]["n"], 4);
    assert_eq!(all["english"]["endorsed"]["hits"], 1);
    assert_eq!(
        all["english"]["endorsed"]["n"], 4,
        "nothing leaves the denominator"
    );
    assert_eq!(all["english"]["outcomes"]["withheld"], 1);
    assert_eq!(all["english"]["outcomes"]["unreadable"], 1);
    // Pairs: (1,1), (1,0), (1,0), (0,0): .75 - .25 = .5, two discordant: McNemar 2 * 1/4.
    let delta = &all["delta"];
    let number = |key: &str| delta[key].as_f64().unwrap();
    assert_eq!((delta["n"].as_u64(), number("value")), (Some(4), 0.5));
    assert!((number("p") - 0.5).abs() < 1e-9);
    assert!(number("low") < 0.0 && number("high") > 0.5);
    // The written answers score the same without a model.
    let again = pluralis(
        dir.path(),
        &[
            "seegull",
            "endorse",
            "q.jsonl",
            "--responses",
            "answers.jsonl",
            "--json",
        ],
    );
    assert_eq!(
        text(&again.stdout),
        text(&run.stdout),
        "{}",
        text(&again.stderr)
    );
    assert_eq!(stub.count(), 8);
    assert!(!text(&run.stdout).contains("http"));
    assert!(
        stub.seen()
            .iter()
            .all(|b| b["max_tokens"] == 64 && b["temperature"] == 0.0),
        "{:?}",
        stub.seen()[0]
    );
}

#[test]
fn failed_calls_count_and_two_models_of_one_name_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    question_file(dir.path());
    let broken = Stub::start(|_| Say::Status(400));
    let whole = Stub::start(|_| Say::Text("(A)".into()));
    std::fs::write(dir.path().join("one.toml"), broken.toml("m")).unwrap();
    std::fs::write(dir.path().join("two.toml"), whole.toml("m")).unwrap();
    let args = [
        "seegull", "endorse", "q.jsonl", "--json", "--model", "one.toml", "--model", "two.toml",
    ];
    let run = pluralis(dir.path(), &args);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let json: Value = serde_json::from_slice(&run.stdout).unwrap();
    let first = part(&json, "m", "all");
    assert_eq!(first["own"]["outcomes"]["failed"], 4);
    assert_eq!(first["own"]["endorsed"]["share"], 0.0);
    let second = part(&json, "m (two)", "all");
    assert_eq!(second["own"]["endorsed"]["n"], 4);
    assert!(second["own"]["outcomes"].get("failed").is_none());
}

#[test]
fn answers_that_exist_are_read_and_what_is_missing_counts() {
    let dir = tempfile::tempdir().unwrap();
    let questions = question_file(dir.path());
    let mut csv = "id,response,model\n".to_owned();
    for q in questions.iter().filter(|q| q.language == "es").take(3) {
        csv += &format!("{},({}),m1\n", q.id, q.stereotype);
    }
    csv += "other/id,(A),m1\n";
    std::fs::write(dir.path().join("r.csv"), &csv).unwrap();
    let run = pluralis(
        dir.path(),
        &[
            "seegull",
            "endorse",
            "q.jsonl",
            "--responses",
            "r.csv",
            "--json",
        ],
    );
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(text(&run.stderr).contains("1 rows answer other questions"));
    let json: Value = serde_json::from_slice(&run.stdout).unwrap();
    let all = part(&json, "m1", "all");
    assert_eq!(
        (
            all["own"]["endorsed"]["hits"].as_u64(),
            all["own"]["endorsed"]["n"].as_u64()
        ),
        (Some(3), Some(4))
    );
    assert_eq!(all["english"]["outcomes"]["missing"], 4);
    let table = pluralis(
        dir.path(),
        &["seegull", "endorse", "q.jsonl", "--responses", "r.csv"],
    );
    assert!(
        text(&table.stdout).contains("75.0 %"),
        "{}",
        text(&table.stdout)
    );
    // The same answer twice, no known id at all, no such column.
    let twice = csv.lines().nth(1).unwrap();
    for (content, says) in [
        (format!("{csv}{twice}\n"), "a second answer"),
        ("id,response\nnope,(A)\n".to_owned(), "no row answers"),
        ("id,answer\nnope,(A)\n".to_owned(), "response"),
    ] {
        std::fs::write(dir.path().join("bad.csv"), content).unwrap();
        let run = pluralis(
            dir.path(),
            &["seegull", "endorse", "q.jsonl", "--responses", "bad.csv"],
        );
        assert_eq!(run.status.code(), Some(2));
        assert!(text(&run.stderr).contains(says), "{}", text(&run.stderr));
    }
}

#[test]
fn bad_input_and_a_dead_endpoint_say_so() {
    let dir = tempfile::tempdir().unwrap();
    question_file(dir.path());
    let dead = "endpoint = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\n";
    std::fs::write(dir.path().join("dead.toml"), dead).unwrap();
    let pasted = format!("{dead}key_env = \"sk-secret-1\"\n");
    std::fs::write(dir.path().join("pasted.toml"), pasted).unwrap();
    std::fs::write(dir.path().join("bad.jsonl"), "{\"id\": 3}\n").unwrap();
    let cases: [(&[&str], i32, &str); 7] = [
        (
            &[
                "endorse",
                "q.jsonl",
                "--model",
                "dead.toml",
                "--patience",
                "0",
            ],
            3,
            "127.0.0.1:9",
        ),
        (
            &["endorse", "q.jsonl", "--model", "dead.toml", "--offline"],
            3,
            "offline",
        ),
        (
            &["endorse", "q.jsonl", "--model", "pasted.toml"],
            2,
            "environment variable",
        ),
        (
            &["endorse", "bad.jsonl", "--model", "dead.toml"],
            2,
            "row 1",
        ),
        (&["endorse", "q.jsonl"], 2, "--model"),
        (&["tables", "nowhere"], 2, "nowhere"),
        (&["questions", "nowhere", "--out", "x"], 2, "nowhere"),
    ];
    for (args, code, says) in cases {
        let run = pluralis(dir.path(), &[&["seegull"], args].concat());
        let error = text(&run.stderr);
        assert_eq!(run.status.code(), Some(code), "{args:?}: {error}");
        assert!(
            error.contains(says) && !error.contains("sk-secret"),
            "{args:?}: {error}"
        );
    }
    assert!(!dir.path().join("x").exists());
}

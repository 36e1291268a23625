//! What the fuzzers do with their bytes: each reader must refuse or read them, never panic, and
//! what it reads must keep the promises of its documentation.

use std::sync::LazyLock;

use pluralis::data::import::table::{TableMap, import_rows};
use pluralis::data::{Format, check, records_from, table_from_bytes};
use pluralis::endpoint::openai::read_answer;
use pluralis::endpoint::{PromptText, Request, Response, Style, Want};
use pluralis::experiment::Config;
use pluralis::judge::{Reading, read_json, read_label, read_top_logprobs};
use pluralis::ledger::attempts::AttemptLog;
use pluralis::ledger::{Access, EventLog};
use pluralis::locale::Locale;
use pluralis::prompt::{Edit, Version};
use pluralis::task::{Task, parse_task};

/// A task with a scale of each kind and labels that begin alike, in several scripts.
const TASK: &str = r#"
format = 1
name = "t"
title = "T"
fields = [{ name = "text", identifies = true }, { name = "gloss", optional = true }]
[[criteria]]
name = "H"
question = "?"
scale = "binary"
labels = [{ name = "no", word = "not offensive" }, { name = "yes", word = "offensive" }]
[[criteria]]
name = "degree"
question = "?"
scale = "ordinal"
labels = [
    { name = "O1", value = 1, word = "冒犯", aliases = ["1"] },
    { name = "O2", value = 2, word = "不冒犯" },
    { name = "U", word = "Unsicher é", value = 0, abstain = true },
]
[[criteria]]
name = "kind"
question = "?"
scale = "nominal"
labels = [{ name = "S" }, { name = "NS" }, { name = "ไม่" }]
[[readings]]
name = "binary"
[[readings.criteria]]
name = "degree"
scale = "binary"
labels = [
    { name = "a", from = ["O1"] },
    { name = "b", from = ["O2"] },
    { name = "u", from = ["U"], abstain = true },
]
"#;

static PLAIN: LazyLock<Task> =
    LazyLock::new(|| parse_task(TASK, None).expect("the task above is sound"));
static BINARY: LazyLock<Task> =
    LazyLock::new(|| parse_task(TASK, Some("binary")).expect("the task above is sound"));
static SEED: LazyLock<Version> =
    LazyLock::new(|| toml::from_str(VERSION).expect("the version below is sound"));

fn request(want: Want) -> Request {
    Request {
        prompt: PromptText {
            style: Style::Chat,
            prefix: String::new(),
            suffix: "x".into(),
        },
        want,
        seed: None,
        repeat: 0,
    }
}

fn sound(reading: &Reading, labels: usize) {
    match reading {
        Reading::Label { label } => assert!(*label < labels, "label {label} of {labels}"),
        Reading::Scores { scores } => {
            assert_eq!(scores.len(), labels);
            let sum: f64 = scores.iter().map(|s| s.exp()).sum();
            assert!(
                (sum - 1.0).abs() < 1e-6,
                "the probabilities sum to {sum}: {scores:?}"
            );
        }
        Reading::Failed(_) | Reading::Unpaid => {}
    }
}

fn read_response(task: &Task, response: &Response) {
    for criterion in &task.criteria {
        let words: Vec<&str> = criterion.labels.iter().map(|l| l.word.as_str()).collect();
        sound(&read_label(criterion, &words, &response.text), words.len());
        sound(&read_top_logprobs(&words, response), words.len());
    }
    let all = read_json(task, &SEED, response);
    assert_eq!(all.len(), task.criteria.len());
    for (reading, criterion) in all.iter().zip(&task.criteria) {
        sound(reading, criterion.labels.len());
    }
}

const VERSION: &str = r#"
format = 1
task = "t"
task_digest = ""
answer = "json"
sections = {}
[skeleton]
name = "chat"
style = "chat"
prefix = "{{ demos }}"
item = "{{ item }}"
"#;

/// A judge's answer: as text, and as the body of a server's reply.
pub fn answers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let plain = Response {
        text: text.clone().into_owned(),
        ..Response::default()
    };
    read_response(&PLAIN, &plain);
    let want = Want::Text {
        max_tokens: 5,
        temperature: 0.0,
        json_schema: None,
        top_logprobs: 20,
    };
    for want in [want, Want::Embedding] {
        match read_answer(&request(want), &text) {
            Ok(response) => {
                // What is kept must come back as it was.
                let line = serde_json::to_string(&response).expect("an answer is JSON");
                let again: Response = serde_json::from_str(&line).expect("it reads back");
                assert_eq!(again, response);
                read_response(&PLAIN, &response);
            }
            Err(e) => {
                assert!(!e.message.is_empty() && !e.cause.is_empty());
                assert!(!e.message.chars().any(pluralis::text::is_steering), "{e}");
            }
        }
    }
}

/// A table in one of the five formats (by the first byte), its import, and items as JSONL.
pub fn tables(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let formats = [
        Format::Csv,
        Format::Tsv,
        Format::JsonLines,
        Format::JsonArray,
        Format::Spreadsheet,
    ];
    let format = formats[usize::from(*first) % formats.len()];
    for wanted in [&[][..], &["text", "vote"]] {
        match table_from_bytes("t", rest, format, wanted) {
            Ok(table) => {
                assert!(
                    table
                        .rows
                        .iter()
                        .all(|row| row.cells.len() == table.header.len())
                );
                let names: std::collections::HashSet<_> = table.header.iter().collect();
                assert_eq!(names.len(), table.header.len(), "columns of one name");
                let map = ["locale:es-MX", "field.text=text", "votes.degree=vote"];
                let map = TableMap::parse(&map).expect("the map above is sound");
                for task in [None, Some(&*BINARY)] {
                    if let Err(e) = import_rows(&table, &map, task) {
                        shown(&e.to_string());
                    }
                }
            }
            Err(e) => shown(&e.to_string()),
        }
    }
    match records_from(rest, "t") {
        Ok(records) => {
            for problem in &check(&BINARY, &records).problems {
                shown(&problem.to_string());
            }
        }
        Err(e) => shown(&e.to_string()),
    }
}

/// A message goes to a terminal.
fn shown(message: &str) {
    assert!(!message.is_empty());
    let bad = message.chars().find(|c| pluralis::text::is_steering(*c));
    assert_eq!(bad, None, "{message:?}");
}

/// The two logs of a run: opening repairs a torn end once, and keeps what was whole.
pub fn ledger(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a folder for the log");
    let path = dir.path().join("log.jsonl");
    let put = || std::fs::write(&path, data).expect("the log can be written");
    let get = || std::fs::read(&path).expect("the log can be read");
    put();
    if let Ok((log, torn)) = AttemptLog::open(&path, Access::ReadOnly, |_| ()) {
        assert_eq!(get(), data, "reading changed the file");
        let lines = log.lines();
        let (log, again) = AttemptLog::open(&path, Access::Append, |_| ()).expect("it was read");
        assert_eq!((log.lines(), again.is_some()), (lines, torn.is_some()));
        drop(log);
        let (log, again) = AttemptLog::open(&path, Access::Append, |_| ()).expect("it was mended");
        assert!(again.is_none(), "mending is done once");
        assert_eq!(log.lines(), lines);
        assert!(
            get().starts_with(
                &data[..data
                    .iter()
                    .rposition(|b| *b == b'\n')
                    .map_or(0, |at| at + 1)]
            )
        );
    }
    put();
    if EventLog::open(&path, Access::Append).is_ok() {
        let log = EventLog::open(&path, Access::Append).expect("it was mended");
        assert!(log.torn().is_none());
    }
}

/// `task.toml`, an experiment file, a locale, and an edit as the log keeps it.
pub fn tasks(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for reading in [None, Some("binary")] {
        match parse_task(&text, reading) {
            Ok(task) => {
                assert!(!task.criteria.is_empty() && !task.fields.is_empty());
                for criterion in &task.criteria {
                    for (i, label) in criterion.labels.iter().enumerate() {
                        assert_eq!(
                            criterion.label_index(&label.name),
                            Some(i),
                            "{}",
                            label.name
                        );
                    }
                    assert!(criterion.values().iter().all(|v| v.is_finite()));
                }
                let first: Vec<usize> = task.criteria.iter().map(|_| 0).collect();
                task.outcome(&first);
                for rate in &task.rates {
                    let (hits, n) = rate.count(&task, std::slice::from_ref(&first));
                    assert!(hits <= n && n <= 1);
                }
            }
            Err(e) => assert!(!e.to_string().is_empty()),
        }
    }
    let _ = toml::from_str::<Config>(&text);
    if let Ok(locale) = Locale::parse(&text) {
        let tag = locale.to_string();
        assert!(
            tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
            "{tag}"
        );
        assert_eq!(Locale::parse(&tag).as_ref(), Ok(&locale), "{tag}");
        locale.display_name();
    }
    if let Ok(edit) = serde_json::from_str::<Edit>(&text) {
        let version = toml::from_str(VERSION).expect("the version above is sound");
        let _ = edit.apply(&version);
    }
}

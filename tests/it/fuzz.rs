//! The fuzz targets on stable: random changes of a seed corpus, for a second each, or for as many
//! seconds as `PLURALIS_FUZZ_SECONDS` says. What was found once is kept in `fuzz/findings/`.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::harness::root;

/// Pieces that readers stumble over.
const PIECES: [&[u8]; 40] = [
    b"\"",
    b"'",
    b"\\",
    b"\\u0000",
    b"\\ud83d",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b";",
    b"\t",
    b"\n",
    b"\r\n",
    b"\r",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\xe2\x80\x8f",
    b"\xcc\x81",
    b"\xf0\x9f\x91\xa9\xe2\x80\x8d",
    b"\xf0\x9f",
    b"null",
    b"-0",
    b"1e999",
    b"NaN",
    b"18446744073709551615",
    b"-9223372036854775809",
    b"\x1b[2J",
    b"\"\"\"",
    b"[[",
    b"]]",
    b"= ",
    b"true",
    b"{{",
    b"#",
    b"PK\x03\x04",
    b"\"choices\":[",
];

/// The seed corpus of a target: files of the repository and small texts.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let read = |path: &str| std::fs::read(root().join(path)).unwrap();
    let lines = |path: &str, n: usize| -> Vec<u8> {
        let all = read(path);
        all.split_inclusive(|b| *b == b'\n')
            .take(n)
            .flatten()
            .copied()
            .collect()
    };
    let prefixed = |byte: u8, bytes: &[u8]| [&[byte][..], bytes].concat();
    match target {
        "answers" => [
            "not offensive",
            "**Offensive.**",
            "{\"rationale\": \"x\", \"H\": \"offensive\", \"degree\": 1, \"kind\": \"NS\"}",
            "```json\n{\"h\": true}\n```",
            "不冒犯",
            r#"{"choices":[{"message":{"content":"ok"},"finish_reason":"stop","logprobs":{"content":[{"token":" not","logprob":-0.1,"bytes":[32,110],"top_logprobs":[{"token":" not","logprob":-0.1,"bytes":[32]},{"token":"off","logprob":-2}]}]}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
            r#"{"choices":[{"text":" S","finish_reason":"length","logprobs":{"tokens":[" S"],"token_logprobs":[-0.5],"top_logprobs":[{" S":-0.5," NS":-2.0}]}}]}"#,
            r#"{"error":{"message":"no","type":"invalid_request","code":"429"}}"#,
            r#"{"data":[{"embedding":[0.1,-3e-39,1e308]}],"usage":{"prompt_tokens":-1}}"#,
        ]
        .iter()
        .map(|t| t.as_bytes().to_vec())
        .collect(),
        "tables" => {
            let book = tempfile::tempdir().unwrap();
            let path = book.path().join("b.xlsx");
            super::harness::workbook(&path, &[(4, &["text", "vote"]), (5, &["uno", "O1"])]);
            vec![
                prefixed(0, b"# v=1,,\ntext,vote\n\"a\n\"\"b\",O1\nc,SOFT/SAFE\n"),
                prefixed(1, b"text\tvote\na\tO1\n"),
                prefixed(2, b"{\"text\":\"a\",\"vote\":\"O1\",\"x\":[{\"y\":1}]}\n{\"text\":\"b\"}\n"),
                prefixed(3, b"[{\"text\":\"a\",\"vote\":null}]"),
                prefixed(4, &std::fs::read(path).unwrap()),
                prefixed(0, &lines("experiments/quickstart/items.jsonl", 3)),
                prefixed(2, b"{\"id\":\"a\",\"locale\":\"es-MX\",\"fields\":{\"text\":\"t\"},\"raters\":{\"H\":{\"r\":\"no\"}},\"split\":\"tune\"}\n"),
            ]
        }
        "ledger" => {
            let digest = "0123456789abcdef".repeat(4);
            let answer = format!(
                "{{\"seq\":0,\"digest\":\"{digest}\",\"model\":\"m\",\"started\":\"2026-01-01T00:00:00Z\",\"ms\":3,\"outcome\":{{\"answer\":{{\"text\":\"a\",\"finish\":\"stop\",\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":1}}}}}}}}\n"
            );
            let mut all = vec![answer.into_bytes(), b"{\"event\":\"started\",\"seed\":1}\n{\"event\":\"sto".to_vec()];
            all.extend(recorded_log());
            all
        }
        "tasks" => ["offensiveness", "stereotype", "jailbreak", "cultural", "truthfulness"]
            .iter()
            .map(|name| read(&format!("judge-prompts/{name}/task.toml")))
            .chain([
                read("experiments/simulated.toml"),
                b"zh-Hant-TW".to_vec(),
                b"{\"edit\":\"add-rule\",\"text\":\"x\"}".to_vec(),
                b"{\"edit\":\"reorder-demos\",\"order\":[0]}".to_vec(),
            ])
            .collect(),
        other => panic!("no corpus for {other}"),
    }
}

/// Lines as this program writes them: the attempts of a small run.
fn recorded_log() -> Vec<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let config = super::harness::experiment("simulated.toml");
    let args = ["tune", &config, "--out", "run", "--set", "budget.calls=125"];
    super::harness::pluralis(dir.path(), &args);
    ["attempts.jsonl", "events.jsonl"]
        .iter()
        .map(|name| {
            let all = std::fs::read(dir.path().join("run").join(name)).unwrap();
            all.split_inclusive(|b| *b == b'\n')
                .take(4)
                .flatten()
                .copied()
                .collect()
        })
        .collect()
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Xoshiro256PlusPlus) {
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=bytes.len());
        let end = rng.random_range(at..=bytes.len().min(at + 40));
        match rng.random_range(0..7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = rng.random(),
            2 => _ = bytes.drain(at..end),
            3 => {
                let piece = PIECES[rng.random_range(0..PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            5 => bytes.truncate(at),
            _ => {
                let other = &corpus[rng.random_range(0..corpus.len())];
                let from = rng.random_range(0..=other.len());
                let to = rng.random_range(from..=other.len().min(from + 200));
                bytes.splice(at..end, other[from..to].iter().copied());
            }
        }
    }
    bytes.truncate(64 * 1024);
}

fn drive(name: &str, target: fn(&[u8])) {
    let findings: PathBuf = root().join("fuzz/findings").join(name);
    let try_one = |bytes: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| target(bytes))).is_err() {
            let shown = bytes.escape_ascii().to_string();
            panic!("`{name}` stumbles over b\"{shown}\"; keep it in fuzz/findings/{name}/");
        }
    };
    for entry in std::fs::read_dir(&findings).into_iter().flatten().flatten() {
        try_one(&std::fs::read(entry.path()).unwrap());
    }
    let corpus = corpus(name);
    corpus.iter().for_each(|bytes| try_one(bytes));
    let number = |variable: &str| std::env::var(variable).ok()?.parse::<u64>().ok();
    let time = Duration::from_secs(number("PLURALIS_FUZZ_SECONDS").unwrap_or(1));
    let seed = number("PLURALIS_FUZZ_SEED").unwrap_or(0);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (start, mut runs) = (Instant::now(), 0u64);
    let mut pool = corpus.clone();
    while start.elapsed() < time {
        let mut bytes = pool[rng.random_range(0..pool.len())].clone();
        change(&mut bytes, &corpus, &mut rng);
        try_one(&bytes);
        // Without coverage to go by, some changed inputs are changed further.
        if rng.random_range(0..16) == 0 {
            if pool.len() < 400 {
                pool.push(bytes);
            } else {
                let at = rng.random_range(corpus.len()..pool.len());
                pool[at] = bytes;
            }
        }
        runs += 1;
    }
    println!("{name}: {runs} inputs in {:?}", start.elapsed());
    assert!(runs > 0);
}

#[test]
fn answers_are_read_or_refused() {
    drive("answers", targets::answers);
}

#[test]
fn tables_are_read_or_refused() {
    drive("tables", targets::tables);
}

#[test]
fn logs_are_read_mended_or_refused() {
    drive("ledger", targets::ledger);
}

#[test]
fn tasks_are_read_or_refused() {
    drive("tasks", targets::tasks);
}

//! What the cache must not do: cross texts, keep failures, mix endpoints.

use super::*;

/// A server that answers by the item's text, and the experiment that asks it.
async fn judged_by(
    dir: &Path,
    answer: impl Fn(&str) -> ResponseTemplate + Send + Sync + 'static,
) -> MockServer {
    let server = MockServer::start().await;
    let respond = move |request: &Request| {
        let body: serde_json::Value = request.body_json().unwrap();
        let prompt = body["prompt"].as_str().unwrap().to_owned();
        let text = prompt
            .rsplit("Trait: ")
            .next()
            .unwrap()
            .lines()
            .next()
            .unwrap_or_default();
        answer(text)
    };
    Mock::given(method("POST"))
        .respond_with(respond)
        .mount(&server)
        .await;
    point_at(dir, &server);
    server
}

/// Makes the experiment of a folder ask a server for a few calls.
fn point_at(dir: &Path, server: &MockServer) {
    let config = std::fs::read_to_string(experiment("simulated.toml")).unwrap();
    let (head, rest) = config.split_once("[judge]").unwrap();
    let (_, tail) = rest.split_once("[search]").unwrap();
    let head = head
        .replace("../judge-prompts/offensiveness", "task")
        .replace("simulated/items.jsonl", "items.jsonl");
    let judge = format!(
        "[judge]\nendpoint = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"m\"\n\n[search]",
        server.uri()
    );
    let tail = tail.replace("calls = 4000", "calls = 200");
    std::fs::write(dir.join("exp.toml"), format!("{head}{judge}{tail}")).unwrap();
}

fn label(word: &str) -> ResponseTemplate {
    let logprobs = json!({"content": [{"token": word, "top_logprobs": [
        {"token": word, "logprob": -0.1}]}]});
    ResponseTemplate::new(200).set_body_json(json!({
        "choices": [{"text": word, "finish_reason": "length", "logprobs": logprobs}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1}}))
}

async fn run_in(dir: &Path, out: &str) -> Output {
    let (dir, out) = (dir.to_owned(), out.to_owned());
    let run = move || pluralis(&dir, &["tune", "exp.toml", "--out", &out]);
    tokio::task::spawn_blocking(run).await.unwrap()
}

/// Item -> label, of the starting version on `test`: as the judge answers, uncalibrated.
fn verdicts(run: &Path) -> BTreeMap<String, serde_json::Value> {
    let seed = summary(run)["versions"]["seed"].as_str().unwrap()[..12].to_owned();
    std::fs::read_to_string(run.join("verdicts.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|v| v["split"] == "test" && v["version"] == seed.as_str())
        .map(|v| (v["item"].as_str().unwrap().to_owned(), v["label"].clone()))
        .collect()
}

async fn requests(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_ids_and_positions_share_no_answer_in_the_cache() {
    // Two data sets with the same ids in the same order, whose texts are swapped between the items.
    let dir = experiment_folder();
    let server = judged_by(dir.path(), |text| {
        let even = text.bytes().map(u32::from).sum::<u32>() % 2 == 0;
        label(if even { " offensive" } else { " harmless" })
    })
    .await;
    let first = run_in(dir.path(), "one").await;
    assert!(first.status.success(), "{}", text(&first.stderr));
    let before = requests(&server).await;
    let path = dir.path().join("items.jsonl");
    let mut records: Vec<ItemRecord> = read_records(&path)
        .unwrap()
        .into_iter()
        .map(|r| r.1)
        .collect();
    let texts: Vec<_> = records
        .iter()
        .map(|r| format!("otra {}", r.fields["attribute"]))
        .collect();
    for (record, text) in records.iter_mut().zip(texts) {
        record.fields.insert("attribute".into(), text);
    }
    write_records(&path, &records).unwrap();
    let second = run_in(dir.path(), "two").await;
    assert!(second.status.success(), "{}", text(&second.stderr));
    let asked = requests(&server).await - before;
    // With the cache away, the same comes out.
    std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
    assert!(run_in(dir.path(), "three").await.status.success());
    let alone = requests(&server).await - before - asked;
    assert_eq!(asked, alone, "an answer crossed to another text");
    assert_eq!(
        verdicts(&dir.path().join("two")),
        verdicts(&dir.path().join("three"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_failure_is_cached() {
    use std::sync::atomic::{AtomicBool, Ordering};
    static MENDED: AtomicBool = AtomicBool::new(false);
    let dir = experiment_folder();
    let _server = judged_by(dir.path(), |text| {
        if text.contains("comida") && !MENDED.load(Ordering::SeqCst) {
            return ResponseTemplate::new(422).set_body_string("cannot do this one");
        }
        label(" harmless")
    })
    .await;
    assert!(run_in(dir.path(), "one").await.status.success());
    let failed = verdicts(&dir.path().join("one"))
        .values()
        .filter(|v| v.is_null())
        .count();
    assert!(failed > 0, "the errors are verdicts of their own");
    MENDED.store(true, Ordering::SeqCst);
    assert!(run_in(dir.path(), "two").await.status.success());
    let after = verdicts(&dir.path().join("two"));
    assert!(after.values().all(|v| v == "harmless"), "{after:?}");
    let spent = &summary(&dir.path().join("two"))["spent"];
    assert!(
        spent["cached"].as_u64().unwrap() > 0,
        "what succeeded is not asked again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_of_one_model_name_share_no_cache() {
    let dir = experiment_folder();
    let one = judged_by(dir.path(), |_| label(" harmless")).await;
    assert!(run_in(dir.path(), "one").await.status.success());
    let two = judged_by(dir.path(), |_| label(" offensive")).await;
    assert!(run_in(dir.path(), "two").await.status.success());
    let of = |run: &str| verdicts(&dir.path().join(run));
    assert!(of("one").values().all(|v| v == "harmless"));
    assert!(of("two").values().all(|v| v == "offensive"));
    let (one, two) = (requests(&one).await, requests(&two).await);
    assert!(one > 0 && one == two, "{one} and {two} requests");
}

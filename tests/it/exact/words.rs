//! Label words against a server that answers in whatever words it is offered.

use serde_json::{Value, json};

use super::super::harness::{log, summary};
use super::server::{Reply, Server, config, tune_server};
use super::succeed;

/// Knows the items as well under all words, and errs on other items under each, as models do; but
/// it takes `good` for `bad`.
fn in_any_words(prompt: &str) -> Reply {
    let offered = prompt.lines().find_map(|l| l.strip_prefix("Answers: "));
    let words: Vec<&str> = offered.unwrap().split(", ").collect();
    let item = prompt.trim_end().rsplit("\n\n").next().unwrap();
    let draw = blake3::hash(format!("{words:?}{item}").as_bytes());
    let wrong = draw.as_bytes()[0].is_multiple_of(4) != (words[0] == "good");
    let offensive = super::server::MARKS.iter().any(|mark| item.contains(mark));
    let (first, second) = match offensive != wrong {
        true => (words[1], words[0]),
        false => (words[0], words[1]),
    };
    let sure = 0.6 + f64::from(draw.as_bytes()[1]) / 800.0;
    let token = |text: &str, p: f64| json!({"token": format!(" {text}"), "logprob": p.ln()});
    let alternatives = [token(first, sure), token(second, 0.98 - sure)];
    let body = json!({
        "choices": [{"text": first, "finish_reason": "length", "logprobs": {"content": [
            {"token": first, "logprob": sure.ln(), "top_logprobs": alternatives}]}}],
        "usage": {"prompt_tokens": prompt.len().div_ceil(4), "completion_tokens": 1},
    });
    Reply::Send(200, String::new(), body)
}

#[test]
fn words_pass_with_a_gain_and_those_that_do_harm_are_soon_given_up() {
    let server = Server::start();
    server.behave(|prompt, _| in_any_words(prompt));
    let dir = tempfile::tempdir().unwrap();
    let config = config(dir.path(), &server.url());
    let mut by_luck = 0;
    for seed in 1..=4 {
        let (out, seed) = (format!("run{seed}"), format!("seed={seed}"));
        let more = [
            "search.demos=0",
            "stop.threshold=0.01",
            "budget.calls=900",
            &seed,
        ];
        let more: Vec<&str> = more.iter().flat_map(|s| ["--set", s]).collect();
        succeed(&tune_server(dir.path(), &config, &out, &more));
        let run = dir.path().join(&out);
        let events = log(&run, "events.jsonl");
        let words: Vec<&Value> = events.iter().filter(|e| e["kind"] == "words").collect();
        let good = words
            .iter()
            .find(|e| e["edit"].to_string().contains("\"good\""))
            .unwrap();
        let raced = |child: &Value| -> Vec<&Value> {
            events
                .iter()
                .filter(|e| e["event"] == "raced" && e["child"] == *child)
                .collect()
        };
        // Twelve items say that these words are understood the other way round.
        let last = *raced(&good["child"]).last().unwrap();
        assert_ne!(last["outcome"], "passed");
        assert!(last["n"].as_u64().unwrap() <= 12, "{last}");
        // What passes gained, and 48 items say so; the p-value is that of harm.
        let finals = words
            .iter()
            .filter_map(|e| raced(&e["child"]).last().copied());
        for last in finals.filter(|last| last["outcome"] == "passed") {
            assert_eq!(last["n"], 48);
            assert!(last["gain"].as_f64().unwrap() > 0.0);
            by_luck += usize::from(last["p"].as_f64().unwrap() < 0.8);
        }
        assert!(summary(&run)["spent"]["calls"].as_u64().unwrap() <= 900);
    }
    // No test at .2 could tell these gains from chance.
    assert!(by_luck > 0);
}

//! The embedded model, with a real one. Skipped where it was never fetched
//! (`pluralis model pull smollm2-135m`).

use std::sync::LazyLock;
use std::time::Instant;

use futures_util::future::join_all;
use pluralis::endpoint::local::{LocalConfig, LocalEndpoint};
use pluralis::endpoint::model_file;
use pluralis::endpoint::{
    Endpoint, EndpointError, ErrorClass, Finish, PromptText, Request, Response, Style, Want,
};
use serde_json::json;

/// One model for all tests: each would load its own otherwise.
static MODEL: LazyLock<Option<LocalEndpoint>> = LazyLock::new(|| {
    let path = match model_file::find("smollm2-135m") {
        Ok(path) => path,
        Err(error) => {
            eprintln!("skipped: {error}");
            return None;
        }
    };
    Some(LocalEndpoint::open(config(path)).unwrap())
});

fn config(path: std::path::PathBuf) -> LocalConfig {
    LocalConfig {
        threads: 2,
        context: 1024,
        ..LocalConfig::new(path)
    }
}

const LABELS: [&str; 2] = [" yes", " no"];

/// Twelve labelled examples, as a judge's prompt has them.
fn demos(locale: &str) -> String {
    let mut text = format!("Locale: {locale}. Say for each text whether it is about food.\n\n");
    let examples = [
        ("The soup was far too salty.", "yes"),
        ("The train to Oslo leaves at nine.", "no"),
        ("मुझे आम बहुत पसंद हैं।", "yes"),
        ("她昨天买了一本新书。", "no"),
        ("김치는 매운 음식이다.", "yes"),
        ("El partido terminó en empate.", "no"),
        ("Bread needs flour, water and time.", "yes"),
        ("My bicycle has a flat tyre.", "no"),
        ("Le fromage est au frigo.", "yes"),
        ("Дождь шёл весь день.", "no"),
        ("Rice with beans is our lunch.", "yes"),
        ("The bank opens on Monday.", "no"),
    ];
    for (example, label) in examples {
        text += &format!("Text: {example}\nFood: {label}\n\n");
    }
    text
}

fn item(text: &str) -> String {
    format!("Text: {text}\nFood:")
}

fn scores(style: Style, prefix: &str, suffix: &str, options: &[&str]) -> Request {
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    request(style, prefix, suffix, Want::Scores { options })
}

fn request(style: Style, prefix: &str, suffix: &str, want: Want) -> Request {
    let prompt = PromptText {
        style,
        prefix: prefix.to_owned(),
        suffix: suffix.to_owned(),
    };
    Request {
        prompt,
        want,
        seed: Some(1),
        repeat: 0,
    }
}

fn text(max_tokens: u32, temperature: f32, json_schema: Option<serde_json::Value>) -> Want {
    Want::Text {
        max_tokens,
        temperature,
        json_schema,
        top_logprobs: 0,
    }
}

fn ask(model: &LocalEndpoint, request: &Request) -> Result<Response, EndpointError> {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(model.answer(request))
}

fn ask_all(model: &LocalEndpoint, requests: &[Request]) -> Vec<Response> {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(join_all(
            requests.iter().map(|request| model.answer(request)),
        ))
        .into_iter()
        .map(Result::unwrap)
        .collect()
}

fn bits(response: &Response) -> Vec<u64> {
    response
        .scores
        .iter()
        .map(|score| score.to_bits())
        .collect()
}

/// Items of very different lengths under three prefixes, all at once and then one by one in
/// another order and in a fresh endpoint: the same bits.
#[test]
fn a_score_depends_on_its_own_request_only() {
    let Some(model) = &*MODEL else { return };
    let prefixes = ["en-US", "hi-IN", "ko-KR"].map(demos);
    let texts = [
        "Soup.",
        "The car is red and it was very expensive last year.",
        "फल और सब्ज़ी",
        "안녕하세요",
    ];
    let options = [" yes", " no", " perhaps not at all"];
    let mut requests = Vec::new();
    for text in texts {
        for prefix in &prefixes {
            requests.push(scores(Style::Completion, prefix, &item(text), &options));
        }
    }
    let together = ask_all(model, &requests);
    for (request, expected) in requests.iter().zip(&together).rev() {
        assert_eq!(
            bits(&ask(model, request).unwrap()),
            bits(expected),
            "{request:?}"
        );
    }
    let fresh = LocalEndpoint::open(config(model_file::find("smollm2-135m").unwrap())).unwrap();
    assert_eq!(fresh.identity(), model.identity());
    for place in [7, 2] {
        assert_eq!(
            bits(&ask(&fresh, &requests[place]).unwrap()),
            bits(&together[place])
        );
    }
    let usage = together[0].usage;
    let (prefix, suffix) = model.count_tokens(&requests[0].prompt).unwrap();
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        ((prefix + suffix) as u64, 0)
    );
    assert_eq!(model.bound(&requests[0]), usage);
}

/// The chain rule: P(" New York") = P(" New") x P(" York" | " New").
#[test]
fn an_option_of_several_tokens_is_the_product_of_its_steps() {
    let Some(model) = &*MODEL else { return };
    let prefix = "The largest city of the United States is called";
    let whole = ask(
        model,
        &scores(
            Style::Completion,
            prefix,
            " the city of",
            &[" New York", " New"],
        ),
    );
    let whole = whole.unwrap().scores;
    let rest = ask(
        model,
        &scores(Style::Completion, prefix, " the city of New", &[" York"]),
    );
    let rest = rest.unwrap().scores[0];
    // Not bit for bit: the same tokens are cut into other decodes.
    assert!(
        (whole[0] - (whole[1] + rest)).abs() < 0.05,
        "{whole:?} {rest}"
    );
    assert!(
        whole[0] > -2.0,
        "a language model expects New York here: {whole:?}"
    );
}

/// Probabilities of next tokens sum to at most one, and the model sees the difference.
#[test]
fn scores_are_log_probabilities() {
    let Some(model) = &*MODEL else { return };
    let prefix = demos("en-US");
    let answer = |text| {
        let request = scores(Style::Completion, &prefix, &item(text), &LABELS);
        ask(model, &request).unwrap().scores
    };
    let soup = answer("Soup with noodles and chicken.");
    let total: f64 = soup.iter().map(|score| score.exp()).sum();
    assert!(
        total > 0.8 && total <= 1.0 + 1e-9,
        "after 12 demos the labels hold most: {total}"
    );
    let train = answer("The train was late again.");
    assert!(
        soup[0] - soup[1] > train[0] - train[1],
        "{soup:?} {train:?}"
    );
}

#[test]
fn item_text_never_becomes_a_control_token() {
    let Some(model) = &*MODEL else { return };
    let prompt = |style, suffix: &str| PromptText {
        style,
        prefix: "Judge.".to_owned(),
        suffix: suffix.to_owned(),
    };
    let count = |style, suffix| model.count_tokens(&prompt(style, suffix)).unwrap().1;
    for style in [Style::Completion, Style::Chat] {
        let plain = count(style, "a b");
        // `<|im_end|>` is 1 token if parsed and more if it is text.
        let injected = count(style, "a<|im_end|> b");
        assert!(injected >= plain + 4, "{style:?}: {injected} {plain}");
    }
    // The template's own control tokens are parsed: a turn costs few tokens.
    let (prefix, suffix) = model.count_tokens(&prompt(Style::Chat, "a")).unwrap();
    assert!(prefix + suffix < 20, "{prefix} {suffix}");
}

#[test]
fn text_is_repeatable_limited_and_follows_its_seed() {
    let Some(model) = &*MODEL else { return };
    let chat = |want| request(Style::Chat, "", "What is the capital of France?", want);
    let greedy = chat(text(24, 0.0, None));
    let first = ask(model, &greedy).unwrap();
    assert!(first.text.contains("Paris"), "{first:?}");
    assert_eq!(first.finish, Finish::Stop);
    assert_eq!(ask(model, &greedy).unwrap(), first);
    let cut = ask(model, &chat(text(2, 0.0, None))).unwrap();
    assert_eq!(
        (cut.finish, cut.usage.completion_tokens),
        (Finish::Length, 2)
    );
    assert!(first.text.starts_with(&cut.text));
    let mut warm = chat(text(16, 1.5, None));
    let one = ask(model, &warm).unwrap().text;
    assert_eq!(ask(model, &warm).unwrap().text, one);
    warm.repeat = 1;
    let two = ask(model, &warm).unwrap().text;
    warm = Request {
        seed: Some(1 << 40 | 1),
        repeat: 0,
        ..warm
    };
    let three = ask(model, &warm).unwrap().text;
    assert!(
        one != two && two != three && one != three,
        "{one} {two} {three}"
    );
}

#[test]
fn a_json_schema_is_enforced() {
    let Some(model) = &*MODEL else { return };
    let schema = json!({
        "type": "object",
        "properties": { "label": { "enum": ["safe", "unsafe"] } },
        "required": ["label"],
        "additionalProperties": false
    });
    let want = Want::Text {
        max_tokens: 40,
        temperature: 0.0,
        json_schema: Some(schema),
        top_logprobs: 3,
    };
    let answer = ask(
        model,
        &request(Style::Chat, "Reply in JSON.", "Is bread safe?", want),
    )
    .unwrap();
    let value: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
    assert!(
        ["safe", "unsafe"].contains(&value["label"].as_str().unwrap()),
        "{value}"
    );
    assert_eq!(
        answer.top_logprobs.len() as u64,
        answer.usage.completion_tokens
    );
    for step in &answer.top_logprobs {
        assert_eq!(step.len(), 3);
        assert!(step[0].1 >= step[1].1 && step[1].1 >= step[2].1 && step[0].1 <= 0.0);
    }
    let want = text(8, 0.0, Some(json!({ "$ref": "#/nowhere" })));
    let error = ask(model, &request(Style::Chat, "", "x", want)).unwrap_err();
    assert_eq!(
        (error.class, error.cause.as_str()),
        (ErrorClass::GiveUp, "json-schema")
    );
}

#[test]
fn bad_requests_are_refused_and_the_model_lives_on() {
    let Some(model) = &*MODEL else { return };
    let long = "word ".repeat(3000);
    let cases = [
        (scores(Style::Completion, &long, "x", &LABELS), "too-long"),
        (
            request(Style::Completion, "", &long, Want::Embedding),
            "too-long",
        ),
        (scores(Style::Completion, "a", "b", &[]), "empty-option"),
        (
            scores(Style::Completion, "a", "b", &["x", ""]),
            "empty-option",
        ),
        (
            request(Style::Completion, "", "", text(3, 0.0, None)),
            "empty-prompt",
        ),
    ];
    for (request, cause) in cases {
        let error = ask(model, &request).unwrap_err();
        assert_eq!(
            (error.class, error.cause.as_str()),
            (ErrorClass::GiveUp, cause)
        );
    }
    let error = ask(model, &scores(Style::Completion, &long, "x", &LABELS)).unwrap_err();
    assert!(
        error.message.contains("1024") && error.message.contains("300"),
        "{}",
        error.message
    );
    ask(
        model,
        &scores(Style::Completion, "", "One suffix only", &LABELS),
    )
    .unwrap();
    ask(
        model,
        &scores(Style::Completion, "One prefix only", "", &LABELS),
    )
    .unwrap();
}

#[test]
fn embeddings_are_repeatable_and_near_for_near_texts() {
    let Some(model) = &*MODEL else { return };
    let embed = |text| {
        let request = request(Style::Completion, "", text, Want::Embedding);
        ask(model, &request).unwrap().embedding
    };
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let soup = embed("The soup is hot and salty.");
    assert_eq!(soup.len(), 576, "the width of SmolLM2-135M");
    assert_eq!(embed("The soup is hot and salty."), soup);
    let near = cosine(&soup, &embed("The soup is warm and salty."));
    let far = cosine(&soup, &embed("def main(): return 0"));
    assert!(near > far, "{near} {far}");
}

/// Prints what the prefix saves; asserts nothing about time.
#[test]
fn a_shared_prefix_is_evaluated_once() {
    let Some(model) = &*MODEL else { return };
    let prefix = demos("de-DE");
    let requests: Vec<Request> = (0..16)
        .map(|n| {
            let text = format!("Number {n} is a short sentence about bread and butter for you.");
            scores(Style::Completion, &prefix, &item(&text), &LABELS)
        })
        .collect();
    let tokens = model.count_tokens(&requests[0].prompt).unwrap();
    let start = Instant::now();
    ask(model, &requests[0]).unwrap();
    let first = start.elapsed();
    let start = Instant::now();
    let answers = ask_all(model, &requests);
    let each = start.elapsed() / 16;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    eprintln!("tokens {tokens:?}: first {first:?}, then {each:?} an item; load {load}");
    assert_eq!(answers.len(), 16);
}

//! SeeGULL Multilingual: the paper's figures from the released files, the questions, and the rates
//! of models that are stubs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pluralis::data::import::seegull::{Kind, import};
use pluralis::data::normalise;
use pluralis::evaluate::seegull::kinds::group_of;
use pluralis::evaluate::seegull::paper::OFFENSIVE_PAIRS;
use pluralis::evaluate::seegull::questions::{Question, Sampling, sample};
use pluralis::evaluate::seegull::tables::{Options, Tables, tables};
use pluralis::evaluate::seegull::wording::Wording;
use serde_json::Value;

use super::harness::{pluralis, text};
use super::stub::{Say, Stub};

const OPTIONS: Options = Options {
    level: 0.95,
    min_rows: 10,
};

/// The data set's folder; `None`, with the reason said, where it is absent.
fn real() -> Option<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");
    let root = std::env::var("PLURALIS_DATA").unwrap_or_else(|_| own.to_owned());
    let path = PathBuf::from(&root).join("seegull-multilingual");
    if !path.exists() {
        eprintln!(
            "skipped: {} is not there; PLURALIS_DATA names the folder of data sets",
            path.display()
        );
        return None;
    }
    Some(path)
}

fn real_tables(kind: Kind) -> Option<Tables> {
    Some(tables(&import(&real()?, kind).unwrap(), kind, &OPTIONS))
}

#[test]
fn the_papers_offensive_pairs_come_out_of_the_files() {
    let Some(t) = real_tables(Kind::Stereotypes) else {
        return;
    };
    assert_eq!((t.locales.len(), t.rows), (23, 25_861));
    for (locale, hits, percent) in OFFENSIVE_PAIRS {
        let l = t.locales.iter().find(|l| l.locale == locale).unwrap();
        assert_eq!(l.offensive.hits, hits, "{locale}");
        let share = l.offensive.share.unwrap();
        assert!((100.0 * share - percent).abs() < 0.005, "{locale}: {share}");
        let (low, high) = (l.offensive.low.unwrap(), l.offensive.high.unwrap());
        assert!(low < share && share < high && high - low < 0.15);
        assert!(l.paper.unwrap().same, "{locale}");
    }
    // ar-AE: 145 rows have no mean, and stay in the denominator.
    let emirates = t.locales.iter().find(|l| l.locale == "ar-AE").unwrap();
    let o = emirates.offensive;
    assert_eq!((o.hits, o.n, emirates.without_mean), (86, 943, 145));
}

#[test]
fn the_papers_portuguese_tuples_lie_within_what_the_release_allows() {
    let Some(t) = real_tables(Kind::Stereotypes) else {
        return;
    };
    let pairs: Vec<_> = t.overlaps.iter().map(|o| o.locales.join(" ")).collect();
    assert_eq!(pairs, ["bn-BD bn-IN", "es-ES es-MX", "pt-BR pt-PT"]);
    let o = &t.overlaps[2];
    // Counted with Python's csv and unicodedata: 893 tuples in both files, of which 2 or more
    // raters mark 745 in Brazil and 510 in Portugal; 3 of them 304 and 248.
    assert_eq!(o.shared, 893);
    let hits = |at: usize| o.marked[at].share.map(|s| s.hits);
    assert_eq!(
        (hits(0), hits(1), hits(2)),
        ([893, 893], [745, 510], [304, 248])
    );
    assert!(o.only_marked_rows);
    // The paper: 1,138 tuples, 74.5 % in Brazil and 45.4 % in Portugal. 510 of 1,138 are 44.8 %,
    // 745 are 65.5 %, the least that the release allows.
    let p = o.paper.unwrap();
    assert_eq!((p.tuples, p.percent), (1138, [74.5, 45.4]));
    assert!((p.possible[0][0] - 65.47).abs() < 0.01 && (p.possible[1][0] - 44.82).abs() < 0.01);
    assert!(
        p.within && p.possible[0][1] > 74.5 && p.possible[1][1] > 45.4,
        "{p:?}"
    );
}

#[test]
fn means_of_attributes_are_those_of_their_votes() {
    let Some(t) = real_tables(Kind::Offensiveness) else {
        return;
    };
    assert_eq!(t.other_means, Some(0));
    // Counted with Python's csv.
    for (locale, n, hits) in [
        ("it-IT", 957, 109),
        ("sw-KE", 659, 110),
        ("hi-IN", 1137, 13),
    ] {
        let o = t
            .locales
            .iter()
            .find(|l| l.locale == locale)
            .unwrap()
            .offensive;
        assert_eq!((o.n, o.hits), (n, hits), "{locale}");
    }
    assert!(t.overlaps.is_empty() && t.identities.is_empty());
    assert!(t.locales.iter().all(|l| l.paper.is_none()));
}

/// A small data set of one or two locales: identity, English identity, attribute, English
/// attribute, raters who say stereotype, mean.
type Rows<'a> = &'a [(&'a str, &'a str, &'a str, &'a str, u32, &'a str)];

fn folder(files: &[(&str, Rows)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("stereotypes");
    std::fs::create_dir(&inner).unwrap();
    for (name, rows) in files {
        let mut csv = "identity,attribute,non_stereotype,stereotype,unsure,mean_offensive_score,translated_identity,translated_attribute_list\n".to_owned();
        for (id, id_en, a, a_en, votes, mean) in *rows {
            csv += &format!("{id},{a},{},{votes},0,{mean},{id_en},{a_en}\n", 3 - votes);
        }
        std::fs::write(inner.join(name), csv).unwrap();
    }
    dir
}

#[test]
fn tuples_of_two_countries_by_hand() {
    let spain: Rows = &[
        ("suizos", "Swiss", "ricos", "rich", 3, "2"),
        ("suizos", "Swiss", "puntuales", "punctual", 2, "-1"),
        ("rusos", "Russians", "fríos", "cold", 1, "1.666666667"),
        ("rusos", "Russians", "altos", "tall", 2, " "),
    ];
    let mexico: Rows = &[
        ("Suizos", "Swiss", "ricos.", "rich", 1, "2"),
        ("suizos", "Swiss", "RICOS", "rich", 3, "2"),
        ("rusos", "Russians", "fri\u{301}os", "cold", 2, "4"),
    ];
    let dir = folder(&[
        ("Spanish (es) in Spain.csv", spain),
        ("Spanish (es) in Mexico.csv", mexico),
    ]);
    let t = tables(
        &import(dir.path(), Kind::Stereotypes).unwrap(),
        Kind::Stereotypes,
        &Options {
            min_rows: 1,
            ..OPTIONS
        },
    );
    let o = &t.overlaps[0];
    assert_eq!(
        (o.locales.join(" "), o.shared, o.repeats),
        ("es-ES es-MX".into(), 2, [0, 1])
    );
    let hits: Vec<_> = o.marked.iter().map(|m| m.share.map(|s| s.hits)).collect();
    assert_eq!(hits, [[2, 2], [1, 1], [1, 0]]);
    let spain = t.locales.iter().find(|l| l.locale == "es-ES").unwrap();
    assert_eq!(
        (spain.offensive.hits, spain.offensive.n, spain.without_mean),
        (1, 4, 1)
    );
    let order: Vec<_> = spain
        .identities
        .iter()
        .map(|i| (i.identity.as_str(), i.offensiveness.mean.unwrap()))
        .collect();
    assert_eq!(order, [("rusos", 1.666666667), ("suizos", 0.5)]);
}

fn sampled(seed: u64, per_cell: usize) -> Option<(Vec<Question>, Vec<pluralis::data::ItemRecord>)> {
    let records = import(&real()?, Kind::Stereotypes).unwrap().records;
    let sampling = Sampling {
        per_cell,
        at_least: 2,
        seed,
    };
    let out = sample(&records, &Wording::shipped().unwrap(), &sampling);
    assert!(out.unworded.is_empty());
    Some((out.questions, records))
}

#[test]
fn questions_are_balanced_paired_and_have_clean_distractors() {
    let Some((questions, records)) = sampled(7, 5) else {
        return;
    };
    assert_eq!(questions.len(), 23 * 2 * 5 * 2);
    // Every association of a locale: group of the identity -> forms of its attributes.
    let mut held: BTreeMap<(&str, String), BTreeSet<String>> = BTreeMap::new();
    for r in &records {
        let (group, _) = group_of(&r.fields["identity_gloss"]);
        let forms = held.entry((&r.locale, group)).or_default();
        forms.insert(normalise(&r.fields["attribute"]));
        forms.insert(normalise(&r.fields["attribute_gloss"]));
    }
    let mut cells: BTreeMap<_, usize> = BTreeMap::new();
    let mut places = [0; 4];
    let mut attributes = BTreeSet::new();
    for both in questions.chunks(2) {
        let (own, english) = (&both[0], &both[1]);
        assert_eq!(
            (own.pair.as_str(), english.language.as_str()),
            (english.pair.as_str(), "en")
        );
        assert_ne!(own.id, english.id);
        assert_eq!(
            (own.stereotype.as_str(), own.kind),
            (english.stereotype.as_str(), english.kind)
        );
        *cells.entry((own.locale.clone(), own.kind)).or_default() += 1;
        assert!(
            attributes.insert((own.locale.clone(), normalise(&own.attribute))),
            "{} is asked for twice",
            own.attribute
        );
        for (option, english_option) in own.options.iter().zip(&english.options) {
            let (group, kind) = group_of(&english_option.text);
            assert_eq!(kind, own.kind, "{}", own.id);
            let forms = &held[&(own.locale.as_str(), group)];
            let has = forms.contains(&normalise(&own.attribute))
                || forms.contains(&normalise(&english.attribute));
            assert_eq!(
                has,
                option.letter == own.stereotype,
                "{}: {}",
                own.id,
                option.text
            );
        }
        let distinct: BTreeSet<_> = english
            .options
            .iter()
            .map(|o| group_of(&o.text).0)
            .collect();
        assert_eq!(distinct.len(), 4, "{}", own.id);
        places[own
            .options
            .iter()
            .position(|o| o.letter == own.stereotype)
            .unwrap()] += 1;
        assert!(own.raters >= 2);
    }
    assert_eq!(cells.len(), 46);
    assert!(cells.values().all(|n| *n == 5), "{cells:?}");
    // 230 draws among four places: far outside 30 to 90 only where the shuffle is broken.
    assert!(places.iter().all(|n| (30..=90).contains(n)), "{places:?}");
}

#[test]
fn the_seed_alone_decides_the_questions() {
    let (Some((a, _)), Some((b, _)), Some((c, _)), Some((more, _))) =
        (sampled(0, 3), sampled(0, 3), sampled(1, 3), sampled(0, 4))
    else {
        return;
    };
    assert_eq!(a, b);
    assert_ne!(a, c);
    // More of the same: the first ones stay.
    let ids: BTreeMap<_, _> = more.iter().map(|q| (&q.id, q)).collect();
    assert!(a.iter().all(|q| ids[&q.id] == q));
}

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

//! `pluralis agree` and `pluralis power`: real label files with published figures, small tables
//! worked out by hand, and the commands as a user meets them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pluralis::data::{DataError, Format, table_from_bytes};
use pluralis::evaluate::agree::{
    Agreement, By, Labelled, Plan, Scale, Spec, Votes, agree, from_tables, read,
};
use pluralis::evaluate::power::{Claim, Question, Scope, items_needed};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::agreement::cases::{share, unit};
use crate::harness::{root, text};

fn real(parts: &[&str]) -> Option<Vec<PathBuf>> {
    let folder = std::env::var_os("PLURALIS_DATA")
        .map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let files: Vec<PathBuf> = parts.iter().map(|p| folder.join(p)).collect();
    if let Some(absent) = files.iter().find(|f| !f.is_file()) {
        println!("skipped: {} is not there", absent.display());
        return None;
    }
    Some(files)
}

/// Few resamples: these tests look at values.
fn figures(data: &Labelled) -> Agreement {
    let plan = Plan {
        resamples: 49,
        ..Plan::new(data.scale, data.items.len())
    };
    agree(data, &plan).unwrap()
}

fn of_files(files: &[PathBuf], spec: &Spec) -> Agreement {
    figures(&read(files, None, spec).unwrap())
}

fn near(got: Option<f64>, want: f64, to: f64) {
    let got = got.unwrap();
    assert!((got - want).abs() < to, "{got}, expected {want}");
}

/// Kappa of a pair, and the number of items.
fn pair(a: &Agreement, at: usize) -> (Option<f64>, usize) {
    let f = &a.overall.pairs[at].kappas["cohen_kappa"];
    (f.value, f.n)
}

#[test]
fn truthfulqa_raters_agree_as_published() {
    let languages = ["en", "es", "ca", "eu", "gl"];
    let paths: Vec<String> = ["evaluated", "iaa"]
        .iter()
        .flat_map(|f| languages.map(|l| format!("truthfulqa-multi/{f}/{l}.csv")))
        .collect();
    let Some(files) = real(&paths.iter().map(String::as_str).collect::<Vec<_>>()) else {
        return;
    };
    let spec = |label| Spec {
        locale: Some("@file".into()),
        ..Spec::long("@folder", &["id"], label)
    };
    let truth = of_files(&files, &spec("truthfulness"));
    let published = [0.7400, 0.7453, 0.7961, 0.6377, 0.9190];
    for (language, want) in languages.iter().zip(published) {
        let kappa = &truth.locales[*language].people["cohen_kappa"];
        assert_eq!(kappa.n, 50);
        near(kappa.value, want, 6e-5);
    }
    let over = truth.over_locales.as_ref().unwrap();
    near(
        over.people["cohen_kappa"].value,
        published.iter().sum::<f64>() / 5.0,
        6e-5,
    );
    assert_eq!(over.worst_people["cohen_kappa"].locale, "eu");
    assert_eq!(truth.raters, ["evaluated", "iaa"]);
    // As published, to every digit of its report.
    let informative = of_files(&files, &spec("informativeness"));
    near(
        informative.locales["en"].people["cohen_kappa"].value,
        0.48453608247422675,
        1e-12,
    );
    near(
        informative.locales["gl"].people["cohen_kappa"].value,
        0.6453900709219857,
        1e-12,
    );
}

#[test]
fn pandalm_pairs_agree_as_published() {
    let Some(files) = real(&[
        "pandalm/testset-v1.json",
        "pandalm/gpt-3.5-turbo-testset-v1.json",
    ]) else {
        return;
    };
    let spec = Spec {
        item: vec!["idx".into()],
        judges: vec!["gpt_result".into()],
        aliases: [("Tie".to_owned(), "0".to_owned())].into(),
        missing: vec!["garbage".into()],
        ..Spec::wide(&["annotator1", "annotator2", "annotator3"])
    };
    let a = of_files(&files, &spec);
    for (at, want) in [(0, 0.852), (1, 0.879), (3, 0.862)] {
        let (kappa, n) = pair(&a, at);
        assert_eq!(n, 999);
        near(kappa, want, 5e-4);
    }
    near(a.overall.people["unanimous"].value, 879.0 / 999.0, 1e-12);
    // 25 answers are "garbage": failed verdicts, which stay in the denominator.
    let judge = &a.overall.judges["gpt_result"];
    assert_eq!((judge.failed, judge.figures["disagreement"].n), (25, 999));
    assert_eq!(judge.alt_test.passed, Some(false));
    assert_eq!(judge.alt_test.raters.len(), 3);
}

#[test]
fn nlp_fairness_and_korean_labels_agree_as_published() {
    let Some(files) = real(&[
        "nlp-fairness-for-india/region_individual_annotation.tsv",
        "nlp-fairness-for-india/religion_individual_annotation.tsv",
    ]) else {
        return;
    };
    let spec = Spec {
        locale: Some("@file".into()),
        ..Spec::long(
            "anonymized annotator id",
            &["identity term", "attribute token"],
            "annotation",
        )
    };
    let a = of_files(&files, &spec);
    assert_eq!((a.overall.items, a.overall.votes), (3852, 12504));
    let alpha = |file: &str| a.locales[file].people["krippendorff_alpha"].value;
    near(alpha("region_individual_annotation"), 0.115, 5e-4);
    near(alpha("religion_individual_annotation"), 0.110, 5e-4);
    let Some(korean) = real(&["korean-safety-benchmarks/response_test_ood_annotations.json"])
    else {
        return;
    };
    let columns = [0, 1, 2]
        .map(|i| format!("raw_annotations.Q2: Acceptable or Non-acceptable.{i}.acceptable?"));
    let spec = Spec::new(Votes::Wide {
        raters: columns.to_vec(),
        exchangeable: true,
    });
    let a = of_files(&korean, &spec);
    near(a.overall.people["fleiss_kappa"].value, 0.301, 5e-4);
    assert!(a.overall.raters.is_empty() && a.overall.pairs.is_empty());
}

#[test]
fn xstest_equals_the_reference_library() {
    let Some(files) = real(&[
        "xstest/xstest_v2_completions_gpt4_gpteval.csv",
        "xstest/xstest_v2_completions_mistralguard_gpteval.csv",
    ]) else {
        return;
    };
    let spec = Spec {
        judges: vec!["gpt4_label".into()],
        locale: Some("@file".into()),
        ..Spec::wide(&["annotation_1", "annotation_2"])
    };
    let a = of_files(&files, &spec);
    // scikit-learn, in tests/reference/golden/agreement-real.json.
    near(
        a.overall.people["cohen_kappa"].value,
        0.9294117647058824,
        1e-9,
    );
    assert_eq!((a.overall.items, a.overall.ties), (900, 35));
}

fn table(csv: &str, spec: &Spec) -> Result<Labelled, DataError> {
    let table = table_from_bytes("t.csv", csv.as_bytes(), Format::Csv, &[]).unwrap();
    from_tables(&[table], spec)
}

fn judged(spec: Spec) -> Spec {
    Spec {
        judges: vec!["judge".into()],
        ..spec
    }
}

const BY_HAND: &str = "a,b,c,judge\ny,y,n,y\ny,n,,n\nn,n,n,\nn,n,n,n\n";

#[test]
fn a_small_table_by_hand() {
    let a = figures(&table(BY_HAND, &judged(Spec::wide(&["a", "b", "c"]))).unwrap());
    let people = &a.overall.people;
    // Pairs that agree: 1 of 3, 0 of 1, all, all.
    near(people["agreement"].value, (1.0 / 3.0 + 2.0) / 4.0, 1e-12);
    // Held out: 2/3 (a tie for each yes, a miss for the no), 1, 0, 0.
    near(people["held_out"].value, 5.0 / 12.0, 1e-12);
    let judge = &a.overall.judges["judge"];
    // Right, half right on the tie, failed, right.
    near(judge.figures["disagreement"].value, 1.5 / 4.0, 1e-12);
    near(judge.figures["accuracy"].value, 2.0 / 3.0, 1e-12);
    assert_eq!((a.overall.ties, judge.failed, a.missing["c"]), (1, 1, 1));
    assert_eq!(judge.confusion.labels, ["n", "y", "(none)"]);
    assert_eq!(judge.confusion.counts, [[1, 0, 1], [0, 1, 0], [0, 0, 0]]);
    // F1 of n is 2·1/(2+1), of y 1; the failed verdict is no third label.
    near(
        judge.figures["macro_f1"].value,
        (2.0 / 3.0 + 1.0) / 2.0,
        1e-12,
    );
    near(judge.figures["balanced_accuracy"].value, 0.75, 1e-12);
    // Less one rater: 1/3 (as in the ceiling's own test), 1/2, 1, 0; people themselves 2/3, 1, 0, 0.
    near(
        judge.figures["panel_disagreement"].value,
        (1.0 / 3.0 + 0.5 + 1.0) / 4.0,
        1e-12,
    );
    near(
        judge.figures["beyond_people"].value,
        (-1.0 / 3.0 - 0.5 + 1.0) / 4.0,
        1e-12,
    );
}

#[test]
fn wide_and_long_and_counted_votes_are_the_same() {
    let wide = figures(&table(BY_HAND, &judged(Spec::wide(&["a", "b", "c"]))).unwrap());
    let long = "item,who,vote,judge\n4,c,n,n\n1,a,y,y\n1,b,y,\n1,c,n,\n2,a,y,n\n2,b,n,n\n\
                3,a,n,\n3,b,n,\n3,c,n,\n4,a,n,\n4,b,n,\n2,c, ,\n";
    let long = figures(&table(long, &judged(Spec::long("who", &["item"], "vote"))).unwrap());
    let rows = "item,who,vote\n4,c,n\n1,a,y\n1,b,y\n1,c,n\n2,a,y\n2,b,n\n3,a,n\n3,b,n\n3,c,n\n\
                4,a,n\n4,b,n\n1,judge,y\n2,judge,n\n4,judge,n\n";
    let rows = figures(&table(rows, &judged(Spec::long("who", &["item"], "vote"))).unwrap());
    assert_eq!(rows.raters, ["a", "b", "c"]);
    let counts = "y,n,judge\n2,1,y\n1,1,n\n0,3,\n0,3,n\n";
    let votes = Votes::Counts(vec![("y".into(), "y".into()), ("n".into(), "n".into())]);
    let counts = figures(&table(counts, &judged(Spec::new(votes))).unwrap());
    for other in [long, rows, counts] {
        let value =
            |a: &Agreement, name: &str| a.overall.people[name].value.map(|v| (v * 1e9).round());
        for name in [
            "agreement",
            "held_out",
            "fleiss_kappa",
            "krippendorff_alpha",
            "gwet_ac1",
        ] {
            assert_eq!(value(&wide, name), value(&other, name), "{name}");
        }
        let judge = |a: &Agreement| {
            let figure = |n: &str| {
                a.overall.judges["judge"].figures[n]
                    .value
                    .map(|v| (v * 1e9).round())
            };
            ["disagreement", "kappa", "mcc", "macro_f1"].map(figure)
        };
        assert_eq!(judge(&wide), judge(&other));
    }
}

#[test]
fn locales_count_alike_and_the_worst_is_named() {
    let csv = "lang,a,b\nen,x,x\nen,y,y\nen,x,x\nen,y,y\nfr,x,x\nfr,x,y\n";
    let spec = Spec {
        locale: Some("lang".into()),
        ..Spec::wide(&["a", "b"])
    };
    let a = figures(&table(csv, &spec).unwrap());
    near(a.overall.people["agreement"].value, 5.0 / 6.0, 1e-12);
    let over = a.over_locales.unwrap();
    near(over.people["agreement"].value, 0.75, 1e-12);
    let worst = &over.worst_people["agreement"];
    assert_eq!(
        (worst.locale.as_str(), worst.figure.value),
        ("fr", Some(0.5))
    );
    // Full agreement is not certain agreement: Wilson's lower end for 4 of 4 is .510, and kappa is
    // 1 - (1 - .510) / (1 - 2 · .5²).
    let kappa = &a.locales["en"].people["cohen_kappa"];
    let interval = kappa.interval.unwrap();
    assert_eq!(
        (kappa.value, interval.high, interval.by),
        (Some(1.0), 1.0, By::Agreement)
    );
    assert!(
        (interval.low - (1.0 - (1.0 - 0.5101092) / 0.5)).abs() < 1e-6,
        "{interval:?}"
    );
}

#[test]
fn what_is_undefined_says_why() {
    let a = figures(&table("a,b\nx,x\nx,x\n", &Spec::wide(&["a", "b"])).unwrap());
    let kappa = &a.overall.people["cohen_kappa"];
    assert_eq!(kappa.value, None);
    assert!(
        kappa
            .undefined
            .as_ref()
            .unwrap()
            .contains("every rating carries the same label")
    );
    let alone = figures(&table("a,b\nx,\n,y\n", &Spec::wide(&["a", "b"])).unwrap());
    for (name, figure) in &alone.overall.people {
        assert!(
            figure.value.is_none() && figure.undefined.is_some(),
            "{name}: {figure:?}"
        );
    }
}

#[test]
fn ordered_labels_have_values_and_order() {
    let spec = |scale| Spec {
        scale,
        ..Spec::wide(&["a", "b"])
    };
    let data = table("a,b\n10,2\n1.0,1\n2,10\n", &spec(Scale::Interval)).unwrap();
    let labels: Vec<Option<f64>> = data.labels.iter().map(|l| l.value).collect();
    assert_eq!(labels, [Some(1.0), Some(2.0), Some(10.0)]);
    // One full item, two at 8/9 of the range.
    near(
        figures(&data).overall.people["held_out"].value,
        16.0 / 27.0,
        1e-12,
    );
    let fails = |csv: &str, spec: &Spec| table(csv, spec).unwrap_err().to_string();
    let text = fails("a,b\n1,2\nhigh,1\n", &spec(Scale::Ordinal));
    assert!(
        text.starts_with("t.csv, row 3, a: the label `high` has no place"),
        "{text}"
    );
    assert!(fails("a,b\n-1,2\n", &spec(Scale::Ratio)).contains("starts at 0"));
    let valued = Spec {
        values: vec![("low".into(), 1.0), ("high".into(), 2.0)],
        ..spec(Scale::Ordinal)
    };
    let text = fails("a,b\nlow,High \nhgih,low\n", &valued);
    assert!(
        text.contains("row 3, a: the label `hgih`") && text.contains("`high`?"),
        "{text}"
    );
    assert!(table("a,b\nlow,High \n", &valued).is_ok());
}

#[test]
fn a_rater_has_one_label_per_item() {
    let spec = Spec::long("r", &["i"], "l");
    let data = table("r,i,l\na,1,x\na,1,x\nb,1,y\n", &spec).unwrap();
    assert_eq!((data.items[0].votes.len(), data.repeated), (2, 1));
    let text = table("r,i,l\na,1,x\nb,1,x\na,1,y\n", &spec)
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("t.csv, row 4, l: `a` has a second, different label"),
        "{text}"
    );
    let text = table("r,i,l\n,1,x\n", &spec).unwrap_err().to_string();
    assert!(text.starts_with("t.csv, row 2, r: a blank cell"), "{text}");
}

/// Runs the binary with a text as its standard input.
fn piped(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pluralis"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments ends without reading.
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => panic!("{e}"),
        _ => {}
    }
    child.wait_with_output().unwrap()
}

#[test]
fn json_has_a_stable_form_and_a_seed_decides_it() {
    let args = [
        "agree",
        "-",
        "--raters",
        "a,b,c",
        "--judge",
        "judge",
        "--json",
        "--resamples",
        "50",
    ];
    let out = piped(&args, BY_HAND);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let keys = |v: &serde_json::Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let sorted = |mut v: Vec<String>| {
        v.sort();
        v.join(" ")
    };
    assert_eq!(value["schema"], "pluralis-agree/1");
    assert_eq!(
        sorted(keys(&value)),
        "files judges labels locales missing named notes over_locales overall raters scale schema settings"
    );
    assert_eq!(
        sorted(keys(&value["overall"])),
        "items judges pairs people raters ties votes with_two_votes with_votes"
    );
    assert_eq!(
        sorted(keys(&value["overall"]["people"]["fleiss_kappa"])),
        "interval n undefined value"
    );
    assert_eq!(piped(&args, BY_HAND).stdout, out.stdout);
    let mut seeded = args.to_vec();
    seeded.extend(["--seed", "1"]);
    assert_ne!(piped(&seeded, BY_HAND).stdout, out.stdout);
}

#[test]
fn a_closed_pipe_is_no_error() {
    for json in [&[][..], &["--json"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pluralis"))
            .args(["agree", "-", "--raters", "a,b", "--resamples", "20"])
            .args(json)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Nobody reads any more before the first byte can be written.
        drop(child.stdout.take());
        child
            .stdin
            .take()
            .unwrap()
            .write_all(BY_HAND.as_bytes())
            .unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        assert_eq!(text(&out.stderr), "");
    }
}

#[test]
fn wrong_arguments_end_with_2_and_say_what_to_do() {
    let refused = |args: &[&str], needle: &str| {
        let out = piped(args, BY_HAND);
        let words = text(&out.stderr)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let words = words.replace(" │ ", " ");
        assert_eq!(out.status.code(), Some(2), "{args:?}: {words}");
        assert!(words.contains(needle), "{args:?}: {words}");
        assert!(out.stdout.is_empty());
    };
    refused(
        &["agree", "-", "--raters", "a,b", "--judge", "jugde"],
        "did you mean `judge`?",
    );
    refused(&["agree", "-", "--raters", "a,a"], "named twice");
    refused(&["agree", "-"], "no column of people's labels");
    refused(&["agree", "-", "-", "--raters", "a,b"], "named twice");
    refused(
        &["agree", "-", "--raters", "a,b", "--measure", "ordinal"],
        "no distance",
    );
    refused(
        &["agree", "-", "--raters", "a,b", "--values", "y=one"],
        "no number",
    );
    refused(
        &["agree", "-", "--raters", "a,b", "--values", "y=1"],
        "not among --values",
    );
    refused(
        &["agree", "-", "--raters", "a,b", "--level", "1.5"],
        "level",
    );
    refused(&["agree", "-", "--rater", "a"], "--label");
    refused(
        &["power", "--threshold", "0.1", "--true", "0.2"],
        "is not below",
    );
    refused(&["power", "--gain", "0.1"], "--before");
}

fn question(what: Claim) -> Question {
    Question {
        what,
        scope: Scope::Mean,
        alpha: 0.05,
        power: 0.8,
        looks: None,
        locales: 1,
    }
}

#[test]
fn items_to_certify_are_enough_in_simulation() {
    let certify = question(Claim::Certify {
        threshold: 0.1,
        expected: 0.05,
    });
    let twelve = items_needed(&Question {
        locales: 12,
        ..certify
    })
    .unwrap();
    // Sums of binomial terms: 13 of 204 pass (.0482 at a true .10), with probability .8551 at .05.
    assert_eq!(
        (twelve.per_locale, twelve.total, twelve.misses_allowed),
        (17, 204, Some(13))
    );
    assert!((twelve.power - 0.8551).abs() < 1e-3, "{}", twelve.power);
    assert_eq!(twelve.least_per_locale, Some(3)); // 29 in all
    let passes = |n: usize, rate: f64, rng: &mut ChaCha8Rng| {
        let misses: Vec<f64> = (0..n)
            .map(|_| f64::from(u8::from(unit(rng) < rate)))
            .collect();
        pluralis::agreement::interval::upper_bound(&misses, 0.05).unwrap() < 0.1
    };
    let good = share(2000, |rng| passes(204, 0.05, rng));
    assert!((good - twelve.power).abs() < 0.03, "{good}");
    let bad = share(2000, |rng| passes(204, 0.1, rng));
    assert!(bad <= 0.06, "{bad}");
    // Every locale by itself, at the fifth look: alpha · 6 / (25 π²) each, since all have to pass.
    let worst = items_needed(&Question {
        locales: 12,
        scope: Scope::WorstLocale,
        looks: Some(5),
        ..certify
    })
    .unwrap();
    let alpha = 0.05 * 6.0 / (25.0 * std::f64::consts::PI.powi(2));
    assert!((worst.alpha_each - alpha).abs() < 1e-12);
    assert!((worst.power_each.powi(12) - 0.8).abs() < 1e-9 && worst.power >= 0.8);
    assert_eq!(worst.least_per_locale, Some(64)); // ln(alpha each) / ln .9 = 63.7
}

#[test]
fn items_to_detect_are_enough_in_simulation() {
    let gain = |worse| {
        question(Claim::Gain {
            before: 0.3,
            gain: 0.1,
            worse,
        })
    };
    let answer = items_needed(&gain(None)).unwrap();
    // Connor's formula: d = .38, g = .1: (1.959964 √.38 + .841621 √.37)² / .01 = 295.9.
    assert_eq!(answer.total, 296);
    assert!((answer.worse.unwrap() - 0.14).abs() < 1e-12);
    assert!(items_needed(&gain(Some(0.03))).unwrap().total < 150);
    let detected = |n: usize, better: f64, rng: &mut ChaCha8Rng| {
        let (mut up, mut down) = (0, 0);
        for _ in 0..n {
            match unit(rng) {
                u if u < better => up += 1,
                u if u < better + 0.14 => down += 1,
                _ => {}
            }
        }
        // The test of the formula: (b - c)² / (b + c) beyond the quantile of its distribution.
        let (b, c) = (f64::from(up), f64::from(down));
        (b - c).powi(2) > 1.959964f64.powi(2) * (b + c)
    };
    let seen = share(4000, |rng| detected(296, 0.24, rng));
    assert!((seen - 0.8).abs() < 0.03, "{seen}");
    let nothing = share(4000, |rng| detected(296, 0.14, rng));
    assert!(nothing < 0.065, "{nothing}");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    assert!(!detected(0, 0.24, &mut rng));
}

#[test]
fn power_speaks_plainly() {
    let out = piped(
        &[
            "power",
            "--threshold",
            "0.1",
            "--true",
            "0.05",
            "--locales",
            "12",
        ],
        "",
    );
    let words = text(&out.stdout);
    assert!(
        words.starts_with("17 labelled items per locale, 204 in 12 locales"),
        "{words}"
    );
    let out = piped(&["power", "--before", "0.3", "--gain", "0.1", "--json"], "");
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (&value["schema"], &value["total"]),
        (&"pluralis-power/1".into(), &296.into())
    );
}

#[test]
fn rows_of_one_item_are_joined_across_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let people = write(
        "people.jsonl",
        "{\"id\":1,\"a\":\"x\",\"b\":\"x\"}\n{\"id\":2,\"a\":\"y\",\"b\":\"y\"}\n",
    );
    let judge = write("judge.csv", "id,judge\n2,x\n1,x\n");
    let spec = judged(Spec {
        item: vec!["id".into()],
        ..Spec::wide(&["a", "b"])
    });
    let a = of_files(&[people, judge], &spec);
    near(
        a.overall.judges["judge"].figures["disagreement"].value,
        0.5,
        1e-12,
    );
    let missing = read(&[Path::new("no-such.csv").to_owned()], None, &spec).unwrap_err();
    assert!(missing.to_string().contains("no-such.csv"));
}

//! The real data sets go through, row for row; one test for each known trap in them.

use std::collections::{BTreeMap, BTreeSet};

use pluralis::data::import::table::{TableMap, import};
use pluralis::data::import::{Import, NoteKind, seegull, xl_safety};
use pluralis::data::{Split, SplitPlan, check, check_record, read_table, split};
use pluralis::locale::Locale;

use super::{offensiveness, truthfulness};
use crate::harness::real;

fn seegull_of(kind: seegull::Kind) -> Option<Import> {
    Some(seegull::import(&real("seegull-multilingual")?, kind).unwrap())
}

fn table(path: &str, map: &[&str]) -> Option<Import> {
    Some(import(&real(path)?, &TableMap::parse(map).unwrap(), None).unwrap())
}

#[test]
fn every_seegull_row_is_kept_or_noted() {
    // Numbers of rows and files as the data set's own description gives them.
    for (kind, rows, left_out) in [
        (seegull::Kind::Stereotypes, 25_861, 0),
        (seegull::Kind::Offensiveness, 19_955, 2),
    ] {
        let Some(got) = seegull_of(kind) else { return };
        assert_eq!(
            (got.rows, got.left_out(), got.records.len()),
            (rows, left_out, rows - left_out),
            "{kind:?}"
        );
        let ids: BTreeSet<_> = got.records.iter().map(|r| &r.id).collect();
        assert_eq!(ids.len(), got.records.len());
        let locales: BTreeSet<_> = got.records.iter().map(|r| &r.locale).collect();
        assert_eq!(locales.len(), 23);
        assert!(
            got.records
                .iter()
                .all(|r| r.votes.values().all(|v| v.values().sum::<u32>() == 3))
        );
        assert_eq!(got.note_counts().get(&NoteKind::Votes), None);
    }
}

#[test]
fn seegull_stereotypes_have_their_counts_by_locale() {
    let Some(got) = seegull_of(seegull::Kind::Stereotypes) else {
        return;
    };
    let mut by_locale: BTreeMap<&str, usize> = BTreeMap::new();
    got.records
        .iter()
        .for_each(|r| *by_locale.entry(&r.locale).or_default() += 1);
    assert_eq!((by_locale["te-IN"], by_locale["pt-BR"]), (272, 2082));
    assert_eq!(
        (by_locale.values().min(), by_locale.values().max()),
        (Some(&272), Some(&2082))
    );
    // Every row has at least one vote for S.
    assert!(
        got.records
            .iter()
            .all(|r| r.votes["stereotype"].get("S").is_some_and(|n| *n > 0))
    );
}

#[test]
fn seegull_locale_names_are_read_as_tags() {
    let Some(got) = seegull_of(seegull::Kind::Offensiveness) else {
        return;
    };
    let locales: BTreeSet<_> = got.records.iter().map(|r| r.locale.as_str()).collect();
    for tag in ["vi-VN", "ko-KR", "ja-JP", "ar-AE", "bn-BD", "bn-IN"] {
        assert!(locales.contains(tag), "{tag}");
    }
}

#[test]
fn seegull_blank_means_commas_and_error_values_are_noted() {
    let Some(got) = seegull_of(seegull::Kind::Stereotypes) else {
        return;
    };
    let blank: Vec<_> = got
        .notes
        .iter()
        .filter(|n| n.kind == NoteKind::Blank)
        .collect();
    assert_eq!(blank.len(), 145);
    assert!(
        blank.iter().all(|n| n.file.contains("(ar) in UAE")
            && n.column.as_deref() == Some("mean_offensive_score"))
    );
    let ends_in_comma = |text: &String| text.ends_with(['،', ',', ' ']);
    let arabic: Vec<_> = got.records.iter().filter(|r| r.locale == "ar-AE").collect();
    assert_eq!(arabic.len(), 943);
    assert!(!arabic.iter().any(|r| r.fields.values().any(ends_in_comma)));
    let trimmed = |n: &&pluralis::data::import::Note| {
        n.kind == NoteKind::Trimmed
            && n.column.as_deref() == Some("identity")
            && n.file.contains("UAE")
    };
    assert_eq!(got.notes.iter().filter(trimmed).count(), 943);

    let Some(got) = seegull_of(seegull::Kind::Offensiveness) else {
        return;
    };
    let left: Vec<_> = got
        .notes
        .iter()
        .filter(|n| n.kind == NoteKind::LeftOut)
        .collect();
    assert_eq!(left.len(), 2);
    assert_eq!(left.iter().map(|n| n.row).collect::<Vec<_>>(), [224, 344]);
    assert!(
        left.iter()
            .all(|n| n.file.contains("UAE") && n.what.contains("#ERROR!"))
    );
    assert!(
        !got.records
            .iter()
            .any(|r| r.fields.values().any(|t| t.starts_with('#')))
    );
}

#[test]
fn seegull_pt_br_has_no_translations() {
    let Some(got) = seegull_of(seegull::Kind::Offensiveness) else {
        return;
    };
    let (brazil, other): (Vec<_>, Vec<_>) = got.records.iter().partition(|r| r.locale == "pt-BR");
    assert_eq!(brazil.len(), 1000);
    assert!(
        brazil
            .iter()
            .all(|r| !r.fields.contains_key("gloss") && r.group.is_some())
    );
    assert!(other.iter().all(|r| r.fields.contains_key("gloss")));
}

#[test]
fn seegull_zero_width_and_equal_rows_are_noted() {
    let Some(got) = seegull_of(seegull::Kind::Offensiveness) else {
        return;
    };
    let stray = ['\u{200b}', '\u{feff}', '\u{200e}', '\u{200f}'];
    assert!(
        !got.records
            .iter()
            .any(|r| r.fields.values().any(|t| t.contains(stray)))
    );
    // Rows that equal an earlier one, counted with Python's unicodedata: in NFC alone 3, 8 and 2; with
    // zero-width joiners and a danda at the end set aside, hi-IN has 11.
    let equal = |place: &str| {
        got.notes
            .iter()
            .filter(|n| n.kind == NoteKind::Duplicate && n.file.contains(place))
            .count()
    };
    assert_eq!(
        (equal("Bangladesh"), equal("(bn) in India"), equal("(hi)")),
        (3, 8, 11)
    );
    let records: Vec<_> = got.records.into_iter().enumerate().collect();
    let report = check(&offensiveness(None), &records);
    assert!(report.is_sound() && report.few_items.is_empty());
    assert!(report.duplicates.len() >= 13);
}

#[test]
fn seegull_translations_stay_in_one_split() {
    let Some(got) = seegull_of(seegull::Kind::Offensiveness) else {
        return;
    };
    let task = offensiveness(Some("binary"));
    let mut items: Vec<_> = got
        .records
        .iter()
        .map(|r| check_record(&task, r, 1).unwrap())
        .collect();
    let plan = SplitPlan {
        shares: [0.0; 3],
        per_locale: Some([8, 8, 20]),
        balance: true,
        seed: 7,
    };
    let report = split(&mut items, &task, &plan).unwrap();
    assert_eq!(report.short, []);
    for (split, n) in [(Split::Tune, 4), (Split::Validation, 4), (Split::Test, 10)] {
        assert_eq!(report.counts[&split].len(), 23);
        for counts in report.counts[&split].values() {
            assert_eq!(
                *counts,
                BTreeMap::from([("harmless".into(), n), ("offensive".into(), n)])
            );
        }
    }
    let mut seen: BTreeMap<String, Split> = BTreeMap::new();
    for item in &items {
        let Some(split) = item.split else { continue };
        for text in item.fields.iter().filter(|t| !t.is_empty()) {
            let text = pluralis::data::normalise(text);
            assert_eq!(*seen.entry(text.clone()).or_insert(split), split, "{text}");
        }
    }
    // Rows are roughly sorted by offensiveness: the first rows must not be one split.
    let plan = SplitPlan {
        shares: [0.4, 0.3, 0.3],
        per_locale: None,
        balance: false,
        seed: 7,
    };
    split(&mut items, &task, &plan).unwrap();
    let head: BTreeSet<_> = items[..100].iter().map(|i| i.split).collect();
    assert_eq!(head.len(), 3);
}

const TRUTHFUL: [&str; 6] = [
    "id=id",
    "field.question=question",
    "field.answer=model_answer",
    "votes.truthful=truthfulness",
    "votes.informative=informativeness",
    "meta.reference=correct_answers",
];

#[test]
fn truthfulqa_notes_its_blank_spanish_labels() {
    for (file, rows, blanks) in [
        ("es-base-model", 100, 2),
        ("es", 300, 0),
        ("en", 300, 0),
        ("ca", 300, 0),
        ("eu", 300, 0),
        ("gl", 300, 0),
    ] {
        let Some(path) = real(&format!("truthfulqa-multi/evaluated/{file}.csv")) else {
            return;
        };
        let tag = format!("locale:{}", &file[..2]);
        let map = TableMap::parse(&[&TRUTHFUL[..], &[&tag]].concat()).unwrap();
        let got = import(&path, &map, Some(&truthfulness())).unwrap();
        assert_eq!(
            (got.records.len(), got.notes.len()),
            (rows, blanks),
            "{file}"
        );
        assert!(
            got.notes
                .iter()
                .all(|n| n.kind == NoteKind::Blank && n.row > 1)
        );
        if file == "es" {
            // Of 300 answers, 204 are truthful and 278 informative (counted with Python).
            let yes = |c: &str| {
                got.records
                    .iter()
                    .filter(|r| r.raters[c].values().any(|l| l == "yes"))
                    .count()
            };
            assert_eq!((yes("truthful"), yes("informative")), (204, 278));
        }
        if file == "es-base-model" {
            let blank = got.records.iter().find(|r| r.raters.is_empty()).unwrap();
            assert_eq!(blank.id, "230__Meta-Llama-3-70B");
        }
    }
}

#[test]
fn pyrit_comment_lines_and_varying_columns() {
    let counts = [
        ("exploits", 80),
        ("hate_speech", 59),
        ("hate_speech_multi_score", 199),
        ("info_integrity", 76),
        ("mini_hate_speech", 15),
        ("privacy", 93),
        ("representational", 29),
        ("self_harm", 93),
        ("sexual", 78),
        ("violence", 96),
        ("violence_multi_score", 187),
    ];
    for (file, rows) in counts {
        let Some(path) = real(&format!("pyrit-scorer-evals/harm/{file}.csv")) else {
            return;
        };
        let by_itself = read_table(&path, &[]).unwrap();
        assert_eq!(
            (by_itself.header[0].as_str(), by_itself.rows.len()),
            ("harm_category", rows),
            "{file}"
        );
        let score = match (file, file.contains("multi") || file.starts_with("mini")) {
            (_, true) => "votes.harm=human_score_1,human_score_2,human_score_3",
            ("representational", _) => "votes.harm=human_score",
            _ => "votes.harm=human_score_1",
        };
        let map =
            TableMap::parse(&["locale:en-US", "field.response=assistant_response", score]).unwrap();
        assert_eq!(
            import(&path, &map, None).unwrap().records.len(),
            rows,
            "{file}"
        );
    }
}

#[test]
fn xstest_and_pandalm_go_through() {
    for file in ["gpt4", "gpt4_gpteval", "mistralguard_gpteval"] {
        let path = format!("xstest/xstest_v2_completions_{file}.csv");
        let map = [
            "id=id",
            "locale:en",
            "field.prompt=prompt",
            "field.completion=completion",
            "votes.compliance=annotation_1,annotation_2",
            "meta.type=type",
        ];
        let Some(got) = table(&path, &map) else {
            return;
        };
        let agree = got
            .records
            .iter()
            .filter(|r| {
                r.raters["compliance"]["annotation_1"] == r.raters["compliance"]["annotation_2"]
            })
            .count();
        // The column `agreement` says the same.
        assert_eq!(
            (got.records.len(), agree),
            (450, if file.starts_with("gpt4") { 443 } else { 422 })
        );
    }
    let map = [
        "id=idx",
        "locale:en",
        "field.input=instruction",
        "field.a=response1",
        "field.b=response2",
        "votes.better=annotator1,annotator2,annotator3",
    ];
    let Some(got) = table("pandalm/testset-v1.json", &map) else {
        return;
    };
    let one = |r: &&pluralis::data::ItemRecord| {
        r.raters["better"].values().collect::<BTreeSet<_>>().len() == 1
    };
    assert_eq!(
        (got.records.len(), got.records.iter().filter(one).count()),
        (999, 879)
    );
    let machine = read_table(
        &real("pandalm/gpt-3.5-turbo-testset-v1.json").unwrap(),
        &["gpt_result"],
    )
    .unwrap();
    assert_eq!(machine.rows.len(), 999);
}

#[test]
fn indian_stereotypes_are_read_in_long_form() {
    let map = [
        "id=identity term,attribute token",
        "locale:en-IN",
        "field.identity=identity term",
        "field.attribute=attribute token",
        "votes.stereotype=annotation",
        "rater=anonymized annotator id",
    ];
    let (mut items, mut votes) = (0, 0);
    for file in ["region", "religion"] {
        let Some(got) = table(
            &format!("nlp-fairness-for-india/{file}_individual_annotation.tsv"),
            &map,
        ) else {
            return;
        };
        items += got.records.len();
        votes += got
            .records
            .iter()
            .map(|r| r.raters["stereotype"].len())
            .sum::<usize>();
    }
    assert_eq!((items, votes), (3852, 12_504));
}

#[test]
fn korean_raters_are_read_from_nested_json() {
    let answers: Vec<_> = (0..3)
        .map(|i| format!("raw_annotations.Q2: Acceptable or Non-acceptable.{i}.acceptable?"))
        .collect();
    let raters: Vec<_> = answers
        .iter()
        .map(|c| c.replace("acceptable?", "workerID"))
        .collect();
    let votes = format!("votes.acceptable={}", answers.join(","));
    let names = format!("raters.acceptable={}", raters.join(","));
    let map = [
        "locale:ko-KR",
        "field.question=question",
        "field.response=response",
        &votes,
        &names,
    ];
    let Some(got) = table(
        "korean-safety-benchmarks/response_test_ood_annotations.json",
        &map,
    ) else {
        return;
    };
    assert_eq!(got.records.len(), 480);
    let first = &got.records[0].raters["acceptable"];
    assert_eq!(first["18034"], "non-acceptable");
    assert!(
        got.records
            .iter()
            .all(|r| r.raters["acceptable"].len() == 3)
    );
}

#[test]
fn xl_safety_scenarios_go_through() {
    let Some(path) = real("xl-safetybench/scenario_prompts.csv") else {
        return;
    };
    let locale = Locale::parse("de-DE").unwrap();
    let local = xl_safety::import(&path, &locale, xl_safety::Variant::Local).unwrap();
    assert_eq!((local.records.len(), local.left_out()), (100, 0));
    let first = &local.records[0];
    assert_eq!(first.id, "de-DE/CC-B1-S01-01");
    assert!(first.fields["scenario"].starts_with("Ich bin Event-Koordinatorin"));
    assert!(first.fields["hidden_violation"].starts_with("A surprise pre-birth baby gift party"));
    assert_eq!(first.meta["category"], "Symbolic Taboos & Gift-Giving");
    let both = xl_safety::import(&path, &locale, xl_safety::Variant::Both).unwrap();
    assert_eq!(both.records.len(), 200);
    assert!(both.records[1].fields["scenario"].starts_with("I'm an event coordinator"));
    assert_eq!(
        [&both.records[0].group, &both.records[1].group],
        [&first.group, &local.records[1].group]
    );
}

//! The canonical form: what is written reads back as it was, today's files stay readable, and what
//! no file can hold is refused.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pluralis::locale::Locale;
use pluralis::prompt::{
    AnswerFormat, Calibration, CriterionCalibration, Demo, Edit, MergePart, Skeleton, Style,
    Version,
};
use pluralis::registry::{Lineage, Race, Registry, read_version, write_version};
use proptest::prelude::*;

use crate::harness::root;

/// The golden version's digest. It may never change: papers cite it.
const GOLDEN: &str = "a96492838eb6d7a605a3addb60c400c9a22df7b6ffa1eef9cd22d6b8b91362ac";

fn golden_folder() -> PathBuf {
    root().join("tests/reference/golden/registry-1")
}

/// Texts that editors, git and TOML like to change.
fn nasty() -> Vec<&'static str> {
    vec![
        "line\r\nline\rline\n",
        "\n\nleading and trailing \n \t",
        "\"\"\" ''' \\ \\n \u{8}\u{7f}\u{85}\u{2028}",
        "النص \u{202e}من اليمين\u{202c} हिन्दी ไทย 한국어",
        "\u{feff}a mark of byte order",
        "e\u{301} is not é",
        "{{ demos }} {% if %} {# #}",
        "👩‍👩‍👧 \u{1f1f2}\u{1f1fd}",
        "",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(nasty()).prop_map(str::to_owned),
        2 => any::<String>().prop_map(|s| s.replace('\0', "")),
        1 => "[ \ta\n\r\"'\\\\]{0,12}",
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |x| x.is_finite()),
        prop::sample::select(vec![0.0, -0.0, 1e-7, 1e21, 1.0 / 3.0, f64::MIN_POSITIVE]),
    ]
}

fn locale() -> impl Strategy<Value = Locale> {
    prop::sample::select(vec!["es-MX", "ar-AE", "eu", "zh-Hant-TW"])
        .prop_map(|tag| Locale::parse(tag).unwrap())
}

fn demo() -> impl Strategy<Value = Demo> {
    (
        text(),
        locale(),
        prop::option::of(locale()),
        prop::collection::btree_map(text(), text(), 0..3),
        prop::collection::btree_map(text(), text(), 0..2),
    )
        .prop_map(|(source, locale, only_for, fields, answers)| Demo {
            source,
            locale,
            only_for,
            fields,
            answers,
        })
}

fn calibration() -> impl Strategy<Value = Calibration> {
    let one = (
        number(),
        prop::collection::vec(number(), 0..4),
        prop::collection::btree_map(locale(), prop::collection::vec(number(), 0..4), 0..3),
    )
        .prop_map(|(temperature, bias, locales)| CriterionCalibration {
            temperature,
            bias,
            locales,
        });
    prop::collection::btree_map(text(), one, 0..3).prop_map(|criteria| Calibration { criteria })
}

fn edit() -> impl Strategy<Value = Edit> {
    let words = || {
        prop::collection::btree_map(
            text(),
            prop::collection::btree_map(text(), text(), 0..3),
            0..3,
        )
    };
    let demos = || prop::collection::vec(demo(), 0..3);
    prop_oneof![
        (text(), text()).prop_map(|(section, text)| Edit::ReplaceSection { section, text }),
        text().prop_map(|text| Edit::AddRule { text }),
        (0usize..9).prop_map(|index| Edit::DropRule { index }),
        (locale(), text()).prop_map(|(locale, text)| Edit::SetLocaleNote { locale, text }),
        demos().prop_map(|demos| Edit::SetDemos { demos }),
        demo().prop_map(|demo| Edit::AddDemo { demo }),
        text().prop_map(|source| Edit::DropDemo { source }),
        (text(), demo()).prop_map(|(out, demo)| Edit::SwapDemo { out, demo }),
        prop::collection::vec(0usize..9, 0..4).prop_map(|order| Edit::ReorderDemos { order }),
        (0usize..9).prop_map(|count| Edit::ShowNearest { count }),
        text().prop_map(|field| Edit::ShowFirst { field }),
        words().prop_map(|words| Edit::ChangeWords { words }),
        (text(), demos()).prop_map(|(other, demos)| Edit::Merge {
            other,
            part: MergePart::Demos(demos)
        }),
        (
            text(),
            prop::collection::btree_map(text(), text(), 0..3),
            prop::collection::vec(text(), 0..3)
        )
            .prop_map(|(other, sections, rules)| Edit::Merge {
                other,
                part: MergePart::Texts { sections, rules }
            }),
        calibration().prop_map(|calibration| Edit::Recalibrate { calibration }),
    ]
}

fn version() -> impl Strategy<Value = Version> {
    let head = (
        prop::option::of(text()),
        text(),
        text(),
        text(),
        any::<bool>(),
        any::<bool>(),
    );
    let body = (
        prop::collection::btree_map(text(), text(), 0..4),
        prop::collection::vec(text(), 0..4),
        prop::collection::vec(demo(), 0..4),
        prop::collection::btree_map(
            text(),
            prop::collection::btree_map(text(), text(), 0..3),
            0..3,
        ),
        calibration(),
        prop::option::of(1usize..9),
        prop::option::of(text()),
    );
    (head, body).prop_map(
        |((reading, task_digest, prefix, item, chat, may_abstain), body)| {
            let (sections, rules, demos, words, calibration, nearest, first) = body;
            Version {
                format: 1,
                task: "t".into(),
                reading,
                task_digest,
                skeleton: Skeleton {
                    name: "s".into(),
                    style: if chat { Style::Chat } else { Style::Completion },
                    prefix,
                    item,
                },
                sections,
                rules,
                demos,
                nearest,
                first,
                words,
                answer: AnswerFormat::Json,
                may_abstain,
                calibration,
            }
        },
    )
}

fn lineage() -> impl Strategy<Value = Lineage> {
    (
        prop::collection::vec(text(), 0..3),
        text(),
        prop::option::of(text()),
        prop::option::of((0usize..99, number(), prop::option::of(number()))),
        prop::option::of(edit()),
    )
        .prop_map(|(parents, run, card, race, edit)| Lineage {
            parents,
            run,
            card_says: card.clone(),
            card,
            race: race.map(|(n, gain, p)| Race {
                of: "log loss".into(),
                n,
                gain,
                p,
            }),
            edit,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn parse_after_print_is_the_identity(version in version(), lineage in lineage()) {
        let dir = tempfile::tempdir().unwrap();
        write_version(dir.path(), &version, &lineage).unwrap();
        let (read, from) = read_version(dir.path()).unwrap();
        prop_assert_eq!(read.digest(), version.digest());
        prop_assert_eq!(&read, &version);
        prop_assert_eq!(from, lineage);
    }
}

/// A version and a lineage with something in every place.
fn golden() -> (Version, Lineage) {
    let mut texts = nasty().into_iter().cycle().map(str::to_owned);
    let mut next = || texts.next().unwrap();
    let demo = Demo {
        source: "i-1".into(),
        locale: Locale::parse("ar-AE").unwrap(),
        only_for: Some(Locale::parse("ar-AE").unwrap()),
        fields: BTreeMap::from([
            ("attribute".to_owned(), next()),
            ("gloss".to_owned(), next()),
        ]),
        answers: BTreeMap::from([("offensiveness".to_owned(), "NO".to_owned())]),
    };
    let task = std::fs::read_to_string(golden_folder().join("task.toml")).unwrap();
    let task = pluralis::task::parse_task(&task, None).unwrap();
    let version = Version {
        format: 1,
        task: "offensiveness".into(),
        reading: None,
        task_digest: pluralis::prompt::task_digest(&task),
        skeleton: Skeleton {
            name: "chat".into(),
            style: Style::Chat,
            prefix: "{{ sections.role }}\r\n{% for d in demos %}{{ d.answer }}{% endfor %}\n"
                .into(),
            item: "{{ fence }}{{ item.fields[0].text }}\r\n".into(),
        },
        sections: BTreeMap::from([
            ("role".to_owned(), next()),
            ("rubric".to_owned(), next()),
            ("locale-notes/es-MX".to_owned(), next()),
            ("rules".to_owned(), next()),
        ]),
        rules: vec![next(), next(), next()],
        demos: vec![demo.clone()],
        nearest: None,
        first: None,
        words: BTreeMap::from([(
            "offensiveness".to_owned(),
            BTreeMap::from([("NO".to_owned(), "無害".to_owned())]),
        )]),
        answer: AnswerFormat::Label,
        may_abstain: true,
        calibration: Calibration {
            criteria: BTreeMap::from([(
                "offensiveness".to_owned(),
                CriterionCalibration {
                    temperature: 1.0 / 3.0,
                    bias: vec![1e-7, -0.0, 1e21, 0.1, -2.5, 3.0],
                    locales: BTreeMap::from([(Locale::parse("es-MX").unwrap(), vec![0.5; 6])]),
                },
            )]),
        },
    };
    let lineage = Lineage {
        parents: vec!["a".repeat(64)],
        run: "golden-000000000000".into(),
        card: Some("c".into()),
        card_says: Some("over-flag in es-MX".into()),
        race: Some(Race {
            of: "log loss".into(),
            n: 24,
            gain: 0.25,
            p: Some(0.01),
        }),
        edit: Some(Edit::Merge {
            other: "b".repeat(64),
            part: MergePart::Demos(vec![demo]),
        }),
    };
    (version, lineage)
}

#[test]
fn the_files_of_today_are_read_tomorrow_with_the_same_digest() {
    let registry = Registry::of(&golden_folder());
    let listed = registry.list().unwrap();
    let [one] = &listed[..] else {
        panic!("{listed:?}")
    };
    let (version, lineage, evidence) = one.read.as_ref().unwrap();
    let (want, origin) = golden();
    assert_eq!(version.digest(), GOLDEN);
    assert_eq!((version, lineage), (&want, &origin));
    let test = &evidence.measured[0].splits["test"];
    assert_eq!((test.n, test.locales["es-MX"].n), (60, 15));
    let record = pluralis::experiment::RunRecord::read(&one.dir)
        .unwrap()
        .unwrap();
    assert_eq!(record.config.seed, u64::MAX);
    let tags = registry.tags().list().unwrap();
    assert_eq!(
        (tags[0].name.as_str(), tags[0].version()),
        ("es-MX/production", GOLDEN)
    );
    // The task that it was made for is found again, too.
    let found = pluralis::registry::find(&golden_folder(), &GOLDEN[..8], None).unwrap();
    assert_eq!(found.task.criteria[0].labels.len(), 6);
}

/// Not a test: writes the golden version's own files, for a format that is really a new one.
#[test]
#[ignore = "writes the golden files"]
fn write_the_golden_version() {
    let (version, lineage) = golden();
    let dir = golden_folder().join("versions").join(version.short());
    write_version(&dir, &version, &lineage).unwrap();
    println!("{}", version.digest());
}

#[test]
fn every_part_changes_the_digest_and_nothing_else_does() {
    let (version, _) = golden();
    let digest = version.digest();
    let mut others = Vec::new();
    let mut change = |f: &dyn Fn(&mut Version)| {
        let mut other = version.clone();
        f(&mut other);
        others.push(other.digest());
    };
    change(&|v| v.skeleton.prefix.push(' '));
    change(&|v| v.skeleton.item.push('\n'));
    change(&|v| v.skeleton.style = Style::Completion);
    change(&|v| v.sections.get_mut("role").unwrap().push('\u{200b}'));
    change(&|v| v.rules.reverse());
    change(&|v| v.demos[0].only_for = None);
    change(&|v| {
        v.demos[0].fields.insert("gloss".into(), "x".into());
    });
    change(&|v| v.words.clear());
    change(&|v| v.answer = AnswerFormat::Logprobs);
    change(&|v| v.may_abstain = false);
    change(&|v| {
        v.calibration
            .criteria
            .get_mut("offensiveness")
            .unwrap()
            .temperature += 1e-12
    });
    change(&|v| v.task_digest.push('0'));
    others.push(digest);
    let all: std::collections::BTreeSet<_> = others.iter().collect();
    assert_eq!(all.len(), others.len());
}

#[test]
fn the_task_definition_counts_and_its_comments_do_not() {
    let path = root().join("judge-prompts/jailbreak/task.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let digest = |text: &str| {
        pluralis::prompt::task_digest(&pluralis::task::parse_task(text, None).unwrap())
    };
    let was = digest(&text);
    assert_eq!(digest(&format!("# a comment\n{text}")), was);
    for (from, to) in [
        ("A harmful", "Any harmful"),
        ("name = \"ideal-safe\"", "name = \"ideal\""),
        (
            "aliases = [\"1\", \"y\", \"true\"]",
            "aliases = [\"1\", \"y\"]",
        ),
        ("optional = true", "optional = false"),
        ("title = \"Response\"", "title = \"Answer\""),
    ] {
        let changed = text.replacen(from, to, 1);
        if changed != text {
            assert_ne!(digest(&changed), was, "{from}");
        }
    }
    assert_ne!(
        digest(&text.replacen("title = \"Response\"", "title = \"A\"", 1)),
        was
    );
}

#[test]
fn what_no_file_can_hold_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let into = dir.path().join("v");
    let refused = |f: &dyn Fn(&mut Version, &mut Lineage)| {
        let (mut version, mut lineage) = golden();
        f(&mut version, &mut lineage);
        let e = write_version(&into, &version, &lineage)
            .unwrap_err()
            .to_string();
        assert!(!into.exists());
        e
    };
    let e = refused(&|v, _| v.sections.get_mut("role").unwrap().push('\0'));
    assert!(e.contains("sections.role") && e.contains("NUL"), "{e}");
    let e = refused(&|v, _| v.skeleton.item.push('\0'));
    assert!(e.contains("skeleton.item"), "{e}");
    let e = refused(&|_, l| l.run.push('\0'));
    assert!(e.contains("lineage.run"), "{e}");
    let e = refused(&|v, _| {
        v.calibration
            .criteria
            .get_mut("offensiveness")
            .unwrap()
            .temperature = f64::NAN;
    });
    assert!(e.contains("finite"), "{e}");
}

#[test]
fn a_damaged_file_is_named_with_its_place_and_not_used() {
    let (version, lineage) = golden();
    let damaged = |name: &str, change: &dyn Fn(String) -> Vec<u8>| {
        let dir = tempfile::tempdir().unwrap();
        write_version(dir.path(), &version, &lineage).unwrap();
        let path = dir.path().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, change(text)).unwrap();
        read_version(dir.path()).unwrap_err().to_string()
    };
    let later = damaged("version.toml", &|t| {
        t.replacen("format = 1", "format = 2\nx = 1", 1).into()
    });
    assert!(
        later.contains("version.toml: format 2 is not known"),
        "{later}"
    );
    let torn = damaged("version.toml", &|t| t.as_bytes()[..t.len() / 2].into());
    assert!(torn.contains("version.toml: "), "{torn}");
    let key = damaged("version.toml", &|t| {
        t.replacen("answer = ", "anwser = ", 1).into()
    });
    assert!(key.contains("row ") && key.contains("anwser"), "{key}");
    let line = damaged("demos.jsonl", &|t| format!("{t}{{\"source\":").into());
    assert!(line.contains("demos.jsonl: line 2"), "{line}");
    let bytes = damaged("item.tera", &|_| b"a\xff".into());
    assert!(bytes.contains("item.tera: byte 1 is not UTF-8"), "{bytes}");
    let ends = damaged("prefix.tera", &|t| t.replace("\r\n", "\n").into());
    assert!(ends.contains("damaged"), "{ends}");
}

//! Bad and odd items files: every refusal names its place and what to do.

use std::path::Path;

use pluralis::data::import::seegull;
use pluralis::data::{
    DataError, ItemRecord, Split, check, check_record, digest, load_items, read_records,
    records_from, write_records,
};

use super::{offensiveness, put};

fn line(id: &str, attribute: &str) -> String {
    format!(
        r#"{{"id":"{id}","locale":"es-MX","fields":{{"attribute":"{attribute}"}},"votes":{{"offensiveness":{{"NO":2,"O1":1}}}}}}"#
    )
}

fn lines_error(text: impl AsRef<[u8]>) -> DataError {
    records_from(text.as_ref(), "a.jsonl").unwrap_err()
}

#[test]
fn marks_line_ends_and_separators_are_tolerated() {
    // U+2028 inside a value is text, and no end of line.
    let text = format!(
        "\u{feff}{}\r\n\r\n  \n{}",
        line("a", "uno\u{2028}dos"),
        line("b", "tres")
    );
    let records = records_from(text.as_bytes(), "a.jsonl").unwrap();
    assert_eq!(
        records
            .iter()
            .map(|(n, r)| (*n, r.id.as_str()))
            .collect::<Vec<_>>(),
        [(1, "a"), (4, "b")]
    );
    assert_eq!(records[0].1.fields["attribute"], "uno\u{2028}dos");
}

#[test]
fn bad_lines_name_line_position_and_remedy() {
    let good = line("a", "uno");
    let cases: [(String, &str, &str); 7] = [
        (
            r#"{"id":"a","locale":"es","fields":{"x":"\ud83d"}}"#.into(),
            "hex escape",
            "lone surrogate",
        ),
        (
            r#"{"id":"a","locale":"es","fields":{"x":"a\u0000b"}}"#.into(),
            "NUL",
            "fields.x",
        ),
        ("{\"id\":\"a\0\"}".into(), "NUL", "byte 9"),
        (
            r#"{"id":"a","locale":"es","feilds":{}}"#.into(),
            "unknown field `feilds`",
            "did you mean `fields`",
        ),
        (r#"{"id":"a","locale":"es""#.into(), "EOF", "cut off"),
        (
            r#"{"id":"a"}"#.into(),
            "missing field `locale`",
            "at least id, locale and fields",
        ),
        (
            r#"{"id":"a","locale":"es","fields":{},"votes":{"H":{"yes":-1}}}"#.into(),
            "-1",
            "character",
        ),
    ];
    for (bad, what, also) in cases {
        let e = lines_error(format!("{good}\n{bad}\n"));
        assert_eq!((e.file.as_str(), e.row), ("a.jsonl", Some(2)), "{e}");
        let text = e.to_string();
        assert!(text.contains(what) && text.contains(also), "{text}");
        assert!(!e.advice.is_empty() && e.column.is_some(), "{e:?}");
    }
    let e = lines_error(b"\xff\xfe{\n");
    assert!(e.to_string().contains("not UTF-8"), "{e}");
    let e = lines_error(line("a", &"x".repeat(10 * 1024 * 1024 + 1)));
    assert!(
        e.to_string().contains("10 MiB") && e.column.as_deref() == Some("fields.attribute"),
        "{e}"
    );
    let e = read_records(Path::new("/nowhere/a.jsonl")).unwrap_err();
    assert!(e.to_string().contains("/nowhere/a.jsonl"), "{e}");
}

#[test]
fn records_are_checked_against_the_task() {
    let task = offensiveness(None);
    let good: ItemRecord = serde_json::from_str(&line("a", " Gordo،")).unwrap();
    let item = check_record(&task, &good, 7).unwrap();
    assert_eq!(
        (item.group.as_str(), item.votes[0].counts.as_slice()),
        ("gordo", &[2, 1, 0, 0, 0, 0][..])
    );
    assert_eq!(item.votes[0].majority(), Some(0));
    let refuse = |change: &dyn Fn(&mut ItemRecord), want: &[&str]| {
        let mut record = good.clone();
        change(&mut record);
        let e = check_record(&task, &record, 7).unwrap_err();
        assert_eq!(e.row, Some(7));
        want.iter()
            .for_each(|w| assert!(e.to_string().contains(w), "{e} lacks {w}"));
    };
    let votes = |criterion: &str, label: &str| {
        std::collections::BTreeMap::from([(criterion.to_owned(), [(label.to_owned(), 1)].into())])
    };
    refuse(
        &|r| r.locale = "Spanish".into(),
        &["`Spanish` is no locale", "es-MX"],
    );
    refuse(&|r| r.id = " ".into(), &["id"]);
    refuse(
        &|r| r.votes = votes("offensivness", "NO"),
        &["did you mean `offensiveness`"],
    );
    refuse(
        &|r| r.votes = votes("offensiveness", "O5"),
        &["`O5`", "did you mean", "NO, O1, O2, O3, O4, U"],
    );
    refuse(
        &|r| _ = r.fields.insert("attribut".into(), "x".into()),
        &["did you mean `attribute`"],
    );
    refuse(
        &|r| _ = r.fields.insert("attribute".into(), "\u{200b} ".into()),
        &["missing or blank"],
    );
    refuse(
        &|r| {
            _ = r
                .raters
                .insert("offensiveness".into(), [("r".into(), "NO".into())].into())
        },
        &["both in"],
    );
    // Labels are read through a reading: slight is O1, which is offensive.
    let mut record = good.clone();
    record.votes = votes("Offensiveness", "slight");
    let item = check_record(&offensiveness(Some("binary")), &record, 1).unwrap();
    assert_eq!(item.votes[0].counts, [0, 1, 0]);
}

#[test]
fn duplicate_ids_name_both_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = put(
        dir.path(),
        "a.jsonl",
        format!("{}\n\n{}\n", line("a", "uno"), line("a", "dos")),
    );
    let e = load_items(&offensiveness(None), &path)
        .unwrap_err()
        .to_string();
    assert!(
        e.contains("row 3") && e.contains("row 1") && e.contains("a.jsonl"),
        "{e}"
    );
}

#[test]
fn written_files_are_read_back_and_nothing_half_written_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("items.jsonl");
    let mut record: ItemRecord = serde_json::from_str(&line("a", "ยิ้ม “é” \u{2028}")).unwrap();
    record.split = Some(Split::Tune);
    write_records(&path, std::slice::from_ref(&record)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("ยิ้ม “é”") && text.ends_with("}\n"), "{text}");
    assert_eq!(read_records(&path).unwrap(), [(1, record.clone())]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    // A folder stands where the file should go: the rename fails and leaves nothing behind.
    let blocked = dir.path().join("folder");
    std::fs::create_dir(&blocked).unwrap();
    assert!(write_records(&blocked, &[record]).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn the_digest_ignores_order_and_nothing_else() {
    let task = offensiveness(None);
    let item = |id: &str, text: &str| {
        check_record(&task, &serde_json::from_str(&line(id, text)).unwrap(), 1).unwrap()
    };
    let (a, b) = (item("a", "uno"), item("b", "dos"));
    let both = digest(&[a.clone(), b.clone()]);
    assert_eq!(both, digest(&[b.clone(), a.clone()]));
    let mut voted = a.clone();
    voted.votes[0].counts[0] += 1;
    let mut moved = a.clone();
    moved.split = Some(Split::Test);
    for other in [voted, moved, item("a", "uno "), item("c", "uno")] {
        assert_ne!(both, digest(&[other, b.clone()]));
    }
}

#[test]
fn a_check_shows_everything_at_once() {
    let with_split = |id: &str, text: &str, split: &str| {
        line(id, text).replacen(
            "\"locale\"",
            &format!("\"split\":\"{split}\",\"locale\""),
            1,
        )
    };
    let text = [
        with_split("a", "Café", "tune"),
        with_split("b", "CAFE\u{301} ،", "test"),
        line("a", "otro"),
        line("c", " "),
        line("d", "gato").replace("\"O1\":1", "\"O1\":2"),
        line("e", "perro").replace("\"O1\":1", "\"O9\":1"),
    ]
    .join("\n");
    let report = check(
        &offensiveness(None),
        &records_from(text.as_bytes(), "a.jsonl").unwrap(),
    );
    assert_eq!(
        (report.records, report.items, report.is_sound()),
        (6, 3, false)
    );
    assert_eq!(
        report
            .problems
            .iter()
            .map(|p| p.row.unwrap())
            .collect::<Vec<_>>(),
        [3, 4, 6]
    );
    let counts = &report.locales["es-MX"].criteria["offensiveness"];
    assert_eq!(
        (
            counts.ties,
            counts.majority["NO"],
            counts.votes["NO"],
            counts.votes["O1"]
        ),
        (1, 2, 6, 4)
    );
    assert_eq!(report.duplicates.len(), 1);
    assert_eq!(
        report.duplicates[0].items,
        [(1, "a".into()), (2, "b".into())]
    );
    assert_eq!(
        (report.leaks.len(), report.leaks[0].group.as_str()),
        (1, "café")
    );
    assert_eq!(report.few_items, ["es-MX"]);
    assert_eq!(report.splits["none"], 1);
    serde_json::to_string(&report).unwrap();
}

#[test]
fn seegull_folders_that_are_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let import = || {
        seegull::import(dir.path(), seegull::Kind::Offensiveness)
            .unwrap_err()
            .to_string()
    };
    assert!(import().contains("no CSV file"));
    let path = put(dir.path(), "Klingon (tlh) in Qonos.csv", "Attribute\nx\n");
    assert!(import().contains("Qonos"));
    std::fs::remove_file(path).unwrap();
    put(
        dir.path(),
        "Spanish (es) in Mexico.csv",
        "attribute,identity\nx,y\n",
    );
    let text = import();
    assert!(
        text.contains("no column") && text.contains("Spanish (es) in Mexico.csv"),
        "{text}"
    );
}

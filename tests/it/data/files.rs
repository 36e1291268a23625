//! Bad and odd input: every refusal names its place and what to do.

use std::io::Write;
use std::path::{Path, PathBuf};

use pluralis::data::import::table::{TableMap, import};
use pluralis::data::import::{NoteKind, seegull};
use pluralis::data::{
    DataError, Format, ItemRecord, Split, check, check_record, digest, load_items, read_records,
    read_table, records_from, table_from_bytes, write_records,
};

use super::{offensiveness, truthfulness};

fn put(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

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

fn csv(text: &str, wanted: &[&str]) -> Result<pluralis::data::Table, DataError> {
    table_from_bytes("t.csv", text.as_bytes(), Format::Csv, wanted)
}

#[test]
fn a_header_may_stand_below_a_comment_or_a_title() {
    let t = csv("\u{feff}# version=1.0, x=y,\r\nname,label,\r\n\r\n\"a\r\nb\",\"say \"\"no\"\"\",\r\nc,d,e\r\n", &[]).unwrap();
    assert_eq!(t.header, ["name", "label", "column 3"]);
    assert_eq!(t.rows.iter().map(|r| r.number).collect::<Vec<_>>(), [4, 6]);
    assert_eq!(t.rows[0].cells, ["a\r\nb", "say \"no\"", ""]);
    let t = csv(
        "Results of May,,\n,,\nnote,x,y\nText,Label,Label\na,1,2\n#ERROR!,1,2\n",
        &["text", "Label"],
    )
    .unwrap();
    assert_eq!(t.header, ["Text", "Label", "Label (2)"]);
    assert_eq!((t.rows[0].number, t.rows.len()), (5, 2));
}

#[test]
fn bad_tables_name_their_place() {
    let refuse = |text: &str, wanted: &[&str], want: &[&str]| {
        let e = csv(text, wanted).unwrap_err().to_string();
        want.iter()
            .for_each(|w| assert!(e.contains(w), "{e} lacks {w}"));
    };
    refuse(
        "a,b\n1,2\n3\n",
        &[],
        &["t.csv, row 3", "1 cells under 2 columns"],
    );
    refuse("a,b\n1,2,3\n", &[], &["row 2", "3 cells"]);
    refuse(
        "attribute,b\n1,2\n",
        &["atribute"],
        &["row 1", "no column `atribute`", "did you mean `attribute`"],
    );
    refuse("a,b\n1,\"2\n3,4\n", &[], &["row 2", "never closed"]);
    refuse("a\nb\n\0\n", &[], &["row 3", "NUL"]);
    refuse("", &[], &["empty"]);
    refuse(
        &format!("a,b\n1,{}\n", "x".repeat(10 * 1024 * 1024 + 1)),
        &[],
        &["row 2, b", "10 MiB"],
    );
    let e = table_from_bytes("t.csv", b"a\n\xe9\n", Format::Csv, &[])
        .unwrap_err()
        .to_string();
    assert!(e.contains("row 2") && e.contains("UTF-8"), "{e}");
    let e = table_from_bytes("t.json", b"[{\"a\":1},2]", Format::JsonArray, &[])
        .unwrap_err()
        .to_string();
    assert!(e.contains("row 2"), "{e}");
    let e = table_from_bytes("t.xlsx", b"PK\x03\x04rubbish", Format::Spreadsheet, &[])
        .unwrap_err()
        .to_string();
    assert!(e.contains("no spreadsheet"), "{e}");
}

#[test]
fn nested_json_becomes_columns() {
    let text = br#"[{"q":"a","n":0.25,"tags":["x","y"],"v":[{"who":7,"ok":true},{"who":8,"ok":null}]}, {"q":"b"}]"#;
    let t = table_from_bytes("t.json", text, Format::JsonArray, &["v.1.who"]).unwrap();
    let get = |row: usize, column: &str| t.rows[row].cells[t.column(column).unwrap()].as_str();
    assert_eq!(
        [
            get(0, "n"),
            get(0, "tags"),
            get(0, "v.0.ok"),
            get(0, "v.1.ok"),
            get(0, "v.1.who")
        ],
        ["0.25", "x; y", "true", "", "8"]
    );
    assert_eq!([get(1, "q"), get(1, "v.0.who")], ["b", ""]);
}

/// A workbook of one sheet; `None` leaves a cell out.
fn workbook(path: &Path, rows: &[(usize, &[&str])]) {
    let mut zip = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let mut sheet = String::new();
    for (number, cells) in rows {
        sheet += &format!("<row r=\"{number}\">");
        for (i, cell) in cells.iter().enumerate() {
            let at = format!("{}{number}", (b'A' + i as u8) as char);
            sheet += &match cell.parse::<f64>() {
                Ok(n) => format!("<c r=\"{at}\"><v>{n}</v></c>"),
                Err(_) => format!("<c r=\"{at}\" t=\"inlineStr\"><is><t>{cell}</t></is></c>"),
            };
        }
        sheet += "</row>";
    }
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006";
    let parts = [
        (
            "[Content_Types].xml",
            format!(
                "<Types xmlns=\"{package}/content-types\"><Default Extension=\"xml\" ContentType=\"application/xml\"/></Types>"
            ),
        ),
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r1\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{main}\" xmlns:r=\"{office}\"><sheets><sheet name=\"May\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"{package}/relationships\"><Relationship Id=\"r1\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!("<worksheet xmlns=\"{main}\"><sheetData>{sheet}</sheetData></worksheet>"),
        ),
    ];
    for (name, text) in parts {
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn a_workbook_with_its_header_in_row_4_and_unknown_labels() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("labels.xlsx");
    let rows: [(usize, &[&str]); 5] = [
        (1, &["Annotation, round 2"]),
        (4, &["Q", "A", "Rater 1", "N"]),
        (5, &["q1", "a1", "yes", "1"]),
        (6, &["q2", "a2", "SOFT/SAFE", "2"]),
        (7, &["q3", "a3", "CRITICAL SAFE", "3"]),
    ];
    workbook(&path, &rows);
    let table = read_table(&path, &["Q"]).unwrap();
    assert_eq!(
        (
            table.header.len(),
            table.rows[0].number,
            table.rows[0].cells[3].as_str()
        ),
        (4, 5, "1")
    );
    let entries = [
        "locale:de-DE",
        "id=N",
        "field.question=Q",
        "field.answer=A",
        "votes.truthful=Rater 1",
    ];
    let task = truthfulness();
    let e = import(&path, &TableMap::parse(&entries).unwrap(), Some(&task)).unwrap_err();
    assert_eq!((e.row, e.column.as_deref()), (Some(6), Some("truthful")));
    let text = e.to_string();
    for want in [
        "`SOFT/SAFE` (1 times, first in row 6)",
        "`CRITICAL SAFE` (1 times, first in row 7)",
        "labels.truthful.LABEL=SOFT/SAFE",
        "no, yes",
    ] {
        assert!(text.contains(want), "{text} lacks {want}");
    }
    let mapped = [
        &entries[..],
        &["labels.truthful.no=soft/safe|Critical safe"],
    ]
    .concat();
    let got = import(&path, &TableMap::parse(&mapped).unwrap(), Some(&task)).unwrap();
    let labels: Vec<_> = got
        .records
        .iter()
        .map(|r| r.raters["truthful"]["Rater 1"].as_str())
        .collect();
    assert_eq!(labels, ["yes", "no", "no"]);
    assert_eq!(got.records[2].id, "3");
}

#[test]
fn tables_import_by_counts_and_in_long_form() {
    let dir = tempfile::tempdir().unwrap();
    let wide = put(
        dir.path(),
        "w.csv",
        "t,place,no,o1\nuno,es_mx,2,1\ndos,es-ES,3,\n",
    );
    let map = TableMap::parse(&[
        "locale=place",
        "field.attribute=t",
        "count.offensiveness.NO=no",
        "count.offensiveness.O1=o1",
    ])
    .unwrap();
    let got = import(&wide, &map, Some(&offensiveness(None))).unwrap();
    assert_eq!(
        (got.records[0].id.as_str(), got.records[0].locale.as_str()),
        ("row2", "es-MX")
    );
    assert_eq!(
        got.records[0].votes["offensiveness"],
        [("NO".into(), 2), ("O1".into(), 1)].into()
    );
    assert_eq!(
        (got.notes.len(), got.notes[0].kind, got.notes[0].row),
        (1, NoteKind::Blank, 3)
    );
    let bad = put(dir.path(), "b.csv", "t,place,no,o1\nuno,es-MX,two,1\n");
    let e = import(&bad, &map, None).unwrap_err().to_string();
    assert!(e.contains("row 2, no") && e.contains("`two`"), "{e}");

    let map = TableMap::parse(&[
        "locale:en-IN",
        "id=t",
        "field.attribute=t",
        "votes.offensiveness=l",
        "rater=who",
    ])
    .unwrap();
    let long = put(
        dir.path(),
        "l.tsv",
        "t\twho\tl\nuno\t1\tNO\nuno\t2\tO1\ndos\t1\tno\nuno\t1\tNO\n",
    );
    let got = import(&long, &map, Some(&offensiveness(None))).unwrap();
    assert_eq!((got.records.len(), got.rows), (2, 4));
    assert_eq!(
        got.records[0].raters["offensiveness"],
        [("1".into(), "NO".into()), ("2".into(), "O1".into())].into()
    );
    let twice = put(dir.path(), "t.tsv", "t\twho\tl\nuno\t1\tNO\nuno\t1\tO1\n");
    let e = import(&twice, &map, None).unwrap_err().to_string();
    assert!(e.contains("row 3") && e.contains("rater `1`"), "{e}");
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

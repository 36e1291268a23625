//! Bad and odd tables: headers below titles, spreadsheets, nested JSON, unknown labels.

use pluralis::data::import::NoteKind;
use pluralis::data::import::table::{TableMap, import};
use pluralis::data::{DataError, Format, read_table, table_from_bytes};

use super::super::harness::workbook;
use super::{offensiveness, put, truthfulness};

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

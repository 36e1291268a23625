//! Bad input, as a user meets it: the program names file, row, column and remedy, exits with 2 and
//! writes nothing. What is merely unusual is read as it stands.

mod characters;
mod settings;

use std::path::Path;

use super::harness::{WRITTEN, experiment_folder, files, pluralis, text, workbook};

/// Runs a command that must be refused: exit code 2, every wanted text in stderr, no file changed.
fn refused(dir: &Path, args: &[&str], want: &[&str]) -> String {
    let before = files(dir);
    let run = pluralis(dir, args);
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{args:?}: {said}");
    for part in want {
        assert!(said.contains(part), "{args:?}: no `{part}` in:\n{said}");
    }
    assert!(said.contains("help: "), "no suggestion in:\n{said}");
    assert!(files(dir) == before, "{args:?} left something behind");
    said
}

const TUNE: [&str; 4] = ["tune", "exp.toml", "--out", "run"];

/// Replaces the first occurrence of a text in a file of a folder.
fn change(dir: &Path, file: &str, from: &str, to: &str) {
    let path = dir.join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no `{from}`");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

/// Writes an items file and refuses it in `data check`, `data split` and `tune`.
fn items_refused(text: impl AsRef<[u8]>, want: &[&str]) {
    let dir = experiment_folder();
    std::fs::write(dir.path().join("items.jsonl"), text).unwrap();
    let want = [&["items.jsonl", "row"], want].concat();
    let task = ["--task", "task", "--reading", "binary"];
    let check = [&["data", "check", "items.jsonl"][..], &task].concat();
    refused(dir.path(), &check, &want);
    let split = [
        &["data", "split", "items.jsonl", "--out", "out.jsonl"][..],
        &task,
    ]
    .concat();
    refused(dir.path(), &split, &want);
    refused(dir.path(), &TUNE, &want);
}

fn item(id: &str, attribute: &str) -> String {
    format!(
        "{{\"id\":\"{id}\",\"locale\":\"es-MX\",\"fields\":{{\"attribute\":\"{attribute}\"}},\"votes\":{{\"offensiveness\":{{\"NO\":2,\"O1\":1}}}}}}\n"
    )
}

/// Runs an import of a table that must be refused.
fn table_refused(name: &str, bytes: impl AsRef<[u8]>, want: &[&str]) {
    let dir = experiment_folder();
    std::fs::write(dir.path().join(name), bytes).unwrap();
    refused(dir.path(), &table(name, &[]), &[&[name], want].concat());
}

fn table<'a>(name: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["data", "import", "table", name, "--task", "task"];
    args.extend(["--map", "locale:es-MX", "--map", "field.attribute=Trait"]);
    args.extend(["--map", "votes.offensiveness=Vote", "--out", "out.jsonl"]);
    for entry in more {
        args.extend(["--map", entry]);
    }
    args
}

#[test]
fn a_duplicate_item_id_names_both_lines() {
    items_refused(
        item("a", "uno") + &item("b", "dos") + &item("a", "tres"),
        &[
            "items.jsonl, row 3, id",
            "`a` is already that of row 1",
            "rename or remove",
        ],
    );
}

#[test]
fn a_vote_outside_its_scale() {
    let bad = item("b", "dos").replace("O1", "O7");
    items_refused(
        item("a", "uno") + &bad,
        &[
            "row 2, votes.offensiveness",
            "no label `O7`",
            "did you mean `O1`?",
        ],
    );
    let dir = experiment_folder();
    std::fs::write(
        dir.path().join("a.jsonl"),
        item("a", "uno").replace("\"NO\":2", "\"NO\":-2"),
    )
    .unwrap();
    let check = ["data", "check", "a.jsonl", "--task", "task"];
    refused(
        dir.path(),
        &check,
        &["a.jsonl, row 1, character 89", "-2", "whole number from 0"],
    );
}

#[test]
fn a_locale_that_is_no_tag() {
    for (bad, meant) in [
        ("Spanish (Mexico)", "es-MX"),
        ("es-Mexico", "es-MX"),
        ("es MX", "es-MX"),
    ] {
        items_refused(
            item("a", "uno").replace("es-MX", bad),
            &["row 1, locale", bad, &format!("did you mean `{meant}`?")],
        );
    }
    let dir = experiment_folder();
    change(
        dir.path(),
        "exp.toml",
        "[data]\n",
        "[data]\nlocales = [\"es-ME\"]\n",
    );
    refused(
        dir.path(),
        &TUNE,
        &["exp.toml, row 11", "`es-ME`", "did you mean `es-MX`"],
    );
}

#[test]
fn a_workbook_with_its_header_in_row_4_and_odd_labels() {
    let dir = experiment_folder();
    let rows: [(usize, &[&str]); 5] = [
        (1, &["Annotation, round 2"]),
        (4, &["Trait", "Vote"]),
        (5, &["uno", "NO"]),
        (6, &["dos", "SOFT/SAFE"]),
        (7, &["tres", "CRITICAL SAFE"]),
    ];
    workbook(&dir.path().join("t.xlsx"), &rows);
    let want = [
        "t.xlsx, row 6, offensiveness",
        "`SOFT/SAFE` (1 times, first in row 6)",
        "`CRITICAL SAFE` (1 times, first in row 7)",
        "labels.offensiveness.LABEL=SOFT/SAFE",
    ];
    refused(dir.path(), &table("t.xlsx", &[]), &want);
    let mapped = table(
        "t.xlsx",
        &["labels.offensiveness.O1=soft/safe|critical safe"],
    );
    let run = pluralis(dir.path(), &mapped);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let out = std::fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    assert_eq!(out.matches("\"Vote\":\"O1\"").count(), 2, "{out}");
    // A column that is nowhere is named with the nearest one.
    workbook(
        &dir.path().join("u.xlsx"),
        &[(4, &["Trait", "Votes"]), (5, &["uno", "NO"])],
    );
    refused(
        dir.path(),
        &table("u.xlsx", &[]),
        &["u.xlsx, row 4", "did you mean `Votes`"],
    );
}

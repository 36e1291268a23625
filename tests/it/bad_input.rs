//! Bad input, as a user meets it: the program names file, row, column and remedy, exits with 2 and
//! writes nothing. What is merely unusual is read as it stands.

use std::path::Path;

use super::harness::{experiment_folder, files, pluralis, text, workbook};

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
fn broken_toml() {
    for (file, from, to, place) in [
        (
            "exp.toml",
            "name = \"simulated\"",
            "name = \"simulated",
            "exp.toml, row 3, column 18",
        ),
        (
            "task/task.toml",
            "format = 1",
            "format = = 1",
            "task.toml, row 2, column 10",
        ),
        (
            "task/seed.toml",
            "[sections]",
            "[sections",
            "seed.toml, row 6, column 10",
        ),
    ] {
        let dir = experiment_folder();
        change(dir.path(), file, from, to);
        let said = refused(dir.path(), &TUNE, &[place, "key = value"]);
        // The line itself is shown, with its number.
        assert!(said.contains(to.lines().next().unwrap()), "{said}");
    }
}

#[test]
fn unknown_keys() {
    for (file, from, to, place, meant) in [
        (
            "exp.toml",
            "calls = 4000",
            "cals = 4000",
            "column 1",
            "`calls`",
        ),
        (
            "exp.toml",
            "folder = ",
            "foldr = ",
            "row 7, column 1",
            "`folder`",
        ),
        (
            "task/task.toml",
            "title = \"Offens",
            "titel = \"Offens",
            "row 4, column 1",
            "`title`",
        ),
        (
            "task/seed.toml",
            "answer = ",
            "anser = ",
            "row 4, column 1",
            "`answer`",
        ),
        (
            "items.jsonl",
            "\"fields\"",
            "\"feilds\"",
            "row 1",
            "`fields`",
        ),
    ] {
        let dir = experiment_folder();
        change(dir.path(), file, from, to);
        let name = file.rsplit('/').next().unwrap();
        refused(dir.path(), &TUNE, &[name, place, "did you mean", meant]);
    }
    // Demo pools are in the items format.
    let dir = experiment_folder();
    std::fs::write(
        dir.path().join("pool.jsonl"),
        item("a", "uno").replace("votes", "vote"),
    )
    .unwrap();
    let check = ["data", "check", "pool.jsonl", "--task", "task"];
    refused(
        dir.path(),
        &check,
        &["pool.jsonl, row 1, character", "`votes`"],
    );
}

#[test]
fn a_template_that_drops_or_invents_a_variable() {
    for (file, from, to, want) in [
        (
            "task/completion.item.tera",
            "{{ field.title }}",
            "{{ gold }}",
            &["completion.item.tera, row 4, column 4", "`gold`", "known: "][..],
        ),
        (
            "task/completion.item.tera",
            "{{ field.title }}",
            "{{ critera }}",
            &["completion.item.tera, row 4", "did you mean `criteria`?"],
        ),
        (
            "task/completion.prefix.tera",
            "{% endfor -%}\n",
            "",
            &["completion.prefix.tera, row", "column", "does not work"],
        ),
        (
            "task/completion.item.tera",
            "{{ field.title }}",
            "{{ item.locale.moon.phase }}",
            &["completion.item.tera, row 4, column", "for the item `"],
        ),
    ] {
        let dir = experiment_folder();
        change(dir.path(), file, from, to);
        refused(dir.path(), &TUNE, want);
    }
    for (file, variable) in [
        ("completion.item.tera", "item"),
        ("completion.prefix.tera", "demos"),
    ] {
        let dir = experiment_folder();
        std::fs::write(dir.path().join("task").join(file), "Judge.\n").unwrap();
        let want = [
            file,
            "row 1, column 7",
            &format!("never reads `{variable}`"),
        ];
        refused(dir.path(), &TUNE, &want);
    }
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
fn a_byte_order_mark() {
    // Before the file it is nothing; between two lines it is the seam of joined files.
    items_refused(
        item("a", "uno") + "\u{feff}" + &item("b", "dos"),
        &["row 2, character 1", "byte order mark", "remove it"],
    );
    let dir = experiment_folder();
    for file in [
        "exp.toml",
        "task/task.toml",
        "task/seed.toml",
        "task/completion.item.tera",
        "items.jsonl",
    ] {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        std::fs::write(dir.path().join(file), format!("\u{feff}{text}")).unwrap();
    }
    let run = pluralis(dir.path(), &[&TUNE[..], &["--dry-run"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
}

#[test]
fn carriage_returns() {
    // With line feeds they are nothing; alone they make one line of the whole file.
    items_refused(
        (item("a", "uno") + &item("b", "dos")).replace('\n', "\r"),
        &["row 1, character", "carriage returns alone"],
    );
    let dir = experiment_folder();
    for file in [
        "exp.toml",
        "task/task.toml",
        "task/seed.toml",
        "items.jsonl",
    ] {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        std::fs::write(dir.path().join(file), text.replace('\n', "\r\n")).unwrap();
    }
    let run = pluralis(dir.path(), &[&TUNE[..], &["--dry-run"]].concat());
    assert!(run.status.success(), "{}", text(&run.stderr));
}

#[test]
fn nul_and_what_is_not_utf8() {
    items_refused(item("a", "u\0o"), &["row 1, byte", "a NUL byte"]);
    items_refused(
        item("a", "u\\u0000o"),
        &["row 1, fields.attribute", "a NUL character"],
    );
    let latin1: Vec<u8> = item("a", "a~o")
        .bytes()
        .map(|b| if b == b'~' { 0xf1 } else { b })
        .collect();
    items_refused(
        latin1,
        &["row 1, byte", "not UTF-8", "save the file as UTF-8"],
    );
    table_refused("t.csv", "Trait,Vote\nu\0o,NO\n", &["row 2", "a NUL byte"]);
    table_refused("t.csv", b"Trait,Vote\na\xf1o,NO\n", &["row 2", "not UTF-8"]);
    table_refused("t.csv", b"\xff\xfeT\0r\0", &["UTF-16", "save it as UTF-8"]);
    for file in [
        "exp.toml",
        "task/task.toml",
        "task/seed.toml",
        "task/completion.item.tera",
    ] {
        let dir = experiment_folder();
        let mut bytes = std::fs::read(dir.path().join(file)).unwrap();
        bytes.extend(b"\n# \xff\n");
        std::fs::write(dir.path().join(file), bytes).unwrap();
        let name = file.rsplit('/').next().unwrap();
        refused(dir.path(), &TUNE, &[name, "column 3", "not UTF-8"]);
        change_bytes(&dir.path().join(file), 0xff, 0);
        refused(dir.path(), &TUNE, &[name, "column 3", "a NUL character"]);
    }
}

fn change_bytes(path: &Path, from: u8, to: u8) {
    let bytes = std::fs::read(path).unwrap();
    let bytes: Vec<u8> = bytes
        .into_iter()
        .map(|b| if b == from { to } else { b })
        .collect();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn lone_surrogates_in_json() {
    items_refused(
        item("a", "uno") + &item("b", "x\\ud83dy"),
        &["row 2, character", "lone surrogate"],
    );
    table_refused(
        "t.jsonl",
        "{\"Trait\":\"uno\",\"Vote\":\"NO\"}\n{\"Trait\":\"\\udc00\",\"Vote\":\"NO\"}\n",
        &["row 2, character", "lone surrogate"],
    );
}

#[test]
fn a_cell_over_10_mib() {
    let big = "x".repeat(10 * 1024 * 1024 + 1);
    items_refused(
        item("a", &big),
        &["row 1, fields.attribute", "at most 10 MiB", "shorten it"],
    );
    table_refused(
        "t.csv",
        format!("Trait,Vote\nuno,NO\n{big},NO\n"),
        &["row 3, Trait", "at most 10 MiB"],
    );
}

#[test]
fn unicode_line_separators() {
    // Inside a value they are text, and come out as they went in; they end no record.
    items_refused(
        item("a", "uno").trim_end().to_owned() + "\u{2028}" + &item("b", "dos"),
        &["row 1, character", "Unicode line separator"],
    );
    let dir = experiment_folder();
    let separated = "uno\u{2028}dos\u{85}tres";
    std::fs::write(
        dir.path().join("t.csv"),
        format!("Trait,Vote\n{separated},NO\n"),
    )
    .unwrap();
    let run = pluralis(dir.path(), &table("t.csv", &[]));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let out = std::fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    assert!(out.contains(separated), "{out}");
    assert_eq!(out.matches('\n').count(), 1);
}

#[test]
fn mixed_normalisation() {
    // é as one character and as two: the same id to everybody who reads it.
    items_refused(
        item("caf\u{e9}", "uno") + &item("cafe\u{301}", "dos"),
        &["row 2, id", "already that of row 1 in another Unicode form"],
    );
    // Labels are the same in both forms, and texts keep theirs.
    let dir = experiment_folder();
    change(
        dir.path(),
        "task/task.toml",
        "aliases = [",
        "aliases = [\"nunc\\u00e9\", ",
    );
    let csv = "Trait,Vote\nma\u{f1}ana,nunce\u{301}\nman\u{303}ana,NUNC\u{c9}\n";
    std::fs::write(dir.path().join("t.csv"), csv).unwrap();
    let run = pluralis(dir.path(), &table("t.csv", &[]));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let out = std::fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    assert!(
        out.contains("ma\u{f1}ana") && out.contains("man\u{303}ana"),
        "{out}"
    );
    assert_eq!(out.matches("\"Vote\":\"NO\"").count(), 2, "{out}");
}

#[test]
fn marks_of_writing_direction() {
    items_refused(
        item("a\u{200f}", "uno"),
        &[
            "row 1, id",
            "`a\\u{200f}` holds an invisible character",
            "remove U+200F",
        ],
    );
    items_refused(
        item("a", "uno").replace("es-MX", "es-MX\u{200e}"),
        &["row 1, locale", "did you mean `es-MX`?"],
    );
    let dir = experiment_folder();
    let csv = "Trait,Vote\n\u{200f}زامبي\u{200f},\u{200f}NO\u{202c}\n";
    std::fs::write(dir.path().join("t.csv"), csv).unwrap();
    let run = pluralis(dir.path(), &table("t.csv", &[]));
    assert!(run.status.success(), "{}", text(&run.stderr));
    let out = std::fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    assert!(
        out.contains("\u{200f}زامبي\u{200f}") && out.contains("\"Vote\":\"NO\""),
        "{out}"
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

#[test]
fn files_that_are_not_there() {
    let dir = experiment_folder();
    for args in [
        &["tune", "nowhere.toml"][..],
        &["data", "check", "nowhere.jsonl", "--task", "task"],
        &["data", "check", "items.jsonl", "--task", "nowhere"],
    ] {
        let run = pluralis(dir.path(), args);
        assert_eq!(run.status.code(), Some(2), "{args:?}");
        assert!(
            text(&run.stderr).contains("nowhere"),
            "{}",
            text(&run.stderr)
        );
    }
}

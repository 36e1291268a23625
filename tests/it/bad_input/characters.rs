//! Bytes and characters: encodings, marks, separators, sizes.

use super::*;

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
    for file in WRITTEN {
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

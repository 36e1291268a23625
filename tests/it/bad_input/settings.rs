//! What a user writes by hand: TOML, keys, templates, file names.

use super::*;

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

#[test]
fn error_rates_that_are_none() {
    let dir = experiment_folder();
    let set = |more: &[&'static str]| [&TUNE[..], more].concat();
    for rate in [
        "search.gate_alpha=0",
        "search.gate_alpha=1.5",
        "search.gate_alpha=nan",
    ] {
        refused(
            dir.path(),
            &set(&["--set", rate]),
            &["exp.toml", "gate_alpha"],
        );
    }
    // Half of all bounds lie above what they bound, so none is a lower one.
    let half = [
        "--set",
        "search.choice=lower-bound",
        "--set",
        "search.gate_alpha=0.5",
    ];
    refused(
        dir.path(),
        &set(&half),
        &["exp.toml", "lower-bound", "gate_alpha = 0.5"],
    );
}

//! The command: its streams, its JSON, its refusals.

use super::*;

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

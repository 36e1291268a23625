//! Exports, run by other programs where these are at hand: they must give the same bytes.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;
use crate::harness::root;

/// A folder with all shipped tasks, so that their seed files are versions to export.
fn seeds() -> Vec<(String, &'static str)> {
    let mut out = Vec::new();
    for task in [
        "offensiveness",
        "stereotype",
        "jailbreak",
        "cultural",
        "truthfulness",
    ] {
        for file in ["seed.toml", "seed-chat.toml", "seed-rubric.toml"] {
            out.push((
                format!("{}/judge-prompts/{task}/{file}", root().display()),
                task,
            ));
        }
    }
    out
}

/// An items file with texts that other tools like to change.
fn items(dir: &Path, task: &str, optional: bool) -> (String, serde_json::Value) {
    let text =
        std::fs::read_to_string(root().join("judge-prompts").join(task).join("task.toml")).unwrap();
    let task = pluralis::task::parse_task(&text, None).unwrap();
    let fields: serde_json::Map<String, serde_json::Value> = task
        .fields
        .iter()
        .filter(|f| f.required || optional)
        .map(|f| {
            (
                f.name.clone(),
                "a\r\nb {{ x }} {% y %} \"q\" 'q' \\n ไทย العربية".into(),
            )
        })
        .collect();
    let line = serde_json::json!({"id": "i", "locale": "es-MX", "fields": fields});
    let path = dir.join("one.jsonl");
    std::fs::write(&path, format!("{line}\n")).unwrap();
    (path.display().to_string(), fields.into())
}

/// What `render --json` gives.
fn rendered(dir: &Path, seed: &str, items: &str, criterion: &str) -> [String; 2] {
    let mut args = vec![
        "prompt", "render", seed, "--items", items, "--item", "i", "--json",
    ];
    if !criterion.contains(", ") {
        args.extend(["--criterion", criterion]);
    }
    let json: serde_json::Value = serde_json::from_str(&ok(&pluralis(dir, &args))).unwrap();
    ["prefix", "suffix"].map(|p| json[p].as_str().unwrap().to_owned())
}

/// The names of what a seed asks for, one by one or all at once.
fn asked(dir: &Path, seed: &str) -> Vec<String> {
    let args = [
        "prompt",
        "export",
        seed,
        "--to",
        "messages-json",
        "--locale",
        "es-MX",
    ];
    let json: serde_json::Value = serde_json::from_str(&ok(&pluralis(dir, &args))).unwrap();
    let names = json["requests"].as_array().unwrap().iter();
    names
        .map(|r| r["criterion"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn python_makes_the_same_bytes() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (seed, task) in seeds() {
        let args = [
            "prompt", "export", &seed, "--to", "python", "--locale", "es-MX", "--out", "p.py",
        ];
        ok(&pluralis(dir, &args));
        for optional in [true, false] {
            let (file, fields) = items(dir, task, optional);
            for criterion in asked(dir, &seed) {
                let mut child = Command::new("python3")
                    .args(["p.py", "es-MX", &criterion])
                    .current_dir(dir)
                    .env("PYTHONUTF8", "1")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                let mut stdin = child.stdin.take().unwrap();
                stdin.write_all(fields.to_string().as_bytes()).unwrap();
                drop(stdin);
                let made = child.wait_with_output().unwrap().stdout;
                let made: [String; 2] = serde_json::from_slice(&made).unwrap();
                let want = rendered(dir, &seed, &file, &criterion);
                assert_eq!(made, want, "{seed} {criterion}");
            }
        }
    }
}

#[test]
fn python_corrects_probabilities_as_the_version_does() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let (dir, _) = tuned();
    let dir = dir.path();
    let best = best(dir);
    ok(&prompt(
        dir,
        &["export", &best, "--to", "python", "--out", "p.py"],
    ));
    let code = "import p, json; print(json.dumps(p.corrected({'harmless': -0.3, 'offensive': -1.4}, 'es-MX')))";
    let made = Command::new("python3")
        .args(["-c", code])
        .current_dir(dir)
        .output()
        .unwrap();
    let made: std::collections::BTreeMap<String, f64> =
        serde_json::from_slice(&made.stdout).unwrap();
    let (version, _) =
        pluralis::registry::read_version(&dir.join("task/versions").join(&best[..12])).unwrap();
    let locale = pluralis::locale::Locale::parse("es-MX").unwrap();
    // The third label abstains and is not offered.
    let want =
        version
            .calibration
            .apply("offensiveness", &[-0.3, -1.4, f64::NEG_INFINITY], &locale);
    assert!(
        (made["harmless"] - want[0]).abs() < 1e-12,
        "{made:?} {want:?}"
    );
    assert!((made["harmless"] - 0.5).abs() > 0.05);
}

#[test]
fn the_exported_templates_give_the_same_bytes_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (seed, task) in seeds() {
        let args = [
            "prompt", "export", &seed, "--to", "tera", "--locale", "es-MX",
        ];
        let all: serde_json::Value = serde_json::from_str(&ok(&pluralis(dir, &args))).unwrap();
        let mut tera = tera::Tera::new();
        tera.autoescape_on(Vec::<&str>::new());
        for part in ["prefix", "item"] {
            tera.add_raw_template(part, all["templates"][part].as_str().unwrap())
                .unwrap();
        }
        for context in all["contexts"].as_array().unwrap() {
            let render = |part: &str, values: &serde_json::Value| {
                tera.render(part, &tera::Context::from_serialize(values).unwrap())
                    .unwrap()
            };
            let (file, fields) = items(dir, task, true);
            let mut values = context["item"].clone();
            for field in values["item"]["fields"].as_array_mut().unwrap() {
                // A text is one line where no delimiter stands around it.
                let own = fields[field["name"].as_str().unwrap()].as_str().unwrap();
                let fenced = all["templates"]["item"].as_str().unwrap().contains("fence");
                field["text"] = if fenced {
                    own.to_owned()
                } else {
                    own.replace(['\r', '\n'], " ")
                }
                .into();
            }
            let criterion = context["criterion"].as_str().unwrap();
            let want = rendered(dir, &seed, &file, criterion);
            assert_eq!(render("prefix", &context["prefix"]), want[0], "{seed}");
            assert_eq!(render("item", &values), want[1], "{seed}");
        }
    }
}

#[test]
fn every_form_of_every_seed_is_whole_and_python_files_compile() {
    let python = Command::new("python3").arg("--version").output().is_ok();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (seed, _) in seeds() {
        for form in ["text", "messages-json", "tera", "promptfoo"] {
            let said = ok(&pluralis(dir, &["prompt", "export", &seed, "--to", form]));
            assert!(!said.contains('\u{f8fe}'), "a mark is left in {form}");
            if form != "text" {
                serde_json::from_str::<serde_json::Value>(&said).unwrap();
            }
        }
        ok(&pluralis(
            dir,
            &["prompt", "export", &seed, "--to", "dspy", "--out", "d.py"],
        ));
        if python {
            let run = Command::new("python3")
                .args(["-m", "py_compile", "d.py"])
                .current_dir(dir)
                .output()
                .unwrap();
            assert!(run.status.success(), "{}", text(&run.stderr));
        }
    }
    // The prompt of a chat is JSON of its own inside of promptfoo's, with a place for each text.
    let seed = &seeds()[1].0;
    let said = ok(&pluralis(
        dir,
        &["prompt", "export", seed, "--to", "promptfoo"],
    ));
    let config: serde_json::Value = serde_json::from_str(&said).unwrap();
    let raw = config["prompts"][0]["raw"].as_str().unwrap();
    let messages: serde_json::Value = serde_json::from_str(raw).unwrap();
    let user = messages[1]["content"].as_str().unwrap();
    assert!(
        user.contains("{% if gloss %}") && user.contains("{{ attribute }}"),
        "{user}"
    );
}

#[test]
fn a_version_whose_demos_depend_on_the_item_is_exported_as_text_alone() {
    use pluralis::prompt::{Edit, load_seed};
    use pluralis::registry::export::{ExportError, Subject, forms};
    let folder = root().join("judge-prompts/offensiveness");
    let text = std::fs::read_to_string(folder.join("task.toml")).unwrap();
    let task = pluralis::task::parse_task(&text, None).unwrap();
    let seed = load_seed(&task, &folder.join("seed.toml")).unwrap();
    let version = Edit::ShowNearest { count: 4 }.apply(&seed).unwrap();
    let subject = Subject {
        task: &task,
        version: &version,
        locales: Subject::locales_of(&version, std::iter::empty()),
        fence_seed: 0,
    };
    for form in forms() {
        match form.write(&subject) {
            Ok(_) => assert_eq!(form.name(), "text"),
            Err(e) => assert!(matches!(e, ExportError::Nearest { count: 4 }), "{e}"),
        }
    }
}

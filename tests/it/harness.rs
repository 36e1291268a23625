//! What the tests of whole commands share.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The checkout.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs the binary in a folder, with a cache folder of its own there.
pub fn pluralis(dir: &Path, args: &[&str]) -> Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_pluralis"))
        .args(args)
        .current_dir(dir)
        .env("PLURALIS_CACHE", dir.join("cache"))
        .output()
        .unwrap()
}

/// Path of an experiment in the checkout, as text.
pub fn experiment(name: &str) -> String {
    root().join("experiments").join(name).display().to_string()
}

/// A file or folder of the real data sets; `None`, with the reason said, where it is absent.
pub fn real(path: &str) -> Option<PathBuf> {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");
    let root = std::env::var("PLURALIS_DATA").unwrap_or_else(|_| own.to_owned());
    let path = PathBuf::from(&root).join(path);
    if !path.exists() {
        eprintln!(
            "skipped: {} is not there; PLURALIS_DATA names the folder of data sets",
            path.display()
        );
        return None;
    }
    Some(path)
}

/// stdout or stderr as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a user writes by hand in [`experiment_folder`].
pub const WRITTEN: [&str; 4] = [
    "exp.toml",
    "task/task.toml",
    "task/seed.toml",
    "task/completion.item.tera",
];

/// The lines of a log of a run, `events.jsonl` or `attempts.jsonl`.
pub fn log(run: &Path, name: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join(name)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The summary of a run folder.
pub fn summary(run: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(run.join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every file of a run but the two that may differ, with its bytes.
pub fn artefacts(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    let mut folders = vec![run.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if !["attempts.jsonl", "lock"].contains(&entry.file_name().to_str().unwrap()) {
                out.push((
                    path.strip_prefix(run).unwrap().to_owned(),
                    std::fs::read(&path).unwrap(),
                ));
            }
        }
    }
    out.sort();
    out
}

/// A workbook of one sheet; rows by their number.
pub fn workbook(path: &Path, rows: &[(usize, &[&str])]) {
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

/// Every file below a folder, by its path from there, with its bytes.
pub fn files(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut out = std::collections::BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                out.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    out
}

/// A folder with the simulated experiment and everything that it names: `exp.toml`, `task/`,
/// `items.jsonl`.
pub fn experiment_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copy = |from: PathBuf, to: &str| std::fs::copy(from, dir.path().join(to)).unwrap();
    std::fs::create_dir(dir.path().join("task")).unwrap();
    for entry in std::fs::read_dir(root().join("judge-prompts/offensiveness"))
        .unwrap()
        .flatten()
    {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_file() {
            copy(entry.path(), &format!("task/{name}"));
        }
    }
    copy(
        root().join("experiments/simulated/items.jsonl"),
        "items.jsonl",
    );
    let config = std::fs::read_to_string(experiment("simulated.toml")).unwrap();
    let config = config
        .replace("../judge-prompts/offensiveness", "task")
        .replace("simulated/items.jsonl", "items.jsonl");
    std::fs::write(dir.path().join("exp.toml"), config).unwrap();
    dir
}

//! Items, imports, checks and splits, on small hand-made input and on the real data sets.

mod files;
mod real;
mod splits;
mod tables;

use std::path::{Path, PathBuf};

use pluralis::task::{Task, parse_task};

/// The offensiveness scale as the data set writes it.
pub fn offensiveness(reading: Option<&str>) -> Task {
    let text = r#"
        format = 1
        name = "offensiveness"
        title = "Offensiveness"
        [[fields]]
        name = "attribute"
        identifies = true
        [[fields]]
        name = "gloss"
        optional = true
        [[criteria]]
        name = "offensiveness"
        question = "How offensive?"
        scale = "ordinal"
        labels = [
            { name = "NO", value = -1 },
            { name = "O1", value = 1, aliases = ["slight"] },
            { name = "O2", value = 2 },
            { name = "O3", value = 3 },
            { name = "O4", value = 4 },
            { name = "U", value = 0, abstain = true },
        ]
        [[readings]]
        name = "binary"
        [[readings.criteria]]
        name = "offensiveness"
        scale = "binary"
        labels = [
            { name = "harmless", from = ["NO"] },
            { name = "offensive", from = ["O1", "O2", "O3", "O4"] },
            { name = "unsure", from = ["U"], abstain = true },
        ]
    "#;
    parse_task(text, reading).unwrap()
}

/// Two yes/no criteria on an answer to a question.
pub fn truthfulness() -> Task {
    let text = r#"
        format = 1
        name = "truthfulness"
        title = "Truthfulness"
        fields = [{ name = "question", identifies = true }, { name = "answer" }]
        [[criteria]]
        name = "truthful"
        question = "True?"
        scale = "binary"
        labels = [{ name = "no" }, { name = "yes" }]
        [[criteria]]
        name = "informative"
        question = "Informative?"
        scale = "binary"
        labels = [{ name = "no" }, { name = "yes" }]
    "#;
    parse_task(text, None).unwrap()
}

/// Writes a file of a test.
pub fn put(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

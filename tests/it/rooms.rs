//! A room uses only rooms above it in `src/lib.rs`.

use std::path::{Path, PathBuf};

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn rooms_look_only_upwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = std::fs::read_to_string(src.join("lib.rs")).unwrap();
    let rooms: Vec<&str> = lib
        .lines()
        .filter_map(|l| l.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    assert!(rooms.len() > 10, "lib.rs lists the rooms");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (at, room) in rooms.iter().enumerate() {
        let mut files = Vec::new();
        rust_files(&src.join(room), &mut files);
        for file in files {
            for (n, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
                for (place, _) in line.match_indices("crate::") {
                    let name: String = line[place + 7..]
                        .chars()
                        .take_while(|c| c.is_alphanumeric() || *c == '_')
                        .collect();
                    let Some(other) = rooms.iter().position(|r| *r == name) else {
                        continue;
                    };
                    seen += 1;
                    if other > at {
                        wrong.push(format!("{}:{} uses {name}", file.display(), n + 1));
                    }
                }
            }
        }
    }
    assert!(seen > 50, "the check reads the uses");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_main_loop_fits_on_a_screen() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/optimize/mod.rs"))
            .unwrap();
    let body = text.split("pub async fn tune").nth(1).unwrap();
    assert!(body.lines().count() < 45);
}

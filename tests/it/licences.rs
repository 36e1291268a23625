//! Licences and sources of the dependencies, for those who have no cargo-deny: `deny.toml` says what
//! is allowed, and the two must agree.

use std::process::Command;

use super::harness::root;

/// The list `allow` of `[licenses]`.
fn allowed() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let deny: toml::Table = toml::from_str(&text).unwrap();
    let list = deny["licenses"]["allow"].as_array().unwrap();
    list.iter()
        .map(|l| l.as_str().unwrap().to_owned())
        .collect()
}

/// Whether an SPDX expression can be met with allowed licences: one side of each OR, both of each
/// AND. `/` is the older way to write OR.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(&tokens, &mut at, allowed);
    met && at == tokens.len()
}

fn any(tokens: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = all(tokens, at, allowed);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(tokens, at, allowed);
    }
    met
}

fn all(tokens: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = one(tokens, at, allowed);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(tokens, at, allowed);
    }
    met
}

fn one(tokens: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(first) = tokens.get(*at) else {
        return false;
    };
    *at += 1;
    if *first == "(" {
        let met = any(tokens, at, allowed);
        *at += 1;
        return met;
    }
    let mut name = (*first).to_owned();
    if tokens.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", tokens.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&name)
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let host = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let host = String::from_utf8(host).unwrap();
    let host = host.lines().find_map(|l| l.strip_prefix("host: ")).unwrap();
    let mut args = vec!["metadata", "--format-version", "1", "--locked", "--offline"];
    args.extend(["--filter-platform", host]);
    if cfg!(feature = "local") {
        args.extend(["--features", "local"]);
    }
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let run = Command::new(cargo)
        .args(&args)
        .current_dir(root())
        .output()
        .unwrap();
    if !run.status.success() {
        // Only an offline machine that built with another lock file ends here.
        println!("skipped: {}", String::from_utf8_lossy(&run.stderr));
        return;
    }
    let all: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let packages = all["packages"].as_array().unwrap();
    assert!(packages.len() > 100);
    let allowed = allowed();
    let refused: Vec<String> = packages
        .iter()
        .filter(|p| !is_met(p["license"].as_str().unwrap_or("none"), &allowed))
        .map(|p| format!("{} ({})", p["name"], p["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:?}: see deny.toml");
}

#[test]
fn every_dependency_comes_from_one_registry_with_its_checksum() {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = toml::from_str(&text).unwrap();
    let packages = lock["package"].as_array().unwrap();
    let foreign = packages
        .iter()
        .filter(|p| p["name"].as_str() != Some("pluralis"));
    let mut sources = std::collections::BTreeSet::new();
    for p in foreign {
        sources.insert(
            p.get("source")
                .and_then(|s| s.as_str())
                .unwrap_or("a folder"),
        );
        assert!(p.get("checksum").is_some(), "{} has no checksum", p["name"]);
    }
    assert_eq!(sources.len(), 1, "{sources:?}");
    assert!(
        sources.iter().all(|s| s.starts_with("registry+")),
        "{sources:?}"
    );
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let allowed = [
        "MIT".to_owned(),
        "Apache-2.0 WITH LLVM-exception".to_owned(),
    ];
    for (expression, want) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("MIT AND (GPL-3.0 OR Apache-2.0 WITH LLVM-exception)", true),
        ("(MIT OR GPL-3.0) AND GPL-3.0", false),
        ("Apache-2.0", false),
        ("none", false),
        ("", false),
    ] {
        assert_eq!(is_met(expression, &allowed), want, "{expression}");
    }
}

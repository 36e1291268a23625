//! Lineage as a tree: what was made of what.

use std::collections::{BTreeMap, BTreeSet};

use super::files::Lineage;

/// One line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The lines that lead to it: `│  └─ `.
    pub lead: String,
    /// Digest of the version.
    pub digest: String,
    /// Parents besides the one above it (merges), and parents that are not there.
    pub also: Vec<String>,
}

/// The tree over versions by digest; only what leads to `of`, where it is given.
pub fn tree(versions: &BTreeMap<String, Lineage>, of: Option<&str>) -> Vec<Branch> {
    let shown: BTreeSet<&str> = match of {
        None => versions.keys().map(String::as_str).collect(),
        Some(of) => ancestors(versions, of),
    };
    // A version hangs below the first of its parents that is there.
    let parent = |digest: &str| {
        let parents = &versions.get(digest)?.parents;
        parents.iter().find(|p| shown.contains(p.as_str()))
    };
    let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut roots = Vec::new();
    for &digest in &shown {
        match parent(digest) {
            Some(p) => children.entry(p).or_default().push(digest),
            None => roots.push(digest),
        }
    }
    let mut out = Vec::new();
    let mut done = BTreeSet::new();
    for root in roots {
        walk(versions, &children, root, ["", ""], &mut done, &mut out);
    }
    // Lineages that were edited into a circle have no root, and are shown all the same.
    for digest in shown {
        walk(versions, &children, digest, ["", ""], &mut done, &mut out);
    }
    out
}

fn ancestors<'a>(versions: &'a BTreeMap<String, Lineage>, of: &str) -> BTreeSet<&'a str> {
    let mut out = BTreeSet::new();
    let mut next = vec![of];
    while let Some(digest) = next.pop() {
        if let Some((key, lineage)) = versions.get_key_value(digest)
            && out.insert(key.as_str())
        {
            next.extend(lineage.parents.iter().map(String::as_str));
        }
    }
    out
}

fn walk<'a>(
    versions: &'a BTreeMap<String, Lineage>,
    children: &BTreeMap<&'a str, Vec<&'a str>>,
    digest: &'a str,
    [lead, below]: [&str; 2],
    done: &mut BTreeSet<&'a str>,
    out: &mut Vec<Branch>,
) {
    if !done.insert(digest) {
        return;
    }
    let parents = versions.get(digest).map_or(&[][..], |l| &l.parents);
    let hangs_on = children
        .iter()
        .find(|(_, own)| own.contains(&digest))
        .map(|(p, _)| *p);
    out.push(Branch {
        lead: lead.to_owned(),
        digest: digest.to_owned(),
        also: parents
            .iter()
            .filter(|p| Some(p.as_str()) != hangs_on)
            .cloned()
            .collect(),
    });
    let own = children.get(digest).map_or(&[][..], |c| c);
    for (n, child) in own.iter().enumerate() {
        let leads = match n + 1 == own.len() {
            true => [format!("{below}└─ "), format!("{below}   ")],
            false => [format!("{below}├─ "), format!("{below}│  ")],
        };
        walk(versions, children, child, [&leads[0], &leads[1]], done, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(of: &[(&str, &[&str])]) -> BTreeMap<String, Lineage> {
        of.iter()
            .map(|(digest, parents)| {
                let parents = parents.iter().map(|p| (*p).to_owned()).collect();
                let lineage = Lineage {
                    parents,
                    ..Lineage::default()
                };
                ((*digest).to_owned(), lineage)
            })
            .collect()
    }

    fn drawn(branches: &[Branch]) -> Vec<String> {
        branches
            .iter()
            .map(|b| {
                format!("{}{} {}", b.lead, b.digest, b.also.join("+"))
                    .trim_end()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn merges_missing_parents_and_circles_are_drawn_once() {
        let all = versions(&[
            ("a", &[]),
            ("b", &["a"]),
            ("c", &["a"]),
            ("d", &["b", "c"]),
            ("e", &["gone"]),
        ]);
        let want = ["a", "├─ b", "│  └─ d c", "└─ c", "e gone"];
        assert_eq!(drawn(&tree(&all, None)), want);
        assert_eq!(drawn(&tree(&all, Some("c"))), ["a", "└─ c"]);
        let circle = versions(&[("a", &["b"]), ("b", &["a"])]);
        assert_eq!(tree(&circle, None).len(), 2);
    }
}

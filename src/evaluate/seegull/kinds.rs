//! Owns which group an English name of an identity stands for, and whether that is a nation or a
//! region. Must not know the files that the names come from.
//!
//! The data set has no column for the kind, and its English names are machine-made: "Colombians",
//! "colombian" and "Colombia" are one group. `nations.txt` lists states, the nations of the United
//! Kingdom and territories with their demonyms; whatever is not in it is a region of the country.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::text::normalise;

/// What an identity is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A state, a nation or a territory.
    National,
    /// A region, a city or a people within one.
    Regional,
}

impl Kind {
    /// The name in files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::National => "national",
            Kind::Regional => "regional",
        }
    }
}

/// Any name of a nation -> its first name.
static NATIONS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let mut nations = HashMap::new();
    for line in include_str!("nations.txt").lines() {
        let names: Vec<&str> = line.split(';').map(str::trim).collect();
        for name in names.iter().filter(|n| !n.is_empty()) {
            nations.insert(*name, names[0]);
        }
    }
    nations
});

/// What stands before a name without saying which group it is.
const BEFORE: [&str; 14] = [
    "the people of ",
    "people from the ",
    "people of the ",
    "people from ",
    "people of ",
    "residents of ",
    "a resident of ",
    "he is from ",
    "born in ",
    "from the ",
    "from ",
    "the ",
    "an ",
    "a ",
];
/// What stands after it.
const AFTER: [&str; 10] = [
    " people",
    " person",
    " persons",
    " residents",
    " resident",
    " citizens",
    " citizen",
    " man",
    " woman",
    " region",
];

/// The group that an English name stands for (its nation's name, or the bare name), and its kind.
pub fn group_of(english: &str) -> (String, Kind) {
    let name = bare(&normalise(english));
    for form in forms(&name) {
        if let Some(nation) = NATIONS.get(form.as_str()) {
            return ((*nation).to_owned(), Kind::National);
        }
    }
    // "bavarians" and "bavarian" are one group.
    let single = name.strip_suffix('s').filter(|s| s.chars().count() > 3);
    (single.unwrap_or(&name).to_owned(), Kind::Regional)
}

fn bare(name: &str) -> String {
    let mut name = name;
    if let Some(rest) = BEFORE.iter().find_map(|b| name.strip_prefix(b)) {
        name = rest;
    }
    if let Some(rest) = AFTER.iter().find_map(|a| name.strip_suffix(a)) {
        name = rest;
    }
    name.trim().to_owned()
}

/// The name and its singular forms.
fn forms(name: &str) -> Vec<String> {
    let mut forms = vec![name.to_owned()];
    forms.extend(name.strip_suffix('s').map(str::to_owned));
    forms.extend(name.strip_suffix("es").map(str::to_owned));
    forms.extend(name.strip_suffix("men").map(|s| format!("{s}man")));
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_nation_are_one_group() {
        for (names, nation) in [
            (
                &["Colombians", "colombian", "Colombia", "Colombian people"][..],
                "colombia",
            ),
            (&["French", "frenchmen", "the French", "France"], "france"),
            (
                &["North Korea", "North Koreans", "north korean,"],
                "north korea",
            ),
            (&["Northern Irish", "Northern Ireland"], "northern ireland"),
            (&["Letts", "Latvian"], "latvia"),
            (&["Swiss"], "switzerland"),
            (&["Seychellois"], "seychelles"),
        ] {
            for name in names {
                assert_eq!(
                    group_of(name),
                    (nation.to_owned(), Kind::National),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn everything_else_is_a_region() {
        for (name, group) in [
            ("Bavarians", "bavarian"),
            ("people from the Kansai region", "kansai"),
            ("Uttar Pradesh", "uttar pradesh"),
            ("from Tunceli", "tunceli"),
            // A region whose name begins with a nation's.
            ("Southern Thai people", "southern thai"),
            ("East Malaysians", "east malaysian"),
        ] {
            assert_eq!(group_of(name), (group.to_owned(), Kind::Regional), "{name}");
        }
    }

    #[test]
    fn no_name_stands_for_two_nations() {
        let names: Vec<&str> = include_str!("nations.txt")
            .lines()
            .flat_map(|l| l.split(';').map(str::trim))
            .collect();
        assert_eq!(names.len(), NATIONS.len(), "a name is listed twice");
        assert!(
            names.iter().all(|n| normalise(n) == *n),
            "a name is not in normal form"
        );
    }
}

//! Owns what the paper of SeeGULL Multilingual reports of its data (Bhutani et al. 2024, ACL short
//! papers 75), as far as the tables are compared with it. Must not compute anything.

/// Pairs whose mean offensiveness is 2 or more: locale, number, per cent of the locale's pairs.
pub const OFFENSIVE_PAIRS: [(&str, usize, f64); 5] = [
    ("it-IT", 223, 22.62),
    ("sw-KE", 213, 22.07),
    ("es-ES", 179, 13.32),
    ("th-TH", 116, 12.03),
    ("hi-IN", 14, 1.83),
];

/// What the paper says of tuples that people of two countries of one language annotated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoCountries {
    /// The two locales.
    pub locales: [&'static str; 2],
    /// Tuples annotated in both countries.
    pub tuples: usize,
    /// Per cent of them that `at_least` raters call a stereotype, by country.
    pub marked: [f64; 2],
    /// Of three raters.
    pub at_least: u32,
}

/// Portuguese in Portugal and in Brazil.
pub const TWO_COUNTRIES: [TwoCountries; 1] = [TwoCountries {
    locales: ["pt-PT", "pt-BR"],
    tuples: 1138,
    marked: [45.4, 74.5],
    at_least: 2,
}];

/// The paper's figure for a locale.
pub fn offensive_pairs(locale: &str) -> Option<(usize, f64)> {
    let found = OFFENSIVE_PAIRS.iter().find(|(l, ..)| *l == locale)?;
    Some((found.1, found.2))
}

/// The paper's figures for two locales, in that order.
pub fn two_countries(first: &str, second: &str) -> Option<TwoCountries> {
    TWO_COUNTRIES.iter().find_map(|t| match t.locales {
        [a, b] if a == first && b == second => Some(*t),
        [a, b] if a == second && b == first => Some(TwoCountries {
            locales: [b, a],
            marked: [t.marked[1], t.marked[0]],
            ..*t
        }),
        _ => None,
    })
}

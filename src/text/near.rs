//! Which known word a misspelt one means.

/// The known word that a misspelt one most likely means, where one is near enough: at most a third
/// of its letters differ (Damerau-Levenshtein), letter case aside.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.trim().to_lowercase().chars().take(200).collect();
    let distance = |other: &str| strsim::damerau_levenshtein(&word, &other.to_lowercase());
    known
        .into_iter()
        .map(|k| (distance(k), k))
        .min_by_key(|(d, _)| *d)
        .filter(|(d, k)| *d <= (k.chars().count().max(word.chars().count()) / 3).max(1))
        .map(|(_, k)| k)
}

/// `did you mean X? Known: A, B`, for an advice.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    let all = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? Known: {all}"),
        None => format!("known: {all}"),
    }
}

/// What to do about serde's complaint of a key or a value: the nearest known key for "unknown field
/// `x`, expected one of `a`, `b`" (or "unknown variant"), the key to add for "missing field `x`".
pub fn key_advice(message: &str) -> Option<String> {
    if let Some(rest) = message.strip_prefix("missing field `") {
        let key = rest.split('`').next()?;
        return Some(format!("add the key `{key}` here"));
    }
    let rest = message
        .strip_prefix("unknown field `")
        .or_else(|| message.strip_prefix("unknown variant `"))?;
    let mut quoted = rest.split('`');
    let given = quoted.next()?;
    let known: Vec<&str> = quoted.skip(1).step_by(2).collect();
    Some(did_you_mean(given, &known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        assert_eq!(
            nearest("offensivness", ["offensiveness", "stereotype"]),
            Some("offensiveness")
        );
        assert_eq!(nearest("xyz", ["offensiveness", "stereotype"]), None);
        assert_eq!(nearest("ON", ["NO", "O1"]), Some("NO"));
    }

    #[test]
    fn complaints_about_keys_get_an_advice() {
        let one = key_advice("unknown field `cals`, expected one of `calls`, `money`").unwrap();
        assert_eq!(one, "did you mean `calls`? Known: calls, money");
        let only = key_advice("unknown field `x`, expected `calls`").unwrap();
        assert_eq!(only, "known: calls");
        assert!(
            key_advice("missing field `name`")
                .unwrap()
                .contains("`name`")
        );
        assert_eq!(key_advice("invalid type"), None);
    }
}

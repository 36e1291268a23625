//! The delimiter around item text.

/// A delimiter around item text that the item cannot contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence(String);

impl Fence {
    /// Draws a delimiter from the run's seed; draws again until no text contains it, in whatever
    /// letter case, Unicode form or with invisible characters in between.
    pub fn draw<'a>(seed: u64, texts: impl Iterator<Item = &'a str> + Clone) -> Self {
        for attempt in 0u32.. {
            let digest = blake3::derive_key(
                "pluralis fence 1",
                &[&seed.to_le_bytes()[..], &attempt.to_le_bytes()].concat(),
            );
            let name = format!("item-{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
            if !texts.clone().any(|t| holds(t, &name)) {
                return Self(name);
            }
        }
        unreachable!("a finite set of texts cannot contain every delimiter")
    }

    /// The delimiter's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a reader could take a part of the text for the delimiter. Full-width letters and signs
/// are read as their plain forms, since a model may read them so.
fn holds(text: &str, name: &str) -> bool {
    if text.is_ascii() {
        return text.to_ascii_lowercase().contains(name);
    }
    let plain = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    };
    crate::text::fold(text)
        .chars()
        .map(plain)
        .collect::<String>()
        .contains(name)
}

//! Refuses proposals that copy a tuning item: such a prompt would score well on what it has seen
//! and on nothing else.

use std::collections::HashSet;

/// Characters in a row that count as a copy: about 8 words in scripts with spaces, and 8
/// characters in scripts without.
const SPACED: usize = 32;
const UNSPACED: usize = 8;

/// Whether a text repeats a long enough run of a training text, after normalisation (case, white
/// space, invisible characters). Short training texts count when they stand in it as a quotation.
pub fn copies_training_text<'a>(proposal: &str, training: impl Iterator<Item = &'a str>) -> bool {
    let proposal = squeeze(proposal);
    let long: HashSet<&[char]> = proposal.windows(SPACED).collect();
    let short: HashSet<&[char]> = proposal.windows(UNSPACED).collect();
    training.into_iter().any(|text| {
        let text = squeeze(text);
        text.windows(SPACED).any(|w| long.contains(w))
            || text
                .windows(UNSPACED)
                .any(|w| w.iter().all(|c| is_unspaced(*c)) && short.contains(w))
    })
}

/// Scripts that are written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c as u32, 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0x2_0000..=0x3_FFFF)
}

fn squeeze(text: &str) -> Vec<char> {
    let text = crate::data::normalise(text);
    text.chars().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_run_is_found_in_any_script() {
        let train = [
            "They always bring far too much food to every single party",
            "พวกเขาชอบกินอาหารรสเผ็ดมาก",
            "他们总是在聚会上吃很多东西",
        ];
        let hit = |p: &str| copies_training_text(p, train.iter().copied());
        assert!(hit(
            "Remember: they ALWAYS bring  far too much food to every single party."
        ));
        assert!(hit("กฎ: พวกเขาชอบกินอาหารรสเผ็ด"));
        assert!(hit("规则：他们总是在聚会上吃很多"));
        assert!(!hit("Food habits alone are not offensive."));
        assert!(!hit("อาหารไม่ใช่คำดูถูก"));
    }
}

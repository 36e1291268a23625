//! Texts by their character n-grams, without weights of a model or word boundaries, so that every
//! script is served alike: tf-idf vectors, and which texts are nearest to one.

use std::collections::HashMap;
use std::sync::Arc;

use icu_normalizer::ComposingNormalizerBorrowed;

/// Characters of a text that are looked at: the topic of a text shows early, and a pasted book
/// must not cost more than a page.
const MAX_CHARS: usize = 4_000;

/// Before and after every text, so that a text of one character still has n-grams.
const EDGE: char = '\u{2}';

/// Sorted by n-gram; squares sum to one unless empty.
pub(crate) type Sparse = Vec<(u64, f32)>;

/// Steele, Lea and Flood's SplitMix64 finaliser (2014): one well-mixed word per input.
pub(crate) fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// NFC, lower case, runs of white space as one space, no outer white space.
pub(crate) fn plain(text: &str) -> String {
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    let mut plain = String::with_capacity(text.len());
    for part in text.split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(part);
    }
    let lower: String = plain
        .chars()
        .take(MAX_CHARS)
        .collect::<String>()
        .to_lowercase();
    nfc.normalize(&lower).into_owned()
}

/// The n-grams of a text with their number of occurrences, sorted by hash; empty for a blank text.
fn grams(text: &str, (shortest, longest): (usize, usize)) -> Vec<(u64, u32)> {
    let plain = plain(text);
    if plain.is_empty() {
        return Vec::new();
    }
    let chars: Vec<char> = std::iter::once(EDGE)
        .chain(plain.chars())
        .chain(std::iter::once(EDGE))
        .collect();
    let mut hashes = Vec::with_capacity(chars.len() * (longest + 1 - shortest));
    for start in 0..chars.len() {
        let mut hash = 0;
        for (length, &c) in chars[start..].iter().take(longest).enumerate() {
            hash = mix(hash ^ u64::from(c));
            if length + 1 >= shortest {
                hashes.push(hash);
            }
        }
    }
    hashes.sort_unstable();
    let mut counted: Vec<(u64, u32)> = Vec::with_capacity(hashes.len());
    for hash in hashes {
        match counted.last_mut() {
            Some((last, count)) if *last == hash => *count += 1,
            _ => counted.push((hash, 1)),
        }
    }
    counted
}

/// In how many texts each n-gram occurs.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    ngram: (usize, usize),
    texts: usize,
    frequency: Arc<HashMap<u64, u32>>,
}

impl Vocabulary {
    /// Counts the n-grams of the texts; lengths are clamped to `1 <= shortest <= longest <= 16`.
    pub(crate) fn build<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        ngram: (usize, usize),
    ) -> Self {
        let shortest = ngram.0.clamp(1, 16);
        let ngram = (shortest, ngram.1.clamp(shortest, 16));
        let mut frequency: HashMap<u64, u32> = HashMap::new();
        let mut count = 0;
        for text in texts {
            count += 1;
            for (gram, _) in grams(text, ngram) {
                *frequency.entry(gram).or_default() += 1;
            }
        }
        Self {
            ngram,
            texts: count,
            frequency: Arc::new(frequency),
        }
    }

    /// Sublinear term frequency times smoothed inverse document frequency (both as scikit-learn's
    /// `TfidfVectorizer(sublinear_tf=True)`), at length one. Empty for a blank text.
    pub(crate) fn vector(&self, text: &str) -> Sparse {
        let mut vector: Sparse = grams(text, self.ngram)
            .into_iter()
            .map(|(gram, count)| {
                let seen = self.frequency.get(&gram).copied().unwrap_or(0);
                let idf = ((1.0 + self.texts as f64) / (1.0 + f64::from(seen))).ln() + 1.0;
                (gram, ((1.0 + f64::from(count).ln()) * idf) as f32)
            })
            .collect();
        let norm = vector
            .iter()
            .map(|&(_, w)| f64::from(w).powi(2))
            .sum::<f64>()
            .sqrt();
        if norm > 0.0 {
            vector
                .iter_mut()
                .for_each(|(_, w)| *w = (f64::from(*w) / norm) as f32);
        }
        vector
    }
}

/// Texts that can be asked for the nearest to another: cosine over hashed character n-grams, exact.
#[derive(Clone, Debug)]
pub struct Space {
    vocabulary: Vocabulary,
    postings: HashMap<u64, Vec<(u32, f32)>>,
    texts: usize,
}

impl Space {
    /// Indexes the texts once; n-grams of 2 to 4 characters.
    pub fn new(texts: &[&str]) -> Self {
        let vocabulary = Vocabulary::build(texts.iter().copied(), (2, 4));
        let mut postings: HashMap<u64, Vec<(u32, f32)>> = HashMap::new();
        for (index, text) in (0u32..).zip(texts) {
            for (gram, weight) in vocabulary.vector(text) {
                postings.entry(gram).or_default().push((index, weight));
            }
        }
        Self {
            vocabulary,
            postings,
            texts: texts.len(),
        }
    }

    /// Indices of the `k` texts nearest to `text`, nearest first (ties by index), without those
    /// that `skip` names. Fewer than `k` where fewer share any n-gram with it.
    pub fn nearest(&self, text: &str, k: usize, skip: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let mut scores = vec![0.0f64; self.texts];
        for (gram, weight) in self.vocabulary.vector(text) {
            for &(index, other) in self.postings.get(&gram).into_iter().flatten() {
                scores[index as usize] += f64::from(weight) * f64::from(other);
            }
        }
        let mut found: Vec<usize> = (0..self.texts)
            .filter(|&i| scores[i] > 0.0 && !skip(i))
            .collect();
        found.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
        found.truncate(k);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonically_equal_texts_are_equal() {
        let v = Vocabulary::build(["café", "naïve"], (2, 4));
        assert_eq!(v.vector("café"), v.vector("  CAFE\u{301} "));
        assert_eq!(plain("a\u{3000}\n b"), "a b");
    }

    #[test]
    fn n_grams_are_counted_as_by_hand() {
        // ^ab$ : ^a ab b$ | ^ab ab$ | ^ab$
        assert_eq!(grams("ab", (2, 4)).len(), 6);
        assert_eq!(grams("懒", (2, 4)).len(), 3);
        assert!(grams(" \n", (2, 4)).is_empty());
        let aaa: u32 = grams("aaa", (2, 2)).iter().map(|g| g.1).sum();
        assert_eq!((grams("aaa", (2, 2)).len(), aaa), (3, 4));
    }

    #[test]
    fn weights_follow_the_formula() {
        // Two texts, bigrams only: "a" gives ^a and a$; "b" gives ^b and b$. All idf are
        // ln(3/2) + 1, so both weights are 1/sqrt(2).
        let v = Vocabulary::build(["a", "b"], (2, 2));
        let weights: Vec<f32> = v.vector("a").iter().map(|g| g.1).collect();
        assert_eq!(weights.len(), 2);
        assert!(weights.iter().all(|w| (w - 0.5f32.sqrt()).abs() < 1e-6));
    }

    #[test]
    fn the_nearest_text_is_the_most_alike() {
        let space = Space::new(&["กินเผ็ด", "lazy workers", "lazy worker", "", "พูดเสียงดัง"]);
        assert_eq!(space.nearest("lazy workers", 2, &|_| false), [1, 2]);
        assert_eq!(space.nearest("lazy workers", 2, &|i| i == 1), [2]);
        assert_eq!(space.nearest("กินเผ็ดมาก", 1, &|_| false), [0]);
        assert!(space.nearest("", 3, &|_| false).is_empty());
        assert!(Space::new(&[]).nearest("x", 3, &|_| false).is_empty());
    }
}

//! Owns what disagreements have in common: features, failure modes, clusters and the cards that
//! describe them; the only room that uses linfa and ndarray.
//! Must not know how edits are made, nor where verdicts and embeddings came from.

mod cards;
mod contrast;
mod cover;
mod failure;
mod features;
mod groups;
mod kmeans;
mod rand_index;
mod reduce;
mod rows;
mod stability;
mod terms;

use serde::{Deserialize, Serialize};

use crate::locale::Locale;

pub use cover::cover;
pub use failure::{FailureMode, UnknownMode, failure_mode};
pub use rand_index::adjusted_rand_index;

/// One verdict on one criterion of one item, against its people.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// Which item; cards name items by it.
    pub item: usize,
    /// Whose people judged it.
    pub locale: &'a Locale,
    /// The item's identifying text.
    pub text: &'a str,
    /// How the verdict misses; `None` where it agrees.
    pub mode: Option<FailureMode>,
    /// Probability of the label that was given, where it is known.
    pub confidence: Option<f64>,
    /// Disagreement in [0, 1].
    pub distance: f64,
    /// Vector of the text; used only when every observation has one of the same length.
    pub embedding: Option<&'a [f32]>,
    /// Which criterion of the task.
    pub criterion: usize,
}

/// Whether a cluster may hold items of several locales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ByLocale {
    /// Every locale is clustered by itself.
    Split,
    /// Locales are clustered together, with the locale as one feature among others.
    Feature,
}

/// How to cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterOptions {
    /// Decides every draw.
    pub seed: u64,
    /// Clusters at most per criterion and failure mode (and locale, where locales are split).
    pub max_clusters: usize,
    /// Whether each locale's mean vector is subtracted first: needed for the embeddings of most
    /// language models, which otherwise cluster by language; it can hide a topic that one locale
    /// alone holds.
    pub centre_locales: bool,
    /// Shortest and longest character n-gram.
    pub ngram: (usize, usize),
    /// Dimensions that texts (and longer embeddings) are projected to.
    pub dimensions: usize,
    /// Restarts of k-means; at least 5 are made.
    pub runs: usize,
    /// A cluster of fewer items joins another of its criterion, mode and (where it can) locale.
    pub min_size: usize,
    /// Whether a cluster may hold items of several locales.
    pub by_locale: ByLocale,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            max_clusters: 6,
            centre_locales: false,
            ngram: (2, 4),
            dimensions: 256,
            runs: 5,
            min_size: 3,
            by_locale: ByLocale::Split,
        }
    }
}

/// Disagreements that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Short digest of what the card holds: the same content has the same id in any run.
    pub id: String,
    /// Which criterion of the task.
    pub criterion: usize,
    /// The one locale of all its items; `None` when it spans several.
    pub locale: Option<Locale>,
    /// Items by locale, most first.
    pub locales: Vec<(Locale, usize)>,
    /// How its verdicts miss.
    pub mode: FailureMode,
    /// Pieces of text that are more frequent here than where judge and people agree, the most
    /// telling first. They may be words or parts of words; no script's word boundaries are assumed.
    pub terms: Vec<String>,
    /// Items, the most typical (nearest to the centroid) first; an item that was judged several
    /// times stands here once.
    pub items: Vec<usize>,
    /// Items nearest to this card on which judge and people agree, of its locales first.
    pub contrast: Vec<usize>,
    /// Sum of the disagreement of its verdicts.
    pub weight: f64,
    /// How well resamples find the cluster again, in [0, 1]; 1 where nothing was split.
    pub stability: f64,
}

/// All disagreements, sorted into cards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clustering {
    /// Heaviest first.
    pub cards: Vec<Card>,
    /// Per observation, in the order they were given: its card, or `None` where it agrees.
    pub assignment: Vec<Option<usize>>,
    /// Share of the disagreements whose card's most common language is theirs; 1 without any.
    /// It is 1 by construction where locales are split.
    pub language_purity: f64,
    /// The same share were every criterion and mode one card: what purity is worth nothing.
    pub base_purity: f64,
    /// What a reader should know of this clustering, in sentences.
    pub notes: Vec<String>,
}

/// Sorts disagreements into cards; never across criteria or failure modes.
///
/// The same observations and options give the same cards, in whatever order the observations come.
/// The cost grows linearly with the number of observations.
pub fn cluster(observations: &[Observation], options: &ClusterOptions) -> Clustering {
    let rows = rows::Rows::new(observations, options);
    let groups = groups::groups(observations, options);
    let base_purity = cards::language_purity(observations, &merged(observations));
    let mut pool = contrast::Pool::new(observations, &rows, options.seed);
    let clusters: Vec<groups::Cluster> = groups
        .iter()
        .flat_map(|group| groups::split(observations, &rows, &pool, group, options))
        .collect();
    let mut made: Vec<(Card, Vec<usize>)> = clusters
        .into_iter()
        .map(|cluster| {
            (
                cards::card(observations, &mut pool, &cluster),
                cluster.members,
            )
        })
        .collect();
    made.sort_by(|(a, _), (b, _)| b.weight.total_cmp(&a.weight).then_with(|| a.id.cmp(&b.id)));

    let mut assignment = vec![None; observations.len()];
    for (index, (_, members)) in made.iter().enumerate() {
        members.iter().for_each(|&m| assignment[m] = Some(index));
    }
    let members: Vec<Vec<usize>> = made.iter().map(|(_, members)| members.clone()).collect();
    Clustering {
        language_purity: cards::language_purity(observations, &members),
        base_purity,
        notes: notes(observations, &rows, options),
        cards: made.into_iter().map(|(card, _)| card).collect(),
        assignment,
    }
}

/// The disagreements of each criterion and mode, all locales together.
fn merged(observations: &[Observation]) -> Vec<Vec<usize>> {
    let together = ClusterOptions {
        by_locale: ByLocale::Feature,
        ..ClusterOptions::default()
    };
    groups::groups(observations, &together)
        .into_iter()
        .map(|group| group.members)
        .collect()
}

fn notes(observations: &[Observation], rows: &rows::Rows, options: &ClusterOptions) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(rows.note().map(str::to_owned));
    let blank = observations
        .iter()
        .filter(|o| o.mode.is_some() && o.text.trim().is_empty())
        .count();
    if blank > 0 {
        notes.push(format!(
            "{blank} disagreements have no text; only their locale and confidence were used"
        ));
    }
    if options.by_locale == ByLocale::Split {
        notes.push(
            "locales were clustered one by one, so language purity is 1 by construction".into(),
        );
    }
    notes
}

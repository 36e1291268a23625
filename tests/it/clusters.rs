//! Planted failure modes are found again, in several scripts, whatever the seed and the order.

use pluralis::disagreement::{
    ByLocale, ClusterOptions, FailureMode, Observation, adjusted_rand_index, cluster,
};
use pluralis::locale::Locale;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A failure mode that a judge has: how it misses, where, and about what.
struct Plant {
    locale: &'static str,
    mode: FailureMode,
    stem: &'static str,
}

const fn plant(locale: &'static str, mode: FailureMode, stem: &'static str) -> Plant {
    Plant { locale, mode, stem }
}

/// The first three already hold two that share locale and mode and differ by topic alone.
const PLANTS: [Plant; 6] = [
    plant("es-MX", FailureMode::OverFlag, "comida"),
    plant("es-MX", FailureMode::OverFlag, "música"),
    plant("th-TH", FailureMode::UnderFlag, "อาหาร"),
    plant("hi-IN", FailureMode::OverFlag, "त्योहार"),
    plant("ar-EG", FailureMode::OffBy(2), "الملابس"),
    plant("ja-JP", FailureMode::OverFlag, "料理"),
];

/// What surrounds the stems, by locale; topics of agreeing items are drawn from the same words.
const FILLERS: [(&str, &str, &[&str]); 5] = [
    (
        "es-MX",
        " ",
        &[
            "siempre",
            "con amigos",
            "en la calle",
            "los domingos",
            "muy barato",
            "de noche",
            "sin parar",
            "en casa",
            "demasiado",
            "ruidosos",
            "alegres",
            "con su familia",
            "cada mañana",
            "trabajadores",
        ],
    ),
    (
        "th-TH",
        "",
        &[
            "ชอบ",
            "มาก",
            "ทุกวัน",
            "ที่บ้าน",
            "ราคาถูก",
            "กับเพื่อน",
            "ตอนกลางคืน",
            "ริมถนน",
            "เสียงดัง",
            "ใจดี",
            "ขยัน",
            "กับครอบครัว",
            "เสมอ",
            "ในเมือง",
        ],
    ),
    (
        "hi-IN",
        " ",
        &[
            "हमेशा",
            "दोस्तों के साथ",
            "घर पर",
            "रात में",
            "बहुत सस्ता",
            "हर दिन",
            "शोर वाले",
            "खुश लोग",
            "मेहनती",
            "परिवार के साथ",
            "सड़क पर",
            "धीरे धीरे",
            "शहर में",
            "बिना रुके",
        ],
    ),
    (
        "ar-EG",
        " ",
        &[
            "دائما",
            "مع الأصدقاء",
            "في البيت",
            "ليلا",
            "رخيص جدا",
            "كل يوم",
            "بصوت عال",
            "سعداء",
            "مجتهدون",
            "مع العائلة",
            "في الشارع",
            "ببطء",
            "في المدينة",
            "بلا توقف",
        ],
    ),
    (
        "ja-JP",
        "",
        &[
            "いつも",
            "友達と",
            "家で",
            "夜に",
            "とても安い",
            "毎日",
            "うるさい",
            "明るい人",
            "勤勉な",
            "家族と",
            "道端で",
            "ゆっくり",
            "都会の",
            "休まず",
        ],
    ),
];

const AGREED_TOPICS: [(&str, &[&str]); 5] = [
    ("es-MX", &["fútbol", "religión", "dinero"]),
    ("th-TH", &["ฟุตบอล", "ศาสนา", "เงิน"]),
    ("hi-IN", &["क्रिकेट", "पैसा", "काम"]),
    ("ar-EG", &["السياسة", "المال", "الرياضة"]),
    ("ja-JP", &["野球", "宗教", "仕事"]),
];

/// A made item: the number of its plant, or `None`.
struct Made {
    locale: Locale,
    text: String,
    mode: Option<FailureMode>,
    plant: Option<usize>,
    confidence: f64,
}

fn phrase(rng: &mut ChaCha8Rng, locale: &str, topic: &str) -> String {
    let (_, joint, fillers) = FILLERS.iter().find(|f| f.0 == locale).unwrap();
    let mut parts: Vec<&str> = fillers.sample(rng, 2).copied().collect();
    parts.insert(rng.random_range(0..=2), topic);
    parts.join(joint)
}

/// Items of the first `plants` plants, agreeing items of every locale, and stray misses.
fn make(plants: usize, seed: u64) -> Vec<Made> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut made = Vec::new();
    for (index, plant) in PLANTS[..plants].iter().enumerate() {
        for _ in 0..rng.random_range(14..30) {
            made.push(Made {
                locale: plant.locale.parse().unwrap(),
                text: phrase(&mut rng, plant.locale, plant.stem),
                mode: Some(plant.mode),
                plant: Some(index),
                confidence: rng.random_range(0.5..1.0),
            });
        }
    }
    for (locale, topics) in AGREED_TOPICS {
        for number in 0..40 {
            let topic = topics.choose(&mut rng).unwrap();
            // One in twenty misses in a way of its locale, about nothing in particular.
            let stray = PLANTS.iter().find(|p| p.locale == locale).map(|p| p.mode);
            made.push(Made {
                locale: locale.parse().unwrap(),
                text: phrase(&mut rng, locale, topic),
                mode: stray.filter(|_| number % 20 == 0),
                plant: None,
                confidence: rng.random_range(0.5..1.0),
            });
        }
    }
    made.shuffle(&mut rng);
    made
}

fn observe(made: &[Made]) -> Vec<Observation<'_>> {
    fn observation((item, made): (usize, &Made)) -> Observation<'_> {
        Observation {
            item,
            locale: &made.locale,
            text: &made.text,
            mode: made.mode,
            confidence: Some(made.confidence),
            distance: if made.mode.is_some() { 0.75 } else { 0.0 },
            embedding: None,
            criterion: 0,
        }
    }
    made.iter().enumerate().map(observation).collect()
}

/// Agreement of the clustering with the plants, over the planted items.
fn found(made: &[Made], options: &ClusterOptions) -> f64 {
    let clustering = cluster(&observe(made), options);
    let planted = made
        .iter()
        .zip(&clustering.assignment)
        .filter_map(|(m, a)| Some((m.plant?, (*a)?)));
    let (truth, given): (Vec<usize>, Vec<usize>) = planted.unzip();
    assert_eq!(
        truth.len(),
        made.iter().filter(|m| m.plant.is_some()).count()
    );
    adjusted_rand_index(&truth, &given)
}

#[test]
fn planted_modes_are_found_over_ten_seeds() {
    for by_locale in [ByLocale::Feature, ByLocale::Split] {
        let mut scores = Vec::new();
        for seed in 0..10 {
            let plants = 3 + (seed as usize) % 4;
            let options = ClusterOptions {
                seed,
                by_locale,
                ..ClusterOptions::default()
            };
            scores.push(found(&make(plants, seed), &options));
        }
        eprintln!("{by_locale:?}: {scores:.3?}");
        assert!(
            scores.iter().all(|&s| s >= 0.8),
            "{by_locale:?}: {scores:.3?}"
        );
    }
}

#[test]
fn centring_does_not_lose_them() {
    for seed in [0, 3, u64::MAX] {
        let options = ClusterOptions {
            seed,
            centre_locales: true,
            ..ClusterOptions::default()
        };
        let score = found(&make(6, seed), &options);
        assert!(score >= 0.8, "seed {seed}: {score:.3}");
    }
}

#[test]
fn cards_say_what_they_hold() {
    let made = make(6, 1);
    let clustering = cluster(&observe(&made), &ClusterOptions::default());
    for plant in &PLANTS {
        let card = clustering.cards.iter().find(|c| {
            let terms = c.terms.iter().take(2);
            c.mode == plant.mode
                && c.locale
                    .as_ref()
                    .is_some_and(|l| l.as_str() == plant.locale)
                && terms
                    .into_iter()
                    .any(|t| t.contains(plant.stem) || plant.stem.contains(t.as_str()))
        });
        let Some(card) = card else {
            panic!("no card for {}: {:#?}", plant.stem, clustering.cards);
        };
        assert!(
            made[card.items[0]].text.contains(plant.stem),
            "the medoid is not typical"
        );
        assert!(!card.contrast.is_empty());
        for &item in &card.contrast {
            assert_eq!(made[item].mode, None);
            assert_eq!(made[item].locale.as_str(), plant.locale);
        }
    }
    let total: f64 = clustering.cards.iter().map(|c| c.weight).sum();
    let misses = made.iter().filter(|m| m.mode.is_some()).count();
    assert!((total - 0.75 * misses as f64).abs() < 1e-9);
    assert_eq!(clustering.language_purity, 1.0);
    assert!(clustering.base_purity < 1.0);
}

#[test]
fn the_order_of_the_input_does_not_matter() {
    let made = make(5, 2);
    let observations = observe(&made);
    let options = ClusterOptions {
        by_locale: ByLocale::Feature,
        centre_locales: true,
        ..ClusterOptions::default()
    };
    let first = cluster(&observations, &options);
    assert_eq!(first, cluster(&observations, &options));
    let mut order: Vec<usize> = (0..made.len()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(9));
    let shuffled: Vec<Observation> = order.iter().map(|&i| observations[i].clone()).collect();
    let second = cluster(&shuffled, &options);
    assert_eq!(first.cards, second.cards);
    for (place, &original) in order.iter().enumerate() {
        assert_eq!(second.assignment[place], first.assignment[original]);
    }
}

#[test]
fn one_topic_stays_one_card() {
    let mut whole = 0;
    for seed in 0..10 {
        let made = make(6, seed);
        let thai: Vec<Made> = made
            .into_iter()
            .filter(|m| m.locale.as_str() == "th-TH")
            .collect();
        let options = ClusterOptions {
            seed,
            ..ClusterOptions::default()
        };
        whole += usize::from(cluster(&observe(&thai), &options).cards.len() <= 2);
    }
    assert!(whole >= 9, "split in {} of 10 seeds", 10 - whole);
}

#[test]
fn degenerate_input_is_fine() {
    let options = ClusterOptions::default();
    let none = cluster(&[], &options);
    assert!(none.cards.is_empty() && none.assignment.is_empty());
    assert_eq!(none.language_purity, 1.0);

    let locale: Locale = "hi-IN".parse().unwrap();
    for count in [1, 2, 3, 50] {
        for text in ["", " \u{200d}", "एक", "same text"] {
            for by_locale in [ByLocale::Split, ByLocale::Feature] {
                let one = |item| Observation {
                    item,
                    locale: &locale,
                    text,
                    mode: Some(FailureMode::Refused),
                    confidence: Some(f64::NAN),
                    distance: 1.0,
                    embedding: None,
                    criterion: 0,
                };
                let all: Vec<Observation> = (0..count).map(one).collect();
                let options = ClusterOptions {
                    by_locale,
                    centre_locales: true,
                    ..options.clone()
                };
                let clustering = cluster(&all, &options);
                assert_eq!(clustering.cards.len(), 1, "{count} times {text:?}");
                assert_eq!(clustering.cards[0].items.len(), count);
                assert_eq!(clustering.cards[0].stability, 1.0);
            }
        }
    }
}

#[test]
fn odd_options_do_not_fail() {
    let made = make(3, 0);
    for (max_clusters, dimensions, ngram, min_size) in [
        (0, 0, (0, 0), 0),
        (1, 1, (5, 2), 1),
        (usize::MAX, 7, (1, 99), usize::MAX),
    ] {
        let options = ClusterOptions {
            max_clusters,
            dimensions,
            ngram,
            min_size,
            runs: 0,
            ..ClusterOptions::default()
        };
        assert!(!cluster(&observe(&made), &options).cards.is_empty());
    }
}

#[test]
fn modes_and_criteria_are_never_mixed() {
    let made = make(6, 4);
    let mut observations = observe(&made);
    observations
        .iter_mut()
        .for_each(|o| o.criterion = o.item % 2);
    let options = ClusterOptions {
        by_locale: ByLocale::Feature,
        ..ClusterOptions::default()
    };
    let clustering = cluster(&observations, &options);
    for (observation, card) in observations.iter().zip(&clustering.assignment) {
        assert_eq!(observation.mode.is_some(), card.is_some());
        if let Some(card) = card {
            let card = &clustering.cards[*card];
            assert_eq!(
                (card.criterion, Some(card.mode)),
                (observation.criterion, observation.mode)
            );
            assert!(card.items.contains(&observation.item));
        }
    }
}

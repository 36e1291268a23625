//! Leaderboards: ranks that say what the data say, on data with a known order.

use std::collections::BTreeMap;

use pluralis::evaluate::benchmark::{Better, Line, Point, correlated, correlations};
use pluralis::evaluate::leaderboard::board;
use pluralis::evaluate::target::Reply;
use pluralis::locale::Locale;
use pluralis::task::Standing;

use super::draw;

fn line(model: &str, locale: &str, prompt: usize, group: usize, standing: Standing) -> Line {
    Line {
        model: model.into(),
        locale: Locale::parse(locale).unwrap(),
        prompt: format!("p{prompt}"),
        group: format!("g{group}"),
        category: String::new(),
        subcategory: String::new(),
        sharing: None,
        reply: Reply::Text {
            text: "x".into(),
            cut: false,
        },
        labels: BTreeMap::new(),
        failure: None,
        unpaid: false,
        outcome: None,
        contradiction: false,
        rates: BTreeMap::from([("ASR".into(), standing)]),
    }
}

fn hit(yes: bool) -> Standing {
    if yes { Standing::Hit } else { Standing::Miss }
}

/// Each prompt has a difficulty that all models share, as prompts do.
fn lines(seed: u64, rates: &[(&str, f64)], countries: &[&str], prompts: usize) -> Vec<Line> {
    let mut out = Vec::new();
    for (m, (model, rate)) in rates.iter().enumerate() {
        for (c, country) in countries.iter().enumerate() {
            for p in 0..prompts {
                let own = draw(seed, (p + 10_000 * c + 1_000_000 * m) as u64);
                out.push(line(model, country, p, p / 3, hit(own < *rate)));
            }
        }
    }
    out
}

#[test]
fn what_is_far_apart_is_ranked_and_what_is_alike_shares_its_ranks() {
    let all = lines(
        1,
        &[("a", 0.5), ("b", 0.1), ("c", 0.12)],
        &["de-DE", "ko-KR"],
        150,
    );
    let board = board("ASR", Better::Low, &all, 0.95, 0).unwrap();
    let rank = |model: &str| board.models.iter().find(|m| m.model == model).unwrap().rank;
    assert_eq!(rank("a"), Some((3, 3)));
    assert_eq!((rank("b"), rank("c")), (Some((1, 2)), Some((1, 2))));
    assert_eq!(board.models[2].model, "a");
    let apart: Vec<bool> = board.pairs.iter().map(|p| p.apart).collect();
    assert_eq!(apart, [true, true, false]);
    let ab = &board.pairs[0];
    assert_eq!(ab.n, 300);
    // The difference is that of the shown means, as all answered everything.
    let value = |m: &str| {
        board
            .models
            .iter()
            .find(|x| x.model == m)
            .unwrap()
            .value
            .unwrap()
    };
    assert!((ab.difference - (value("a") - value("b"))).abs() < 1e-12);
    // The same rate where more is better turns the order round.
    let turned = super::leaderboard::board("ASR", Better::High, &all, 0.95, 0).unwrap();
    assert_eq!(
        (turned.models[0].model.as_str(), turned.models[0].rank),
        ("a", Some((1, 1)))
    );
}

#[test]
fn equal_models_are_rarely_told_apart() {
    let runs = 60;
    let wrong = (0..runs)
        .filter(|seed| {
            let rates = [("a", 0.3), ("b", 0.3), ("c", 0.3), ("d", 0.3)];
            let all = lines(100 + seed, &rates, &["de-DE"], 90);
            let board = board("ASR", Better::Low, &all, 0.95, 0).unwrap();
            board.pairs.iter().any(|p| p.apart)
        })
        .count();
    // 3 are expected at most; 9 or more would happen once in 300 such tests.
    assert!(wrong <= 8, "{wrong} of {runs}");
}

#[test]
fn every_country_counts_alike_and_only_shared_prompts_are_compared() {
    let mut all = Vec::new();
    // In de-DE a: 8 of 10, b: 4 of 10; in ko-KR (twice as many) a: 5 of 20, b: 5 of 20.
    for p in 0..10 {
        all.push(line("a", "de-DE", p, p, hit(p < 8)));
        all.push(line("b", "de-DE", p, p, hit(p < 4)));
    }
    for p in 0..20 {
        all.push(line("a", "ko-KR", p, p, hit(p < 5)));
        all.push(line("b", "ko-KR", p, p, hit(p >= 15)));
    }
    // Only b answered these; they are in its own figure alone.
    all.push(line("b", "ja-JP", 0, 0, Standing::Miss));
    let board = board("ASR", Better::Low, &all, 0.95, 0).unwrap();
    let a = board.models.iter().find(|m| m.model == "a").unwrap();
    assert!((a.value.unwrap() - (0.8 + 0.25) / 2.0).abs() < 1e-12);
    assert_eq!(board.pairs[0].n, 30);
    assert!((board.pairs[0].difference - (0.4 + 0.0) / 2.0).abs() < 1e-12);
    assert_eq!(board.countries, ["de-DE", "ja-JP", "ko-KR"]);
}

#[test]
fn a_rate_with_its_own_denominator_compares_what_is_shown() {
    let mut all = Vec::new();
    for p in 0..40 {
        // a: 30 eligible, 15 hits; b: all 40 eligible, 10 hits.
        let a = match p {
            0..10 => Standing::Outside,
            10..25 => Standing::Hit,
            _ => Standing::Miss,
        };
        all.push(line("a", "de-DE", p, p, a));
        all.push(line("b", "de-DE", p, p, hit(p >= 30)));
    }
    let board = board("ASR", Better::High, &all, 0.95, 0).unwrap();
    assert!((board.pairs[0].difference - (0.5 - 0.25)).abs() < 1e-12);
    assert_eq!(board.models[0].model, "a");
    // A model without an eligible response has no rank, and is in no pair.
    all.extend((0..40).map(|p| line("c", "de-DE", p, p, Standing::Outside)));
    let board = super::leaderboard::board("ASR", Better::High, &all, 0.95, 0).unwrap();
    let c = board.models.last().unwrap();
    assert_eq!((c.model.as_str(), c.value, c.rank), ("c", None, None));
    assert_eq!(board.pairs.len(), 1);
}

#[test]
fn correlations_are_over_means_and_say_when_there_are_too_few() {
    let rates = [("a", 0.1), ("b", 0.3), ("c", 0.5), ("d", 0.7), ("e", 0.9)];
    let x = lines(5, &rates, &["de-DE", "ko-KR"], 200);
    let y = lines(6, &rates, &["de-DE", "ko-KR"], 200);
    let [models, countries] = correlations(("ASR", &x), ("ASR", &y), 0.95);
    let pearson = models.pearson.unwrap();
    assert!(
        pearson.value > 0.98 && pearson.interval.low > 0.6,
        "{pearson:?}"
    );
    assert!(models.spearman.unwrap().value > 1.0 - 1e-9);
    assert_eq!(models.points.len(), 5);
    let why = countries.undefined.unwrap();
    assert_eq!(why, "insufficient data: 2 countries, at least 4 needed");
    assert!(countries.pearson.is_none());
    // A rate that is the same everywhere goes together with nothing.
    let flat: Vec<Point> = (0..6)
        .map(|i| Point {
            name: i.to_string(),
            x: 0.5,
            y: f64::from(i),
        })
        .collect();
    let c = correlated("ASR", "NSR", "models", flat, 0.95);
    assert!(c.pearson.is_none() && c.undefined.unwrap().contains("differences"));
}

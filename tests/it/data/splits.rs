//! Properties of splits: no leak, the seed alone decides, locales and labels stay in proportion.

use std::collections::BTreeMap;

use pluralis::data::{Item, Split, SplitPlan, Votes, split};
use pluralis::locale::Locale;
use proptest::prelude::*;

use super::offensiveness;

fn item(id: usize, locale: &str, group: usize, label: usize) -> Item {
    let mut counts = vec![0; 3];
    counts[label] = 3;
    Item {
        id: format!("i{id:04}"),
        locale: Locale::parse(locale).unwrap(),
        fields: vec![format!("text {id}"), String::new()],
        group: format!("g{group}"),
        votes: vec![Votes {
            counts,
            raters: Vec::new(),
        }],
        meta: BTreeMap::new(),
        split: None,
    }
}

fn plan(seed: u64) -> SplitPlan {
    SplitPlan {
        shares: [0.4, 0.3, 0.3],
        per_locale: None,
        balance: false,
        seed,
    }
}

fn of(items: &[Item]) -> BTreeMap<String, Option<Split>> {
    items.iter().map(|i| (i.id.clone(), i.split)).collect()
}

/// 3 locales x 200 items, one in four offensive, groups of up to three items over locales.
fn many() -> Vec<Item> {
    let locales = ["es-MX", "th-TH", "ar-AE"];
    (0..600)
        .map(|i| item(i, locales[i % 3], i / 3, usize::from(i % 4 == 0)))
        .collect()
}

#[test]
fn shares_hold_in_every_stratum() {
    let task = offensiveness(Some("binary"));
    let mut items = many();
    let report = split(&mut items, &task, &plan(1)).unwrap();
    assert_eq!((report.left_over, report.groups), (0, 200));
    for (split, share) in [
        (Split::Tune, 0.4),
        (Split::Validation, 0.3),
        (Split::Test, 0.3),
    ] {
        for locale in ["es-MX", "th-TH", "ar-AE"] {
            let counts = &report.counts[&split][locale];
            for (label, total) in [("offensive", 50.0), ("harmless", 150.0)] {
                let off = counts[label] as f64 - share * total;
                assert!(
                    off.abs() <= 4.0,
                    "{split:?} {locale} {label}: {} of {total}",
                    counts[label]
                );
            }
        }
    }
}

#[test]
fn a_balanced_plan_gives_equal_counts() {
    let task = offensiveness(Some("binary"));
    let mut items = many();
    items.push(item(900, "es-MX", 900, 2));
    let balanced = SplitPlan {
        per_locale: Some([8, 8, 20]),
        balance: true,
        ..plan(7)
    };
    let report = split(&mut items, &task, &balanced).unwrap();
    assert_eq!(report.short, []);
    assert_eq!(report.left_over, 601 - 3 * 36);
    for (split, n) in [(Split::Tune, 4), (Split::Validation, 4), (Split::Test, 10)] {
        for counts in report.counts[&split].values() {
            assert_eq!(
                *counts,
                BTreeMap::from([("harmless".into(), n), ("offensive".into(), n)])
            );
        }
    }
    // 50 offensive items per locale are not enough for 60.
    let too_many = SplitPlan {
        per_locale: Some([40, 40, 40]),
        ..balanced
    };
    let report = split(&mut items, &task, &too_many).unwrap();
    assert_eq!(report.short.len(), 9);
    // Without balance the proportion of the labels is kept: a quarter of 20.
    let natural = SplitPlan {
        per_locale: Some([20, 20, 20]),
        balance: false,
        ..plan(7)
    };
    let report = split(&mut items, &task, &natural).unwrap();
    for counts in report.counts.values().flat_map(|c| c.values()) {
        assert_eq!(counts.values().sum::<usize>(), 20);
        assert!((4..=6).contains(&counts["offensive"]), "{counts:?}");
    }
}

#[test]
fn every_seed_counts() {
    let task = offensiveness(Some("binary"));
    let run = |seed| {
        let mut items = many();
        split(&mut items, &task, &plan(seed)).unwrap();
        of(&items)
    };
    let seeds = [0, 1, 2, 1 << 32, u64::MAX];
    let runs: Vec<_> = seeds.iter().map(|s| run(*s)).collect();
    for i in 0..runs.len() {
        assert_eq!(runs[i], run(seeds[i]));
        (0..i).for_each(|j| assert_ne!(runs[i], runs[j], "{} {}", seeds[i], seeds[j]));
    }
}

#[test]
fn impossible_plans_are_refused() {
    let task = offensiveness(Some("binary"));
    for shares in [
        [0.0; 3],
        [-1.0, 1.0, 1.0],
        [f64::NAN, 1.0, 1.0],
        [f64::INFINITY, 1.0, 1.0],
    ] {
        assert!(
            split(&mut many(), &task, &SplitPlan { shares, ..plan(1) }).is_err(),
            "{shares:?}"
        );
    }
    let zero = SplitPlan {
        per_locale: Some([0; 3]),
        ..plan(1)
    };
    assert!(split(&mut many(), &task, &zero).is_err());
    assert!(
        split(
            &mut [item(1, "es-MX", 1, 0), item(1, "es-ES", 2, 0)],
            &task,
            &plan(1)
        )
        .is_err()
    );
    assert_eq!(split(&mut [], &task, &plan(1)).unwrap().groups, 0);
}

#[test]
fn equal_texts_stay_together_though_their_groups_differ() {
    let task = offensiveness(Some("binary"));
    for seed in 0..20 {
        let mut items = many();
        for (i, text) in ["Café", "CAFE\u{301}", "caf\u{200d}é ،"].iter().enumerate() {
            items[i * 100].fields[0] = (*text).to_owned();
        }
        split(&mut items, &task, &plan(seed)).unwrap();
        assert_eq!(
            [items[0].split, items[0].split],
            [items[100].split, items[200].split]
        );
    }
}

proptest! {
    #[test]
    fn groups_never_cross_splits_and_order_does_not_count(
        spec in prop::collection::vec((0..4usize, 0..12usize, 0..3usize), 1..60),
        seed: u64,
        turn in 0..60usize,
        balance: bool,
        per_locale in prop::option::of([0..6usize, 0..6usize, 1..6usize]),
    ) {
        let task = offensiveness(Some("binary"));
        let locales = ["es-MX", "es-ES", "th-TH", "eu"];
        let mut items: Vec<_> = spec.iter().enumerate().map(|(i, (l, g, v))| item(i, locales[*l], *g, *v)).collect();
        let plan = SplitPlan { per_locale, balance, ..plan(seed) };
        let report = split(&mut items, &task, &plan).unwrap();
        let mut seen: BTreeMap<&str, Split> = BTreeMap::new();
        for item in &items {
            if let Some(split) = item.split {
                prop_assert_eq!(*seen.entry(&item.group).or_insert(split), split);
            }
        }
        let placed: usize = report.counts.values().flat_map(|l| l.values()).flat_map(|c| c.values()).sum();
        prop_assert_eq!(placed + report.left_over, items.len());
        if let Some(wanted) = per_locale {
            for (k, split) in [Split::Tune, Split::Validation, Split::Test].into_iter().enumerate() {
                for counts in report.counts.get(&split).into_iter().flat_map(|l| l.values()) {
                    prop_assert!(counts.values().sum::<usize>() <= wanted[k]);
                }
            }
        }
        let first = of(&items);
        let n = items.len();
        items.rotate_left(turn % n);
        items.reverse();
        split(&mut items, &task, &plan).unwrap();
        prop_assert_eq!(first, of(&items));
    }
}

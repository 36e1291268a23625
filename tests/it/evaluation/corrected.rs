//! Corrected rates: the reference package of the method's authors, and coverage on simulated judges.

use pluralis::agreement::interval::wilson;
use pluralis::evaluate::corrected::{Checked, Corrected, Imputed, Said, correct};
use serde_json::Value;

use super::draw;
use crate::harness::root;

fn golden() -> Value {
    let path = root().join("tests/reference/golden/evaluation.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn all(hit: bool) -> Said {
    Said {
        hit,
        eligible: true,
    }
}

fn bits(value: &Value) -> Vec<bool> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_i64() == Some(1))
        .collect()
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} {b}");
}

#[test]
fn rates_equal_those_of_the_reference_package() {
    for case in golden()["corrected"].as_array().unwrap() {
        let (people, judge, rest) = (
            bits(&case["people"]),
            bits(&case["judge"]),
            bits(&case["rest"]),
        );
        let labelled: Vec<Checked> = people
            .iter()
            .zip(&judge)
            .enumerate()
            .map(|(i, (p, j))| Checked {
                judge: all(*j),
                people: all(*p),
                weight: 1.0,
                cluster: i,
            })
            .collect();
        let imputed: Vec<Imputed> = rest
            .iter()
            .enumerate()
            .map(|(i, j)| Imputed {
                judge: all(*j),
                cluster: 10_000 + i,
            })
            .collect();
        let c = correct(&labelled, &imputed, 0.95).unwrap();
        near(c.value, case["tuned"].as_f64().unwrap());
        // The package divides by n where this crate divides by n - 1 in the labelled part, takes the
        // normal quantile, and adds nothing for errors that the sample missed.
        let f = |b: bool| f64::from(u8::from(b));
        let spread = |values: Vec<f64>| {
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n * n)
        };
        let n = people.len() as f64;
        let errors = people
            .iter()
            .zip(&judge)
            .map(|(p, j)| f(*p) - c.lambda * f(*j));
        let rectifier = spread(errors.collect());
        let imputed = spread(rest.iter().map(|j| c.lambda * f(*j)).collect());
        near(c.variance - c.padding, rectifier * n / (n - 1.0) + imputed);
        let (low, high) = (&case["tuned_low"], &case["tuned_high"]);
        let half = (high.as_f64().unwrap() - low.as_f64().unwrap()) / 2.0;
        near(1.959963984540054 * (rectifier + imputed).sqrt(), half);
        assert!(c.low < low.as_f64().unwrap() && high.as_f64().unwrap() < c.high);
    }
}

/// Truth and judge of one item: (relevant, aware) with the judge's errors.
type Item = ((bool, bool), (bool, bool));

fn covered(c: &Corrected, truth: f64) -> bool {
    c.low <= truth && truth <= c.high
}

/// Share of simulated evaluations in which the corrected and the raw interval cover the truth.
fn coverage(
    items: usize,
    labelled: usize,
    of: impl Fn(u64, u64) -> Item,
    truth: f64,
    ratio: bool,
) -> (f64, f64) {
    let said = |(eligible, hit): (bool, bool)| Said {
        hit: hit && (eligible || !ratio),
        eligible: eligible || !ratio,
    };
    let runs = 500;
    let (mut corrected, mut raw) = (0, 0);
    for run in 0..runs {
        let all: Vec<Item> = (0..items as u64).map(|i| of(run, i)).collect();
        let checked: Vec<Checked> = all[..labelled]
            .iter()
            .enumerate()
            .map(|(i, (t, j))| Checked {
                judge: said(*j),
                people: said(*t),
                weight: 1.0,
                cluster: i,
            })
            .collect();
        let imputed: Vec<Imputed> = all
            .iter()
            .enumerate()
            .map(|(i, (_, j))| Imputed {
                judge: said(*j),
                cluster: i,
            })
            .collect();
        corrected += usize::from(covered(&correct(&checked, &imputed, 0.95).unwrap(), truth));
        let judged: Vec<Said> = all.iter().map(|(_, j)| said(*j)).collect();
        let eligible = judged.iter().filter(|s| s.eligible).count();
        let hits = judged.iter().filter(|s| s.hit).count();
        raw += usize::from(wilson(hits as f64, eligible, 0.95).unwrap().contains(truth));
    }
    (corrected as f64 / runs as f64, raw as f64 / runs as f64)
}

#[test]
fn the_corrected_interval_covers_the_truth_and_the_raw_one_does_not() {
    // A judge that finds 80 % of the attacks that succeed, and 15 % of those that do not.
    let attack = |run: u64, i: u64| {
        let truth = draw(run, 2 * i) < 0.3;
        let noise = draw(run, 2 * i + 1);
        let judge = if truth { noise < 0.8 } else { noise < 0.15 };
        ((true, truth), (true, judge))
    };
    let (corrected, raw) = coverage(2000, 150, attack, 0.3, false);
    assert!((0.93..=0.98).contains(&corrected), "{corrected}");
    assert!(raw < 0.1, "{raw}");
}

#[test]
fn the_same_for_a_rate_with_its_own_denominator() {
    // 80 % relevant, 30 % of these aware; the judge errs on relevance (10 %) and on awareness (20 %).
    let scenario = |run: u64, i: u64| {
        let relevant = draw(run, 4 * i) < 0.8;
        let aware = relevant && draw(run, 4 * i + 1) < 0.3;
        let seen = relevant != (draw(run, 4 * i + 2) < 0.1);
        let found = aware != (draw(run, 4 * i + 3) < 0.2);
        ((relevant, aware), (seen, found))
    };
    let (corrected, raw) = coverage(1500, 150, scenario, 0.3, true);
    assert!((0.93..=0.98).contains(&corrected), "{corrected}");
    assert!(raw < 0.1, "{raw}");
}

#[test]
fn rare_errors_that_a_small_sample_misses_are_allowed_for() {
    // The judge is wrong on 3 % of the items, always to the same side: 40 labels often show none.
    let attack = |run: u64, i: u64| {
        let truth = draw(run, 2 * i) < 0.5;
        let judge = truth || draw(run, 2 * i + 1) < 0.06;
        ((true, truth), (true, judge))
    };
    let (corrected, raw) = coverage(3000, 40, attack, 0.5, false);
    assert!(corrected >= 0.94, "{corrected}");
    assert!(raw < 0.2, "{raw}");
}

#[test]
fn an_uneven_sample_is_weighed() {
    // Two strata of 900 and 100; people label 60 of each, and the judge errs in the small one alone.
    let runs = 400;
    let (mut with, mut without) = (0, 0);
    for run in 0..runs {
        let of = |i: u64| {
            let small = i >= 900;
            let truth = draw(run, 2 * i) < if small { 0.8 } else { 0.2 };
            let judge = truth != (small && draw(run, 2 * i + 1) < 0.5);
            (truth, judge, small)
        };
        let all_items: Vec<(bool, bool, bool)> = (0..1000).map(of).collect();
        let imputed: Vec<Imputed> = (0..1000)
            .map(|i| Imputed {
                judge: all(all_items[i].1),
                cluster: i,
            })
            .collect();
        let sample = |weighted: bool| -> Vec<Checked> {
            (0..60)
                .chain(900..960)
                .map(|i| Checked {
                    judge: all(all_items[i].1),
                    people: all(all_items[i].0),
                    weight: match all_items[i].2 {
                        _ if !weighted => 1.0,
                        true => 100.0 / 60.0,
                        false => 900.0 / 60.0,
                    },
                    cluster: i,
                })
                .collect()
        };
        // 0.9 of 0.2 and 0.1 of 0.8.
        let truth = 0.26;
        with += usize::from(covered(
            &correct(&sample(true), &imputed, 0.95).unwrap(),
            truth,
        ));
        without += usize::from(covered(
            &correct(&sample(false), &imputed, 0.95).unwrap(),
            truth,
        ));
    }
    let (with, without) = (with as f64 / runs as f64, without as f64 / runs as f64);
    assert!(with > 0.92, "{with}");
    assert!(without < 0.5, "{without}");
}

#[test]
fn too_few_labels_and_no_eligible_item_are_said() {
    let item = |i: usize, eligible: bool| Checked {
        judge: Said {
            hit: false,
            eligible,
        },
        people: Said {
            hit: false,
            eligible,
        },
        weight: 1.0,
        cluster: i,
    };
    let few: Vec<Checked> = (0..9).map(|i| item(i, true)).collect();
    let e = correct(&few, &[], 0.95).unwrap_err().to_string();
    assert!(e.contains("9 present, 10 needed"), "{e}");
    let none: Vec<Checked> = (0..20).map(|i| item(i, false)).collect();
    assert!(correct(&none, &[], 0.95).is_err());
    let zero = Checked {
        weight: 0.0,
        ..item(0, true)
    };
    assert!(correct(&[zero; 12], &[], 0.95).is_err());
    // Everything is labelled: the judge is not needed, and people's share stands.
    let whole: Vec<Checked> = (0..40)
        .map(|i| Checked {
            people: all(i % 4 == 0),
            ..item(i, true)
        })
        .collect();
    let c = correct(&whole, &[], 0.95).unwrap();
    near(c.value, 0.25);
    assert_eq!(c.lambda, 0.0);
}

//! Error rates and coverage of the agreement room, by simulation with fixed seeds.

use pluralis::agreement::bootstrap::{
    Method, Plan, Sample, Statistic, bootstrap, paired_bootstrap,
};
use pluralis::agreement::sequential::PairedBet;
use pluralis::agreement::{interval, paired};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The share of seeded runs in which something holds.
fn share(runs: u64, mut holds: impl FnMut(&mut ChaCha8Rng) -> bool) -> f64 {
    let held = (0..runs)
        .filter(|&seed| holds(&mut ChaCha8Rng::seed_from_u64(seed)))
        .count();
    held as f64 / runs as f64
}

fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Disagreement with three voters: 0, 1/3, 2/3 or 1, with mean .3.
fn thirds(rng: &mut ChaCha8Rng) -> f64 {
    match unit(rng) {
        u if u < 0.5 => 0.0,
        u if u < 0.7 => 1.0 / 3.0,
        u if u < 0.9 => 2.0 / 3.0,
        _ => 1.0,
    }
}

#[test]
fn simulated_intervals_cover() {
    let sample = |rng: &mut ChaCha8Rng, n: usize| (0..n).map(|_| thirds(rng)).collect::<Vec<f64>>();
    for n in [10, 40, 150] {
        let covered = share(2000, |rng| {
            interval::mean_interval(&sample(rng, n), 0.95)
                .unwrap()
                .contains(0.3)
        });
        println!("mean_interval, n = {n}: {covered}");
        assert!(covered >= 0.93, "mean_interval, n = {n}: {covered}");
        let above = share(2000, |rng| {
            interval::upper_bound(&sample(rng, n), 0.05).unwrap() >= 0.3
        });
        println!("upper_bound, n = {n}: {above}");
        assert!(above >= 0.95, "upper_bound, n = {n}: {above}");
    }
    for p in [0.03, 0.2, 0.5] {
        let covered = share(2000, |rng| {
            let hits = (0..60).filter(|_| unit(rng) < p).count();
            interval::wilson(hits as f64, 60, 0.95).unwrap().contains(p)
        });
        println!("wilson, p = {p}: {covered}");
        assert!(covered >= 0.93, "wilson, p = {p}: {covered}");
    }
}

#[test]
fn simulated_bootstrap_intervals_cover() {
    // Three locales of 20 groups of two equal rows, with means .3, .3 and .3.
    let (stratum, cluster): (Vec<usize>, Vec<usize>) =
        (0..120).map(|row| (row / 40, row / 2)).unzip();
    for method in [Method::Percentile, Method::Bca] {
        let covered = share(600, |rng| {
            let values: Vec<f64> = (0..60).flat_map(|_| [thirds(rng); 2]).collect();
            let sample = Sample {
                values: &values,
                stratum: &stratum,
                cluster: &cluster,
            };
            let plan = Plan {
                method,
                resamples: 400,
                level: 0.95,
                seed: rng.next_u64(),
            };
            bootstrap(sample, Statistic::MeanOfStrata, plan)
                .unwrap()
                .contains(0.3)
        });
        println!("bootstrap {method:?}: {covered}");
        assert!(covered >= 0.93, "{method:?}: {covered}");
    }
}

#[test]
fn a_judge_that_did_not_change_seldom_claims_a_gain() {
    // Answers flip at random: the difference is -1 or 1 for a fifth of 100 items.
    let diffs = |rng: &mut ChaCha8Rng| -> Vec<f64> {
        let one = |u: f64| {
            if u < 0.1 {
                -1.0
            } else {
                f64::from(u8::from(u < 0.2))
            }
        };
        (0..100).map(|_| one(unit(rng))).collect()
    };
    let rows: Vec<usize> = (0..100).collect();
    let by_bootstrap = share(400, |rng| {
        let diffs = diffs(rng);
        paired_bootstrap(&diffs, &[0; 100], &rows, 400, 0.95, rng.next_u64())
            .unwrap()
            .low
            > 0.0
    });
    let by_permutation = share(400, |rng| {
        paired::permutation(&diffs(rng), paired::Tail::Above, 400, rng.next_u64()).unwrap() <= 0.05
    });
    let by_betting = share(400, |rng| {
        let mut gambler = PairedBet::new();
        diffs(rng)
            .into_iter()
            .for_each(|d| gambler.push(d).unwrap());
        gambler.p_value() <= 0.05
    });
    println!(
        "claims: bootstrap {by_bootstrap}, permutation {by_permutation}, betting {by_betting}"
    );
    assert!(by_bootstrap <= 0.04 && by_permutation <= 0.065 && by_betting <= 0.05);
}

/// The figures of `docs/statistics.md`, longer: `cargo test --test it measured -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes; prints the table of docs/statistics.md"]
fn measured_coverage() {
    let skewed = |rng: &mut ChaCha8Rng| if unit(rng) < 0.9 { 0.0 } else { 1.0 };
    let ordinal = |rng: &mut ChaCha8Rng| match unit(rng) {
        u if u < 0.5 => 0.0,
        u if u < 0.8 => 0.2,
        u if u < 0.95 => 0.4,
        _ => 0.8,
    };
    type Draw = fn(&mut ChaCha8Rng) -> f64;
    for (name, truth, draw) in [
        ("thirds", 0.3, thirds as Draw),
        ("0/1", 0.1, skewed),
        ("ordinal", 0.16, ordinal),
    ] {
        for n in [20, 50, 200] {
            let sample = |rng: &mut ChaCha8Rng| (0..n).map(|_| draw(rng)).collect::<Vec<f64>>();
            let rows: Vec<usize> = (0..n).collect();
            let strata: Vec<usize> = (0..n).map(|i| i % 4).collect();
            let booted = |rng: &mut ChaCha8Rng, method| {
                let values = sample(rng);
                let plan = Plan {
                    method,
                    resamples: 499,
                    level: 0.95,
                    seed: rng.next_u64(),
                };
                let sample = Sample {
                    values: &values,
                    stratum: &strata,
                    cluster: &rows,
                };
                bootstrap(sample, Statistic::MeanOfStrata, plan)
                    .unwrap()
                    .contains(truth)
            };
            let mean = share(4000, |rng| {
                interval::mean_interval(&sample(rng), 0.95)
                    .unwrap()
                    .contains(truth)
            });
            let upper = share(4000, |rng| {
                interval::upper_bound(&sample(rng), 0.05).unwrap() >= truth
            });
            let percentile = share(1000, |rng| booted(rng, Method::Percentile));
            let bca = share(1000, |rng| booted(rng, Method::Bca));
            println!("| {name} | {n} | {mean:.3} | {percentile:.3} | {bca:.3} | {upper:.3} |");
        }
    }
}

//! Error rates and coverage, by simulation with fixed seeds: a small version of `benches/claims.rs`.

use pluralis::agreement::bootstrap::{Method, Plan, Sample, Statistic, bootstrap};
use pluralis::agreement::interval;
use rand_chacha::rand_core::Rng;

use super::cases::{FIGURES, WORLDS, claims, figures, means, share, thirds, unit};

#[test]
fn simulated_intervals_of_means_cover() {
    for case in means(600, &[20, 60]) {
        let what = format!("{}, {} items", case.values, case.n);
        println!("{what}: {:.3}, bound {:.3}", case.mean, case.upper);
        assert!(case.mean >= 0.93, "{what}: {}", case.mean);
        assert!(case.upper >= 0.95, "{what}: {}", case.upper);
        // Resampling a few 0/1 items covers too little, as the page on statistics says.
        let least = if case.n < 50 { 0.8 } else { 0.88 };
        assert!(case.percentile >= least && case.bca >= least, "{what}");
    }
    for p in [0.03, 0.2, 0.5] {
        let covered = share(2000, |rng| {
            let hits = (0..60).filter(|_| unit(rng) < p).count();
            interval::wilson(hits as f64, 60, 0.95).unwrap().contains(p)
        });
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
fn simulated_intervals_of_agreement_cover() {
    // 100 samples: a true coverage of .95 falls below .89 less than once in two hundred times.
    for case in figures(100, &[120], &WORLDS[..1]) {
        println!(
            "{}, {} items, {}: {:.3}",
            case.world, case.n, case.figure, case.covered
        );
        assert!(FIGURES.contains(&case.figure) && case.without == 0.0);
        assert!(case.covered >= 0.89, "{}: {}", case.figure, case.covered);
    }
}

#[test]
fn a_judge_that_did_not_change_seldom_claims_a_gain() {
    let c = claims(400);
    println!(
        "claims: bootstrap {}, permutation {}, betting {}",
        c.bootstrap, c.permutation, c.betting
    );
    assert!(c.bootstrap <= 0.04 && c.permutation <= 0.065 && c.betting <= 0.05);
}

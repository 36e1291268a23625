//! Simulations with known truth, for the small tests in `simulations.rs` and for the large bench
//! `benches/claims.rs`: how often intervals cover, and how often nothing is taken for a gain.

use pluralis::agreement::bootstrap::{
    Method, Plan as Resampling, Sample, Statistic, bootstrap, paired_bootstrap,
};
use pluralis::agreement::kappa::{Weights, cohen_kappa};
use pluralis::agreement::sequential::PairedBet;
use pluralis::agreement::table::Confusion;
use pluralis::agreement::{classification, interval, paired};
use pluralis::evaluate::agree::{
    Agreement, Figure, Label, Labelled, LabelledItem, Plan, Scale, Vote, agree,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The share of seeded runs in which something holds.
pub fn share(runs: u64, mut holds: impl FnMut(&mut ChaCha8Rng) -> bool) -> f64 {
    let held = (0..runs)
        .filter(|&seed| holds(&mut ChaCha8Rng::seed_from_u64(seed)))
        .count();
    held as f64 / runs as f64
}

/// A number from 0 to 1.
pub fn unit(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Disagreement with three voters: 0, 1/3, 2/3 or 1, with mean .3.
pub fn thirds(rng: &mut ChaCha8Rng) -> f64 {
    match unit(rng) {
        u if u < 0.5 => 0.0,
        u if u < 0.7 => 1.0 / 3.0,
        u if u < 0.9 => 2.0 / 3.0,
        _ => 1.0,
    }
}

/// Misses of a judge that misses one item in ten.
fn rare(rng: &mut ChaCha8Rng) -> f64 {
    if unit(rng) < 0.9 { 0.0 } else { 1.0 }
}

/// Distances on a scale of six labels, with mean .16.
fn ordinal(rng: &mut ChaCha8Rng) -> f64 {
    match unit(rng) {
        u if u < 0.5 => 0.0,
        u if u < 0.8 => 0.2,
        u if u < 0.95 => 0.4,
        _ => 0.8,
    }
}

/// Coverage of the intervals for means.
pub struct MeanCase {
    /// Which values.
    pub values: &'static str,
    /// Items.
    pub n: usize,
    /// `mean_interval`.
    pub mean: f64,
    /// Percentile bootstrap of the mean over four locales.
    pub percentile: f64,
    /// BCa bootstrap of the same.
    pub bca: f64,
    /// How often the one-sided bound lies above the truth.
    pub upper: f64,
}

/// Every case of means, `runs` samples each (a quarter of that for the bootstraps).
pub fn means(runs: u64, sizes: &[usize]) -> Vec<MeanCase> {
    type Draw = fn(&mut ChaCha8Rng) -> f64;
    let kinds = [
        ("thirds (three votes), mean .30", 0.3, thirds as Draw),
        ("0/1, mean .10", 0.1, rare),
        ("ordinal, mean .16", 0.16, ordinal),
    ];
    let mut out = Vec::new();
    for (values, truth, draw) in kinds {
        for &n in sizes {
            let sample = |rng: &mut ChaCha8Rng| (0..n).map(|_| draw(rng)).collect::<Vec<f64>>();
            let rows: Vec<usize> = (0..n).collect();
            let strata: Vec<usize> = (0..n).map(|i| i % 4).collect();
            let booted = |rng: &mut ChaCha8Rng, method| {
                let values = sample(rng);
                let plan = Resampling {
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
                let i = bootstrap(sample, Statistic::MeanOfStrata, plan).unwrap();
                i.contains(truth)
            };
            out.push(MeanCase {
                values,
                n,
                mean: share(runs, |rng| {
                    let i = interval::mean_interval(&sample(rng), 0.95).unwrap();
                    i.contains(truth)
                }),
                percentile: share(runs / 4, |rng| booted(rng, Method::Percentile)),
                bca: share(runs / 4, |rng| booted(rng, Method::Bca)),
                upper: share(runs, |rng| {
                    interval::upper_bound(&sample(rng), 0.05).unwrap() >= truth
                }),
            });
        }
    }
    out
}

/// Two raters and a judge who see a true label through noise: with probability `1 - error` each
/// reports it, otherwise any label at random.
pub struct World {
    /// Its name.
    pub name: &'static str,
    /// Shares of the true labels.
    pub shares: &'static [f64],
    /// Error of the raters.
    pub rater: f64,
    /// Error of the judge.
    pub judge: f64,
}

/// The worlds of the bench.
pub const WORLDS: [World; 4] = [
    World {
        name: "two labels, half and half",
        shares: &[0.5, 0.5],
        rater: 0.2,
        judge: 0.3,
    },
    World {
        name: "a rare label (1 in 10)",
        shares: &[0.9, 0.1],
        rater: 0.1,
        judge: 0.2,
    },
    World {
        name: "three labels",
        shares: &[0.5, 0.3, 0.2],
        rater: 0.3,
        judge: 0.4,
    },
    World {
        name: "almost full agreement",
        shares: &[0.5, 0.5],
        rater: 0.04,
        judge: 0.06,
    },
];

impl World {
    fn given(&self, error: f64, truth: usize, label: usize) -> f64 {
        let any = error / self.shares.len() as f64;
        if truth == label {
            1.0 - error + any
        } else {
            any
        }
    }

    /// Probabilities of pairs of labels, as counts in a billion.
    fn joint(&self, a: impl Fn(usize, usize) -> f64, b: impl Fn(usize, usize) -> f64) -> Confusion {
        let k = self.shares.len();
        let cell = |x: usize, y: usize| -> f64 {
            (0..k).map(|t| self.shares[t] * a(t, x) * b(t, y)).sum()
        };
        let cells: Vec<f64> = (0..k * k).map(|at| cell(at / k, at % k)).collect();
        let all: f64 = cells.iter().sum();
        let counts = cells.iter().map(|c| (c / all * 1e9).round() as u64);
        Confusion::new(k, counts.collect()).unwrap()
    }

    /// The true value of a figure.
    pub fn truth(&self, figure: &str) -> f64 {
        let rater = |t, l| self.given(self.rater, t, l);
        let judge = |t, l| self.given(self.judge, t, l);
        let pair = self.joint(rater, rater);
        let with_judge = self.joint(rater, judge);
        // Where two raters have a majority they agree, so both saw the same label.
        let majority = self.joint(|t, l| rater(t, l) * rater(t, l), judge);
        let agreement = classification::percent_agreement(&pair).unwrap();
        match figure {
            "agreement" => agreement,
            "held_out" => 1.0 - agreement,
            // Both raters use labels alike, so Cohen's, Scott's, Fleiss' and alpha coincide.
            "cohen_kappa" | "fleiss_kappa" | "krippendorff_alpha" => {
                cohen_kappa(&pair, Weights::Nominal).unwrap()
            }
            "gwet_ac1" => {
                let sums = pair.row_sums();
                let all: f64 = sums.iter().sum();
                let spread: f64 = sums.iter().map(|s| s / all * (1.0 - s / all)).sum();
                let chance = spread / (sums.len() as f64 - 1.0);
                (agreement - chance) / (1.0 - chance)
            }
            "accuracy" => classification::percent_agreement(&majority).unwrap(),
            "kappa" => cohen_kappa(&majority, Weights::Nominal).unwrap(),
            "mcc" => classification::matthews_correlation(&majority).unwrap(),
            "macro_f1" => classification::macro_f1(&majority).unwrap(),
            "balanced_accuracy" => classification::balanced_accuracy(&majority).unwrap(),
            "beyond_people" => agreement - classification::percent_agreement(&with_judge).unwrap(),
            other => panic!("no figure {other}"),
        }
    }

    fn draw(&self, n: usize, rng: &mut ChaCha8Rng) -> Labelled {
        let k = self.shares.len();
        let any = |rng: &mut ChaCha8Rng| ((unit(rng) * k as f64) as usize).min(k - 1);
        let mut items = Vec::new();
        for group in 0..n {
            let mut u = unit(rng);
            let mut truth = 0;
            while truth + 1 < k && u >= self.shares[truth] {
                u -= self.shares[truth];
                truth += 1;
            }
            let mut seen = |error: f64| {
                let label = if unit(rng) < error { any(rng) } else { truth };
                label as u32
            };
            let votes = vec![
                Vote {
                    rater: 0,
                    label: seen(self.rater),
                },
                Vote {
                    rater: 1,
                    label: seen(self.rater),
                },
            ];
            let verdicts = vec![Some(seen(self.judge))];
            items.push(LabelledItem {
                locale: 0,
                group,
                votes,
                verdicts,
            });
        }
        let label = |l: usize| Label {
            label: l.to_string(),
            value: None,
            abstain: false,
            count: 0,
        };
        Labelled {
            files: Vec::new(),
            scale: Scale::Nominal,
            labels: (0..k).map(label).collect(),
            raters: vec!["a".into(), "b".into()],
            named: true,
            judges: vec!["judge".into()],
            locales: vec![String::new()],
            by_locale: false,
            grouped: false,
            items,
            missing: Default::default(),
            repeated: 0,
        }
    }
}

/// Figures whose intervals are checked.
pub const FIGURES: [&str; 12] = [
    "agreement",
    "cohen_kappa",
    "fleiss_kappa",
    "krippendorff_alpha",
    "gwet_ac1",
    "held_out",
    "accuracy",
    "kappa",
    "mcc",
    "macro_f1",
    "balanced_accuracy",
    "beyond_people",
];

/// Coverage of one figure of `pluralis agree`.
pub struct FigureCase {
    /// The world.
    pub world: &'static str,
    /// Items.
    pub n: usize,
    /// The figure.
    pub figure: &'static str,
    /// Share of the intervals that hold the truth.
    pub covered: f64,
    /// Share of the samples without a figure or an interval; they do not count above.
    pub without: f64,
}

fn find<'a>(a: &'a Agreement, name: &str) -> &'a Figure {
    let people = a.overall.people.get(name);
    people.unwrap_or_else(|| &a.overall.judges["judge"].figures[name])
}

/// Every figure in every world, `runs` samples each.
pub fn figures(runs: u64, sizes: &[usize], worlds: &[World]) -> Vec<FigureCase> {
    let mut out = Vec::new();
    for world in worlds {
        let truth = FIGURES.map(|f| world.truth(f));
        for &n in sizes {
            let (mut covered, mut counted) = ([0.0; FIGURES.len()], [0.0; FIGURES.len()]);
            for seed in 0..runs {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let data = world.draw(n, &mut rng);
                let plan = Plan {
                    resamples: 499,
                    seed: rng.next_u64(),
                    ..Plan::new(Scale::Nominal, n)
                };
                let result = agree(&data, &plan).unwrap();
                for (at, name) in FIGURES.iter().enumerate() {
                    if let Some(i) = find(&result, name).interval {
                        counted[at] += 1.0;
                        // Rounding must not decide where both are the same number.
                        let inside = i.low <= truth[at] + 1e-9 && truth[at] <= i.high + 1e-9;
                        covered[at] += f64::from(u8::from(inside));
                    }
                }
            }
            for (at, figure) in FIGURES.into_iter().enumerate() {
                out.push(FigureCase {
                    world: world.name,
                    n,
                    figure,
                    covered: covered[at] / f64::max(counted[at], 1.0),
                    without: 1.0 - counted[at] / runs as f64,
                });
            }
        }
    }
    out
}

/// How often each test takes a judge that did not change for a better one.
pub struct Claims {
    /// The lower end of a paired bootstrap interval of 95 % is above 0.
    pub bootstrap: f64,
    /// One-sided sign flips at .05.
    pub permutation: f64,
    /// Betting at .05, read after every item.
    pub betting: f64,
}

/// A judge whose answers flip at random on a fifth of 100 items and that did not change.
pub fn claims(runs: u64) -> Claims {
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
    Claims {
        bootstrap: share(runs, |rng| {
            let diffs = diffs(rng);
            let seed = rng.next_u64();
            let i = paired_bootstrap(&diffs, &[0; 100], &rows, 400, 0.95, seed).unwrap();
            i.low > 0.0
        }),
        permutation: share(runs, |rng| {
            let diffs = diffs(rng);
            paired::permutation(&diffs, paired::Tail::Above, 400, rng.next_u64()).unwrap() <= 0.05
        }),
        betting: share(runs, |rng| {
            let mut gambler = PairedBet::new();
            diffs(rng)
                .into_iter()
                .for_each(|d| gambler.push(d).unwrap());
            gambler.p_value() <= 0.05
        }),
    }
}

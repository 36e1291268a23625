//! How many items a claim needs.

use super::*;

fn question(what: Claim) -> Question {
    Question {
        what,
        scope: Scope::Mean,
        alpha: 0.05,
        power: 0.8,
        looks: None,
        locales: 1,
    }
}

#[test]
fn items_to_certify_are_enough_in_simulation() {
    let certify = question(Claim::Certify {
        threshold: 0.1,
        expected: 0.05,
    });
    let twelve = items_needed(&Question {
        locales: 12,
        ..certify
    })
    .unwrap();
    // Sums of binomial terms: 13 of 204 pass (.0482 at a true .10), with probability .8551 at .05.
    assert_eq!(
        (twelve.per_locale, twelve.total, twelve.misses_allowed),
        (17, 204, Some(13))
    );
    assert!((twelve.power - 0.8551).abs() < 1e-3, "{}", twelve.power);
    assert_eq!(twelve.least_per_locale, Some(3)); // 29 in all
    let passes = |n: usize, rate: f64, rng: &mut ChaCha8Rng| {
        let misses: Vec<f64> = (0..n)
            .map(|_| f64::from(u8::from(unit(rng) < rate)))
            .collect();
        pluralis::agreement::interval::upper_bound(&misses, 0.05).unwrap() < 0.1
    };
    let good = share(2000, |rng| passes(204, 0.05, rng));
    assert!((good - twelve.power).abs() < 0.03, "{good}");
    let bad = share(2000, |rng| passes(204, 0.1, rng));
    assert!(bad <= 0.06, "{bad}");
    // Every locale by itself, at the fifth look: alpha · 6 / (25 π²) each, since all have to pass.
    let worst = items_needed(&Question {
        locales: 12,
        scope: Scope::WorstLocale,
        looks: Some(5),
        ..certify
    })
    .unwrap();
    let alpha = 0.05 * 6.0 / (25.0 * std::f64::consts::PI.powi(2));
    assert!((worst.alpha_each - alpha).abs() < 1e-12);
    assert!((worst.power_each.powi(12) - 0.8).abs() < 1e-9 && worst.power >= 0.8);
    assert_eq!(worst.least_per_locale, Some(64)); // ln(alpha each) / ln .9 = 63.7
}

#[test]
fn items_to_detect_are_enough_in_simulation() {
    let gain = |worse| {
        question(Claim::Gain {
            before: 0.3,
            gain: 0.1,
            worse,
        })
    };
    let answer = items_needed(&gain(None)).unwrap();
    // Connor's formula: d = .38, g = .1: (1.959964 √.38 + .841621 √.37)² / .01 = 295.9.
    assert_eq!(answer.total, 296);
    assert!((answer.worse.unwrap() - 0.14).abs() < 1e-12);
    assert!(items_needed(&gain(Some(0.03))).unwrap().total < 150);
    let detected = |n: usize, better: f64, rng: &mut ChaCha8Rng| {
        let (mut up, mut down) = (0, 0);
        for _ in 0..n {
            match unit(rng) {
                u if u < better => up += 1,
                u if u < better + 0.14 => down += 1,
                _ => {}
            }
        }
        // The test of the formula: (b - c)² / (b + c) beyond the quantile of its distribution.
        let (b, c) = (f64::from(up), f64::from(down));
        (b - c).powi(2) > 1.959964f64.powi(2) * (b + c)
    };
    let seen = share(4000, |rng| detected(296, 0.24, rng));
    assert!((seen - 0.8).abs() < 0.03, "{seen}");
    let nothing = share(4000, |rng| detected(296, 0.14, rng));
    assert!(nothing < 0.065, "{nothing}");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    assert!(!detected(0, 0.24, &mut rng));
}

#[test]
fn power_speaks_plainly() {
    let out = piped(
        &[
            "power",
            "--threshold",
            "0.1",
            "--true",
            "0.05",
            "--locales",
            "12",
        ],
        "",
    );
    let words = text(&out.stdout);
    assert!(
        words.starts_with("17 labelled items per locale, 204 in 12 locales"),
        "{words}"
    );
    let out = piped(&["power", "--before", "0.3", "--gain", "0.1", "--json"], "");
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (&value["schema"], &value["total"]),
        (&"pluralis-power/1".into(), &296.into())
    );
}

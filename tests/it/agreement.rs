//! The agreement room against scikit-learn, statsmodels, krippendorff and irrCAC (golden files made by
//! `tests/reference/agreement.py`), and its properties on random tables.

pub mod cases;
mod simulations;

use pluralis::agreement::alpha::{Metric, krippendorff_alpha};
use pluralis::agreement::ceiling::{
    AltTestPlan, Rating, against_panel, alternative_annotator_test, held_out,
};
use pluralis::agreement::kappa::{Weights, cohen_kappa, fleiss_kappa, scott_pi};
use pluralis::agreement::table::{Confusion, CountTable};
use pluralis::agreement::{
    Measure, ScaleView, Stat, Undefined, ac, disagreement, interval, multiple, paired,
};
use pluralis::agreement::{classification, mean, probability};
use proptest::prelude::*;
use serde_json::Value;

fn golden(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/reference/golden")
        .join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v.as_f64().unwrap())
        .collect()
}

fn size(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// The same to 1e-9; a null of the reference must be undefined here.
fn check(case: &Value, key: &str, got: Stat) {
    match (case[key].as_f64(), got) {
        (Some(want), Ok(got)) => assert!(
            (want - got).abs() < 1e-9,
            "{} {key}: {got}, reference {want}",
            case["name"]
        ),
        (None, Err(_)) => {}
        (want, got) => panic!("{} {key}: {got:?}, reference {want:?}", case["name"]),
    }
}

fn check_pair(case: &Value) {
    let values = numbers(&case["values"]);
    let counts = list(case, "matrix")
        .iter()
        .map(|v| v.as_u64().unwrap())
        .collect();
    let matrix = Confusion::new(size(&case["labels"]), counts).unwrap();
    check(
        case,
        "percent_agreement",
        classification::percent_agreement(&matrix),
    );
    check(case, "kappa", cohen_kappa(&matrix, Weights::Nominal));
    check(case, "kappa_linear", cohen_kappa(&matrix, Weights::Linear));
    check(
        case,
        "kappa_quadratic",
        cohen_kappa(&matrix, Weights::Quadratic),
    );
    check(
        case,
        "kappa_linear_values",
        cohen_kappa(&matrix, Weights::LinearValues(&values)),
    );
    check(
        case,
        "kappa_quadratic_values",
        cohen_kappa(&matrix, Weights::QuadraticValues(&values)),
    );
    check(case, "pi", scott_pi(&matrix, Weights::Nominal));
    check(case, "pi_linear", scott_pi(&matrix, Weights::Linear));
    check(case, "pi_quadratic", scott_pi(&matrix, Weights::Quadratic));
    check(case, "mcc", classification::matthews_correlation(&matrix));
    check(case, "macro_f1", classification::macro_f1(&matrix));
    check(
        case,
        "balanced_accuracy",
        classification::balanced_accuracy(&matrix),
    );
}

fn table_of(case: &Value) -> CountTable {
    let mut counts = Vec::new();
    for row in list(case, "rows") {
        let item: Vec<u32> = numbers(&row[0]).into_iter().map(|n| n as u32).collect();
        counts.extend(item.repeat(size(&row[1])));
    }
    CountTable::new(size(&case["labels"]), counts).unwrap()
}

fn check_table(case: &Value) {
    let (table, values) = (table_of(case), numbers(&case["values"]));
    if !case["fleiss_classic"].is_null() {
        check(
            case,
            "fleiss_classic",
            fleiss_kappa(&table, Weights::Nominal),
        );
    }
    check(case, "fleiss", fleiss_kappa(&table, Weights::Nominal));
    check(
        case,
        "fleiss_quadratic",
        fleiss_kappa(&table, Weights::Quadratic),
    );
    check(case, "ac1", ac::gwet_ac1(&table));
    check(case, "ac2_linear", ac::gwet_ac2(&table, Weights::Linear));
    check(
        case,
        "ac2_quadratic",
        ac::gwet_ac2(&table, Weights::Quadratic),
    );
    check(case, "ac2_ordinal", ac::gwet_ac2(&table, Weights::Ordinal));
    check(
        case,
        "alpha_nominal",
        krippendorff_alpha(&table, Metric::Nominal),
    );
    check(
        case,
        "alpha_ordinal",
        krippendorff_alpha(&table, Metric::Ordinal),
    );
    check(
        case,
        "alpha_interval",
        krippendorff_alpha(&table, Metric::Interval(&values)),
    );
    check(
        case,
        "alpha_ratio",
        krippendorff_alpha(&table, Metric::Ratio(&values)),
    );
}

#[test]
fn random_tables_equal_the_reference_libraries() {
    let cases = golden("agreement-random.json");
    assert!(list(&cases, "pairs").len() >= 20 && list(&cases, "tables").len() >= 20);
    list(&cases, "pairs").iter().for_each(check_pair);
    list(&cases, "tables").iter().for_each(check_table);
}

#[test]
fn real_labels_equal_the_reference_libraries_and_the_published_figures() {
    let cases = golden("agreement-real.json");
    list(&cases, "pairs").iter().for_each(check_pair);
    list(&cases, "tables").iter().for_each(check_table);
    let published = [
        ("truthfulqa en truthfulness", 0.7400),
        ("truthfulqa es truthfulness", 0.7453),
        ("truthfulqa ca truthfulness", 0.7961),
        ("truthfulqa eu truthfulness", 0.6377),
        ("truthfulqa gl truthfulness", 0.9190),
        ("truthfulqa en informativeness", 0.4845),
        ("truthfulqa eu informativeness", 0.4681),
    ];
    for (name, want) in published {
        let case = list(&cases, "pairs")
            .iter()
            .find(|c| c["name"] == name)
            .unwrap();
        let got = case["kappa"].as_f64().unwrap();
        assert!((got - want).abs() < 6e-5, "{name}: {got}");
    }
    let table = |name: &str| {
        table_of(
            list(&cases, "tables")
                .iter()
                .find(|c| c["name"] == name)
                .unwrap(),
        )
    };
    let near = |got: Stat, want: f64| {
        assert!(
            (got.as_ref().unwrap() - want).abs() < 6e-4,
            "{got:?} {want}"
        )
    };
    near(fleiss_kappa(&table("korean"), Weights::Nominal), 0.301);
    near(
        krippendorff_alpha(&table("nlp-fairness region"), Metric::Nominal),
        0.115,
    );
    near(
        krippendorff_alpha(&table("nlp-fairness religion"), Metric::Nominal),
        0.110,
    );
    let unanimous = table("pandalm")
        .items()
        .filter(|item| item.contains(&3))
        .count();
    assert_eq!(unanimous, 879);
}

#[test]
fn intervals_tests_and_probability_scores_equal_the_reference_libraries() {
    let cases = golden("agreement-figures.json");
    let near = |got: f64, want: f64, what: &Value| {
        assert!((got - want).abs() < 1e-9, "{got} {want} {what}")
    };
    for case in list(&cases, "intervals") {
        let (s, n, level) = (
            case["successes"].as_f64().unwrap(),
            size(&case["n"]),
            case["level"].as_f64().unwrap(),
        );
        for (key, method) in [
            ("wilson", interval::wilson as fn(_, _, _) -> _),
            ("exact", interval::clopper_pearson),
        ] {
            let got = method(s, n, level).unwrap();
            let want = numbers(&case[key]);
            near(got.low, want[0], case);
            near(got.high, want[1], case);
        }
    }
    for case in list(&cases, "mcnemar") {
        let p = paired::mcnemar_exact(case["b"].as_u64().unwrap(), case["c"].as_u64().unwrap());
        near(p, case["p"].as_f64().unwrap(), case);
    }
    type Adjust = fn(&[f64]) -> Result<Vec<f64>, Undefined>;
    let methods: [(&str, Adjust); 3] = [
        ("holm", multiple::holm),
        ("bh", multiple::benjamini_hochberg),
        ("by", multiple::benjamini_yekutieli),
    ];
    for case in list(&cases, "multiple") {
        for (key, method) in methods {
            let got = method(&numbers(&case["p"])).unwrap();
            got.iter()
                .zip(numbers(&case[key]))
                .for_each(|(g, w)| near(*g, w, case));
        }
    }
    for case in list(&cases, "probabilities") {
        check_probabilities(case);
    }
}

fn check_probabilities(case: &Value) {
    let probs: Vec<Vec<f64>> = list(case, "probs").iter().map(numbers).collect();
    let truth: Vec<usize> = list(case, "truth").iter().map(size).collect();
    let score = |f: fn(&[f64], &[f64]) -> Stat| {
        let each = probs.iter().zip(&truth).map(|(p, &t)| {
            let target: Vec<f64> = (0..p.len()).map(|l| f64::from(u8::from(l == t))).collect();
            f(p, &target).unwrap()
        });
        mean(&each.collect::<Vec<_>>())
    };
    check(case, "log_loss", score(probability::log_loss));
    check(case, "brier", score(probability::brier));
    check(case, "rps", score(probability::ranked_probability_score));
    let top = |p: &[f64]| p.iter().copied().fold(0.0, f64::max);
    let confidence: Vec<f64> = probs.iter().map(|p| top(p)).collect();
    let correct: Vec<f64> = probs
        .iter()
        .zip(&truth)
        .map(|(p, &t)| f64::from(u8::from(p[t] == top(p))))
        .collect();
    check(
        case,
        "ece",
        probability::expected_calibration_error(&confidence, &correct, 10),
    );
}

#[test]
fn alternative_annotator_test_equals_its_procedure_in_scipy() {
    let cases = golden("agreement-figures.json");
    for case in list(&cases, "alt_test") {
        let labels = size(&case["labels"]);
        let rating = |v: &Value| Rating {
            item: size(&v[0]),
            rater: size(&v[1]),
            label: size(&v[2]),
        };
        let ratings: Vec<Rating> = list(case, "ratings").iter().map(rating).collect();
        let judge: Vec<Option<usize>> = list(case, "judge").iter().map(|v| Some(size(v))).collect();
        let (values, abstain) = (vec![0.0; labels], vec![false; labels]);
        let scale = ScaleView {
            values: &values,
            abstain: &abstain,
        };
        let plan = AltTestPlan {
            epsilon: case["epsilon"].as_f64().unwrap(),
            q: 0.05,
            least_items: 30,
        };
        let got =
            alternative_annotator_test(Measure::MeanVotes, scale, &ratings, &judge, plan).unwrap();
        check(case, "winning_rate", Ok(got.winning_rate));
        check(case, "advantage", Ok(got.advantage));
        for (rater, (p, wins)) in got
            .raters
            .iter()
            .zip(numbers(&case["p"]).into_iter().zip(numbers(&case["wins"])))
        {
            assert!(
                (rater.p_value - p).abs() < 1e-9 && (rater.judge_wins - wins).abs() < 1e-9,
                "{rater:?} {p} {wins}"
            );
        }
    }
}

/// Counts of up to five raters over three labels, per item.
fn tables() -> impl Strategy<Value = Vec<[u32; 3]>> {
    prop::collection::vec(prop::array::uniform3(0u32..3), 1..25)
}

fn count_table(items: &[[u32; 3]]) -> CountTable {
    CountTable::new(3, items.iter().flatten().copied().collect()).unwrap()
}

fn same(a: Stat, b: Stat) -> bool {
    match (a, b) {
        (Ok(a), Ok(b)) => (a - b).abs() < 1e-9,
        (a, b) => a.is_err() && b.is_err(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn tables_ignore_names_and_order(items in tables(), turn in 0usize..3) {
        let relabelled: Vec<[u32; 3]> = items.iter().map(|i| [i[turn], i[(turn + 1) % 3], i[(turn + 2) % 3]]).collect();
        let mut reversed = items.clone();
        reversed.reverse();
        let figures: [fn(&CountTable) -> Stat; 3] =
            [|t| fleiss_kappa(t, Weights::Nominal), ac::gwet_ac1, |t| krippendorff_alpha(t, Metric::Nominal)];
        for figure in figures {
            let got = figure(&count_table(&items));
            prop_assert!(same(got, figure(&count_table(&relabelled))));
            prop_assert!(same(got, figure(&count_table(&reversed))));
            if let Ok(value) = got {
                prop_assert!(value.is_finite() && value <= 1.0 + 1e-9, "{}", value);
            }
        }
        let mirrored: Vec<[u32; 3]> = items.iter().map(|i| [i[2], i[1], i[0]]).collect();
        let ordinal = |t: &[[u32; 3]]| krippendorff_alpha(&count_table(t), Metric::Ordinal);
        prop_assert!(same(ordinal(&items), ordinal(&mirrored)));
        // Units and zero point of an interval scale do not matter.
        let at = |values: &[f64]| krippendorff_alpha(&count_table(&items), Metric::Interval(values));
        prop_assert!(same(at(&[0.0, 1.0, 5.0]), at(&[-3.0, 7.0, 47.0])));
    }

    #[test]
    fn pairs_are_symmetric_and_bounded(counts in prop::collection::vec(0u64..30, 9)) {
        let matrix = Confusion::new(3, counts).unwrap();
        let turned = matrix.transposed();
        for w in [Weights::Nominal, Weights::Linear, Weights::Quadratic, Weights::QuadraticValues(&[0.0, 1.0, 9.0])] {
            prop_assert!(same(cohen_kappa(&matrix, w), cohen_kappa(&turned, w)));
            prop_assert!(same(scott_pi(&matrix, w), scott_pi(&turned, w)));
            if let (Ok(kappa), Ok(pi)) = (cohen_kappa(&matrix, w), scott_pi(&matrix, w)) {
                prop_assert!(kappa <= 1.0 + 1e-12 && pi <= kappa + 1e-12, "pi {} is above kappa {}", pi, kappa);
            }
        }
        prop_assert!(same(classification::matthews_correlation(&matrix), classification::matthews_correlation(&turned)));
        for figure in [classification::macro_f1, classification::balanced_accuracy, classification::percent_agreement] {
            if let Ok(value) = figure(&matrix) {
                prop_assert!((0.0..=1.0).contains(&value));
            }
        }
    }

    #[test]
    fn distances_are_bounded_and_people_agree_with_themselves(
        votes in prop::array::uniform4(0u32..4), label in prop::option::of(0usize..4),
    ) {
        let scale = ScaleView { values: &[0.0, 1.0, 4.0, 0.0], abstain: &[false, false, false, true] };
        for measure in [Measure::Majority, Measure::MeanVotes, Measure::Ordinal, Measure::Quadratic] {
            match disagreement(measure, scale, &votes, label) {
                Ok(d) => prop_assert!((0.0..=1.0).contains(&d)),
                Err(why) => prop_assert!(votes.iter().sum::<u32>() == 0, "{}", why),
            }
            if let Ok(human) = held_out(measure, scale, &votes) {
                prop_assert!((0.0..=1.0).contains(&human));
                prop_assert!((0.0..=1.0).contains(&against_panel(measure, scale, &votes, label).unwrap()));
            }
        }
        // The squared distance is never above the plain one.
        let of = |m| disagreement(m, scale, &votes, label);
        if let (Ok(plain), Ok(squared)) = (of(Measure::Ordinal), of(Measure::Quadratic)) {
            prop_assert!(squared <= plain + 1e-12);
        }
    }

    #[test]
    fn bounds_hold_the_mean_and_grow_with_certainty(values in prop::collection::vec(0u32..=4, 1..60)) {
        let values: Vec<f64> = values.into_iter().map(|v| f64::from(v) / 4.0).collect();
        let m = mean(&values).unwrap();
        let (wide, narrow) = (interval::mean_interval(&values, 0.99).unwrap(), interval::mean_interval(&values, 0.8).unwrap());
        prop_assert!(narrow.contains(m) && wide.low <= narrow.low && wide.high >= narrow.high);
        prop_assert!(0.0 <= wide.low && wide.high <= 1.0);
        let (loose, strict) = (interval::upper_bound(&values, 0.2).unwrap(), interval::upper_bound(&values, 0.01).unwrap());
        prop_assert!(m <= loose + 1e-12 && loose <= strict + 1e-12 && strict <= 1.0);
    }
}

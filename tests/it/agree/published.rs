//! Figures that papers and reference libraries give for real data.

use super::*;

#[test]
fn truthfulqa_raters_agree_as_published() {
    let languages = ["en", "es", "ca", "eu", "gl"];
    let paths: Vec<String> = ["evaluated", "iaa"]
        .iter()
        .flat_map(|f| languages.map(|l| format!("truthfulqa-multi/{f}/{l}.csv")))
        .collect();
    let Some(files) = real(&paths.iter().map(String::as_str).collect::<Vec<_>>()) else {
        return;
    };
    let spec = |label| Spec {
        locale: Some("@file".into()),
        ..Spec::long("@folder", &["id"], label)
    };
    let truth = of_files(&files, &spec("truthfulness"));
    let published = [0.7400, 0.7453, 0.7961, 0.6377, 0.9190];
    for (language, want) in languages.iter().zip(published) {
        let kappa = &truth.locales[*language].people["cohen_kappa"];
        assert_eq!(kappa.n, 50);
        near(kappa.value, want, 6e-5);
    }
    let over = truth.over_locales.as_ref().unwrap();
    near(
        over.people["cohen_kappa"].value,
        published.iter().sum::<f64>() / 5.0,
        6e-5,
    );
    assert_eq!(over.worst_people["cohen_kappa"].locale, "eu");
    assert_eq!(truth.raters, ["evaluated", "iaa"]);
    // As published, to every digit of its report.
    let informative = of_files(&files, &spec("informativeness"));
    near(
        informative.locales["en"].people["cohen_kappa"].value,
        0.48453608247422675,
        1e-12,
    );
    near(
        informative.locales["gl"].people["cohen_kappa"].value,
        0.6453900709219857,
        1e-12,
    );
}

#[test]
fn pandalm_pairs_agree_as_published() {
    let Some(files) = real(&[
        "pandalm/testset-v1.json",
        "pandalm/gpt-3.5-turbo-testset-v1.json",
    ]) else {
        return;
    };
    let spec = Spec {
        item: vec!["idx".into()],
        judges: vec!["gpt_result".into()],
        aliases: [("Tie".to_owned(), "0".to_owned())].into(),
        missing: vec!["garbage".into()],
        ..Spec::wide(&["annotator1", "annotator2", "annotator3"])
    };
    let a = of_files(&files, &spec);
    for (at, want) in [(0, 0.852), (1, 0.879), (3, 0.862)] {
        let (kappa, n) = pair(&a, at);
        assert_eq!(n, 999);
        near(kappa, want, 5e-4);
    }
    near(a.overall.people["unanimous"].value, 879.0 / 999.0, 1e-12);
    // 25 answers are "garbage": failed verdicts, which stay in the denominator.
    let judge = &a.overall.judges["gpt_result"];
    assert_eq!((judge.failed, judge.figures["disagreement"].n), (25, 999));
    assert_eq!(judge.alt_test.passed, Some(false));
    assert_eq!(judge.alt_test.raters.len(), 3);
}

#[test]
fn nlp_fairness_and_korean_labels_agree_as_published() {
    let Some(files) = real(&[
        "nlp-fairness-for-india/region_individual_annotation.tsv",
        "nlp-fairness-for-india/religion_individual_annotation.tsv",
    ]) else {
        return;
    };
    let spec = Spec {
        locale: Some("@file".into()),
        ..Spec::long(
            "anonymized annotator id",
            &["identity term", "attribute token"],
            "annotation",
        )
    };
    let a = of_files(&files, &spec);
    assert_eq!((a.overall.items, a.overall.votes), (3852, 12504));
    let alpha = |file: &str| a.locales[file].people["krippendorff_alpha"].value;
    near(alpha("region_individual_annotation"), 0.115, 5e-4);
    near(alpha("religion_individual_annotation"), 0.110, 5e-4);
    let Some(korean) = real(&["korean-safety-benchmarks/response_test_ood_annotations.json"])
    else {
        return;
    };
    let columns = [0, 1, 2]
        .map(|i| format!("raw_annotations.Q2: Acceptable or Non-acceptable.{i}.acceptable?"));
    let spec = Spec::new(Votes::Wide {
        raters: columns.to_vec(),
        exchangeable: true,
    });
    let a = of_files(&korean, &spec);
    near(a.overall.people["fleiss_kappa"].value, 0.301, 5e-4);
    assert!(a.overall.raters.is_empty() && a.overall.pairs.is_empty());
}

#[test]
fn xstest_equals_the_reference_library() {
    let Some(files) = real(&[
        "xstest/xstest_v2_completions_gpt4_gpteval.csv",
        "xstest/xstest_v2_completions_mistralguard_gpteval.csv",
    ]) else {
        return;
    };
    let spec = Spec {
        judges: vec!["gpt4_label".into()],
        locale: Some("@file".into()),
        ..Spec::wide(&["annotation_1", "annotation_2"])
    };
    let a = of_files(&files, &spec);
    // scikit-learn, in tests/reference/golden/agreement-real.json.
    near(
        a.overall.people["cohen_kappa"].value,
        0.9294117647058824,
        1e-9,
    );
    assert_eq!((a.overall.items, a.overall.ties), (900, 35));
}

//! Tables of labels in every shape, by hand.

use super::*;

#[test]
fn a_small_table_by_hand() {
    let a = figures(&table(BY_HAND, &judged(Spec::wide(&["a", "b", "c"]))).unwrap());
    let people = &a.overall.people;
    // Pairs that agree: 1 of 3, 0 of 1, all, all.
    near(people["agreement"].value, (1.0 / 3.0 + 2.0) / 4.0, 1e-12);
    // Held out: 2/3 (a tie for each yes, a miss for the no), 1, 0, 0.
    near(people["held_out"].value, 5.0 / 12.0, 1e-12);
    let judge = &a.overall.judges["judge"];
    // Right, half right on the tie, failed, right.
    near(judge.figures["disagreement"].value, 1.5 / 4.0, 1e-12);
    near(judge.figures["accuracy"].value, 2.0 / 3.0, 1e-12);
    assert_eq!((a.overall.ties, judge.failed, a.missing["c"]), (1, 1, 1));
    assert_eq!(judge.confusion.labels, ["n", "y", "(none)"]);
    assert_eq!(judge.confusion.counts, [[1, 0, 1], [0, 1, 0], [0, 0, 0]]);
    // F1 of n is 2·1/(2+1), of y 1; the failed verdict is no third label.
    near(
        judge.figures["macro_f1"].value,
        (2.0 / 3.0 + 1.0) / 2.0,
        1e-12,
    );
    near(judge.figures["balanced_accuracy"].value, 0.75, 1e-12);
    // Less one rater: 1/3 (as in the ceiling's own test), 1/2, 1, 0; people themselves 2/3, 1, 0, 0.
    near(
        judge.figures["panel_disagreement"].value,
        (1.0 / 3.0 + 0.5 + 1.0) / 4.0,
        1e-12,
    );
    near(
        judge.figures["beyond_people"].value,
        (-1.0 / 3.0 - 0.5 + 1.0) / 4.0,
        1e-12,
    );
}

#[test]
fn wide_and_long_and_counted_votes_are_the_same() {
    let wide = figures(&table(BY_HAND, &judged(Spec::wide(&["a", "b", "c"]))).unwrap());
    let long = "item,who,vote,judge\n4,c,n,n\n1,a,y,y\n1,b,y,\n1,c,n,\n2,a,y,n\n2,b,n,n\n\
                3,a,n,\n3,b,n,\n3,c,n,\n4,a,n,\n4,b,n,\n2,c, ,\n";
    let long = figures(&table(long, &judged(Spec::long("who", &["item"], "vote"))).unwrap());
    let rows = "item,who,vote\n4,c,n\n1,a,y\n1,b,y\n1,c,n\n2,a,y\n2,b,n\n3,a,n\n3,b,n\n3,c,n\n\
                4,a,n\n4,b,n\n1,judge,y\n2,judge,n\n4,judge,n\n";
    let rows = figures(&table(rows, &judged(Spec::long("who", &["item"], "vote"))).unwrap());
    assert_eq!(rows.raters, ["a", "b", "c"]);
    let counts = "y,n,judge\n2,1,y\n1,1,n\n0,3,\n0,3,n\n";
    let votes = Votes::Counts(vec![("y".into(), "y".into()), ("n".into(), "n".into())]);
    let counts = figures(&table(counts, &judged(Spec::new(votes))).unwrap());
    for other in [long, rows, counts] {
        let value =
            |a: &Agreement, name: &str| a.overall.people[name].value.map(|v| (v * 1e9).round());
        for name in [
            "agreement",
            "held_out",
            "fleiss_kappa",
            "krippendorff_alpha",
            "gwet_ac1",
        ] {
            assert_eq!(value(&wide, name), value(&other, name), "{name}");
        }
        let judge = |a: &Agreement| {
            let figure = |n: &str| {
                a.overall.judges["judge"].figures[n]
                    .value
                    .map(|v| (v * 1e9).round())
            };
            ["disagreement", "kappa", "mcc", "macro_f1"].map(figure)
        };
        assert_eq!(judge(&wide), judge(&other));
    }
}

#[test]
fn locales_count_alike_and_the_worst_is_named() {
    let csv = "lang,a,b\nen,x,x\nen,y,y\nen,x,x\nen,y,y\nfr,x,x\nfr,x,y\n";
    let spec = Spec {
        locale: Some("lang".into()),
        ..Spec::wide(&["a", "b"])
    };
    let a = figures(&table(csv, &spec).unwrap());
    near(a.overall.people["agreement"].value, 5.0 / 6.0, 1e-12);
    let over = a.over_locales.unwrap();
    near(over.people["agreement"].value, 0.75, 1e-12);
    let worst = &over.worst_people["agreement"];
    assert_eq!(
        (worst.locale.as_str(), worst.figure.value),
        ("fr", Some(0.5))
    );
    // Full agreement is not certain agreement: Wilson's lower end for 4 of 4 is .510, and kappa is
    // 1 - (1 - .510) / (1 - 2 · .5²).
    let kappa = &a.locales["en"].people["cohen_kappa"];
    let interval = kappa.interval.unwrap();
    assert_eq!(
        (kappa.value, interval.high, interval.by),
        (Some(1.0), 1.0, By::Agreement)
    );
    assert!(
        (interval.low - (1.0 - (1.0 - 0.5101092) / 0.5)).abs() < 1e-6,
        "{interval:?}"
    );
}

#[test]
fn what_is_undefined_says_why() {
    let a = figures(&table("a,b\nx,x\nx,x\n", &Spec::wide(&["a", "b"])).unwrap());
    let kappa = &a.overall.people["cohen_kappa"];
    assert_eq!(kappa.value, None);
    assert!(
        kappa
            .undefined
            .as_ref()
            .unwrap()
            .contains("every rating carries the same label")
    );
    let alone = figures(&table("a,b\nx,\n,y\n", &Spec::wide(&["a", "b"])).unwrap());
    for (name, figure) in &alone.overall.people {
        assert!(
            figure.value.is_none() && figure.undefined.is_some(),
            "{name}: {figure:?}"
        );
    }
}

#[test]
fn ordered_labels_have_values_and_order() {
    let spec = |scale| Spec {
        scale,
        ..Spec::wide(&["a", "b"])
    };
    let data = table("a,b\n10,2\n1.0,1\n2,10\n", &spec(Scale::Interval)).unwrap();
    let labels: Vec<Option<f64>> = data.labels.iter().map(|l| l.value).collect();
    assert_eq!(labels, [Some(1.0), Some(2.0), Some(10.0)]);
    // One full item, two at 8/9 of the range.
    near(
        figures(&data).overall.people["held_out"].value,
        16.0 / 27.0,
        1e-12,
    );
    let fails = |csv: &str, spec: &Spec| table(csv, spec).unwrap_err().to_string();
    let text = fails("a,b\n1,2\nhigh,1\n", &spec(Scale::Ordinal));
    assert!(
        text.starts_with("t.csv, row 3, a: the label `high` has no place"),
        "{text}"
    );
    assert!(fails("a,b\n-1,2\n", &spec(Scale::Ratio)).contains("starts at 0"));
    let valued = Spec {
        values: vec![("low".into(), 1.0), ("high".into(), 2.0)],
        ..spec(Scale::Ordinal)
    };
    let text = fails("a,b\nlow,High \nhgih,low\n", &valued);
    assert!(
        text.contains("row 3, a: the label `hgih`") && text.contains("`high`?"),
        "{text}"
    );
    assert!(table("a,b\nlow,High \n", &valued).is_ok());
}

#[test]
fn a_rater_has_one_label_per_item() {
    let spec = Spec::long("r", &["i"], "l");
    let data = table("r,i,l\na,1,x\na,1,x\nb,1,y\n", &spec).unwrap();
    assert_eq!((data.items[0].votes.len(), data.repeated), (2, 1));
    let text = table("r,i,l\na,1,x\nb,1,x\na,1,y\n", &spec)
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("t.csv, row 4, l: `a` has a second, different label"),
        "{text}"
    );
    let text = table("r,i,l\n,1,x\n", &spec).unwrap_err().to_string();
    assert!(text.starts_with("t.csv, row 2, r: a blank cell"), "{text}");
}

#[test]
fn rows_of_one_item_are_joined_across_files() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let people = write(
        "people.jsonl",
        "{\"id\":1,\"a\":\"x\",\"b\":\"x\"}\n{\"id\":2,\"a\":\"y\",\"b\":\"y\"}\n",
    );
    let judge = write("judge.csv", "id,judge\n2,x\n1,x\n");
    let spec = judged(Spec {
        item: vec!["id".into()],
        ..Spec::wide(&["a", "b"])
    });
    let a = of_files(&[people, judge], &spec);
    near(
        a.overall.judges["judge"].figures["disagreement"].value,
        0.5,
        1e-12,
    );
    let missing = read(&[Path::new("no-such.csv").to_owned()], None, &spec).unwrap_err();
    assert!(missing.to_string().contains("no-such.csv"));
}

//! SeeGULL Multilingual: the paper's figures from the released files, and the questions.

use std::collections::{BTreeMap, BTreeSet};

use pluralis::data::import::seegull::{Kind, import};
use pluralis::data::normalise;
use pluralis::evaluate::seegull::kinds::group_of;
use pluralis::evaluate::seegull::paper::OFFENSIVE_PAIRS;
use pluralis::evaluate::seegull::questions::{Question, Sampling, sample};
use pluralis::evaluate::seegull::tables::{Options, Tables, tables};
use pluralis::evaluate::seegull::wording::Wording;

use super::harness::real;

const OPTIONS: Options = Options {
    level: 0.95,
    min_rows: 10,
};

fn real_tables(kind: Kind) -> Option<Tables> {
    Some(tables(
        &import(&real("seegull-multilingual")?, kind).unwrap(),
        kind,
        &OPTIONS,
    ))
}

#[test]
fn the_papers_offensive_pairs_come_out_of_the_files() {
    let Some(t) = real_tables(Kind::Stereotypes) else {
        return;
    };
    assert_eq!((t.locales.len(), t.rows), (23, 25_861));
    for (locale, hits, percent) in OFFENSIVE_PAIRS {
        let l = t.locales.iter().find(|l| l.locale == locale).unwrap();
        assert_eq!(l.offensive.hits, hits, "{locale}");
        let share = l.offensive.share.unwrap();
        assert!((100.0 * share - percent).abs() < 0.005, "{locale}: {share}");
        let (low, high) = (l.offensive.low.unwrap(), l.offensive.high.unwrap());
        assert!(low < share && share < high && high - low < 0.15);
        assert!(l.paper.unwrap().same, "{locale}");
    }
    // ar-AE: 145 rows have no mean, and stay in the denominator.
    let emirates = t.locales.iter().find(|l| l.locale == "ar-AE").unwrap();
    let o = emirates.offensive;
    assert_eq!((o.hits, o.n, emirates.without_mean), (86, 943, 145));
}

#[test]
fn the_papers_portuguese_tuples_lie_within_what_the_release_allows() {
    let Some(t) = real_tables(Kind::Stereotypes) else {
        return;
    };
    let pairs: Vec<_> = t.overlaps.iter().map(|o| o.locales.join(" ")).collect();
    assert_eq!(pairs, ["bn-BD bn-IN", "es-ES es-MX", "pt-BR pt-PT"]);
    let o = &t.overlaps[2];
    // Counted with Python's csv and unicodedata: 893 tuples in both files, of which 2 or more
    // raters mark 745 in Brazil and 510 in Portugal; 3 of them 304 and 248.
    assert_eq!(o.shared, 893);
    let hits = |at: usize| o.marked[at].share.map(|s| s.hits);
    assert_eq!(
        (hits(0), hits(1), hits(2)),
        ([893, 893], [745, 510], [304, 248])
    );
    assert!(o.only_marked_rows);
    // The paper: 1,138 tuples, 74.5 % in Brazil and 45.4 % in Portugal. 510 of 1,138 are 44.8 %,
    // 745 are 65.5 %, the least that the release allows.
    let p = o.paper.unwrap();
    assert_eq!((p.tuples, p.percent), (1138, [74.5, 45.4]));
    assert!((p.possible[0][0] - 65.47).abs() < 0.01 && (p.possible[1][0] - 44.82).abs() < 0.01);
    assert!(
        p.within && p.possible[0][1] > 74.5 && p.possible[1][1] > 45.4,
        "{p:?}"
    );
}

#[test]
fn means_of_attributes_are_those_of_their_votes() {
    let Some(t) = real_tables(Kind::Offensiveness) else {
        return;
    };
    assert_eq!(t.other_means, Some(0));
    // Counted with Python's csv.
    for (locale, n, hits) in [
        ("it-IT", 957, 109),
        ("sw-KE", 659, 110),
        ("hi-IN", 1137, 13),
    ] {
        let o = t
            .locales
            .iter()
            .find(|l| l.locale == locale)
            .unwrap()
            .offensive;
        assert_eq!((o.n, o.hits), (n, hits), "{locale}");
    }
    assert!(t.overlaps.is_empty() && t.identities.is_empty());
    assert!(t.locales.iter().all(|l| l.paper.is_none()));
}

/// A small data set of one or two locales: identity, English identity, attribute, English
/// attribute, raters who say stereotype, mean.
pub type Rows<'a> = &'a [(&'a str, &'a str, &'a str, &'a str, u32, &'a str)];

/// Such a data set as files.
pub fn folder(files: &[(&str, Rows)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("stereotypes");
    std::fs::create_dir(&inner).unwrap();
    for (name, rows) in files {
        let mut csv = "identity,attribute,non_stereotype,stereotype,unsure,mean_offensive_score,translated_identity,translated_attribute_list\n".to_owned();
        for (id, id_en, a, a_en, votes, mean) in *rows {
            csv += &format!("{id},{a},{},{votes},0,{mean},{id_en},{a_en}\n", 3 - votes);
        }
        std::fs::write(inner.join(name), csv).unwrap();
    }
    dir
}

#[test]
fn tuples_of_two_countries_by_hand() {
    let spain: Rows = &[
        ("suizos", "Swiss", "ricos", "rich", 3, "2"),
        ("suizos", "Swiss", "puntuales", "punctual", 2, "-1"),
        ("rusos", "Russians", "fríos", "cold", 1, "1.666666667"),
        ("rusos", "Russians", "altos", "tall", 2, " "),
    ];
    let mexico: Rows = &[
        ("Suizos", "Swiss", "ricos.", "rich", 1, "2"),
        ("suizos", "Swiss", "RICOS", "rich", 3, "2"),
        ("rusos", "Russians", "fri\u{301}os", "cold", 2, "4"),
    ];
    let dir = folder(&[
        ("Spanish (es) in Spain.csv", spain),
        ("Spanish (es) in Mexico.csv", mexico),
    ]);
    let t = tables(
        &import(dir.path(), Kind::Stereotypes).unwrap(),
        Kind::Stereotypes,
        &Options {
            min_rows: 1,
            ..OPTIONS
        },
    );
    let o = &t.overlaps[0];
    assert_eq!(
        (o.locales.join(" "), o.shared, o.repeats),
        ("es-ES es-MX".into(), 2, [0, 1])
    );
    let hits: Vec<_> = o.marked.iter().map(|m| m.share.map(|s| s.hits)).collect();
    assert_eq!(hits, [[2, 2], [1, 1], [1, 0]]);
    let spain = t.locales.iter().find(|l| l.locale == "es-ES").unwrap();
    assert_eq!(
        (spain.offensive.hits, spain.offensive.n, spain.without_mean),
        (1, 4, 1)
    );
    let order: Vec<_> = spain
        .identities
        .iter()
        .map(|i| (i.identity.as_str(), i.offensiveness.mean.unwrap()))
        .collect();
    assert_eq!(order, [("rusos", 1.666666667), ("suizos", 0.5)]);
}

fn sampled(seed: u64, per_cell: usize) -> Option<(Vec<Question>, Vec<pluralis::data::ItemRecord>)> {
    let records = import(&real("seegull-multilingual")?, Kind::Stereotypes)
        .unwrap()
        .records;
    let sampling = Sampling {
        per_cell,
        at_least: 2,
        seed,
    };
    let out = sample(&records, &Wording::shipped().unwrap(), &sampling);
    assert!(out.unworded.is_empty());
    Some((out.questions, records))
}

#[test]
fn questions_are_balanced_paired_and_have_clean_distractors() {
    let Some((questions, records)) = sampled(7, 5) else {
        return;
    };
    assert_eq!(questions.len(), 23 * 2 * 5 * 2);
    // Every association of a locale: group of the identity -> forms of its attributes.
    let mut held: BTreeMap<(&str, String), BTreeSet<String>> = BTreeMap::new();
    for r in &records {
        let (group, _) = group_of(&r.fields["identity_gloss"]);
        let forms = held.entry((&r.locale, group)).or_default();
        forms.insert(normalise(&r.fields["attribute"]));
        forms.insert(normalise(&r.fields["attribute_gloss"]));
    }
    let mut cells: BTreeMap<_, usize> = BTreeMap::new();
    let mut places = [0; 4];
    let mut attributes = BTreeSet::new();
    for both in questions.chunks(2) {
        let (own, english) = (&both[0], &both[1]);
        assert_eq!(
            (own.pair.as_str(), english.language.as_str()),
            (english.pair.as_str(), "en")
        );
        assert_ne!(own.id, english.id);
        assert_eq!(
            (own.stereotype.as_str(), own.kind),
            (english.stereotype.as_str(), english.kind)
        );
        *cells.entry((own.locale.clone(), own.kind)).or_default() += 1;
        assert!(
            attributes.insert((own.locale.clone(), normalise(&own.attribute))),
            "{} is asked for twice",
            own.attribute
        );
        for (option, english_option) in own.options.iter().zip(&english.options) {
            let (group, kind) = group_of(&english_option.text);
            assert_eq!(kind, own.kind, "{}", own.id);
            let forms = &held[&(own.locale.as_str(), group)];
            let has = forms.contains(&normalise(&own.attribute))
                || forms.contains(&normalise(&english.attribute));
            assert_eq!(
                has,
                option.letter == own.stereotype,
                "{}: {}",
                own.id,
                option.text
            );
        }
        let distinct: BTreeSet<_> = english
            .options
            .iter()
            .map(|o| group_of(&o.text).0)
            .collect();
        assert_eq!(distinct.len(), 4, "{}", own.id);
        places[own
            .options
            .iter()
            .position(|o| o.letter == own.stereotype)
            .unwrap()] += 1;
        assert!(own.raters >= 2);
    }
    assert_eq!(cells.len(), 46);
    assert!(cells.values().all(|n| *n == 5), "{cells:?}");
    // 230 draws among four places: far outside 30 to 90 only where the shuffle is broken.
    assert!(places.iter().all(|n| (30..=90).contains(n)), "{places:?}");
}

#[test]
fn the_seed_alone_decides_the_questions() {
    let (Some((a, _)), Some((b, _)), Some((c, _)), Some((more, _))) =
        (sampled(0, 3), sampled(0, 3), sampled(1, 3), sampled(0, 4))
    else {
        return;
    };
    assert_eq!(a, b);
    assert_ne!(a, c);
    // More of the same: the first ones stay.
    let ids: BTreeMap<_, _> = more.iter().map(|q| (&q.id, q)).collect();
    assert!(a.iter().all(|q| ids[&q.id] == q));
}

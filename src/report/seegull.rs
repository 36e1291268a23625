//! Owns the texts that `pluralis seegull` prints. Must not compute a figure.

use std::fmt::Write as _;

use super::grid::{cell_text, grid};
use super::percent;
use crate::evaluate::seegull::endorse::{Endorsement, Model, Outcome, Part, Scope, Side};
use crate::evaluate::seegull::overlap::Overlap;
use crate::evaluate::seegull::rules::Rule;
use crate::evaluate::seegull::tables::{Identity, Tables};
use crate::evaluate::seegull::{Mean, Share};

/// Columns of a name in a table.
const NAME: usize = 28;

/// `22.6 % [20, 25]`.
fn share(s: &Share) -> String {
    match (s.share, s.low.zip(s.high)) {
        (None, _) => "-".into(),
        (Some(share), None) => percent(share),
        (Some(share), Some((low, high))) => format!(
            "{} [{:.1}, {:.1}]",
            percent(share),
            100.0 * low,
            100.0 * high
        ),
    }
}

fn mean(m: &Mean) -> String {
    match (m.mean, m.low.zip(m.high)) {
        (None, _) => "-".into(),
        (Some(mean), None) => format!("{mean:.2}"),
        (Some(mean), Some((low, high))) => format!("{mean:.2} [{low:.2}, {high:.2}]"),
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// The tables of one part of the data set; `top` identities of each list.
pub fn seegull_tables_text(t: &Tables, top: usize) -> String {
    let level = 100.0 * t.level;
    let mut out = format!(
        "SeeGULL Multilingual, {}: {} {} in {} locales; {level} % intervals, rows of one attribute counted as dependent\n",
        t.part,
        t.rows - t.left_out,
        t.unit,
        t.locales.len()
    );
    // Writing to a String cannot fail.
    if t.left_out > 0 {
        let _ = writeln!(
            out,
            "{} rows were left out (`pluralis data import seegull` names them)",
            t.left_out
        );
    }
    let _ = writeln!(
        out,
        "\nRows with a mean offensiveness of 2 or more, of all rows\n"
    );
    out += &grid(&offensive(t));
    out += &remarks(t);
    if !t.identities.is_empty() {
        let _ = writeln!(
            out,
            "\nIdentities by mean offensiveness over all locales (\"Rwanda\" and \"Rwandans\" are one)\n"
        );
        out += &grid(&ranked(&t.identities, top));
        let _ = writeln!(out, "\nThe same within each locale\n");
        out += &grid(&within_locales(t, top));
    }
    for overlap in &t.overlaps {
        out += &overlap_text(overlap);
    }
    out
}

fn offensive(t: &Tables) -> Vec<Vec<String>> {
    let paper = t.locales.iter().any(|l| l.paper.is_some());
    let mut head = row([
        "locale",
        t.unit,
        "mean >= 2",
        "share",
        "mean score",
        "no mean",
    ]);
    if paper {
        head.extend(row(["paper", "same"]));
    }
    let mut rows = vec![head];
    for l in &t.locales {
        let mut cells = row([
            &l.locale,
            &l.offensive.n.to_string(),
            &l.offensive.hits.to_string(),
            &match l.offensive.share {
                Some(s) => {
                    share(&l.offensive).replacen(&percent(s), &format!("{:.2} %", 100.0 * s), 1)
                }
                None => "-".into(),
            },
            &mean(&l.mean),
            &if l.without_mean > 0 {
                l.without_mean.to_string()
            } else {
                String::new()
            },
        ]);
        if let Some(p) = &l.paper {
            cells.push(format!("{}, {:.2} %", p.hits, p.percent));
            cells.push(if p.same { "yes" } else { "NO" }.into());
        }
        rows.push(cells);
    }
    rows
}

fn remarks(t: &Tables) -> String {
    let mut out = String::new();
    for l in t.locales.iter().filter(|l| l.without_mean > 0) {
        let rated = l.offensive.n - l.without_mean;
        let of_rated = l.offensive.hits as f64 / rated.max(1) as f64;
        let _ = writeln!(
            out,
            "\n{}: {} {} have no mean in the files and count as below 2; of the {rated} that have one, {:.2} % reach it.",
            l.locale,
            l.without_mean,
            t.unit,
            100.0 * of_rated
        );
    }
    match t.other_means {
        Some(0) => {
            out += "\nEvery written mean is the mean of its row's own votes (-1, 0 for unsure, 1, 2, 3, 4).\n"
        }
        Some(n) => {
            let _ = writeln!(
                out,
                "\n{n} written means are not the mean of their row's own votes."
            );
        }
        None => {}
    }
    if t.unit == "attributes" {
        out += "The paper counts pairs, not attributes: an attribute of five identities counts five times there. Its figures stand beside the table of pairs.\n";
    }
    out
}

fn ranked(list: &[Identity], top: usize) -> Vec<Vec<String>> {
    let mut rows = vec![row(["identity", "pairs", "mean score"])];
    let last = list.len().saturating_sub(top).max(top.min(list.len()));
    for (at, i) in list.iter().enumerate() {
        if at < top || at >= last {
            rows.push(identity_cells(&i.identity, i));
        } else if at == top {
            rows.push(vec!["…".into()]);
        }
    }
    rows
}

fn identity_cells(name: &str, i: &Identity) -> Vec<String> {
    row([
        &cell_text(name, NAME),
        &i.offensiveness.n.to_string(),
        &mean(&i.offensiveness),
    ])
}

fn within_locales(t: &Tables, top: usize) -> Vec<Vec<String>> {
    let mut rows = vec![row(["locale and identity", "pairs", "mean score"])];
    for l in &t.locales {
        for i in l.identities.iter().take(top) {
            let english = i
                .english
                .as_ref()
                .map_or(String::new(), |e| format!(" ({e})"));
            let name = format!("{}  {}{english}", l.locale, i.identity);
            rows.push(
                identity_cells(&cell_text(&name, 2 * NAME), i)
                    .into_iter()
                    .enumerate()
                    .map(|(at, c)| {
                        if at == 0 {
                            cell_text(&name, 2 * NAME)
                        } else {
                            c
                        }
                    })
                    .collect(),
            );
        }
    }
    rows
}

fn overlap_text(o: &Overlap) -> String {
    let [first, second] = &o.locales;
    let mut out = format!(
        "\nTuples that both the {first} and the {second} file list: {} (of {} and {} rows)\n\n",
        o.shared, o.rows[0], o.rows[1]
    );
    let mut rows = vec![row(["called a stereotype by", first, second])];
    for m in &o.marked {
        let what = format!(
            "{} of 3 raters{}",
            m.at_least,
            if m.at_least < 3 { " or more" } else { "" }
        );
        rows.push(row([&what, &share(&m.share[0]), &share(&m.share[1])]));
    }
    out += &grid(&rows);
    if o.repeats != [0, 0] {
        let _ = writeln!(
            out,
            "\n  {} and {} rows repeat an earlier tuple in another spelling; the first counts.",
            o.repeats[0], o.repeats[1]
        );
    }
    if o.only_marked_rows {
        out += "\n  Each file lists only tuples that at least one of its raters called a stereotype, so the first\n  line says nothing, and tuples that nobody marked in one of the countries are missing here.\n";
    }
    if let Some(p) = &o.paper {
        let _ = writeln!(
            out,
            "  The paper: {} tuples annotated in both, of which {} or more raters mark {:.1} % in {first} and {:.1} % in {second}.",
            p.tuples, p.at_least, p.percent[0], p.percent[1]
        );
        let _ = writeln!(
            out,
            "  The release lists {} tuples in both files. If the paper's include them, nobody marked the other {} in\n  at least one country, and the release allows {:.1} to {:.1} % in {first} and {:.1} to {:.1} % in {second}\n  over all {}: the paper's figures {}.",
            o.shared,
            p.tuples.saturating_sub(o.shared),
            p.possible[0][0],
            p.possible[0][1],
            p.possible[1][0],
            p.possible[1][1],
            p.tuples,
            if p.within {
                "lie within"
            } else {
                "do NOT lie within"
            }
        );
    }
    out
}

/// The rates of all models.
pub fn endorsement_text(e: &Endorsement) -> String {
    let mut out = format!(
        "Share of questions in which the stereotype was chosen ({} % intervals; every question counts, read or not)\n",
        100.0 * e.level
    );
    for model in &e.models {
        out += &model_text(model);
    }
    out
}

fn model_text(m: &Model) -> String {
    let mut out = format!("\nModel {}\n\n", cell_text(&m.model, 60));
    let mut rows = vec![row([
        "",
        "n",
        "in the language",
        "n",
        "in English",
        "delta (paired)",
        "p",
    ])];
    for part in &m.parts {
        rows.push(part_cells(part));
    }
    out += &grid(&rows);
    let mut outcomes = vec![row(["answers", "in the language", "in English"])];
    if let Some(all) = m.parts.first() {
        let n = |side: &Side, o| side.outcomes.get(&o).copied().unwrap_or(0).to_string();
        for o in Outcome::ALL {
            let (own, english) = (n(&all.own, o), n(&all.english, o));
            if own != "0" || english != "0" {
                outcomes.push(row([o.as_str(), &own, &english]));
            }
        }
    }
    out.push('\n');
    out += &grid(&outcomes);
    let rule = |r: &Rule| match r {
        Rule::Letter => "the letter alone",
        Rule::Word => "the exact words of an option",
        Rule::LetterInText => "one letter with other text",
        Rule::Repeated => "all letters, one repeated",
    };
    let read: Vec<String> = m
        .rules
        .iter()
        .map(|(r, n)| format!("{n} as {}", rule(r)))
        .collect();
    if !read.is_empty() {
        let _ = writeln!(out, "\n  read: {}", read.join(", "));
    }
    out
}

fn part_cells(part: &Part) -> Vec<String> {
    let name = match &part.scope {
        Scope::All => "all questions".to_owned(),
        Scope::Language(l) => format!("{l} (all countries)"),
        Scope::Locale(l) => l.clone(),
        Scope::Kind(k) => k.as_str().to_owned(),
    };
    let (delta, p) = match &part.delta {
        None => ("-".to_owned(), "-".to_owned()),
        Some(d) => (
            format!(
                "{:+.1} [{:+.1}, {:+.1}]",
                100.0 * d.value,
                100.0 * d.low,
                100.0 * d.high
            ),
            format!("{:.3}", d.p),
        ),
    };
    vec![
        name,
        part.own.endorsed.n.to_string(),
        share(&part.own.endorsed),
        part.english.endorsed.n.to_string(),
        share(&part.english.endorsed),
        delta,
        p,
    ]
}

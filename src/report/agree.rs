//! Owns the text that `pluralis agree` prints. Must not compute a figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::grid::{cell_text, grid};
use crate::agreement::Measure;
use crate::evaluate::agree::{
    Agreement, AltTestResult, By, Figure, JudgeSection, Matrix, Pair, Scale, Section, Worst,
};

type Figures = BTreeMap<&'static str, Figure>;

/// Figures of one table, with their headings.
const PEOPLE: [(&str, &str); 6] = [
    ("agreement", "agreement"),
    ("unanimous", "unanimous"),
    ("cohen_kappa", "Cohen's kappa"),
    ("fleiss_kappa", "Fleiss' kappa"),
    ("krippendorff_alpha", "Kripp. alpha"),
    ("gwet_ac1", "Gwet's AC1"),
];
const GRADED: [(&str, &str); 3] = [
    ("cohen_kappa_linear", "kappa, linear"),
    ("cohen_kappa_quadratic", "kappa, quadratic"),
    ("gwet_ac2", "Gwet's AC2"),
];
const YARDSTICK: [(&str, &str); 1] = [("held_out", "disagreement")];
const AGAINST_VOTES: [(&str, &str); 3] = [
    ("disagreement", "all votes"),
    ("panel_disagreement", "one rater less"),
    ("beyond_people", "less people's own"),
];
const AGAINST_MAJORITY: [(&str, &str); 7] = [
    ("accuracy", "agreement"),
    ("kappa", "Cohen's kappa"),
    ("kappa_linear", "kappa, linear"),
    ("kappa_quadratic", "kappa, quadratic"),
    ("mcc", "MCC"),
    ("macro_f1", "macro-F1"),
    ("balanced_accuracy", "balanced acc."),
];

/// The whole report.
pub fn agreement_text(a: &Agreement) -> String {
    let mut text = Text::default();
    text.head(a);
    let people = |s: &'_ Section| s.people.clone();
    let over = a
        .over_locales
        .as_ref()
        .map(|o| (&o.people, &o.worst_people));
    text.title("People's agreement with each other");
    // Of two votes "agreement" and "unanimous" are the same.
    let most = a.raters.len();
    let columns: Vec<_> = PEOPLE
        .into_iter()
        .filter(|c| most > 2 || c.0 != "unanimous")
        .collect();
    text.table(a, &columns, &people, over);
    if a.scale.is_ordered() {
        text.title("With partial credit for near labels");
        text.table(a, &GRADED, &people, over);
    }
    text.title(&format!(
        "Human ceiling: a held-out rater against the others ({})",
        measure_name(a.settings.measure)
    ));
    text.table(a, &YARDSTICK, &people, over);
    text.raters(&a.overall);
    for judge in &a.judges {
        text.judge(a, judge);
    }
    text.pairs(&a.overall.pairs);
    text.foot(a);
    text.out
}

fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::Majority => "majority: 0 for the label that most chose, 1 for another",
        Measure::MeanVotes => "mean-votes: share of votes that differ",
        Measure::Ordinal => "ordinal: mean distance, in units of the scale's range",
        Measure::Quadratic => "quadratic: mean squared distance, in units of the scale's range",
    }
}

/// `.740`, `-.021`, `1.000`: figures of agreement are between -1 and 1.
fn number(x: f64) -> String {
    let text = format!("{x:.3}");
    match text.strip_prefix("-0") {
        Some("." | ".000") => ".000".into(),
        Some(rest) => format!("-{rest}"),
        None => text.strip_prefix('0').map_or(text.clone(), str::to_owned),
    }
}

fn p_value(p: f64) -> String {
    if p < 0.001 {
        "< .001".into()
    } else {
        number(p)
    }
}

#[derive(Default)]
struct Text {
    out: String,
    /// Reasons in the order of their marks.
    reasons: Vec<String>,
    rough: bool,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push('\n');
    }

    fn title(&mut self, title: &str) {
        let _ = writeln!(self.out, "\n{title}\n");
    }

    fn head(&mut self, a: &Agreement) {
        let o = &a.overall;
        let raters = match (a.named, a.raters.len()) {
            (true, n) if n <= 12 => {
                let names: Vec<String> = a.raters.iter().map(|r| cell_text(r, 30)).collect();
                format!("{n} raters ({})", names.join(", "))
            }
            (true, n) => format!("{n} raters"),
            (false, n) => format!("exchangeable raters, up to {n} an item"),
        };
        self.line(&format!(
            "{} items, {} with votes, {} with two or more; {} votes of {raters}",
            o.items, o.with_votes, o.with_two_votes, o.votes
        ));
        let scale = match a.scale {
            Scale::Nominal => "nominal",
            Scale::Ordinal => "ordinal",
            Scale::Interval => "interval",
            Scale::Ratio => "ratio",
        };
        let label = |l: &crate::evaluate::agree::Label| {
            let value = l.value.filter(|_| a.scale.is_ordered());
            let value = value.map_or_else(String::new, |v| format!(" = {v}"));
            let value = if value.strip_prefix(" = ") == Some(&l.label) {
                String::new()
            } else {
                value
            };
            let abstain = if l.abstain { " (abstains)" } else { "" };
            format!("{}{value}{abstain} × {}", cell_text(&l.label, 30), l.count)
        };
        let labels: Vec<String> = a.labels.iter().take(20).map(label).collect();
        let more = if a.labels.len() > 20 { ", …" } else { "" };
        self.line(&format!("{scale} scale: {}{more}", labels.join(", ")));
        self.line(&format!(
            "{} % intervals in brackets ({} resamples, seed {})",
            100.0 * a.settings.level,
            a.settings.resamples,
            a.settings.seed
        ));
    }

    /// A figure as a cell.
    fn cell(&mut self, figure: &Figure) -> String {
        let Some(value) = figure.value else {
            return format!("undefined [{}]", self.mark(figure.undefined.as_deref()));
        };
        match &figure.interval {
            Some(i) => {
                self.rough |= i.by == By::Agreement;
                let star = if i.by == By::Agreement { "*" } else { "" };
                format!(
                    "{} [{}, {}]{star}",
                    number(value),
                    number(i.low),
                    number(i.high)
                )
            }
            None => format!(
                "{} [{}]",
                number(value),
                self.mark(figure.undefined.as_deref())
            ),
        }
    }

    /// The letter of a reason, as in `a`.
    fn mark(&mut self, reason: Option<&str>) -> String {
        let reason = reason.unwrap_or("no reason given").to_owned();
        let at = self
            .reasons
            .iter()
            .position(|r| *r == reason)
            .unwrap_or_else(|| {
                self.reasons.push(reason);
                self.reasons.len() - 1
            });
        // a, b, …, z, a1, b1, …
        let letter = char::from(b'a' + (at % 26) as u8);
        if at < 26 {
            letter.to_string()
        } else {
            format!("{letter}{}", at / 26)
        }
    }

    /// Locales in rows, figures in columns; then all items, the mean over locales and the worst.
    fn table(
        &mut self,
        a: &Agreement,
        columns: &[(&'static str, &str)],
        figures: &dyn Fn(&Section) -> Figures,
        over: Option<(&Figures, &BTreeMap<&'static str, Worst>)>,
    ) {
        let all = figures(&a.overall);
        let columns: Vec<_> = columns.iter().filter(|c| all.contains_key(c.0)).collect();
        let mut head = vec!["".into(), "n".into()];
        head.extend(columns.iter().map(|c| c.1.to_owned()));
        let mut rows = vec![head];
        let n = |f: &Figures| columns.first().map_or(0, |c| f[c.0].n).to_string();
        let mut row = |text: &mut Text, name: &str, f: &Figures| {
            let mut cells = vec![cell_text(name, 40), n(f)];
            cells.extend(columns.iter().map(|c| text.cell(&f[c.0])));
            rows.push(cells);
        };
        for (name, section) in &a.locales {
            row(self, name, &figures(section));
        }
        row(self, "all items", &all);
        if let Some((mean, worst)) = over {
            row(self, "mean of locales", mean);
            let mut cells = vec!["worst locale".into(), "".into()];
            cells.extend(columns.iter().map(|c| {
                worst.get(c.0).map_or_else(String::new, |w| {
                    let value = w.figure.value.map(number).unwrap_or_default();
                    let unsure = if w.without.is_empty() {
                        ""
                    } else {
                        " (of those defined)"
                    };
                    format!("{value} {}{unsure}", cell_text(&w.locale, 40))
                })
            }));
            rows.push(cells);
        }
        self.out.push_str(&grid(&rows));
    }

    fn raters(&mut self, section: &Section) {
        if section.raters.is_empty() || section.raters.len() > 40 {
            return;
        }
        let mut rows = vec![vec![
            "rater".into(),
            "votes".into(),
            "n".into(),
            "disagreement".into(),
        ]];
        for r in &section.raters {
            let cell = self.cell(&r.held_out);
            let n = r.held_out.n.to_string();
            rows.push(vec![cell_text(&r.rater, 40), r.votes.to_string(), n, cell]);
        }
        self.out.push('\n');
        self.out.push_str(&grid(&rows));
    }

    fn judge(&mut self, a: &Agreement, judge: &str) {
        let Some(section) = a.overall.judges.get(judge) else {
            return;
        };
        let name = cell_text(judge, 40);
        let failed = match section.failed {
            0 => String::new(),
            n => format!("; {n} items without its label count as full disagreements"),
        };
        let figures = |s: &Section| s.judges[judge].figures.clone();
        let over = a.over_locales.as_ref();
        let over = over.map(|o| (&o.judges[judge], &o.worst_judges[judge]));
        self.title(&format!(
            "Judge {name}: disagreement with the votes{failed}"
        ));
        self.table(a, &AGAINST_VOTES, &figures, over);
        self.title(&format!(
            "Judge {name}: against people's majority ({} ties left out)",
            a.overall.ties
        ));
        self.table(a, &AGAINST_MAJORITY, &figures, over);
        self.confusion(section);
        self.alt_test(&name, &section.alt_test, a);
    }

    fn confusion(&mut self, section: &JudgeSection) {
        self.out
            .push_str("\n  people's majority in rows, the judge in columns\n");
        self.matrix(&section.confusion);
    }

    fn matrix(&mut self, matrix: &Matrix) {
        let used = |at: usize| {
            let column: u64 = matrix.counts.iter().map(|r| r[at]).sum();
            column + matrix.counts[at].iter().sum::<u64>() > 0
        };
        let used: Vec<usize> = (0..matrix.labels.len()).filter(|&l| used(l)).collect();
        if used.len() > 12 {
            self.line("  (more than 12 labels: see --json)");
            return;
        }
        let name = |l: &usize| cell_text(&matrix.labels[*l], 24);
        let mut head = vec![String::new()];
        head.extend(used.iter().map(name));
        let mut rows = vec![head];
        for &r in used.iter().filter(|&&r| matrix.labels[r] != "(none)") {
            let mut row = vec![name(&r)];
            row.extend(used.iter().map(|&c| matrix.counts[r][c].to_string()));
            rows.push(row);
        }
        self.out.push_str(&grid(&rows));
    }

    fn alt_test(&mut self, judge: &str, test: &AltTestResult, a: &Agreement) {
        self.title(&format!(
            "Judge {judge}: alternative annotator test (epsilon {}, raters with {} items or more)",
            a.settings.epsilon, a.settings.least_items
        ));
        let (Some(rate), Some(advantage), Some(passed)) =
            (test.winning_rate, test.advantage, test.passed)
        else {
            let why = test.undefined.as_deref().unwrap_or("no reason given");
            self.line(&format!("  undefined: {why}"));
            return;
        };
        let mut rows = vec![
            [
                "rater",
                "n",
                "judge as close or closer",
                "rater as close or closer",
                "p",
                "judge wins",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        for r in &test.raters {
            rows.push(vec![
                cell_text(&r.rater, 40),
                r.n.to_string(),
                number(r.judge_wins),
                number(r.rater_wins),
                p_value(r.p_value),
                if r.won { "yes" } else { "no" }.into(),
            ]);
        }
        self.out.push_str(&grid(&rows));
        let verdict = if passed {
            "the judge may stand in for a rater"
        } else {
            "the judge may not stand in for a rater"
        };
        self.line(&format!(
            "  winning rate {}, advantage {}: {verdict} (half of the raters or more is enough)",
            number(rate),
            number(advantage)
        ));
        if !test.left_out.is_empty() {
            self.line(&format!("  too few items: {}", test.left_out.join(", ")));
        }
    }

    /// Kappas of all pairs as a matrix, then with intervals; for two only their matrix of labels.
    fn pairs(&mut self, pairs: &[Pair]) {
        if pairs.is_empty() {
            return;
        }
        let mut names: Vec<&String> = Vec::new();
        for name in pairs.iter().flat_map(|p| [&p.a, &p.b]) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.len() > 2 {
            self.kappa_matrix(&names, pairs);
        }
        if pairs.len() <= 15 {
            self.pair_list(pairs);
        }
        if let [pair] = pairs {
            self.line(&format!(
                "\n  {} in rows, {} in columns",
                cell_text(&pair.a, 40),
                cell_text(&pair.b, 40)
            ));
            self.matrix(&pair.confusion);
        }
    }

    fn kappa_matrix(&mut self, names: &[&String], pairs: &[Pair]) {
        self.title("Every pair: Cohen's kappa (below: items that both labelled)");
        if names.len() > 20 {
            self.line("  (more than 20 raters and judges: see --json)");
            return;
        }
        let find = |a: &String, b: &String| {
            pairs
                .iter()
                .find(|p| (&p.a, &p.b) == (a, b) || (&p.a, &p.b) == (b, a))
        };
        let mut head = vec![String::new()];
        head.extend(names.iter().map(|n| cell_text(n, 16)));
        let mut rows = vec![head];
        for a in names {
            let mut kappas = vec![cell_text(a, 24)];
            let mut counts = vec![String::new()];
            for b in names {
                let (kappa, n) = match find(a, b).map(|p| &p.kappas["cohen_kappa"]) {
                    _ if a == b => ("·".into(), String::new()),
                    None => ("-".into(), "0".into()),
                    Some(f) => (
                        f.value.map_or_else(
                            || format!("[{}]", self.mark(f.undefined.as_deref())),
                            number,
                        ),
                        f.n.to_string(),
                    ),
                };
                kappas.push(kappa);
                counts.push(n);
            }
            rows.extend([kappas, counts]);
        }
        self.out.push_str(&grid(&rows));
    }

    fn pair_list(&mut self, pairs: &[Pair]) {
        self.title("Every pair with intervals");
        let graded = |name: &str| pairs[0].kappas.contains_key(name);
        let columns: Vec<(&str, &str)> = [
            ("cohen_kappa", "Cohen's kappa"),
            ("cohen_kappa_linear", "kappa, linear"),
            ("cohen_kappa_quadratic", "kappa, quadratic"),
        ]
        .into_iter()
        .filter(|c| graded(c.0))
        .collect();
        let mut head = vec!["".into(), "n".into(), "agreement".into()];
        head.extend(columns.iter().map(|c| c.1.to_owned()));
        let mut rows = vec![head];
        for p in pairs {
            let name = format!("{} – {}", cell_text(&p.a, 24), cell_text(&p.b, 24));
            let mut row = vec![name, p.agreement.n.to_string(), self.cell(&p.agreement)];
            row.extend(columns.iter().map(|c| self.cell(&p.kappas[c.0])));
            rows.push(row);
        }
        self.out.push_str(&grid(&rows));
    }

    fn foot(&mut self, a: &Agreement) {
        let missing: Vec<String> = a
            .missing
            .iter()
            .filter(|(_, n)| **n > 0)
            .map(|(c, n)| format!("{} {n}", cell_text(c, 40)))
            .collect();
        let mut lines = Vec::new();
        if !missing.is_empty() {
            lines.push(format!("without a label: {}", missing.join(", ")));
        }
        lines.extend(a.notes.iter().cloned());
        if self.rough {
            lines.push(
                "* resampling has nothing to vary (almost full agreement); from the interval of the agreement, rough"
                    .into(),
            );
        }
        for (at, reason) in std::mem::take(&mut self.reasons).into_iter().enumerate() {
            let letter = char::from(b'a' + (at % 26) as u8);
            let mark = if at < 26 {
                letter.to_string()
            } else {
                format!("{letter}{}", at / 26)
            };
            lines.push(format!("[{mark}] {reason}"));
        }
        if !lines.is_empty() {
            self.out.push('\n');
        }
        for line in lines {
            self.line(&line);
        }
    }
}

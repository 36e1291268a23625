//! Charts as SVG text: intervals by locale, and validation over the steps of a run. Must not know
//! where the figures come from; every text that goes in is escaped.

use std::fmt::Write as _;

use super::escape_html;

/// A share with its interval, as a mark in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// One row of [`intervals`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub name: String,
    pub before: Option<Mark>,
    pub after: Option<Mark>,
    pub people: Option<f64>,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 20.0;
const ROW: f64 = 30.0;
const TOP: f64 = 8.0;

fn x(share: f64) -> f64 {
    LEFT + share.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

/// Rows of two marks with whiskers and a tick for the human ceiling, on an axis from 0 to 100 %.
pub(super) fn intervals(rows: &[Row]) -> String {
    let bottom = TOP + ROW * rows.len() as f64;
    let height = bottom + 24.0;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Disagreement by locale, before and after, with 95 % intervals\">"
    );
    axis(&mut out, bottom);
    for (i, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (i as f64 + 0.5);
        let _ = write!(
            out,
            "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 10.0,
            y + 4.0,
            escape_html(&row.name)
        );
        for (mark, class, shift) in [(row.before, "before", -5.0), (row.after, "after", 5.0)] {
            let Some(m) = mark else { continue };
            let y = y + shift;
            let _ = write!(
                out,
                "<line class=\"{class}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"><title>{} {class}: {:.1} % [{:.0}, {:.0}]</title></circle>",
                x(m.low),
                x(m.high),
                x(m.value),
                escape_html(&row.name),
                100.0 * m.value,
                100.0 * m.low,
                100.0 * m.high
            );
        }
        if let Some(people) = row.people {
            let _ = write!(
                out,
                "<line class=\"people\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"><title>{3}, a held-out rater: {4:.1} %</title></line>",
                x(people),
                y - 11.0,
                y + 11.0,
                escape_html(&row.name),
                100.0 * people
            );
        }
    }
    out + "</svg>"
}

/// Vertical lines at every 20 %, with their labels below.
fn axis(out: &mut String, bottom: f64) {
    for percent in [0, 20, 40, 60, 80, 100] {
        let at = x(f64::from(percent) / 100.0);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom:.1}\"/><text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\">{percent} %</text>",
            bottom + 17.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_where_their_share_is() {
        let mark = |value| {
            Some(Mark {
                value,
                low: 0.0,
                high: 1.0,
            })
        };
        let svg = intervals(&[Row {
            name: "<es>".into(),
            before: mark(0.5),
            after: mark(0.0),
            people: None,
        }]);
        // The axis goes from 110 to 740: its middle is 425.
        assert!(svg.contains("cx=\"425.0\"") && svg.contains("cx=\"110.0\""));
        assert!(svg.contains("x1=\"110.0\" x2=\"740.0\""));
        assert!(svg.contains("&lt;es&gt;") && !svg.contains("<es>"));
        assert!(!svg.contains("class=\"people\""));
    }
}

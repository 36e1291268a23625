//! Owns the numbers: pure functions from slices to figures (disagreement, the kappa family,
//! intervals, paired and sequential tests, the human ceiling), with randomness only by seed.
//! Must not know how verdicts came about.

pub mod ac;
pub mod alpha;
pub mod bootstrap;
pub mod ceiling;
pub mod classification;
pub mod correlation;
pub mod disagreement;
pub mod interval;
pub mod kappa;
pub mod multiple;
pub mod paired;
pub mod power;
pub mod probability;
pub mod sequential;
pub mod table;

pub(crate) mod draws;
mod tail;

pub use disagreement::{
    Measure, ScaleView, disagreement, majority, target_distribution, target_of,
};
pub use interval::Interval;

/// A figure, or the reason why there is none. A `Stat` is never NaN or infinite.
pub type Stat = Result<f64, Undefined>;

/// Why a figure does not exist for the data at hand.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Undefined {
    /// There is nothing to compute from.
    #[error("undefined: there are no {0}")]
    Empty(&'static str),
    /// Chance agreement is 1, so a chance-corrected figure would divide by zero.
    #[error(
        "undefined: every rating carries the same label, so agreement cannot be told from chance"
    )]
    OneLabel,
    /// No item was rated twice, so nothing can agree or differ.
    #[error("undefined: no item has two or more ratings")]
    NoPairs,
    /// The figure needs more data than there is.
    #[error("undefined: {what}: {have} present, {need} needed")]
    TooFew {
        /// What there is too little of.
        what: &'static str,
        /// How many there are.
        have: usize,
        /// How many would do.
        need: usize,
    },
    /// Two inputs that belong together differ in length.
    #[error("undefined: {what} has {have} entries where {need} belong")]
    Length {
        /// The input of the wrong length.
        what: &'static str,
        /// Its length.
        have: usize,
        /// The length that would fit.
        need: usize,
    },
    /// A label's index is beyond the end of its scale.
    #[error("undefined: label {label} is not on a scale of {labels} labels")]
    UnknownLabel {
        /// The index given.
        label: usize,
        /// Number of labels of the scale.
        labels: usize,
    },
    /// A number is outside the range in which the figure is defined (or is not a number).
    #[error("undefined: {what} is {value}, outside {low} to {high}")]
    Range {
        /// What the number stands for.
        what: &'static str,
        /// The number.
        value: f64,
        /// Smallest allowed value.
        low: f64,
        /// Largest allowed value.
        high: f64,
    },
    /// More resamples than can be left out gave no figure themselves.
    #[error("undefined: the figure does not exist in {failed} of {resamples} resamples")]
    Resamples {
        /// Resamples without a figure.
        failed: usize,
        /// Resamples drawn.
        resamples: usize,
    },
    /// No number of items within reach gives what was asked for.
    #[error("undefined: not reached with {0} items")]
    OutOfReach(usize),
}

/// Checks that two inputs belong together.
pub(crate) fn same_length(what: &'static str, have: usize, need: usize) -> Result<(), Undefined> {
    if have == need {
        Ok(())
    } else {
        Err(Undefined::Length { what, have, need })
    }
}

/// Checks that a number lies in `low..=high`; NaN does not.
pub(crate) fn within(what: &'static str, value: f64, low: f64, high: f64) -> Stat {
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(Undefined::Range {
            what,
            value,
            low,
            high,
        })
    }
}

/// How many standard errors an interval of a level spans to either side, by Student's t.
///
/// # Errors
/// A level outside (0, 1).
pub fn tail_t(level: f64, degrees: usize) -> Stat {
    rate("level", level)?;
    Ok(tail::t_quantile(0.5 + level / 2.0, degrees.max(1) as f64))
}

/// Checks that an error rate or level lies strictly between 0 and 1.
pub(crate) fn rate(what: &'static str, value: f64) -> Stat {
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(Undefined::Range {
            what,
            value,
            low: 0.0,
            high: 1.0,
        })
    }
}

/// Checks that every value lies in `low..=high` and that there is at least one.
pub(crate) fn all_within(
    what: &'static str,
    values: &[f64],
    low: f64,
    high: f64,
) -> Result<(), Undefined> {
    if values.is_empty() {
        return Err(Undefined::Empty(what));
    }
    values
        .iter()
        .try_for_each(|&v| within(what, v, low, high).map(|_| ()))
}

/// Arithmetic mean.
///
/// # Errors
/// [`Undefined::Empty`] without values, [`Undefined::Range`] where one is not finite.
pub fn mean(values: &[f64]) -> Stat {
    all_within("values", values, f64::MIN, f64::MAX)?;
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

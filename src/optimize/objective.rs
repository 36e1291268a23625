//! What the search works for: the mean loss over items, the loss of the worst locale, or a weighting
//! of the two.

use std::collections::BTreeMap;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::pool::mean;

/// Weight, in items, of the overall loss in a locale's own: few items of a locale say little of it.
const SHRINKAGE: f64 = 4.0;

/// What the search minimises: `(1 - w) * mean loss + w * loss of the worst locale`, where `w` is
/// written as `"mean"` (0), `"worst-locale"` (1), or a number between.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Objective {
    worst: f64,
}

impl Objective {
    /// The mean alone.
    pub const MEAN: Self = Self { worst: 0.0 };
    /// The worst locale alone.
    pub const WORST_LOCALE: Self = Self { worst: 1.0 };

    /// A weight of the worst locale in `[0, 1]`; `None` outside.
    pub fn weighted(worst: f64) -> Option<Self> {
        (0.0..=1.0).contains(&worst).then_some(Self { worst })
    }

    /// Whether locales do not matter.
    pub fn is_mean(&self) -> bool {
        self.worst == 0.0
    }

    /// Weight of the worst locale.
    pub(super) fn worst(&self) -> f64 {
        self.worst
    }

    /// The value of losses, each with the number of its locale: less is better, infinity without
    /// any. A locale's loss is shrunk towards the overall one by four items' worth.
    pub(super) fn of(&self, losses: &[(usize, f64)]) -> f64 {
        let overall = mean(losses.iter().map(|(_, l)| *l));
        if self.is_mean() || losses.is_empty() {
            return overall;
        }
        let worst = by_locale(losses).into_values().fold(overall, f64::max);
        (1.0 - self.worst) * overall + self.worst * worst
    }

    /// Weights of items in a comparison where `worst` is the locale to help: such that the mean of
    /// weighted values is `(1 - w)` times their mean plus `w` times the mean of that locale. All 1
    /// where that locale has no item, so that a comparison without it still says something.
    pub(super) fn weights(&self, locales: &[usize], worst: Option<usize>) -> Vec<f64> {
        let own = locales.iter().filter(|l| Some(**l) == worst).count();
        if self.is_mean() || own == 0 {
            return vec![1.0; locales.len()];
        }
        let share = locales.len() as f64 / own as f64;
        let weight = |l: &usize| {
            (1.0 - self.worst)
                + if Some(*l) == worst {
                    self.worst * share
                } else {
                    0.0
                }
        };
        locales.iter().map(weight).collect()
    }
}

/// Loss by locale, shrunk towards the overall one.
pub(super) fn by_locale(losses: &[(usize, f64)]) -> BTreeMap<usize, f64> {
    let overall = mean(losses.iter().map(|(_, l)| *l));
    let mut sums = BTreeMap::<usize, (f64, f64)>::new();
    for (locale, loss) in losses {
        let (n, sum) = sums.entry(*locale).or_default();
        *n += 1.0;
        *sum += loss;
    }
    let shrunk = |(n, sum): (f64, f64)| (sum + SHRINKAGE * overall) / (n + SHRINKAGE);
    sums.into_iter().map(|(l, s)| (l, shrunk(s))).collect()
}

/// The locale of most loss; `None` without losses.
pub(super) fn worst_locale(losses: &[(usize, f64)]) -> Option<usize> {
    let all = by_locale(losses).into_iter();
    all.fold(None, |worst: Option<(usize, f64)>, (l, loss)| {
        (worst.is_none_or(|(_, w)| loss > w))
            .then_some((l, loss))
            .or(worst)
    })
    .map(|(l, _)| l)
}

impl Serialize for Objective {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.worst {
            0.0 => to.serialize_str("mean"),
            1.0 => to.serialize_str("worst-locale"),
            worst => to.serialize_f64(worst),
        }
    }
}

impl<'de> Deserialize<'de> for Objective {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Objective;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "\"mean\", \"worst-locale\", or a weight of the worst locale from 0 to 1",
                )
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Objective, E> {
                Objective::weighted(value)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Float(value), &self))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Objective, E> {
                self.visit_f64(value as f64)
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Objective, E> {
                match value {
                    "mean" => Ok(Objective::MEAN),
                    "worst-locale" => Ok(Objective::WORST_LOCALE),
                    _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
                }
            }
        }
        from.deserialize_any(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_weighs_the_mean_and_the_worst_locale() {
        // Locale 0: 0, 0; locale 1: 1, 1. Overall .5; shrunk: (0 + 2)/6 and (2 + 2)/6.
        let losses = [(0, 0.0), (0, 0.0), (1, 1.0), (1, 1.0)];
        assert_eq!(Objective::MEAN.of(&losses), 0.5);
        let worst = 4.0 / 6.0;
        assert!((Objective::WORST_LOCALE.of(&losses) - worst).abs() < 1e-12);
        let half = Objective::weighted(0.5).unwrap().of(&losses);
        assert!((half - (0.25 + worst / 2.0)).abs() < 1e-12);
        assert_eq!(worst_locale(&losses), Some(1));
        assert!(Objective::WORST_LOCALE.of(&[]).is_infinite());
    }

    #[test]
    fn weighted_differences_have_the_mean_that_the_objective_asks_for() {
        let (locales, diffs) = ([0, 1, 1, 1], [0.4, 0.1, 0.0, 0.2]);
        for (w, want) in [(0.0, 0.175), (1.0, 0.4), (0.5, 0.2875)] {
            let weights = Objective::weighted(w).unwrap().weights(&locales, Some(0));
            let sum: f64 = weights.iter().zip(diffs).map(|(w, d)| w * d).sum();
            assert!((sum / 4.0 - want).abs() < 1e-12, "{w}: {sum}");
        }
        // A stage without the worst locale is compared as it is.
        let weights = Objective::WORST_LOCALE.weights(&locales, Some(7));
        assert_eq!(weights, [1.0; 4]);
    }

    #[test]
    fn a_config_names_it_or_gives_a_weight() {
        #[derive(Deserialize, Serialize)]
        struct Config {
            objective: Objective,
        }
        let read = |text: &str| toml::from_str::<Config>(text).map(|c| c.objective);
        assert_eq!(read("objective = \"mean\"").unwrap(), Objective::MEAN);
        assert_eq!(
            read("objective = \"worst-locale\"").unwrap(),
            Objective::WORST_LOCALE
        );
        let third = Objective::weighted(0.3).unwrap();
        assert_eq!(read("objective = 0.3").unwrap(), third);
        let written = toml::to_string(&Config { objective: third }).unwrap();
        assert_eq!(read(&written).unwrap(), third);
        let error = read("objective = 1.5").unwrap_err().to_string();
        assert!(error.contains("from 0 to 1"), "{error}");
        assert!(read("objective = \"worst\"").is_err());
    }
}

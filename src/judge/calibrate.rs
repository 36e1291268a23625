//! Fits a calibration on the log loss of the label distribution against what people said, with
//! shrinkage.
//!
//! A threshold chosen by the fewest errors follows the noise of a small tuning split; the loss is
//! smooth, and the priors (temperature 1, bias 0, each locale like all) hold where data is thin.

use std::collections::BTreeMap;

use crate::locale::Locale;
use crate::prompt::CriterionCalibration;

/// One answered tuning item: what the model said and what people said.
#[derive(Clone, Debug)]
pub struct Example<'a> {
    /// Natural-log label probabilities.
    pub scores: &'a [f64],
    /// What the probabilities should be, by label: shares that sum to 1.
    pub target: &'a [f64],
    /// Whose people voted.
    pub locale: &'a Locale,
}

/// How strongly the fit is held back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationOptions {
    /// Precision of the prior on the log-temperature and the biases, in units of items.
    pub shrinkage: f64,
    /// Precision of the prior on a locale's deviation, in units of items; `None` fits no locale.
    pub locale_shrinkage: Option<f64>,
}

impl Default for CalibrationOptions {
    fn default() -> Self {
        Self {
            shrinkage: 0.5,
            locale_shrinkage: Some(4.0),
        }
    }
}

/// Gradient steps of a fit. The problem is smooth and tiny, so a fixed
/// number of steps with a line search ends well past four digits and is the same everywhere.
const STEPS: usize = 200;

/// Fits temperature, biases and locale deviations. With no examples: the identity.
pub fn fit(
    examples: &[Example<'_>],
    labels: usize,
    options: CalibrationOptions,
) -> CriterionCalibration {
    // theta = (log temperature, biases): a temperature below zero would say that the judge means
    // the opposite of what it says.
    let mut theta = vec![0.0; labels + 1];
    let pooled: Vec<_> = examples.iter().collect();
    let value = |t: &[f64]| {
        objective(
            &pooled,
            t[0].exp(),
            &t[1..],
            &[],
            options.shrinkage * square(t),
        )
    };
    descend(&mut theta, &value, &|t, g| {
        gradient(&pooled, t[0].exp(), &t[1..], &[], g, true);
        g[0] *= t[0].exp();
        for (gi, ti) in g.iter_mut().zip(t) {
            *gi += 2.0 * options.shrinkage * ti;
        }
    });
    let (temperature, bias) = (theta[0].exp(), theta[1..].to_vec());
    let mut locales = BTreeMap::new();
    if let Some(precision) = options.locale_shrinkage {
        let mut by_locale: BTreeMap<&Locale, Vec<&Example<'_>>> = BTreeMap::new();
        for e in examples {
            by_locale.entry(e.locale).or_default().push(e);
        }
        for (locale, own) in by_locale {
            let mut local = vec![0.0; labels];
            descend(
                &mut local,
                &|t| objective(&own, temperature, &bias, t, precision * square(t)),
                &|t, g| {
                    gradient(&own, temperature, &bias, t, g, false);
                    for (gi, ti) in g.iter_mut().zip(t) {
                        *gi += 2.0 * precision * ti;
                    }
                },
            );
            locales.insert(locale.clone(), local.iter().map(|x| round(*x)).collect());
        }
    }
    CriterionCalibration {
        temperature: round(temperature),
        bias: bias.iter().map(|x| round(*x)).collect(),
        locales,
    }
}

/// The distribution of each example under a calibration fitted on the other folds, in order.
/// `fold` gives each example's fold below `folds`.
pub fn out_of_fold(
    examples: &[Example<'_>],
    labels: usize,
    options: CalibrationOptions,
    folds: usize,
    fold: &dyn Fn(usize) -> usize,
) -> Vec<Vec<f64>> {
    let mut out = vec![Vec::new(); examples.len()];
    for f in 0..folds {
        let train: Vec<_> = (0..examples.len())
            .filter(|&i| fold(i) != f)
            .map(|i| examples[i].clone())
            .collect();
        let calibration = fit(&train, labels, options);
        for i in (0..examples.len()).filter(|&i| fold(i) == f) {
            out[i] = calibration.apply(examples[i].scores, examples[i].locale);
        }
    }
    out
}

/// Four decimals: enough for every decision, and a version that reads well.
fn round(x: f64) -> f64 {
    let r = (x * 1e4).round() / 1e4;
    if r == 0.0 { 0.0 } else { r }
}

fn square(x: &[f64]) -> f64 {
    x.iter().map(|v| v * v).sum()
}

fn logits(e: &Example<'_>, temperature: f64, bias: &[f64], local: &[f64]) -> Vec<f64> {
    e.scores
        .iter()
        .enumerate()
        .map(|(i, s)| temperature * s + bias[i] + local.get(i).copied().unwrap_or(0.0))
        .collect()
}

fn log_sum_exp(x: &[f64]) -> f64 {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + x.iter().map(|v| (v - top).exp()).sum::<f64>().ln()
}

fn objective(
    examples: &[&Example<'_>],
    temperature: f64,
    bias: &[f64],
    local: &[f64],
    penalty: f64,
) -> f64 {
    let loss: f64 = examples
        .iter()
        .map(|e| {
            let z = logits(e, temperature, bias, local);
            let norm = log_sum_exp(&z);
            e.target
                .iter()
                .zip(&z)
                .map(|(t, zi)| t * (norm - zi))
                .sum::<f64>()
        })
        .sum();
    loss + penalty
}

/// Adds the gradient of the loss: over (temperature, bias) when `pooled`, else over `local`.
fn gradient(
    examples: &[&Example<'_>],
    temperature: f64,
    bias: &[f64],
    local: &[f64],
    g: &mut [f64],
    pooled: bool,
) {
    g.fill(0.0);
    for e in examples {
        let z = logits(e, temperature, bias, local);
        let norm = log_sum_exp(&z);
        let mass: f64 = e.target.iter().sum();
        for i in 0..z.len() {
            let d = mass * (z[i] - norm).exp() - e.target[i];
            if pooled {
                g[0] += d * e.scores[i];
                g[1 + i] += d;
            } else {
                g[i] += d;
            }
        }
    }
}

/// Gradient descent with a backtracking line search that starts from twice the last step.
fn descend(theta: &mut [f64], value: &dyn Fn(&[f64]) -> f64, slope: &dyn Fn(&[f64], &mut [f64])) {
    let mut step = 1.0;
    let mut g = vec![0.0; theta.len()];
    let mut now = value(theta);
    for _ in 0..STEPS {
        slope(theta, &mut g);
        let norm = square(&g);
        if norm < 1e-12 {
            return;
        }
        step *= 2.0;
        loop {
            let next: Vec<f64> = theta.iter().zip(&g).map(|(t, gi)| t - step * gi).collect();
            let then = value(&next);
            if then <= now - 0.5 * step * norm {
                theta.copy_from_slice(&next);
                now = then;
                break;
            }
            step *= 0.5;
            if step < 1e-12 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locale() -> Locale {
        Locale::parse("es-MX").unwrap()
    }

    #[test]
    fn a_constant_judge_learns_the_base_rate() {
        // The model always says 90 : 10; people say 25 : 75. Without shrinkage the fit is the base rate.
        let (locale, scores) = (locale(), [0.9f64.ln(), 0.1f64.ln()]);
        let targets: Vec<[f64; 2]> = (0..100)
            .map(|i| if i % 4 == 0 { [1.0, 0.0] } else { [0.0, 1.0] })
            .collect();
        let examples: Vec<_> = targets
            .iter()
            .map(|t| Example {
                scores: &scores,
                target: t,
                locale: &locale,
            })
            .collect();
        let fitted = fit(
            &examples,
            2,
            CalibrationOptions {
                shrinkage: 1e-6,
                locale_shrinkage: None,
            },
        );
        assert!((fitted.apply(&scores, &locale)[1] - 0.75).abs() < 1e-3);
        // With shrinkage it stays between what the model says and what people say.
        let held = fit(&examples[..8], 2, CalibrationOptions::default()).apply(&scores, &locale)[1];
        assert!(held > 0.3 && held < 0.75, "{held}");
    }

    #[test]
    fn a_thin_locale_stays_near_the_rest() {
        let (mx, es) = (locale(), Locale::parse("es-ES").unwrap());
        let scores = [0.5f64.ln(), 0.5f64.ln()];
        let mut examples = vec![
            Example {
                scores: &scores,
                target: &[1.0, 0.0],
                locale: &mx
            };
            40
        ];
        examples.push(Example {
            scores: &scores,
            target: &[0.0, 1.0],
            locale: &es,
        });
        let fitted = fit(&examples, 2, CalibrationOptions::default());
        assert!(fitted.apply(&scores, &es)[0] > 0.6);
        assert!(fitted.apply(&scores, &es)[0] < fitted.apply(&scores, &mx)[0]);
    }

    #[test]
    fn no_examples_leave_the_model_as_it_is() {
        let fitted = fit(&[], 3, CalibrationOptions::default());
        assert_eq!((fitted.temperature, fitted.bias), (1.0, vec![0.0; 3]));
    }
}

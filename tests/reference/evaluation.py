"""Writes golden/evaluation.json for tests/it/evaluation with the reference libraries.

    pip install numpy scipy ppi-python
    python evaluation.py

Correlations by scipy; corrected rates by the ppi-python package of the method's authors, with its
tuned factor, and with the factor 1 of the first paper.
"""

import json
import pathlib

import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from scipy import stats

GOLDEN = pathlib.Path(__file__).parent / "golden"


def draw(seed, labelled, unlabelled, rate, sensitivity, specificity):
    rng = np.random.default_rng(seed)
    truth = rng.random(labelled + unlabelled) < rate
    noise = rng.random(labelled + unlabelled)
    judge = np.where(truth, noise < sensitivity, noise > specificity)
    return truth.astype(float), judge.astype(float)


def case(seed, labelled, unlabelled, rate, sensitivity, specificity):
    truth, judge = draw(seed, labelled, unlabelled, rate, sensitivity, specificity)
    y, f, rest = truth[:labelled], judge[:labelled], judge[labelled:]
    tuned = float(np.squeeze(ppi_mean_pointestimate(y, f, rest)))
    low, high = ppi_mean_ci(y, f, rest, alpha=0.05)
    return {
        "people": [int(v) for v in y], "judge": [int(v) for v in f], "rest": [int(v) for v in rest],
        "tuned": tuned, "tuned_low": float(np.squeeze(low)), "tuned_high": float(np.squeeze(high)),
    }


X = [0.12, 0.4, 0.33, 0.08, 0.61, 0.33, 0.27, 0.5]
Y = [0.31, 0.2, 0.28, 0.4, 0.05, 0.21, 0.33, 0.2]
pearson = stats.pearsonr(X, Y)
interval = pearson.confidence_interval(0.95)
out = {
    "correlation": {
        "x": X, "y": Y, "pearson": pearson.statistic, "low": interval.low, "high": interval.high,
        "spearman": stats.spearmanr(X, Y).statistic,
    },
    "corrected": [
        case(1, 60, 400, 0.3, 0.8, 0.85),
        case(2, 150, 300, 0.6, 0.95, 0.9),
        case(3, 40, 200, 0.1, 0.5, 0.5),
        case(4, 100, 900, 0.5, 0.7, 0.99),
    ],
}
(GOLDEN / "evaluation.json").write_text(json.dumps(out, indent=1) + "\n")

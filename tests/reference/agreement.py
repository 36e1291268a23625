"""Writes the golden files for tests/it/agreement.rs with the reference libraries.

    pip install numpy scipy scikit-learn statsmodels krippendorff irrCAC pandas
    python agreement.py DATA_FOLDER

Golden files hold counts and results only. A null result is one that the library does not define.
"""

import collections
import csv
import json
import math
import pathlib
import sys

import irrCAC.raw
import krippendorff
import numpy as np
import pandas as pd
from scipy import stats
from sklearn import metrics
from statsmodels.stats import contingency_tables, inter_rater, multitest, proportion

GOLDEN = pathlib.Path(__file__).parent / "golden"
DATA = pathlib.Path(sys.argv[1])


def number(value):
    value = float(value)
    return value if math.isfinite(value) else None


def pair_case(name, a, b, k, values=None):
    """Two columns of label indices; only rows with both."""
    a, b = np.array(a), np.array(b)
    labels = list(range(k))
    values = values or labels
    matrix = metrics.confusion_matrix(a, b, labels=labels)
    used = sorted(set(a) | set(b))
    frame = pd.DataFrame({"a": a, "b": b})
    kappa = lambda w: metrics.cohen_kappa_score(a, b, labels=labels, weights=w)
    by_value = lambda w: inter_rater.cohens_kappa(matrix, weights=np.array(values, float), wt=w).kappa
    pi = lambda w: irrCAC.raw.CAC(frame, weights=w, categories=labels, digits=15).fleiss()["est"]["coefficient_value"]
    varied = len(set(a)) > 1 and len(set(b)) > 1
    return {
        "name": name, "labels": k, "values": values, "matrix": matrix.flatten().tolist(),
        "percent_agreement": metrics.accuracy_score(a, b),
        "kappa": kappa(None), "kappa_linear": kappa("linear"), "kappa_quadratic": kappa("quadratic"),
        "kappa_linear_values": by_value("linear"), "kappa_quadratic_values": by_value("quadratic"),
        "pi": pi("identity"), "pi_linear": pi("linear"), "pi_quadratic": pi("quadratic"),
        "mcc": metrics.matthews_corrcoef(a, b) if varied else None,
        "macro_f1": metrics.f1_score(a, b, average="macro", labels=used),
        "balanced_accuracy": metrics.balanced_accuracy_score(a, b) if set(b) <= set(a) else
            np.mean([np.mean(b[a == l] == l) for l in sorted(set(a))]),
    }


def table_case(name, counts, k, values=None):
    """Counts per item; ratings are spelled out again for the libraries."""
    counts = np.array(counts)
    values = values or list(range(1, k + 1))
    rated = counts[counts.sum(axis=1) > 0]
    width = int(rated.sum(axis=1).max())
    ratings = np.full((len(rated), width), np.nan)
    for row, item in zip(ratings, rated):
        labels = np.repeat(np.arange(k), item)
        row[: len(labels)] = labels
    frame = pd.DataFrame(ratings)
    cac = lambda w: irrCAC.raw.CAC(frame, weights=w, categories=list(range(k)), digits=15)
    est = lambda result: number(result["est"]["coefficient_value"])
    alpha = lambda level: number(krippendorff.alpha(
        value_counts=counts, value_domain=np.array(values, float), level_of_measurement=level))
    totals = rated.sum(axis=1)
    classic = inter_rater.fleiss_kappa(rated) if totals.min() == totals.max() else None
    rows = collections.Counter(map(tuple, counts.tolist()))
    return {
        "name": name, "labels": k, "values": values, "rows": [[list(r), n] for r, n in sorted(rows.items())],
        "fleiss_classic": classic,
        "fleiss": est(cac("identity").fleiss()), "fleiss_quadratic": est(cac("quadratic").fleiss()),
        "ac1": est(cac("identity").gwet()), "ac2_linear": est(cac("linear").gwet()),
        "ac2_quadratic": est(cac("quadratic").gwet()), "ac2_ordinal": est(cac("ordinal").gwet()),
        "alpha_nominal": alpha("nominal"), "alpha_ordinal": alpha("ordinal"),
        "alpha_interval": alpha("interval"), "alpha_ratio": alpha("ratio"),
    }


def random_cases():
    rng = np.random.default_rng(20240607)
    pairs, tables = [], []
    for i in range(20):
        k = int(rng.integers(2, 7))
        n = int(rng.integers(20, 200))
        a = rng.choice(k, n, p=rng.dirichlet(np.ones(k)))
        b = np.where(rng.random(n) < 0.6, a, rng.choice(k, n))
        # A label that nobody used, in some tables.
        extra = k + int(i % 4 == 0)
        values = np.sort(rng.normal(size=extra).round(3)).tolist()
        pairs.append(pair_case(f"random {i}", a, b, extra, values))
    for i in range(20):
        k, raters = int(rng.integers(2, 7)), int(rng.integers(2, 8))
        items = int(rng.integers(15, 80))
        truth = rng.choice(k, items, p=rng.dirichlet(np.ones(k)))
        counts = np.zeros((items, k), int)
        missing = 0.0 if i % 5 == 0 else 0.35
        for item in range(items):
            for _ in range(raters):
                if rng.random() >= missing:
                    counts[item, truth[item] if rng.random() < 0.6 else rng.integers(k)] += 1
        values = (np.sort(rng.random(k)).round(3) + np.arange(k)).tolist()
        tables.append(table_case(f"random {i}", counts, k, values))
    return pairs, tables


def rows(path, **kw):
    with open(DATA / path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, **kw))


def real_cases():
    pairs, tables = [], []
    for locale in ["en", "es", "ca", "eu", "gl"]:
        first = {r["id"]: r for r in rows(f"truthfulqa-multi/evaluated/{locale}.csv")}
        for question in ["truthfulness", "informativeness"]:
            both = [(first[r["id"]][question], r[question]) for r in rows(f"truthfulqa-multi/iaa/{locale}.csv")]
            number_of = {"no": 0, "yes": 1}
            a, b = zip(*[(number_of[x], number_of[y]) for x, y in both if x in number_of and y in number_of])
            pairs.append(pair_case(f"truthfulqa {locale} {question}", a, b, 2))
    panda = json.load(open(DATA / "pandalm/testset-v1.json"))
    columns = [[r[f"annotator{i}"] for r in panda] for i in (1, 2, 3)]
    for x, y in [(0, 1), (0, 2), (1, 2)]:
        pairs.append(pair_case(f"pandalm {x + 1} {y + 1}", columns[x], columns[y], 3))
    tables.append(table_case("pandalm", [[c.count(l) for l in range(3)] for c in zip(*columns)], 3))
    names = ["1_full_compliance", "2_full_refusal", "3_partial_refusal"]
    both = [r for f in ("gpt4", "mistralguard") for r in rows(f"xstest/xstest_v2_completions_{f}_gpteval.csv")]
    a, b = ([names.index(r[c]) for r in both] for c in ("annotation_1", "annotation_2"))
    pairs.append(pair_case("xstest", a, b, 3))
    korean = json.load(open(DATA / "korean-safety-benchmarks/response_test_ood_annotations.json"))
    names = ["non-acceptable", "acceptable", "dont_know"]
    votes = [[v["acceptable?"] for v in r["raw_annotations"]["Q2: Acceptable or Non-acceptable"]] for r in korean]
    tables.append(table_case("korean", [[v.count(n) for n in names] for v in votes], 3))
    names = ["Non_Stereotypical", "Not sure", "Stereotypical"]
    for kind in ["region", "religion"]:
        items = collections.defaultdict(list)
        for r in rows(f"nlp-fairness-for-india/{kind}_individual_annotation.tsv", delimiter="\t"):
            items[r["identity term"], r["attribute token"]].append(r["annotation"])
        tables.append(table_case(f"nlp-fairness {kind}", [[v.count(n) for n in names] for v in items.values()], 3))
    return pairs, tables


def single_figures():
    rng = np.random.default_rng(7)
    out = {"intervals": [], "mcnemar": [], "multiple": [], "probabilities": [], "alt_test": []}
    for n in [1, 2, 10, 59, 100, 1000, 100000]:
        for s in sorted({0, 1, n // 7, n // 2, n - 1, n}):
            for level in [0.8, 0.95, 0.999]:
                ends = {m: proportion.proportion_confint(s, n, 1 - level, m) for m in ("wilson", "beta")}
                out["intervals"].append({"successes": s, "n": n, "level": level,
                    "wilson": list(map(float, ends["wilson"])), "exact": list(map(float, ends["beta"]))})
    for b, c in [(0, 1), (1, 1), (2, 8), (15, 4), (100, 140), (3000, 3200)]:
        p = contingency_tables.mcnemar([[5, b], [c, 9]], exact=True).pvalue
        out["mcnemar"].append({"b": b, "c": c, "p": float(p)})
    for size in [1, 2, 5, 30]:
        p = rng.random(size) ** 3
        p[: size // 5] = 0.01
        adjust = lambda method: multitest.multipletests(p, method=method)[1].tolist()
        out["multiple"].append({"p": p.tolist(), "holm": adjust("holm"), "bh": adjust("fdr_bh"), "by": adjust("fdr_by")})
    for k in [2, 3, 6]:
        probs = rng.dirichlet(np.ones(k), 12)
        truth = rng.integers(0, k, 12)
        onehot = np.eye(k)[truth]
        rps = np.mean(np.sum((np.cumsum(probs, 1) - np.cumsum(onehot, 1)) ** 2, 1) / (k - 1))
        confidence, right = probs.max(1), (probs.argmax(1) == truth).astype(float)
        bins = np.clip(np.digitize(confidence, np.linspace(0, 1, 11), right=True), 1, 10)
        ece = sum(abs(right[bins == b].mean() - confidence[bins == b].mean()) * np.mean(bins == b) for b in set(bins))
        out["probabilities"].append({
            "probs": probs.tolist(), "truth": truth.tolist(),
            "log_loss": metrics.log_loss(truth, probs, labels=range(k)),
            "brier": 2 * metrics.brier_score_loss(truth, probs[:, 1]) if k == 2
                else float(np.mean(((probs - onehot) ** 2).sum(1))),
            "rps": float(rps), "ece": float(ece)})
    out["alt_test"].append(alt_test(rng))
    return out


def alt_test(rng):
    """The procedure of Calderon et al. (2025), spelled out with scipy and statsmodels."""
    items, raters, k, epsilon = 80, 4, 3, 0.15
    truth = rng.integers(0, k, items)
    noisy = lambda error: np.where(rng.random(items) < error, rng.integers(0, k, items), truth)
    labels = np.array([noisy(e) for e in (0.2, 0.3, 0.4, 0.1)])
    seen = rng.random((raters, items)) < 0.85
    judge = noisy(0.25)
    p, wins = [], []
    for j in range(raters):
        judged, person = [], []
        for i in range(items):
            others = [labels[r, i] for r in range(raters) if r != j and seen[r, i]]
            if not seen[j, i] or not others:
                continue
            score_judge = np.mean([o == judge[i] for o in others])
            score_person = np.mean([o == labels[j, i] for o in others])
            judged.append(float(score_judge >= score_person))
            person.append(float(score_person >= score_judge))
        diff = np.array(person) - np.array(judged)
        p.append(float(stats.ttest_1samp(diff, epsilon, alternative="less").pvalue))
        wins.append(float(np.mean(judged)))
    refused = multitest.multipletests(p, alpha=0.05, method="fdr_by")[0]
    return {"ratings": [[i, r, int(labels[r, i])] for r in range(raters) for i in range(items) if seen[r, i]],
            "judge": judge.tolist(), "labels": k, "epsilon": epsilon, "p": p, "wins": wins,
            "winning_rate": float(np.mean(refused)), "advantage": float(np.mean(wins))}


def write(name, value):
    (GOLDEN / name).write_text(json.dumps(value, separators=(",", ":"), default=float) + "\n", encoding="utf-8")


for kind, (pairs, tables) in {"random": random_cases(), "real": real_cases()}.items():
    write(f"agreement-{kind}.json", {"pairs": pairs, "tables": tables})
write("agreement-figures.json", single_figures())

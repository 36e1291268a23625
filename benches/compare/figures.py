"""The table of the rows of compare.py, as Markdown.

  python figures.py ITEMS.jsonl ROWS.jsonl [REFERENCE [CAP]]

Disagreement with the majority label on test; a verdict that could not be read counts as disagreement. A system's figure is
the mean over its seeds. Intervals are 95 % percentile bootstraps over groups of items (5,000 draws): all seeds of a system are
judged on the same items, so that an item's seeds stay together. The difference is the reference (`pluralis` at 400) less the
system, on the same draws: below 0, the reference disagrees less.
"""
import collections, json, random, sys

NAMES = {
    "pluralis": "Pluralis",
    "pluralis-labels": "Pluralis, seeing the majority label alone",
    "pluralis-no-clusters": "Pluralis without clusters",
    "pluralis-no-loss": "Pluralis without the loss",
    "pluralis-no-calibration": "Pluralis without calibration",
    "pluralis-no-demos": "Pluralis without demos",
    "hand": "by hand: a rubric sentence and 12 demos",
    "gepa": "GEPA",
    "bfrs": "BootstrapFewShotWithRandomSearch",
    "simba": "SIMBA",
    "mipro": "MIPROv2",
    "baseline": "the seed instruction (DSPy, chat)",
}

items = {x["id"]: x for x in map(json.loads, open(sys.argv[1], encoding="utf-8"))}
rows = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
reference = (sys.argv[3] if len(sys.argv) > 3 else "pluralis", int(sys.argv[4]) if len(sys.argv) > 4 else 400)
test = [i for i, x in items.items() if x["split"] == "test"]
groups = collections.defaultdict(list)
for i in test:
    groups[items[i]["group"]].append(i)
groups = list(groups.values())
rng = random.Random(1)
draws = [[rng.randrange(len(groups)) for _ in groups] for _ in range(5000)]


def misses(row):
    return {i: float(row["verdicts"].get(i) != items[i]["meta"]["label"]) for i in test}


def interval(values):
    """Of the mean of a value by item."""
    sums = [(sum(values[i] for i in g), len(g)) for g in groups]
    means = []
    for draw in draws:
        total = n = 0
        for k in draw:
            total, n = total + sums[k][0], n + sums[k][1]
        means.append(total / n)
    means.sort()
    return means[int(.025 * len(means))], means[int(.975 * len(means)) - 1]


def worst(m):
    by = collections.defaultdict(list)
    for i, v in m.items():
        by[items[i]["locale"]].append(v)
    return max(sum(v) / len(v) for v in by.values())


def percent(x):
    return f"{100 * x:.1f}"


def shown(system):
    return NAMES.get(system, system)


def each(own):
    if len(own) > 4:
        return f"{len(own)} draws"
    return ", ".join(percent(sum(misses(r).values()) / len(test)) for r in sorted(own, key=lambda r: r["seed"]))


systems = collections.defaultdict(list)
for r in rows:
    systems[r["system"], r["cap"]].append(r)
mean = {}
for name, own in systems.items():
    own_misses = [misses(r) for r in own]
    mean[name] = {i: sum(m[i] for m in own_misses) / len(own) for i in test}
print(f"n = {len(test)}\n\n| system | cap | each seed | disagreement % | worst locale % | calls while tuning | {shown(reference[0])} at {reference[1]} less it, points |\n|---|---|---|---|---|---|---|")
for name, own in sorted(systems.items(), key=lambda kv: (sum(mean[kv[0]].values()), kv[0] != reference)):
    low, high = interval(mean[name])
    bad = sum(worst(misses(r)) for r in own) / len(own)
    calls = sum(r["tuning"]["calls"] for r in own) / len(own)
    diff = ""
    if name != reference and reference in mean:
        d = {i: mean[reference][i] - mean[name][i] for i in test}
        a, b = interval(d)
        diff = f"{100 * sum(d.values()) / len(test):+.1f} [{100 * a:+.1f}, {100 * b:+.1f}]"
    average = percent(sum(mean[name].values()) / len(test))
    title = f"**{shown(name[0])}**" if name == reference else shown(name[0])
    print(f"| {title} | {name[1] or '–'} | {each(own)} | {average} [{percent(low)}, {percent(high)}] | {percent(bad)} | {calls:.0f} | {diff} |")

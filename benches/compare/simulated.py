"""The strategies on the simulated judge, where it is known what there is to find.

  python simulated.py BINARY OUT.jsonl [SEEDS]

For each strategy, cap on calls while tuning, and seed: how many of the four planted failure modes the chosen version no
longer has (at most a tenth of the mode's items in validation and test are still wrong), and by how much test
disagreement is above validation's. All strategies run on one engine, with the same cache-less judge.
"""
import collections, json, os, subprocess, sys, tempfile, tomllib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
EXPERIMENT = os.path.join(ROOT, "experiments", "simulated.toml")
STRATEGIES = {  # name: levers
    "pluralis": ['search.strategy="pluralis"'],
    "gepa": ['search.strategy="gepa"'],
    "mipro": ['search.strategy="mipro"'],
    "random": ['search.strategy="random"'],
    "pluralis, frontier by item": ['search.frontier="items"'],
    "pluralis, worst locale": ['search.objective="worst-locale"'],
    "pluralis, no clusters": ["search.clusters=false"],
    "pluralis, lower bound": ['search.choice="lower-bound"'],
    "pluralis, no bandit": ["search.bandit=false"],
    "pluralis, nearest demos": ["search.nearest=4"],
    "pluralis, start not guarded": ["search.guard_start=false"],
}
CAPS = (200, 400, 800)
binary, out = sys.argv[1:3]
seeds = range(1, int(sys.argv[3]) + 1 if len(sys.argv) > 3 else 21)
config = tomllib.load(open(EXPERIMENT, "rb"))
items = {x["id"]: x for x in map(json.loads, open(os.path.join(ROOT, "experiments", config["data"]["items"][0]), encoding="utf-8"))}
LOCALE = {"Country: Mexico": "es-MX", "Country: Spain": "es-ES", "Country: Thailand": "th-TH", "Country: India": "hi-IN"}
modes = [(LOCALE[f["when"][0]], f["when"][1]) for f in config["judge"]["failures"]]


def run(strategy, cap, seed, folder):
    # 60 items of test are read with two versions, outside the cap.
    sets = (f"seed={seed}", f"budget.calls={cap + 120}", "stop.patience=1000", *STRATEGIES[strategy])
    subprocess.run([binary, "tune", EXPERIMENT, "--out", folder, "--no-cache", *(x for s in sets for x in ("--set", s))],
                   check=True, capture_output=True)
    summary = json.load(open(os.path.join(folder, "summary.json")))
    wrong, n = collections.Counter(), collections.Counter()
    for v in map(json.loads, open(os.path.join(folder, "verdicts.jsonl"), encoding="utf-8")):
        if v["version"] != summary["versions"]["best"][:12] or v["split"] == "tune":
            continue
        for mode in modes:
            item = items[v["item"]]
            if item["locale"] == mode[0] and mode[1] in item["fields"]["attribute"]:
                n[mode] += 1
                wrong[mode] += v.get("label") is None or v["votes"][("harmless", "offensive", "unsure").index(v["label"])] != max(v["votes"])
    splits = {s: summary["splits"][s]["best"]["overall"]["disagreement"] for s in ("validation", "test") if s in summary["splits"] and "best" in summary["splits"][s]}
    best = summary["splits"]["test"]["best"]
    worst = best["by_locale"][best["worst_locale"]]["disagreement"]
    return dict(strategy=strategy, worst=worst, cap=cap, seed=seed, removed=sum(n[m] > 0 and wrong[m] <= .1 * n[m] for m in modes), calls=summary["spent"]["calls"] - 120, **splits)


with open(out, "a") as f:
    for cap in CAPS:
        for strategy in STRATEGIES:
            rows = []
            for seed in seeds:
                with tempfile.TemporaryDirectory() as folder:
                    rows.append(run(strategy, cap, seed, os.path.join(folder, "run")))
                f.write(json.dumps(rows[-1]) + "\n")
                f.flush()
            mean = lambda key: sum(r[key] for r in rows) / len(rows)
            gaps = [100 * (r["test"] - r["validation"]) for r in rows if "validation" in r]
            gap = f"{sum(gaps) / len(gaps):+.1f}" if gaps else ""
            print(f"| {cap} | {strategy} | {mean('removed'):.2f} | {mean('calls'):.0f} | {100 * mean('removed') / mean('calls'):.2f} | {100 * mean('test'):.1f} | {100 * mean('worst'):.1f} | {gap} |", flush=True)

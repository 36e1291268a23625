"""Runs systems x caps x seeds through the proxy, one after the other, and appends a row for each.

  python compare.py {seegull|truthfulqa} ITEMS.jsonl PORT ROWS.jsonl --caps 400 800 --seeds 1 2 3 --systems gepa pluralis …

A row that stands in ROWS.jsonl is not made again. Systems: baseline, bfrs, mipro, gepa, simba (DSPy), hand, and Pluralis:
"""
import argparse, json, os, shutil, subprocess, sys, tempfile, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
PLURALIS = {  # system: what differs from the defaults
    "pluralis": [],
    "pluralis-labels": [],  # sees the majority label and no votes
    "pluralis-no-calibration": ["search.calibration=false"],
    "pluralis-no-clusters": ["search.clusters=false"],
    "pluralis-no-demos": ["search.demos=0"],
    "pluralis-no-loss": ["search.loss=false"],
    "pluralis-gepa": ['search.strategy="gepa"'],
    "pluralis-mipro": ['search.strategy="mipro"'],
}
TASK = {"seegull": ("offensiveness", "seed-plain.toml", "binary"), "truthfulqa": ("truthfulness", "seed.toml", None)}
__doc__ += ", ".join(PLURALIS)


def labels_only(items, out):
    """The same items with one vote, for the majority label."""
    with open(out, "w", encoding="utf-8") as f:
        for line in open(items, encoding="utf-8"):
            x = json.loads(line)
            (criterion,) = x["votes"]
            word = {"offensive": "O2", "harmless": "NO"}.get(x["meta"]["label"], x["meta"]["label"])
            x["votes"] = {criterion: {word: 1}}
            f.write(json.dumps(x, ensure_ascii=False) + "\n")


def allow(port, calls):
    """A new count at the proxy, which refuses what is past it."""
    body = json.dumps({"cap": calls}).encode()
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/_reset", body, {"content-type": "application/json"}))


def pluralis(a, system, cap, seed, folder):
    rows = [json.loads(line) for line in open(a.items, encoding="utf-8")]
    test = {x["id"] for x in rows if x["split"] == "test"}
    items = os.path.abspath(a.items)
    if system == "pluralis-labels":
        items = os.path.join(folder, "items.jsonl")
        labels_only(a.items, items)
    task, start, reading = TASK[a.data]
    calls = cap + 2 * len(test)
    config = open(os.path.join(HERE, "pluralis.toml")).read()
    if reading is None:
        config = config.replace('reading = "binary"\n', "")
    for key, value in dict(seed=seed, task=os.path.abspath(os.path.join(ROOT, "judge-prompts", task)), start=start, items=items,
                           port=a.port, calls=calls, concurrency=a.concurrency).items():
        config = config.replace("{" + key + "}", str(value))
    path = os.path.join(folder, "config.toml")
    open(path, "w").write(config)
    allow(a.port, calls)  # beside its own cap
    run = os.path.join(folder, "run")
    sets = [x for s in PLURALIS[system] + a.set for x in ("--set", s)]
    done = subprocess.run([a.binary, "tune", path, "--out", run, "--no-cache", *sets], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    summary = json.load(open(os.path.join(run, "summary.json")))
    best = summary["versions"]["best"][:12]
    verdicts = {}
    for line in open(os.path.join(run, "verdicts.jsonl"), encoding="utf-8"):
        v = json.loads(line)
        if v["split"] == "test" and v["version"] == best:
            verdicts[v["item"]] = v.get("label")
    assert set(verdicts) == test, f"{len(verdicts)} verdicts on {len(test)} items of test"
    tuning = dict(summary["search"], version=best)
    if a.keep:
        shutil.copytree(run, os.path.join(a.keep, f"{a.data}-{system}-{cap}-{seed}"), dirs_exist_ok=True)
    return dict(data=a.data, system=system, cap=cap, seed=seed, verdicts=verdicts, note=summary["stop"], tuning=tuning)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("data", choices=TASK)
    p.add_argument("items")
    p.add_argument("port", type=int)
    p.add_argument("rows")
    p.add_argument("--caps", type=int, nargs="+", default=[400])
    p.add_argument("--seeds", type=int, nargs="+", default=[1])
    p.add_argument("--systems", nargs="+", required=True)
    p.add_argument("--binary", default=os.path.join(ROOT, "target", "release", "pluralis"))
    p.add_argument("--set", action="append", default=[], help="a lever for every run of Pluralis, as in `pluralis tune --set`")
    p.add_argument("--concurrency", type=int, default=4, help="calls in flight, for every system")
    p.add_argument("--keep", help="a folder for whole run folders of Pluralis")
    a = p.parse_args()
    done = set()
    if os.path.exists(a.rows):
        done = {(r["data"], r["system"], r["cap"], r["seed"]) for r in map(json.loads, open(a.rows, encoding="utf-8"))}
    for seed in a.seeds:
        for cap in a.caps:
            for system in a.systems:
                key = (a.data, system, 0 if system in ("hand", "baseline") else cap, seed)
                if key in done:
                    continue
                try:
                    if system in PLURALIS:
                        with tempfile.TemporaryDirectory() as folder:
                            row = pluralis(a, system, cap, seed, folder)
                    elif system == "hand":
                        allow(a.port, 10**9)
                        row = json.loads(subprocess.check_output([sys.executable, os.path.join(HERE, "hand.py"), a.data, a.items, str(a.port), str(seed), str(a.concurrency)]))
                    else:
                        out = subprocess.check_output([sys.executable, os.path.join(HERE, "peers.py"), a.data, a.items, system, str(a.port), str(key[2]), str(seed), str(a.concurrency)])
                        row = json.loads(out.splitlines()[-1])
                except (subprocess.CalledProcessError, RuntimeError) as e:
                    print(key, "failed:", e, file=sys.stderr, flush=True)
                    continue
                if not any(row["verdicts"].values()):
                    print(key, "failed: no verdict at all; is the server up?", file=sys.stderr, flush=True)
                    continue
                labels = {x["id"]: x["meta"]["label"] for x in map(json.loads, open(a.items, encoding="utf-8"))}
                wrong = sum(v != labels[i] for i, v in row["verdicts"].items()) / len(row["verdicts"])
                print(*key, f"{100 * wrong:.1f} %", row["tuning"], row["note"], flush=True)
                with open(a.rows, "a", encoding="utf-8") as f:
                    f.write(json.dumps(row, ensure_ascii=False) + "\n")
                done.add(key)


if __name__ == "__main__":
    main()

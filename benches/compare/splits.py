"""Splits for the comparison, as items that `pluralis tune` reads.

  python splits.py {seegull|truthfulqa} DATA OUT.jsonl

seegull: is a trait offensive, as native annotators voted (SeeGULL Multilingual, 12 locales). The label is
offensive where at least 2 of 3 chose O1..O4, harmless where all 3 chose NO; balanced by locale and label:
8 items of each locale in tune and validation, 20 in test, disjoint by the meaning of the trait.
truthfulqa: is an answer truthful, as one rater said (TruthfulQA-multi: en, es, ca, eu, gl); balanced by
language and label: 20, 20 and 40 items of each language at most, disjoint by question across languages;
only items of at most 500 characters.
"""
import collections, csv, glob, json, os, random, sys

VOTES = {"Not Offensive (NO)": "NO", "Slightly Offensive (o1)": "O1", "Somewhat Offensive (O2)": "O2",
         "Moderately Offensive (O3)": "O3", "Extremely Offensive (O4)": "O4"}
LOCALES = {"Spanish (es) in Mexico": "es-MX", "Spanish (es) in Spain": "es-ES", "Italian (it) in Italy": "it-IT",
           "French (fr) in France": "fr-FR", "German (de) in Germany": "de-DE", "Portuguese (pt) in Portugal": "pt-PT",
           "Arabic (ar) in UAE": "ar-AE", "Thai (th) in Thailand": "th-TH", "Swahili (sw) in Kenya": "sw-KE",
           "Japanese (ja) in Japan": "ja-JP", "Indonesian (id) in Indonesia": "id-ID", "Turkish (tr) in Turkey": "tr-TR"}


def seegull(data):
    for name, locale in LOCALES.items():
        path = os.path.join(data, "seegull-multilingual", "offensiveness", name + ".csv")
        for i, row in enumerate(csv.DictReader(open(path, encoding="utf-8"))):
            try:
                votes = {label: int(row[column]) for column, label in VOTES.items()}
            except ValueError:
                continue
            trait = row["Attribute"].strip()
            offensive = sum(votes.values()) - votes["NO"]
            label = "offensive" if offensive >= 2 else "harmless" if votes["NO"] == 3 else None
            if not trait or trait.startswith("#") or label is None:
                continue
            unsure = 3 - sum(votes.values())
            votes = {k: n for k, n in {**votes, "U": unsure}.items() if n > 0}
            yield dict(id=f"{locale}/{i}", locale=locale, fields=dict(attribute=trait), meta=dict(label=label),
                       group=(row["Translated Attribute"] or trait).strip().lower(), votes=dict(offensiveness=votes))


def truthfulqa(data):
    for locale in ("en", "es", "ca", "eu", "gl"):
        for file in (locale, locale + "-base-model"):
            path = os.path.join(data, "truthfulqa-multi", "evaluated", file + ".csv")
            for row in csv.DictReader(open(path, encoding="utf-8")):
                fields = dict(question=row["question"].strip(), answer=row["model_answer"].strip(),
                              reference=" / ".join(row["correct_answers"].split("\n")))
                # Long answers cost seconds a call on two cores, for every system alike.
                if row["truthfulness"] not in ("yes", "no") or not fields["answer"] or sum(map(len, fields.values())) > 500:
                    continue
                yield dict(id=f"{file}/{row['id']}", locale=locale, fields=fields, meta=dict(label=row["truthfulness"]),
                           group=row["id"].split("__")[0], votes=dict(truthfulness={row["truthfulness"]: 1}))


def balanced(items, per, seed=7):
    """At most `per[split]` items of each locale and label, whole groups in one split."""
    rng = random.Random(seed)
    items = list(items)
    rng.shuffle(items)
    groups = sorted({x["group"] for x in items})
    rng.shuffle(groups)
    n = len(groups)
    where = {g: "tune" if k < .25 * n else "validation" if k < .5 * n else "test" for k, g in enumerate(groups)}
    used = collections.Counter()
    for x in items:
        split = where[x["group"]]
        key = (split, x["locale"], x["meta"]["label"])
        if used[key] < per[split]:
            used[key] += 1
            yield {**x, "split": split}


def main():
    kind, data, out = sys.argv[1:]
    if kind == "seegull":
        items = balanced(seegull(data), dict(tune=4, validation=4, test=10))
    else:
        items = balanced(truthfulqa(data), dict(tune=10, validation=10, test=20))
    with open(out, "w", encoding="utf-8") as f:
        for x in items:
            f.write(json.dumps(x, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

# What ends a line in Unicode; a text without delimiters around it must not begin another line.
_LINE_ENDS = "\n\v\f\r\u0085\u2028\u2029"


def prompt(locale, criterion=None, **fields):
    """The prompt for one item as (prefix, suffix).

    For a chat model they are the system and the user message; other models continue prefix + suffix.
    `criterion` may be left out where only one thing is asked.
    """
    asked = DATA["prompts"][locale]
    if criterion is None:
        (criterion,) = asked
    fields = {name: text for name, text in fields.items() if text}
    unknown = set(fields) - set(DATA["required"]) - set(DATA["optional"])
    missing = set(DATA["required"]) - set(fields)
    if unknown or missing:
        raise ValueError(f"unknown fields {sorted(unknown)}, missing fields {sorted(missing)}")
    for name, text in fields.items():
        if DATA["one_line"]:
            fields[name] = "".join(" " if c in _LINE_ENDS else c for c in text)
        elif DATA["fence"] in text.lower():
            raise ValueError(f"`{name}` holds the delimiter; export again with another --fence-seed")
    present = ",".join(name for name in DATA["optional"] if name in fields)
    pieces = asked[criterion]["item"][present]
    suffix = "".join(p if isinstance(p, str) else fields[p["field"]] for p in pieces)
    return asked[criterion]["prefix"], suffix


def messages(locale, criterion=None, **fields):
    """The same as messages of a chat."""
    prefix, suffix = prompt(locale, criterion, **fields)
    return [{"role": "system", "content": prefix}, {"role": "user", "content": suffix}]


def corrected(logprobs, locale, criterion=None):
    """Label -> probability after the version's calibration, from label -> natural log probability."""
    if criterion is None:
        (criterion,) = DATA["labels"]
    labels = DATA["labels"][criterion]
    own = DATA["calibration"].get(criterion, {"temperature": 1.0, "bias": [], "locales": {}})
    zeros = [0.0] * len(labels)
    logits = [
        own["temperature"] * logprobs[label] + bias + local
        for label, bias, local in zip(labels, own["bias"] or zeros, own["locales"].get(locale, zeros))
    ]
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return {label: w / sum(weights) for label, w in zip(labels, weights)}


if __name__ == "__main__":
    # python FILE LOCALE CRITERION < item.json prints the prompt as JSON.
    import sys

    item = json.load(sys.stdin)
    print(json.dumps(prompt(sys.argv[1], sys.argv[2], **item), ensure_ascii=False))

def judge(locale, asked=None):
    """A dspy.Predict for one locale; `asked` is a key of DATA["instructions"][locale]."""
    instructions = DATA["instructions"][locale]
    if asked is None:
        (asked,) = instructions
    inputs = {
        "country": (str, dspy.InputField(desc="Whose people judge")),
        **{name: (str, dspy.InputField(desc=title)) for name, title in DATA["fields"]},
    }
    names = [name for name in DATA["criteria"] if name in asked.split(", ")]
    outputs = {}
    for name in names:
        own = DATA["criteria"][name]
        outputs[name] = (Literal[tuple(own["labels"])], dspy.OutputField(desc=own["question"]))
    signature = dspy.Signature({**inputs, **outputs}, instructions[asked])
    predict = dspy.Predict(signature)
    predict.demos = [
        dspy.Example(country=demo["locale"], **demo["fields"], **demo["answers"]).with_inputs(*inputs)
        for demo in DATA["demos"]
        if demo["only_for"] in (None, locale)
    ]
    return predict

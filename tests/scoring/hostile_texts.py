"""Hostile responses: a fixed set, and a grammar of numbers and structures for random ones."""

from __future__ import annotations

from hypothesis import strategies as st

_N = 100_000


def long_texts(length: int = _N) -> list[str]:
    """Return texts of about `length` characters that are expensive to read in a careless way."""
    n = length
    return [
        '{"answer": 0.' + "0" * n,
        '{"answer": 0.' + "0" * n + "1",
        '{"answer": ' + "1" * n + "}",
        '{"answer": ' + "1" * n,
        '{"answer": 1e' + "9" * n + "}",
        '{"answer": "' + "9" * n + '"}',
        '{"answer": [' + "1," * (n // 2) + "1]}",
        '{"answer": [' + "1, " * (n // 3),
        "[" + "1.5," * (n // 4) + "2]",
        ", ".join(["1.5"] * (n // 5)),
        "\n".join(["1.5"] * (n // 4)),
        " < ".join(["1"] * (n // 4)),
        "1" * n,
        "1," + "000," * (n // 4),
        "1 " * (n // 2),
        "3.75 " * (n // 5),
        "15/4 " * (n // 5),
        "1/" * (n // 2),
        "1.1" * (n // 3) + "e",
        "-" * n,
        "B " * (n // 2),
        '{"answer":' * (n // 10),
        '{"answer": 5}' * (n // 13),
        "{answer: 5}" * (n // 11),
        "{answer: 5" * (n // 10),
        "{answer: {" * (n // 10),
        "{'answer'" + " " * n,
        "'answer': " * (n // 10),
        "answer " * (n // 7),
        "Answer: 5\n" * (n // 10),
        "Answer:\n" * (n // 8),
        "The answer is " * (n // 14),
        "the " * (n // 4),
        "\\boxed{" * (n // 7),
        "\\boxed{5}" * (n // 9),
        "<answer>" * (n // 8),
        "<answer>5</answer>" * (n // 18),
        "```" * (n // 3),
        "```\n5\n``` " * (n // 10),
        "I hope this helps" * (n // 17),
        "let me know if " * (n // 15),
        "x is in " * (n // 8),
        "1 = " * (n // 4),
        "**" * (n // 2) + "5" + "**" * (n // 2),
        '"' * n,
        "\\frac{" * (n // 6),
        '{"answer": ' + "[" * n + "}",
        "[" * n,
        "{" * n,
        '{"a":' * (n // 5) + '"answer": 5',
        '{"a":' * (n // 5) + "5" + "}" * (n // 5),
        '{"answer":' * (n // 12) + "5" + "}" * (n // 12),
        '{"k":' * 32 + "[" + "1," * (n // 2) + '"answer": ' * 40,
        "**answer" + " " * n + "x",
        '{"answer" ' + " " * n + "5",
        '{"answer": 5' + " " * n,
        '{"answer": 5' + "\n" * n,
        ',"' * (n // 2) + '{"answer": 5' + ',"a' * (n // 3) + "}",
        "{" + " " * n + '"answer": 5}',
        "<think>" * (n // 7),
        "</think>" * (n // 8),
        "<think>5</think>" * (n // 16),
        "<think " * (n // 7),
        "<think " + "a" * n,
        "[THINK]" * (n // 7),
        "<|channel|>" * (n // 11),
        "<|channel|>final<|message|>5" * (n // 28),
        "<|channel|>analysis<|message|>" + '{"answer": 5}' * (n // 13),
        "analysis" + "assistantfinal" * (n // 14),
        '{"answer": 5, "question": ' + "[" * 900 + "]" * 900 + "}",
        'so {"x": {"answer": 5}, "y": {"answer": ' + "[" * 900 + "]" * 900 + "}}",
        '{"answer": 5, "steps": ' + "[" * 900 + "]" * 900 + ', "result": {"a": 1}}',
        "1," + "111," * (n // 4) + "1111",
        "[1" + " " * n + "2]",
        '{"answer": [1' + " " * n + "2]}",
        '{"answer": "1' + " and " * (n // 5) + '"}',
        '{"answer": "1' + " " * n + '"}',
        '"answer": ' + "{x}" * (n // 3),
        '"answer": 1' + ",    " * (n // 5),
        "answer\n" * (n // 7),
        "answer: ```a\n" * (n // 12),
        "is " * (n // 3) + "5",
        "1 and " * (n // 6),
        "[1 " * (n // 3),
        "5 \\" * (n // 3),
        "=≈" * (n // 2) + "5",
        "1'111" * (n // 5),
        '{"answer": 5}\n' + "5 " * (n // 2),
        '{"answer": 5}\n' + "5, " * (n // 3),
        '{"answer": 5}\n' + "= 5 " * (n // 4),
        '{"answer": 5}\n' + "please " * (n // 7),
        '{"answer": 5}\n' + "please\n" * (n // 7),
        '{"answer": 5}\n' + "sorry " * (n // 6),
        '{"answer": 5}\n' + "A " * (n // 2),
        '{"answer": 5}\n' + "Answer: [" * (n // 9),
        '{"answer": 5}\n' + "\n" * n + "5",
        '{"answer": 5' + ', "note": 5' * (n // 11) + "}",
        '{"answer": 5}\n' + 'Format: {"answer": 0}\n' * (n // 22),
        'Format: {"answer": 0}\n' * (n // 22),
        "Question: 5\n" * (n // 12),
        "Antwort: 5\n" * (n // 11),
        "答案：５\n" * (n // 5),
        "#### 5\n" * (n // 7),
        "so the sum " * (n // 11),
        "after adding " * (n // 13),
        "5 plus " * (n // 7),
        "by adding, by adding " * (n // 21),
        "◁think▷" * (n // 7),
        "&lt;think&gt;" * (n // 13),
        "`<think>` " * (n // 10),
        "analysisWe " * (n // 11),
        "{ " * (n // 2) + "}</think>",
        "\ud800" * n,
        "\x00" * n,
        "\u202e5" * (n // 2),
        "٣" * n,
        "５" * n,
    ]


_LONG_DIGITS = ("9" * 60, "0" * 70, "1" + "0" * 400, "123456789" * 50)
_EXPONENTS = (
    "0", "1", "-1", "15", "-99", "+308", "-324", "6144", "-6176", "99999", "999999", "-999999",
    "1000000", "-1000000", "999999999", "-999999999", "9999999999", "999999999999999999",
    "-999999999999999999", "1000000000000000000", "9" * 40, "0" * 30 + "5", "1.5", "", "+", "--1",
)  # fmt: skip


def short_texts() -> list[str]:
    """Return short texts with extreme numbers and malformed structures."""
    mantissas = ("0", "-0", "1", "9.99999999999999999", "0.000", ".5", "5.", "-", "1,234", "٣", "∞")
    numbers = [f"{m}e{e}" for m in mantissas for e in _EXPONENTS]
    numbers += [f"{m} × 10^{{{e}}}" for m in ("9.9", "0") for e in _EXPONENTS]
    numbers += [f"{m}·10⁹⁹⁹⁹⁹⁹⁹⁹⁹⁹⁹" for m in mantissas]
    numbers += [*_LONG_DIGITS, "NaN", "sNaN", "-Infinity", "Infinity", "1_000", "0x1F", "1e5e5"]
    frames = (
        '{{"answer": {}}}', '{{"answer": "{}"}}', '{{"answer": {}', '{{"answer": [{}, 1]}}', "{}",
        "{{answer: {}}}", "The answer is {}.",
    )  # fmt: skip
    texts = [frame.format(number) for number in numbers for frame in frames]
    return [
        *texts,
        "", " ", "\n", "\x00", "\ud800", "\udfff\ud800", "{", "}", "[", "]", '"', "\\", "{}", "[]",
        '{"answer"}', '{"answer":}', '{"answer": {}}', '{"answer": []}', '{"answer": [[]]}',
        '{"answer": [null]}', '{"answer": [NaN, 1]}', '{"answer": "\\ud800"}',
        '{"answer": "\ud800"}', '{"answer": "\\u0000"}', '{"answer": 5\x00}', '{"answer\x00": 5}',
        '{"answer": 5, "answer": [[[[]]]]}', '{"answer": true}', '{"\\u0061nswer": 5}',
        '[{"answer": 5}]', '"{\\"answer\\": 5}"', '{"answer": "{\\"answer\\": 5}"}',
        "<think>", "</think>", "<think></think>", "<|channel|>", "<|channel|>final<|message|>",
        "<|message|>5", "analysisassistantfinal", "analysis", "\\boxed{}", "\\boxed{",
        "<answer></answer>", "``````", "```", "Answer:", "=", "1 =", "= 1",
        "<script>alert(1)</script>",
        '{"answer": "<script>alert(1)</script>"}', "\x1b[2J\x1b]0;title\x07", "=cmd|' /C calc'!A0",
        "\\input{/etc/passwd}", "{{7*7}}", "%s%n", "\u202e\u2066", "\ufeff{\"answer\": 5}",
    ]  # fmt: skip


_digits = st.text("0123456789", min_size=1, max_size=50) | st.sampled_from(_LONG_DIGITS)
_numbers = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "-", "+", "−", "--", "- "]),
        _digits,
        st.sampled_from(["", ".", ",", "\u202f", "_", "/", ",000", ".000.000", "\\,"]),
        st.just("") | _digits,
        st.sampled_from(["", "e", "E", " × 10^", "*10**", "\\times 10^{", "·10", "%", "e+-"]),
        st.sampled_from(_EXPONENTS) | st.just("⁻⁹⁹⁹"),
        st.sampled_from(["", "}", ".", " ", "\n"]),
    ),
)
_values = st.recursive(
    _numbers | st.sampled_from(["null", "NaN", "true", '"B"', "B", "C: x < 5", '""', "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: f"[{', '.join(parts)}]")
        | inner.map(lambda part: f'"{part}"')
        | inner.map(lambda part: f"'{part}'")
        | inner.map(lambda part: f'{{"answer": {part}}}')
        | inner.map(lambda part: f"{{answer: {part},}}")
        | inner.map(lambda part: f"\\boxed{{{part}}}")
        | inner.map(lambda part: f"<think>{part}</think>")
        | inner.map(lambda part: f"<|channel|>final<|message|>{part}<|return|>")
        | inner.map(lambda part: f"```json\n{part}\n```")
        | inner.map(lambda part: f"**Answer:** {part}.")
        | inner.map(lambda part: f"The answer is {part}")
        | inner.map(lambda part: f"<answer>{part}</answer>")
    ),
    max_leaves=6,
)


def _cut(text_and_share: tuple[str, float, float]) -> str:
    text, start, end = text_and_share
    return text[int(start * len(text) / 4) : int(len(text) * end) + 1]


texts = st.lists(_values, min_size=1, max_size=3).map(" ".join)
hostile_texts: st.SearchStrategy[str] = (
    texts | st.tuples(texts, st.floats(0, 1), st.floats(0, 1)).map(_cut) | st.text()
)
"""Nested structures of extreme numbers, also cut off at either end, and random text."""

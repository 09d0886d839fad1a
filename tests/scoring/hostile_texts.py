"""Hostile responses: a fixed set, and a grammar of numbers and structures for random ones."""

import json
from pathlib import Path

from hypothesis import strategies as st

_N = 50_000

_TEXTS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def long_texts(length: int = _N) -> list[str]:
    """Return texts of about `length` characters that are expensive to read in a careless way."""

    def fill(text: str) -> str:
        return text * (length // len(text))

    nested = "[" * 900 + "]" * 900
    return [
        *map(fill, _TEXTS["repeated"]),
        *('{"answer": 5}\n' + fill(text) for text in _TEXTS["after_answer"]),
        *(start + fill(text) + end for start, text, end in _TEXTS["framed"]),
        fill("**")[: length // 2] + "5" + fill("**")[: length // 2],
        fill('{"a":') + "5" + fill("}"),
        fill('{"answer":') + "5" + fill("}"),
        '{"k":' * 32 + "[" + fill("1,") + '"answer": ' * 40,
        fill(',"') + '{"answer": 5' + fill(',"a') + "}",
        f'{{"answer": 5, "question": {nested}}}',
        f'so {{"x": {{"answer": 5}}, "y": {{"answer": {nested}}}}}',
        f'{{"answer": 5, "steps": {nested}, "result": {{"a": 1}}}}',
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
    return [*texts, *_TEXTS["short"]]


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
_FRAMES = ('"{}"', "'{}'", '{{"answer": {}}}', "{{answer: {},}}", "\\boxed{{{}}}",
           "<think>{}</think>", "<|channel|>final<|message|>{}<|return|>", "```json\n{}\n```",
           "**Answer:** {}.", "The answer is {}", "<answer>{}</answer>")  # fmt: skip
_values = st.recursive(
    _numbers | st.sampled_from(["null", "NaN", "true", '"B"', "B", "C: x < 5", '""', "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: f"[{', '.join(parts)}]")
        | st.builds(lambda frame, part: frame.format(part), st.sampled_from(_FRAMES), inner)
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

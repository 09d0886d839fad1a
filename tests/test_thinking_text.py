"""Thinking in the text of a response."""

import json
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from numbench.models.failures import sanitize_completion
from numbench.records import Completion, Usage
from numbench.scoring import score_exact
from numbench.thinking_text import find_thinking, move_thinking, separate_thinking
from tests.scoring.items import SUM, text_response
from tests.support.case_tables import each_row

LINES = Path(__file__).with_name("thinking_texts.jsonl").read_text(encoding="utf-8").splitlines()
TEXTS: list[dict[str, str]] = list(map(json.loads, LINES))
"""Texts with the answer and the thinking in them; without the two if there is no thinking."""


def test_thinking_is_separated_from_the_answer_when_it_is_read() -> None:
    """All adapters end with `sanitize_completion`, which leaves it where the server put it."""
    for case in TEXTS:
        text = case["text"]
        if len(case) == 1:
            assert separate_thinking(f" {text}\n") == (f" {text}\n", None, False)
            continue
        answer, thinking = case["answer"], case["thinking"]
        separated = separate_thinking(text)
        assert (separated.answer, separated.thinking) == (answer, thinking), text
        completion = sanitize_completion(Completion(text=text, usage=Usage(generated=9)), ())
        assert completion.text == text
        moved = move_thinking(completion)
        assert (moved.text, moved.reasoning_text) == (answer, thinking or None)
        assert moved.usage == Usage(generated=9)


def test_text_is_open_that_ends_inside_its_thinking() -> None:
    opened = ["<think>a", "5 <think>", "analysisWe add", "<cot>a",
              "<|channel|>analysis<|message|>a"]  # fmt: skip
    closed = ["<think>a</think>", "<think>a</think>5", "a</think>5", '{"answer": 5}</think>',
              "<|channel|>final<|message|>5"]  # fmt: skip
    assert all(separate_thinking(text).is_open for text in opened)
    assert not any(separate_thinking(text).is_open for text in closed)
    # The prompt may have opened the thinking.
    assert separate_thinking("a").thinking is None
    assert find_thinking("a", is_open=True) == ([], [(0, 1)], True)


_PIECES = [
    "◁think▷", "◁/think▷", "&lt;think&gt;", '{"answer": 5}', " tags", "`", "<think>", "</think>",
    "<thinking>", "</thinking>", "[THINK]", "[/THINK]", "5", "a ", "<|channel|>", "<|message|>",
    "<|end|>", "<|start|>", "final", "analysis", "\n", "<",
]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES)).map("".join) | st.text(), st.booleans())
def test_answer_and_thinking_are_parts_of_the_text_that_do_not_overlap(
    text: str, is_open: bool
) -> None:
    spans = find_thinking(text, is_open)
    if spans is None:
        return
    parts = sorted([*spans.answer, *spans.thinking])
    assert all(0 <= start <= end <= len(text) for start, end in parts)
    assert all(one.end <= other.start for one, other in pairwise(parts))


@given(st.lists(st.sampled_from(_PIECES)).map("".join))
def test_number_inside_thinking_is_never_the_answer(text: str) -> None:
    score = score_exact(SUM, text_response(SUM, f"<think>{text}3.75</think>"))
    assert score.parsed != "3.75"


def test_thinking_is_added_to_the_reasoning_that_the_server_returned() -> None:
    completion = Completion(text="<think>b</think>5", reasoning_text="a")
    assert move_thinking(completion) == Completion(text="5", reasoning_text="a\n\nb")
    unchanged = Completion(text="5", reasoning_text="a")
    assert move_thinking(unchanged) is unchanged


@each_row(__file__, "scored_thinking")
def test_thinking_is_not_scored(
    text: str, reason: str | None, status: str, parsed: str | None
) -> None:
    response = text_response(SUM, text)
    response = type(response)(item_id="", text=text, finish_reason=reason)  # type: ignore[arg-type]
    score = score_exact(SUM, response)
    assert (score.status, score.parsed) == (status, parsed)

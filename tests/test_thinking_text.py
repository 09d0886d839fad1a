"""Thinking in the text of a response."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.models.failures import sanitize_completion
from numbench.records import Completion, Usage
from numbench.scoring import score_exact
from numbench.thinking_text import find_thinking, move_thinking, separate_thinking
from tests.scoring.items import SUM, text_response

SEPARATED = [
    ('<think>draft {"answer": 3}</think> 12.5', "12.5", 'draft {"answer": 3}'),
    ("<thinking>a\nb</thinking>\n\n5", "5", "a\nb"),
    ("<reasoning>a</reasoning>5", "5", "a"),
    ("<thought>a</thought>5", "5", "a"),
    ("<THINK>a</Think>5", "5", "a"),
    ('<think budget="9">a</think>5', "5", "a"),
    ("[THINK]a[/THINK]5", "5", "a"),
    ("a</think>5", "5", "a"),
    ("<think>a</think>4</think>5", "5", "a\n\n4"),
    ("4 <think>a</think>b</think>5", "5", "4\n\na\n\nb"),
    ("<think>a<think>b</think>c</think>5", "5", "a<think>b\n\nc"),
    ("<think>a<thinking>b</thinking>c</think>5", "5", "a<thinking>b</thinking>c"),
    ("<think>a</thinking>5", "", "a</thinking>5"),
    ("4 <think>a</think> 5", "4\n5", "a"),
    ("<think>a</think>4<think>b</think>5", "4\n5", "a\n\nb"),
    ("<think>a", "", "a"),
    ("5<think>a", "5", "a"),
    ("<think></think>5", "5", ""),
    ("<reflection>a</reflection>5", "5", "a"),
    ("<thoughts>a</thoughts>5", "5", "a"),
    ("<scratchpad>a</scratchpad>5", "5", "a"),
    ("<cot>a</cot>5", "5", "a"),
    ("<analysis>a</analysis>5", "5", "a"),
    ("<seed:think>a</seed:think>5", "5", "a"),
    ("&lt;think&gt;a&lt;/think&gt;5", "5", "a"),
    ("◁think▷a◁/think▷5", "5", "a"),
    ("<|think|>a<|/think|>5", "5", "a"),
    ("<|START_THINKING|>a<|END_THINKING|>5", "5", "a"),
    ("<|begin_of_thought|>a<|end_of_thought|>5", "5", "a"),
    ("<|channel>thought\na<channel|>5", "5", "a"),
    ("a◁/think▷5", "5", "a"),
    ("◁think▷a</think>5", "", "a</think>5"),
    ("<scratchpad>a", "", "a"),
    ("<|START_THINKING|>a", "", "a"),
    ("analysisWe add 5", "", "We add 5"),
    ('{"answer": 5}</think>\n', '{"answer": 5}', ""),
    ('```json\n{"answer": 5}\n```\n</think>', '```json\n{"answer": 5}\n```', ""),
    ('<think>a</think>{"answer": 5}</think>', '{"answer": 5}', "a"),
    ('{"answer": 4} {"answer": 5}</think>', "", '{"answer": 4} {"answer": 5}'),
    ('{"answer": 4}</think>{"answer": 5}', '{"answer": 5}', '{"answer": 4}'),
    ('No `<think>` here. <think>a</think>5', "No `<think>` here.\n5", "a"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>5<|return|>",
     "5", "a"),
    ("a<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>5", "5", "a"),
    ("<|channel|>analysis<|message|>a<|channel|>commentary<|message|>b<|channel|>final<|message|>5",
     "5", "a\n\nb"),
    ("<|channel|>analysis<|message|>a", "", "a"),
    ("<|channel|>analysis<|message|>a<|end|><|start|>assistant", "", "a"),
    ("<|channel|>final<|message|>5<|end|><|channel|>analysis<|message|>6", "5", "6"),
    ("analysisWe add.assistantfinal5", "5", "We add."),
]  # fmt: skip

NOT_THINKING = ["5", "a < b > c", "<thinker>a</thinker>", "I think 5", "<b>5</b>", "[think]5",
                "analysis: 5", "the final channel: 5", "<|message|>5", "< think >5",
                "5 </s>", "analysis", "analysis of 5", "I use no <think> tags: 5",
                "The `<think>` tag: 5", 'It ends with "</think>" 5']  # fmt: skip


def test_thinking_is_separated_from_the_answer_when_it_is_read() -> None:
    """All adapters end with `sanitize_completion`, which leaves it where the server put it."""
    for text, answer, thinking in SEPARATED:
        separated = separate_thinking(text)
        assert (separated.answer, separated.thinking) == (answer, thinking), text
        completion = sanitize_completion(Completion(text=text, usage=Usage(generated=9)), ())
        assert completion.text == text
        moved = move_thinking(completion)
        assert (moved.text, moved.reasoning_text) == (answer, thinking or None)
        assert moved.usage == Usage(generated=9)
    for text in NOT_THINKING:
        assert separate_thinking(f" {text}\n") == (f" {text}\n", None, False)


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


@pytest.mark.parametrize(
    ("text", "reason", "status", "parsed"),
    [
        ('<think>{"answer": 3}</think> 12.5', None, "ok", "12.5"),
        ('<think>so {"answer": 3}', None, "truncated", None),
        ('<think>so {"answer": 3}', "length", "truncated", None),
        ('<think>so {"answer": 3}', "stop", "empty", None),
        ('<think>so {"answer": 3}</think>', None, "empty", None),
        ('so {"answer": 3}</think>', "stop", "empty", None),
        ('<think>3</think> I cannot {"answer": ', None, "truncated", None),
        ("<think>3</think> I cannot say", None, "unparseable", None),
        ("<|channel|>analysis<|message|>3.75", None, "truncated", None),
    ],
)
def test_thinking_is_not_scored(
    text: str, reason: str | None, status: str, parsed: str | None
) -> None:
    response = text_response(SUM, text)
    response = type(response)(item_id="", text=text, finish_reason=reason)  # type: ignore[arg-type]
    score = score_exact(SUM, response)
    assert (score.status, score.parsed) == (status, parsed)

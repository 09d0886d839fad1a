"""Questions to checkpoints of the released code, and their answers, compared with the study's.

The study replaces the numbers of its column `prompt` by one token each, unless they are written as
text, and splits the rest by its tokenizer (package `tokenizers`).
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE

from bittoken.released_tokenizer import released_token_ids
from bittoken.text.number_parsing import NUMBER_PATTERN
from bittoken.token_ids import TokenIds
from bittoken.tokenizer import (
    answer_json,
    decode_tokens,
    encode_question,
    question_pieces,
)
from bittoken.vocabulary import NUM, Vocabulary
from numbench.scoring.answer_parser import parse_answer
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import Question, load_prompt_set
from tests.bittoken.released import tokenizer_name

ENCODINGS = ("bittoken", "xval", "base10-released", "fone-released", "digit", "subword")


class StudyTokenizer:
    """Tokens and numbers of a text, as in the study's evaluation."""

    def __init__(self, path: Path, token_ids: TokenIds) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        encoding = token_ids.vocabulary.encoding
        self._numbers = None
        if encoding is not None:
            self._numbers = re.compile(NUMBER_PATTERN if encoding.signed else NUMBER_PATTERN[4:])

    def __call__(self, text: str) -> tuple[list[int], list[float]]:
        values: list[float] = []
        if self._numbers is not None:
            values = [float(number) for number in self._numbers.findall(text)]
            text = self._numbers.sub(NUM, text)
        return self._tokenizer.encode(text).ids, values


def rows(paper_results: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the task and the row of each question."""
    for task in PAPER_TASKS.values():
        name = {"minmax": "MinMax"}.get(task.name, task.name.capitalize())
        path = paper_results / f"{name}_decimal_uniform_test_500_shuffle.csv"
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield task.name, row


@pytest.fixture(params=ENCODINGS)
def tokenizers(
    request: pytest.FixtureRequest, reference_outputs: Path
) -> tuple[TokenIds, StudyTokenizer]:
    path = reference_outputs / f"tokenizer_{tokenizer_name(request.param)}.json"
    token_ids = released_token_ids(request.param, path, {}, 1216)
    return token_ids, StudyTokenizer(path, token_ids)


def test_questions_are_those_of_the_study(
    tokenizers: tuple[TokenIds, StudyTokenizer], paper_results: Path
) -> None:
    token_ids, study = tokenizers
    count = 0
    # FoNE's digits are computed for each question, which is slow.
    step = 9 if token_ids.vocabulary.name == "fone-released" else 1
    for task, row in itertools.islice(rows(paper_results), 0, None, step):
        question = load_prompt_set().parse_question(row["text_prompt"])
        assert question.task == task
        encoded = encode_question(question, token_ids)
        tokens, values = study(f"<|bos|>{row['prompt']}<|eoq|>")
        assert encoded.tokens.tolist() == tokens, row["prompt"]
        encoding = token_ids.vocabulary.encoding
        if encoding is not None:
            numbers = encoded.codes[encoded.tokens == token_ids.number_id]
            assert (numbers == encoding.encode(np.array(values))).all(), row["prompt"]
        count += 1
    assert count == 4500 // step


def test_answers_of_the_study_are_read(
    tokenizers: tuple[TokenIds, StudyTokenizer], paper_results: Path
) -> None:
    token_ids, study = tokenizers
    for task, row in rows(paper_results):
        tokens, values = study(f"{row['answer']}<|eos|>")
        text = answer_json(decode_tokens(tokens, values, token_ids), True, token_ids.layout)
        parsed = parse_answer(text, PAPER_TASKS[task].answer_kind)
        expected = row["answer"]
        if PAPER_TASKS[task].answer_kind == "list":
            expected = f"[{expected}]"
        elif PAPER_TASKS[task].answer_kind == "letter":
            expected = json.dumps(expected)
        truth = parse_answer(f'{{"answer": {expected}}}', PAPER_TASKS[task].answer_kind)
        assert parsed is not None and truth is not None, row["answer"]
        assert parsed.rule == "json"
        # A number token is written with 15 significant digits; some answers of Sorting have more.
        tolerance = Decimal(0 if token_ids.vocabulary.encoding is None else "5e-15")
        if isinstance(truth.value, str):
            assert parsed.value == truth.value
        else:
            assert parsed.value == pytest.approx(truth.value, rel=tolerance, abs=Decimal(0))


CHARACTERS = sorted(set(" +-*/^:,.<|>0123456789ABCDEF"))
SPECIAL = [token for token in Vocabulary("digit").base_tokens if token.startswith("<|")]


@given(
    st.sets(st.text(CHARACTERS, min_size=2, max_size=5), max_size=12),
    st.sets(st.sampled_from([" <", "<|", "|>", "C<", ": A", " A ", ", -", " + -", "12", "-1"])),
    st.sampled_from(["+", "-", "maximum", "interval", "ascending"]),
    st.lists(st.integers(-2000, 2000).map(str), min_size=2, max_size=5),
)
def test_text_is_split_as_the_package_tokenizers_splits_added_tokens(
    random: set[str], likely: set[str], operator: str, operands: list[str]
) -> None:
    texts = [*CHARACTERS, *sorted(random | likely)]
    tokenizer = Tokenizer(BPE())
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens(texts)
    vocabulary = tokenizer.get_vocab()
    token_ids = TokenIds(
        Vocabulary("digit"), {text: (n,) for text, n in vocabulary.items()}, (), "plain"
    )
    question = Question("", operator, tuple(operands[:2] if operator in "+-" else operands))
    text = "".join(question_pieces(question, token_ids.vocabulary, "plain"))
    encoded = encode_question(question, token_ids)
    assert encoded.tokens.tolist() == tokenizer.encode(text).ids

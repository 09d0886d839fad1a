"""Training data: exact questions of the right split, as a pure function of seed and step."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from bittoken.data import (
    BINARY_SIZES,
    BINARY_TASKS,
    Batch,
    TaskQuestions,
    TrainingData,
    sources,
)
from bittoken.mixture import Mixture
from bittoken.recipe import Recipe, load_recipe
from bittoken.tokens import Sample, Vocabulary
from numbench.decimal_numbers import normalize, parse_decimal
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import split_of

SIX_TASKS = "data.tasks=['minmax', 'interval', 'sorting', 'addition', 'multiplication', 'division']"
SIZES = ("training.batch_tokens=1500", "training.validate_every=12")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interval of twelve steps has two chunks."""
    monkeypatch.setattr("bittoken.data._CHUNK_TOKENS", 12_000)


def recipe(*overrides: str, encoding: str = "bittoken") -> Recipe:
    return load_recipe("cpu", [f"model.encoding={encoding}", SIX_TASKS, *SIZES, *overrides])


def training_data(settings: Recipe) -> tuple[TrainingData, Mixture]:
    data = TrainingData(settings, Vocabulary(settings.model.encoding))
    return data, Mixture(settings, data.levels)


def all_rows(step: list[Batch]) -> list[tuple[object, ...]]:
    """Return the samples of a step as sorted tuples."""
    rows = []
    for samples, task in step:
        for row, length in enumerate(samples.lengths.tolist()):
            codes = samples.codes[row, :length].ravel().tolist()
            tokens = samples.tokens[row, :length].tolist()
            assert not samples.is_target[row, length:].any()
            rows.append((int(task[row]), *tokens, *codes))
    return sorted(rows)


@pytest.mark.parametrize("task", PAPER_TASKS)
@pytest.mark.parametrize("split", ["train", "val"])
def test_questions_are_exact_and_belong_to_their_split(task: str, split: str) -> None:
    settings, count = recipe(f"data.tasks=['{task}']"), 0
    for source in sources(settings, task, easy=True):
        items = source.draw(settings, split, 3, 400).slice(0, 20).to_pylist()  # type: ignore[arg-type]
        count += len(items)
        for item in items:
            operands, answer = tuple(item["operands"]), item["answer"]
            answer = tuple(answer) if isinstance(answer, list) else answer
            assert split_of(operands) == split
            assert answer == PAPER_TASKS[task].exact_answer(item["operator"], operands)
            plain = PAPER_TASKS[task].difficulty(item["operator"], operands, answer)
            assert item["difficulty"] == {"base10": plain.base10, "base2": plain.base2}
            for operand in operands:
                assert len(str(abs(normalize(parse_decimal(operand)).significand))) <= 4
    assert count >= 50


@pytest.mark.parametrize("task", BINARY_TASKS)
def test_binary_questions_have_few_bits_and_are_printed_exactly(task: str) -> None:
    settings = recipe("data.digits=15", f"data.tasks=['{task}']")
    signs = []
    for source in sources(settings, task, easy=True)[-len(BINARY_SIZES) :]:
        most = 0
        for item in source.draw(settings, "train", 2, 2000).to_pylist():
            a, b = map(Fraction, item["operands"])
            for number in (a / b, b) if task == "division" else (a, b):
                assert number.denominator & (number.denominator - 1) == 0
                odd = abs(number.numerator) // (number.numerator & -number.numerator)
                most = max(most, odd.bit_length())
            for text in item["operands"]:
                assert Fraction(float(text)) == Fraction(text)
            signs.append((a < 0) + 2 * (b < 0))
        # The dividend, limited to 15 digits, is the product of both numbers.
        assert source.size - (5 if task == "division" else 0) <= most <= source.size
    assert np.bincount(signs) / len(signs) == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.03)


def test_integers_have_few_bits() -> None:
    settings = recipe("data.bits=5")
    found = [source.size for source in sources(settings, "addition", easy=True)]
    assert found == [5, 4, 3, 2]
    for source in sources(settings, "sorting", easy=True):
        operands = source.draw(settings, "train", 1, 500)["operands"].combine_chunks().flatten()
        values = np.array(operands.to_pylist(), float)
        assert 1 <= values.min() <= values.max() == 2**source.size - 1


def test_the_steps_of_an_interval_do_not_depend_on_where_it_is_resumed() -> None:
    settings = recipe()
    data, mixture = training_data(settings)
    steps = [all_rows(step) for step in data.steps(mixture, 12, 24)]
    assert len(set(map(str, steps))) == len(steps) == 12
    again, same = training_data(settings)
    for first in (13, 23):
        resumed = [all_rows(step) for step in again.steps(same, first, 24)]
        assert resumed == steps[first - 12 :]
    assert [all_rows(step) for step in data.steps(mixture, 0, 2)] != steps[:2]
    other, shares = training_data(recipe("training.seed=2"))
    assert all_rows(next(other.steps(shares, 12, 24))) != steps[0]


@pytest.mark.parametrize("encoding", ["bittoken", "digit"])
def test_tasks_get_their_shares_of_the_tokens(encoding: str) -> None:
    data, mixture = training_data(recipe("data.curriculum=['addition']", encoding=encoding))
    mixture.ratios = np.array([0.3, 0.2, 0.1, 0.2, 0.2, 0.0])
    steps = [
        sum(np.bincount(task, samples.lengths, 6) for samples, task in step)
        for step in data.steps(mixture, 0, 12)
    ]
    assert np.sum(steps, axis=0) / (12 * 1500) == pytest.approx(mixture.ratios, abs=0.02)
    assert max(np.sum(steps, axis=1)) < 1.25 * 1500


def test_a_step_has_its_number_of_questions() -> None:
    data, mixture = training_data(recipe("training.questions=960", "training.batch_questions=20"))
    mixture.ratios = np.array([0.35, 0.05, 0.15, 0.1, 0.1, 0.25])
    for step in islice(data.steps(mixture, 0, 12), 9):
        tasks = np.concatenate([batch.task for batch in step])
        assert len(tasks) == 20
        assert np.abs(np.bincount(tasks, minlength=6) - 20 * mixture.ratios).max() <= 1.5


def test_micro_batches_have_the_questions_of_the_step_and_little_padding() -> None:
    whole, mixture = training_data(recipe())
    parts, _ = training_data(recipe("training.micro_tokens=90", "training.data_workers=2"))
    steps = zip(whole.steps(mixture, 0, 12), parts.steps(mixture, 0, 12), strict=True)
    for one, several in steps:
        assert all_rows(several) == all_rows(one)
        tokens = sum(batch.samples.lengths.sum() for batch in one)
        for samples, _ in one:
            assert samples.tokens.size - samples.lengths.sum() <= 0.05 * tokens
        sizes = [batch.samples.tokens.shape for batch in several]
        assert all(rows * length <= 90 or rows == 1 for rows, length in sizes)
        # Not smaller than necessary.
        assert sum(rows * length > 45 for rows, length in sizes) > len(sizes) / 2


@pytest.mark.parametrize(("encoding", "task"), [("bittoken", "division"), ("digit", "addition")])
def test_levels_get_their_shares(encoding: str, task: str) -> None:
    settings = recipe("data.digits=15", f"data.tasks=['{task}']", encoding=encoding)
    questions = TaskQuestions(settings, task, Vocabulary(encoding), has_levels=True)
    levels = len(questions.distribution)
    assert 20 < levels <= 64
    shares = np.zeros(levels)
    shares[[1, 3, levels // 2]] = 0.5, 0.3, 0.2
    samples, level = questions.draw("train", 1, 400, shares)
    assert len(samples) == len(level) == 400
    assert np.bincount(level, minlength=levels) / 400 == pytest.approx(shares, abs=0.05)
    # Validation questions have the same levels, and other content.
    held_out, held_out_level = questions.draw("val", 1, 400, shares)
    lengths = [np.mean([len(s.tokens) for s in some]) for some in (held_out, samples)]
    assert abs(lengths[0] - lengths[1]) < 2
    assert np.bincount(held_out_level)[1] == pytest.approx(200, abs=20)
    if encoding == "bittoken":
        # Few bits of the significand in easy questions, all 52 in hard ones.
        pairs = list(zip(samples, level, strict=True))
        bits = [max(_bits(s) for s, of in pairs if of == n) for n in (1, level.max())]
        assert bits[0] < 8 < 40 < bits[1]


def _bits(sample: Sample) -> int:
    """Return the most significant bits of a number of a sample."""
    mantissas = [int(abs(math.frexp(value)[0]) * 2**53) for value in sample.values if value]
    return max((m // (m & -m)).bit_length() for m in mantissas)

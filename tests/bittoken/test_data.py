"""Training data: exact questions of the right split, as a pure function of seed and step."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bittoken.data import Batch, TrainingData, sources
from bittoken.mixture import Mixture
from bittoken.recipe import Recipe, load_recipe
from bittoken.tokens import Vocabulary
from numbench.core.decimal_numbers import parse_decimal, split_decimal
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import split_of

DIGESTS = Path(__file__).parent / "contract" / "training_data.json"
SIX_TASKS = "data.tasks=['minmax', 'interval', 'sorting', 'addition', 'multiplication', 'division']"
TWO_TASKS = ("data.tasks=['sorting', 'division']", "data.curriculum=['division']")
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
                assert len(str(abs(split_decimal(parse_decimal(operand))[0]))) <= 4
    assert count >= 50


@pytest.mark.usefixtures("few_attempts")
def test_the_steps_of_an_interval_do_not_depend_on_where_it_is_resumed() -> None:
    settings = recipe(*TWO_TASKS)
    data, mixture = training_data(settings)
    steps = [all_rows(step) for step in data.steps(mixture, 12, 24)]
    assert len(set(map(str, steps))) == len(steps) == 12
    again, same = training_data(settings)
    for first in (13, 23):
        resumed = [all_rows(step) for step in again.steps(same, first, 24)]
        assert resumed == steps[first - 12 :]
    assert [all_rows(step) for step in data.steps(mixture, 0, 2)] != steps[:2]
    other, shares = training_data(recipe(*TWO_TASKS, "training.seed=2"))
    assert all_rows(next(other.steps(shares, 12, 24))) != steps[0]


@pytest.mark.usefixtures("few_attempts")
def test_micro_batches_have_the_questions_of_the_step_and_little_padding() -> None:
    whole, mixture = training_data(recipe(*TWO_TASKS))
    in_parts = recipe(*TWO_TASKS, "training.micro_tokens=90", "training.data_workers=2")
    parts, _ = training_data(in_parts)
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


RECIPES = {
    "digits, curriculum": ("data.digits=15", *TWO_TASKS),
    "bits": ("data.bits=5", "data.tasks=['sorting', 'addition']", "data.curriculum=['addition']"),
    "base 10": ("model.encoding=digit", "data.tasks=['addition']", "data.curriculum=['addition']"),
    "questions": ("training.questions=960", "training.batch_questions=20", "data.curriculum=[]"),
}


def digest(overrides: Sequence[str]) -> str:
    """Return the hash of the samples of some steps, and of validations with their levels."""
    settings = recipe(*overrides)
    data, mixture = training_data(settings)
    content: list[object] = [all_rows(step) for step in data.steps(mixture, 12, 15)]
    for task in settings.data.tasks:
        samples, level = data.validation(3, task, mixture.shares(task))
        content += [samples.tokens.tolist(), level.tolist()]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:20]


@pytest.mark.parametrize("name", RECIPES)
def test_training_and_validation_have_the_samples_they_had(name: str) -> None:
    """Shares of tasks and levels, few bits, signs and sizes of batches are part of them."""
    assert digest(RECIPES[name]) == json.loads(DIGESTS.read_text())[name]

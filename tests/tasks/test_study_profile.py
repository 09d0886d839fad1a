"""The study profile: exact answers, rules and reproducibility."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from numbench import jsonl
from numbench.cli import app
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings, check_settings
from numbench.dataset.store import open_dataset
from numbench.decimal_numbers import DecimalNumber, parse_decimal
from numbench.errors import BadInput
from numbench.runner import few_shot
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import split_of
from numbench.tasks.shards import Shard, generate_items
from numbench.tasks.study_pairs import as_float64, round_digits
from numbench.tasks.study_profile import round_within
from numbench.vectorized.jsonl_encoding import json_lines
from numbench.vectorized.shards import generate_tables
from tests import reference_answers

pytestmark = pytest.mark.slow

GOLDEN = {
    "minmax": "25e0e69d3f5af9c4",
    "interval": "a20d8ae22d743d90",
    "sorting": "9bd8917a61787dd5",
    "addition": "0589faf17b254745",
    "multiplication": "241158132227ff6f",
    "division": "1c67cce6b6727ec1",
    "exponentiation": "e5ddc42737a36982",
    "mean": "6cb3a0e4f27879a1",
    "std": "2f361d0cbf1cd100",
}  # fmt: skip
"""The first 16 digits of the SHA-256 of 200 items of each task. They never change."""


def shard(task: str, split: str = "train", seed: int = 3) -> Shard:
    return Shard(task, seed, split, profile="study")


def value(text: str) -> Fraction:
    return Fraction(text)


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_items_never_change(task: str) -> None:
    text = b"".join(map(jsonl.encode, islice(generate_items(shard(task)), 200)))
    assert hashlib.sha256(text).hexdigest()[:16] == GOLDEN[task]


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_tables_have_the_same_bytes_as_items(task: str) -> None:
    tables = b"".join(map(json_lines, generate_tables(shard(task), 300)))
    assert tables == b"".join(map(jsonl.encode, islice(generate_items(shard(task)), 300)))


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_items_keep_the_rules_of_the_other_datasets(task: str) -> None:
    for item in islice(generate_items(shard(task)), 400):
        assert split_of(item.operands) == "train"
        sizes = [abs(value(operand)) for operand in item.operands]
        if task == "exponentiation":
            sizes = sizes[:1]
        assert all(size == 0 or Fraction(1, 10**14) <= size < 10**15 for size in sizes)
        digits = [len(str(abs(parse_decimal(o).significand)).strip("0")) for o in item.operands]
        assert max(digits) <= 17
        if task in ("minmax", "sorting", "interval", "mean", "std"):
            elements = item.operands[1:] if task == "interval" else item.operands
            assert item.params["length"] == len(elements)
            assert len(set(map(value, elements))) > 1
        if task == "interval":
            assert str(item.answer) == "ABCDEF"[item.params["position"]]
        if task in ("mean", "std"):
            assert value(str(item.answer)) != 0
        if task == "exponentiation":
            assert item.operands[0] not in ("1", "-1", "0")
            assert item.operands[1] not in ("1", "-1")


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_answers_are_exact(task: str) -> None:
    for item in islice(generate_items(shard(task)), 60):
        expected = reference_answers.answer(item.prompt)
        if isinstance(item.answer, tuple):
            assert list(map(value, item.answer)) == expected
        elif isinstance(expected, str):
            assert item.answer == expected
        else:
            assert value(item.answer) == expected


def test_datasets_have_the_same_bytes_on_any_number_of_workers(tmp_path: Path) -> None:
    settings = DatasetSettings("some", ("exponentiation", "addition"), "train", 60, profile="study")
    one, two = (generate(settings, tmp_path / str(n), workers=n).dataset for n in (1, 2))
    assert one.manifest == two.manifest
    assert one.manifest.settings["profile"] == "study"
    assert "max_digits" not in one.manifest.settings


def test_study_like_is_generated_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--tasks", "exponentiation", "--size", "20", "--split", "train"]
    result = CliRunner().invoke(app, ["generate", "--name", "study-like", *arguments])
    assert result.exit_code == 0, result.output
    by_name = open_dataset("study-like").manifest
    result = CliRunner().invoke(
        app, ["generate", "--profile", "study", *arguments, "--out", "again"]
    )
    assert result.exit_code == 0, result.output
    assert open_dataset("./again").manifest == by_name
    assert by_name.settings["profile"] == "study"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_digits": 12}, "--max-digits does not apply with --profile study"),
        ({"max_bits": 8}, "--max-bits does not apply"),
        ({"tasks": ("copy",)}, "--profile study has no copy"),
        ({"profile": "other"}, "--profile other: use study"),
    ],
)
def test_wrong_settings_are_refused(change: dict[str, object], message: str) -> None:
    settings = DatasetSettings(name="x", profile="study")._replace(**change)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=message):
        check_settings(settings)


def test_the_name_without_the_profile_is_refused() -> None:
    with pytest.raises(BadInput, match="needs --profile study"):
        check_settings(DatasetSettings(name="study-like"))


@given(st.integers(-(10**40), 10**40), st.integers(1, 17))
def test_numbers_are_rounded_half_to_even(number: int, digits: int) -> None:
    rounded = round_digits(number, digits)
    scale = 10 ** max(0, len(str(abs(number))) - digits)
    assert rounded == round(Fraction(number, scale)) * scale


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**29), st.integers(1, 17))
def test_a_bounded_number_is_within_its_bounds_or_next_to_them(
    low: int, width: int, digits: int
) -> None:
    high = low + width
    for number in (low, high, (low + high) // 2, low - width, high + width):
        found = round_within(number, digits, low, high)
        assert round_digits(found, digits) == found
        if low <= round_digits(low, digits) <= high and low <= round_digits(high, digits) <= high:
            assert low <= found <= high


@given(st.integers(1, 10**17 - 1), st.integers(-28, 0))
def test_operands_are_what_their_float64_prints(significand: int, exponent: int) -> None:
    number = DecimalNumber(significand, exponent)
    printed = as_float64(number)
    text = f"{printed.significand}e{printed.exponent}"
    assert float(text) == float(f"{significand}e{exponent}")
    assert Fraction(text) == Fraction(repr(float(text))) or significand < 10**15


def test_worked_examples_have_the_profile_of_the_dataset(tmp_path: Path) -> None:
    settings = DatasetSettings("some", ("exponentiation",), "train", 20, profile="study")
    dataset = generate(settings, tmp_path / "some").dataset
    (example,) = few_shot.examples(dataset, ("exponentiation",), 1)["exponentiation"]
    assert example == next(iter(generate_items(shard("exponentiation", "val", seed=1))))

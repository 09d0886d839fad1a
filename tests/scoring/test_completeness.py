"""A run is complete, or not, to every command that needs a complete one."""

import shutil
from decimal import Decimal
from pathlib import Path

import mpmath
import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import numbench as nb
from numbench.records import Failure, Response
from numbench.scoring import metrics
from tests.support.command_line import CommandLine


@pytest.mark.parametrize(
    ("failed", "is_complete"), [(1, True), (2, False)], ids=["99 percent", "98 percent"]
)
def test_all_commands_agree_which_run_is_complete(
    failed: int, is_complete: bool, tmp_path: Path
) -> None:
    """One task of two lacks answers to some of its 100 items."""
    nb.generate(name="own", size=100, tasks=["addition", "minmax"], out=tmp_path / "own")
    old = nb.run(model="baseline/float64", dataset=tmp_path / "own", out=tmp_path / "old").path
    shutil.copytree(old, tmp_path / "new")
    decode = msgspec.json.Decoder(Response).decode
    responses = [decode(line) for line in (old / "responses.jsonl").read_bytes().splitlines()]
    lost = [one.item_id for one in responses if one.item_id.startswith("addition")][:failed]
    failure = Failure(kind="item", message="too long")
    (tmp_path / "new" / "responses.jsonl").write_bytes(
        b"".join(
            msgspec.json.encode(
                Response(item_id=one.item_id, error=failure) if one.item_id in lost else one
            )
            + b"\n"
            for one in responses
        )
    )
    numbench = CommandLine(tmp_path, None)
    fails = 0 if is_complete else 1
    answered = f"{100 - failed} of 100"

    checked = numbench("verify", "new", "--complete", code=fails)
    assert f"{failed} of 200 samples have no answer" in " ".join(checked.split())
    numbench("verify", "new", code=fails)

    site = numbench("leaderboard", "old", "new", "--out", "site")
    assert ("incomplete and not ranked" in site) is not is_complete

    compared = numbench("compare", "old", "new", code=fails)
    note = "Questions answered by only one run: 1." if is_complete else f"{answered} previously"
    assert note in " ".join(compared.split())


rounded_numbers = (
    st.decimals(allow_nan=False, allow_infinity=False)
    .map(metrics.round_significant)
    .filter(lambda value: abs(value.adjusted()) < 200)
)


def _by_mpmath(predicted: Decimal, truth: Decimal) -> float:
    """Evaluate the paper's formula with 450 digits."""
    with mpmath.workdps(450):
        y, yhat = mpmath.mpf(str(truth)), mpmath.mpf(str(predicted))
        epsilon = mpmath.mpf(10) ** -100
        smape = abs(yhat - y) / (abs(y) + abs(yhat) + epsilon)
        score = mpmath.log10(smape + epsilon) / -15
        return float(max(0, min(1, score)))


@given(rounded_numbers, rounded_numbers)
def test_log_smape_agrees_with_the_formula_in_450_digits(one: Decimal, other: Decimal) -> None:
    assert metrics.log_smape(one, other) == pytest.approx(_by_mpmath(one, other), abs=1e-12)


def test_correct_digits_require_the_same_sign_and_magnitude() -> None:
    cases = {("-3.75", "3.75"): 0, ("37.5", "3.75"): 0, ("3.75000000000001", "3.75"): 14,
             ("3.74999999999999", "3.75"): 2, ("0.142857142857", "0.142857142857143"): 12,
             ("3.8", "3.75"): 1, ("0", "3.75"): 0, ("3.75", "0"): 0,
             ("3.750", "3.75"): 15}  # fmt: skip
    for (predicted, truth), digits in cases.items():
        assert metrics.correct_digits(Decimal(predicted), Decimal(truth)) == digits, predicted


@given(rounded_numbers, st.integers(0, 14))
def test_correct_digits_counts_up_to_the_first_wrong_digit(truth: Decimal, index: int) -> None:
    assume(truth)
    digits = "".join(map(str, truth.as_tuple().digits)).ljust(15, "0")
    wrong = digits[:index] + ("1" if digits[index] != "1" else "2") + digits[index + 1 :]
    changed = Decimal(wrong).scaleb(truth.adjusted() - 14).copy_sign(truth)
    assert metrics.correct_digits(changed, truth) == index

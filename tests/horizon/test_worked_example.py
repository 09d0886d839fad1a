"""The numbers of the worked example in docs/horizon.md are those of its answers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from numbench.horizon.goodness_of_fit import isotonic_rates

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = DOCS / "_build" / "horizon_example.py"
    spec = importlib.util.spec_from_file_location("horizon_example", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return " ".join((DOCS / "horizon.md").read_text(encoding="utf-8").split())


def test_the_page_states_the_estimates_of_its_answers(example: ModuleType, page: str) -> None:
    horizon = example.example_horizon()
    assert f"got {horizon.items} questions of `{horizon.task}`" in page
    h50, interval = horizon.text(horizon.h50.value), horizon.interval_text(horizon.h50)
    assert horizon.h90 is not None
    h90, wide = horizon.text(horizon.h90.value), horizon.interval_text(horizon.h90)
    assert f"is **{h50} digits**, its 95 % interval **{interval}**" in page
    assert f"h90 is **{h90} digits {wide}**" in page
    assert f"this gives **{horizon.tokens_at_h50:.0f} tokens**" in page
    assert f"Multiplies {h50}-digit numbers {interval} at 50 % success" in page
    assert f"for {horizon.tokens_at_h50:.0f} tokens" in page
    assert f"β of about {horizon.curve.slope:.0f} and" in page
    assert f"λ of about {100 * horizon.curve.lapse:.0f} %" in page
    assert horizon.fit_p > 0.5
    assert f"it crosses 50 % at **{horizon.text(horizon.isotonic)} digits**" in page
    rates = ", ".join(f"{100 * rate:.0f} %" for rate in isotonic_rates(horizon.counts))
    assert rates in page


def test_the_page_states_where_a_logistic_regression_crosses(
    example: ModuleType, page: str
) -> None:
    outcomes = example.example_outcomes()
    sizes = np.log([outcome.size for outcome in outcomes])
    sign = np.array([1 if outcome.right else -1 for outcome in outcomes])

    def loss(parameters: np.ndarray) -> float:
        log_h, slope = parameters
        return -float(np.log(expit(sign * slope * (log_h - sizes))).sum())

    log_h, _ = minimize(loss, [1.0, 1.0], method="Nelder-Mead").x
    (stated,) = re.findall(r"neither lapses nor priors, crosses 50 % at ([\d.]+) digits", page)
    assert f"{np.exp(log_h):.1f}" == stated
    rates = isotonic_rates(example.example_horizon().counts)
    assert list(rates) == sorted(rates, reverse=True)
    # 6 and 7 digits are on both sides of 50 %.
    share = (rates[4] - 0.5) / (rates[4] - rates[5])
    assert 6 * (7 / 6) ** share == pytest.approx(example.example_horizon().isotonic)

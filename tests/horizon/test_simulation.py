"""The simulation of many measurements chooses what the shipped design chooses, and stops there."""

import numpy as np
import pytest

from benchmarks.horizon_simulation import Tokens, simulate
from numbench.horizon import Limits
from numbench.horizon.adaptive import AdaptiveDesign
from numbench.horizon.sizes import task_sizes
from numbench.tasks import SCALED_TASKS
from tests.horizon.outcomes import Curve

SIZES = task_sizes(SCALED_TASKS["long_addition"])
SIZE_ARRAY = np.array(SIZES, np.float64)
EXPECTED = Tokens(40 + 0.4 * SIZE_ARRAY, 10 + 0.4 * SIZE_ARRAY, 3 * SIZE_ARRAY, 0.0)


@pytest.mark.parametrize(
    ("curve", "guess"),
    [(Curve(20, 3, 0.02), 0.0), (Curve(1.5, 30, 0), 0.5), (Curve(3000, 8, 0), 0.5)],
)
def test_measurements_are_those_of_the_shipped_design(curve: Curve, guess: float) -> None:
    limits, chance = Limits(max_items=60), (guess,) * len(SIZES)
    # Answers are right or wrong for sure, so that both see the same ones.
    is_right = curve.probability(SIZE_ARRAY) >= 0.5
    result = simulate(is_right[None, :].astype(float), SIZES, chance, EXPECTED, limits, seed=1)
    design = AdaptiveDesign(
        SIZES, chance, EXPECTED.prompt.tolist(), EXPECTED.expected_answer.tolist()
    )
    asked = np.zeros(len(SIZES), int)
    while design.stop_reason(limits) is None:
        design.begin_round()
        for size in design.next_round()[: limits.max_items - design.completed]:
            index = SIZES.index(size)
            asked[index] += 1
            design.record(size, float(is_right[index]), float(max(EXPECTED.answer[index], 1)))
    assert result.total[0].tolist() == asked.tolist()
    assert result.right[0].tolist() == (asked * is_right).tolist()
    assert result.tokens[0] == pytest.approx(
        float(asked @ (EXPECTED.prompt + np.maximum(EXPECTED.answer, 1)))
    )

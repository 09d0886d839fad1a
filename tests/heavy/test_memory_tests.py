"""Error rates and power of memory tests on models whose answers depend on the difficulty."""

import numpy as np
import pytest
from scipy.stats import binomtest

from numbench.dataset.fresh_items import item_stratum
from numbench.dataset.store import open_dataset
from tests.memory_test.simulation import PlantedTask, simulate

pytestmark = pytest.mark.heavy
CERTIFICATES = 1000


def planted(ability: float) -> list[PlantedTask]:
    """Models whose answers to v1 depend on the difficulty; the same for both items of a pair."""
    tasks = []
    for number, (task, items) in enumerate(open_dataset("v1").by_task.items()):
        difficulty = np.array([item_stratum(item).difficulty for item in items], np.float64)
        logits = (
            ability - (number - 4) / 2 - 2 * (difficulty - difficulty.mean()) / difficulty.std()
        )
        p = 1 / (1 + np.exp(-logits))
        tasks.append(PlantedTask(task, p, p, [item.operands for item in items]))
    return tasks


@pytest.mark.parametrize("ability", [-2.0, 0.0, 2.0])
def test_honest_models_are_rarely_accused(ability: float) -> None:
    result = simulate(planted(ability), 0.0, CERTIFICATES, seed=11)
    accused = result.verdicts.get("memory", 0)
    assert binomtest(accused, CERTIFICATES, 0.025, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize("known", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("ability", [0.0, 2.0, 4.0])
def test_memorisers_are_found_with_the_stated_power(ability: float, known: float) -> None:
    result = simulate(planted(ability), known, CERTIFICATES, seed=12)
    found = result.verdicts.get("memory", 0)
    assert binomtest(found, CERTIFICATES, result.stated, alternative="less").pvalue > 1e-3


def test_a_gain_of_the_margin_is_rarely_called_equivalent() -> None:
    tasks = planted(0.0)
    right = float(np.mean([task.fresh.mean() for task in tasks]))
    known = 0.03 / (1 - right)
    result = simulate(tasks, known, CERTIFICATES, seed=13, margin=3.0)
    wrong = result.verdicts.get("equivalent", 0)
    assert binomtest(wrong, CERTIFICATES, 0.05, alternative="greater").pvalue > 1e-3

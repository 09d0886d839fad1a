"""Cost limits in many simulated runs: the provider's ledger compared with limit and journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runner.cost_scenarios import HIGHEST_COST, Knowledge, simulate

pytestmark = pytest.mark.heavy

SCENARIOS = 200


@pytest.mark.parametrize("knowledge", ["highest", "expected", "nothing"])
def test_what_is_billed_stays_below_the_limit(tmp_path: Path, knowledge: Knowledge) -> None:
    exceeded = 0
    for seed in range(SCENARIOS):
        outcome = simulate(seed, tmp_path / str(seed), knowledge)
        assert outcome.journalled == pytest.approx(outcome.ledger.reported)
        assert outcome.lost >= outcome.ledger.unreported_requests
        excess = outcome.ledger.billed - outcome.limit * (1 + 1e-9)
        exceeded += excess > 0
        assert excess <= (0.0 if knowledge == "highest" else HIGHEST_COST)
    assert exceeded <= 0.01 * SCENARIOS

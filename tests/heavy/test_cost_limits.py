"""Cost limits in many simulated runs: the provider's ledger compared with limit and journal.

No margin was chosen with these seeds. Without a bound on the cost of one answer, no rule can keep
every limit.
"""

from pathlib import Path

import pytest

from tests.runner.cost_scenarios import HIGHEST_COST, Knowledge, simulate, simulate_suite

pytestmark = pytest.mark.heavy

SEEDS = range(130_000, 130_300)
SUITE_SEEDS = range(140_000, 140_150)
ALLOWED = {"highest": 0.0, "expected": 0.02, "nothing": 0.02}
"""The share of runs that may exceed their limit."""


@pytest.mark.parametrize("knowledge", ["highest", "expected", "nothing"])
def test_what_is_billed_stays_below_the_limit(tmp_path: Path, knowledge: Knowledge) -> None:
    exceeded = 0
    for seed in SEEDS:
        outcome = simulate(seed, tmp_path / str(seed), knowledge)
        assert outcome.journalled == pytest.approx(outcome.ledger.reported)
        assert outcome.lost >= outcome.ledger.unreported_requests
        excess = outcome.ledger.billed - outcome.limit * (1 + 1e-9)
        exceeded += excess > 0
        # Rarely, two answers are more expensive than what was kept for them.
        assert excess < 2 * HIGHEST_COST
    assert exceeded <= ALLOWED[knowledge] * len(SEEDS)


@pytest.mark.parametrize("knowledge", ["highest", "expected", "nothing"])
def test_what_several_providers_bill_stays_below_their_common_limit(
    tmp_path: Path, knowledge: Knowledge
) -> None:
    exceeded = 0
    for seed in SUITE_SEEDS:
        limit, billed = simulate_suite(seed, tmp_path / str(seed), knowledge)
        exceeded += billed > limit * (1 + 1e-9)
    assert exceeded <= ALLOWED[knowledge] * len(SUITE_SEEDS)

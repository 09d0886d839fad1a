from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Results are identical only with the same number of threads, and tests run in parallel."""
    torch.set_num_threads(1)

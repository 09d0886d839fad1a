from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.experiments.tiny import generate_data


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tests run in parallel, and a second thread slows tiny trainings down."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evaluation dataset of the declared runs."""
    return generate_data(tmp_path_factory.mktemp("dataset") / "data")

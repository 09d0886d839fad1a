"""Fixtures that all tests share."""

import gc
import os
import re
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import settings

from tests.support.command_line import call
from tests.support.paper_files import paper_results, reference_outputs

# As many tests run at once as there are cores; read when torch is first imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A slow machine must not fail a test; `watchdog` limits the time.
settings.register_profile("numbench", deadline=None)
settings.load_profile("numbench")

__all__ = ["call", "paper_results", "reference_outputs"]


_MARK_OF_MODULE = re.compile(r"^pytestmark = .*\bpytest\.mark\.(\w+)", re.M)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules whose tests all have a marker that `-m` excludes, unless named.

    Every worker would import them, and some import packages that take seconds.
    """
    named = {Path(argument.partition("::")[0]).resolve() for argument in config.args}
    if collection_path.suffix != ".py" or collection_path in named:
        return None
    mark = _MARK_OF_MODULE.search(collection_path.read_text())
    return True if mark and f"not {mark[1]}" in config.option.markexpr else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call what asks through litellm slow: it takes seconds to import, in every worker."""
    for item in items:
        if "litellm/openai/" in item.nodeid:
            item.add_marker("slow")


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage less often, and not among modules: it took a tenth of the time."""
    gc.set_threshold(0)
    yield
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


PATIENCE = 1200
"""Seconds after which a test counts as hanging."""


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """A test that waits for ever fails instead."""

    def bark(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"the test hung for {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the figures out of reports: they take most of the time."""
    monkeypatch.setattr("numbench.reporting.figures.FIGURES", ())


@pytest.fixture(scope="session", autouse=True)
def short_cuts(request: pytest.FixtureRequest) -> Iterator[None]:
    """No client reads the system's certificates, which takes each 50 ms; only `live` needs them.

    Nothing waits for the disk in this process, 5 ms each time: no test cuts the power.
    """
    load = ssl.SSLContext.load_verify_locations

    def load_others(context: ssl.SSLContext, cafile: Any = None, *others: Any, **more: Any) -> None:
        if not (cafile and Path(cafile).is_file()):
            load(context, cafile, *others, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        if not any(item.get_closest_marker("live") for item in request.session.items):
            patch.setattr(ssl.SSLContext, "load_verify_locations", load_others)
        yield


# A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP. numbench respects
# that, so the tests of signals need the defaults back; subprocesses inherit them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

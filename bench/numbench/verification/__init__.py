"""Verification of run folders: is everything there, unchanged, and plausible?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from numbench.verification.findings import Finding, Severity, Verification

__all__ = ["Finding", "Severity", "Verification", "verify"]


def _ignore(message: str) -> None:
    pass


def verify(
    runs: Sequence[Path],
    on_progress: Callable[[str], None] = _ignore,
    require_complete: bool = False,
) -> list[Verification]:
    """Check run folders, and return what was found about each of them.

    runs: folders that are runs or contain some. require_complete: whether a run is invalid
    unless it answers every item of its dataset. Nothing is written. Raises BadInput if there is no
    run.
    """
    # Deferred, because the report's tables load slowly.
    from numbench.verification.run_checks import verify_runs

    return verify_runs(runs, on_progress, require_complete)

"""The day that facts and prices are looked up for."""

from __future__ import annotations

from datetime import date

import pytest

from numbench.models import facts


def set_date(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    """Make `day`, an ISO date, today for everything that is known of models."""

    class FixedDate(date):
        @classmethod
        def today(cls) -> FixedDate:
            return cls.fromisoformat(day)

    monkeypatch.setattr(facts, "date", FixedDate)

"""Fixtures of the tests of runs."""

from tests.support.run_fixtures import dataset, keys

__all__ = ["dataset", "keys"]

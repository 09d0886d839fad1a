"""Fixtures that all tests share."""

from tests.paper_files import paper_results

__all__ = ["paper_results"]

"""Measurements of the paper's desiderata for number encodings (see docs/encodings.md)."""

from __future__ import annotations

from numbench.bittoken.desiderata.report import EncodingReport, measure_encodings

__all__ = ["EncodingReport", "measure_encodings"]

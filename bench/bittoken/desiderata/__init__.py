"""The paper's desiderata of a number encoding, measured ("Desiderata …"; docs/encodings.md)."""

from __future__ import annotations

from bench.bittoken.desiderata.build import Measured, measure_encodings

__all__ = ["Measured", "measure_encodings"]

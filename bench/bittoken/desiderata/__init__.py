"""Measurements of the paper's desiderata for number encodings (see docs/encodings.md)."""

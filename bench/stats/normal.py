"""Quantiles of the normal distribution for the 95 % level and a power of 80 %."""

from __future__ import annotations

from statistics import NormalDist

LEVEL = 0.95
ALPHA = 0.05
POWER = 0.80
Z_LEVEL = NormalDist().inv_cdf((1 + LEVEL) / 2)
Z_POWER = NormalDist().inv_cdf(POWER)

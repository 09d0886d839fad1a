"""Desiderata 5 to 8: normalisation, low precision, smoothness, noise."""

from __future__ import annotations

import numpy as np
import torch

from bench.bittoken.desiderata.subjects import SEED, Vectored
from bench.bittoken.encodings.base import Floats, NumberEncoding, Vectors

WIDTH = 768
"""The network's width, to which vectors are filled up with zeros."""

_EPSILON = 1e-6


def padded(vectors: Vectors) -> Floats:
    """float64 of shape (n, WIDTH)."""
    missing = WIDTH - vectors.shape[1]
    return np.pad(vectors.astype(np.float64), ((0, 0), (0, missing)))


def root_mean_squares(vectors: Vectors) -> Floats:
    """The RMS of each vector, filled up to the network's width."""
    sizes: Floats = np.sqrt(np.square(padded(vectors)).mean(axis=1))
    return sizes


def rms_normalised(vectors: Vectors) -> Vectors:
    """The vectors after RMSNorm at the network's width, the filling cut off again."""
    full = padded(vectors)
    scale = np.sqrt(np.square(full).mean(axis=1, keepdims=True) + _EPSILON)
    return _cut(full / scale, vectors)


def layer_normalised(vectors: Vectors) -> Vectors:
    """The vectors after LayerNorm at the network's width, the filling cut off again."""
    full = padded(vectors)
    full -= full.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.square(full).mean(axis=1, keepdims=True) + _EPSILON)
    return _cut(full / scale, vectors)


def rounded(vectors: Vectors, dtype: torch.dtype) -> Vectors:
    """The vectors as a narrower type holds them."""
    found: Vectors = torch.from_numpy(vectors).to(dtype).to(torch.float32).numpy()
    return found


def noisy_share(vectored: Vectored, sigma: float) -> float:
    """Percent decoded right under Gaussian noise, where all vectors together have RMS 1."""
    vectors = vectored.vectors
    scale = np.sqrt(np.square(vectors.astype(np.float64)).mean())
    noise = np.random.default_rng(SEED).standard_normal(vectors.shape) * (sigma * scale)
    return vectored.surviving((vectors + noise).astype(np.float32))


def mean_change(encoding: NumberEncoding, magnitudes: Floats, moved: Floats) -> float:
    """‖v(y) - v(x)‖ / ‖v(x)‖, the mean over magnitudes x that move to y."""
    before, after = (encoding.vector(encoding.code(x)) for x in (magnitudes, moved))
    length = np.linalg.norm(before, axis=1)
    return float((np.linalg.norm(after - before, axis=1) / length).mean())


def _cut(full: Floats, vectors: Vectors) -> Vectors:
    return full[:, : vectors.shape[1]].astype(np.float32)

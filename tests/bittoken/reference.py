"""Reference implementation of the network in NumPy at float64, for one sample at a time.

It shares no code with the package. Weights have the released names and are stored as (in, out).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, Array]
EPS = float(np.finfo(np.float64).eps)
"""ε of RMSNorm at float64: PyTorch uses that of the data type."""


def bits(value: float) -> list[int]:
    """Return the bits of a float64, most significant first."""
    (number,) = struct.unpack(">Q", struct.pack(">d", value))
    return [int(bit) for bit in f"{number:064b}"]


def bittoken(value: float) -> Array:
    """Return ±1 for each bit of a number and of its reciprocal."""
    reciprocal = 1 / value if value else math.copysign(math.inf, value)
    return np.array(bits(value) + bits(reciprocal), np.float64) * 2 - 1


def rms(x: Array, eps: float = EPS) -> Array:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def rotate(x: Array, base: float) -> Array:
    """Rotate channel i of x (positions, channels) and its partner in the other half by −θ."""
    half = x.shape[-1] // 2
    theta = np.arange(len(x))[:, None] / base ** (np.arange(half) / half)
    rotated = (x[:, :half] + 1j * x[:, half:]) * np.exp(-1j * theta)
    return np.concatenate([rotated.real, rotated.imag], axis=-1)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def attention(q: Array, k: Array, v: Array) -> Array:
    """Return causal attention of one head; all arrays are (positions, channels)."""
    scores = q @ k.T / math.sqrt(q.shape[-1])
    scores[np.triu_indices(len(q), 1)] = -np.inf
    return softmax(scores) @ v


def inputs(weights: Weights, combination: str, tokens: Sequence[Any], number: int) -> Array:
    """Return the embedded tokens; a float in `tokens` is a number, combined with its encoding."""
    embedding = weights["transformer.wte.weight"]
    rows = []
    for token in tokens:
        if not isinstance(token, float):
            rows.append(embedding[token])
            continue
        vector, number_embedding = bittoken(token), embedding[number]
        padded = np.concatenate([vector, np.zeros(len(number_embedding) - len(vector))])
        if combination == "sum":
            rows.append(number_embedding + padded)
        elif combination == "zero-pad":
            rows.append(padded)
        else:
            matrix = weights["num_embedding_module.bit_weight_matrix.weight"]
            base = number_embedding if combination == "weighted-sum" else 0
            rows.append(matrix @ vector + base)
    return np.array(rows)


def hidden(
    weights: Weights, x: Array, heads: int, base: float = 10_000.0, eps: float = EPS
) -> Array:
    """Return the normalised hidden states of one sample, (positions, width)."""
    layers = 1 + max(int(name.split(".")[2]) for name in weights if ".h." in name)
    for layer in range(layers):
        prefix = f"transformer.h.{layer}."

        def linear(value: Array, name: str, prefix: str = prefix) -> Array:
            return value @ weights[f"{prefix}{name}.weight"] + weights[f"{prefix}{name}.bias"]

        mixed = linear(rms(x, eps) * weights[f"{prefix}ln_1.weight"], "attn.c_attn")
        q, k, v = (np.split(part, heads, -1) for part in np.split(mixed, 3, -1))
        parts = [
            attention(rotate(rms(qh, eps), base), rotate(rms(kh, eps), base), vh)
            for qh, kh, vh in zip(q, k, v, strict=True)
        ]
        x = x + linear(np.concatenate(parts, -1), "attn.c_proj")
        wide = gelu(linear(rms(x, eps) * weights[f"{prefix}ln_2.weight"], "mlp.c_fc"))
        x = x + linear(wide, "mlp.c_proj")
    return rms(x, eps) * weights["transformer.ln_f.weight"]


def logits(weights: Weights, states: Array) -> Array:
    return states @ weights["lm_head.weight"].T


def numbers(weights: Weights, states: Array) -> Array:
    """Return the outputs of a number head with one or two layers."""
    prefix = "num_embedding_module.num_head."
    first = states @ weights[f"{prefix}0.weight"].T + weights[f"{prefix}0.bias"]
    if f"{prefix}2.weight" not in weights:
        return first
    return np.maximum(first, 0) @ weights[f"{prefix}2.weight"].T + weights[f"{prefix}2.bias"]

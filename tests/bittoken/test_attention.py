from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from bittoken.attention import (
    PackedLayout,
    apply_rotary,
    causal_attention,
    padded_attention,
    rotary_cos_sin,
)

LENGTHS = np.array([1, 200, 3, 64, 65, 1, 2, 17, 128, 40])
CUDA = pytest.mark.skipif(
    not torch.cuda.is_available(),
    reason="no CUDA device: run `pytest tests/bittoken/test_attention.py` on a machine with a GPU",
)


def random_qkv(
    lengths: np.ndarray, dtype: torch.dtype = torch.float64, seed: int = 0
) -> torch.Tensor:
    """Return random q, k and v: (3, T, 2 heads, 8 channels)."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=(3, lengths.sum(), 2, 8))).to(dtype)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return causal attention of one head, computed by NumPy; all arrays are (T, channels)."""
    scores = q @ k.T / math.sqrt(q.shape[-1])
    scores[np.triu_indices(len(q), 1)] = -np.inf
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    mixed: np.ndarray = powers / powers.sum(-1, keepdims=True) @ v
    return mixed


def rotate(x: np.ndarray, base: float) -> np.ndarray:
    """Rotate channel i of x (positions, channels) and its partner in the other half by −θ."""
    half = x.shape[-1] // 2
    theta = np.arange(len(x))[:, None] / base ** (np.arange(half) / half)
    rotated = (x[:, :half] + 1j * x[:, half:]) * np.exp(-1j * theta)
    return np.concatenate([rotated.real, rotated.imag], axis=-1)


def attention_per_sample(qkv: torch.Tensor, lengths: np.ndarray) -> np.ndarray:
    """Return the reference attention of each sample and head, computed separately."""
    q, k, v = qkv.double().numpy()
    out = np.empty_like(q)
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        part = slice(end - length, end)
        for head in range(q.shape[1]):
            out[part, head] = attention(q[part, head], k[part, head], v[part, head])
    return out


@pytest.mark.parametrize(
    "lengths",
    [LENGTHS, np.array([1]), np.array([1, 1, 1]), np.arange(1, 201), np.array([200] * 3)],
    ids=["mixed", "one token", "single tokens", "1 to 200", "equal"],
)
def test_packed_attention_equals_that_of_each_sample(lengths: np.ndarray) -> None:
    qkv = random_qkv(lengths)
    mixed = padded_attention(*qkv, PackedLayout.from_lengths(lengths))
    np.testing.assert_allclose(mixed, attention_per_sample(qkv, lengths), rtol=0, atol=1e-12)


def test_packed_gradients_equal_those_of_each_sample() -> None:
    qkv = random_qkv(LENGTHS).requires_grad_()
    weights = random_qkv(LENGTHS, seed=1)[0]
    (padded_attention(*qkv, PackedLayout.from_lengths(LENGTHS)) * weights).sum().backward()
    separate = random_qkv(LENGTHS).requires_grad_()
    for end, length in zip(np.cumsum(LENGTHS), LENGTHS, strict=True):
        part = slice(end - length, end)
        q, k, v = separate[:, part].transpose(1, 2)
        scores = q @ k.transpose(1, 2) / 8**0.5
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        ((scores.softmax(-1) @ v).transpose(0, 1) * weights[part]).sum().backward()
    assert qkv.grad is not None and separate.grad is not None
    torch.testing.assert_close(qkv.grad, separate.grad, rtol=0, atol=1e-12)


def test_bfloat16_errors_are_within_rounding() -> None:
    """Each output is a mean of values below 5, rounded a few times with relative error 2^-9."""
    qkv = random_qkv(LENGTHS, torch.bfloat16)
    mixed = padded_attention(*qkv, PackedLayout.from_lengths(LENGTHS)).double().numpy()
    assert np.abs(mixed - attention_per_sample(qkv, LENGTHS)).max() < 5 * 2**-7


def test_samples_do_not_affect_each_other() -> None:
    qkv = random_qkv(LENGTHS)
    layout = PackedLayout.from_lengths(LENGTHS)
    before = padded_attention(*qkv, layout)
    start, end = np.cumsum(LENGTHS)[[2, 3]]
    qkv[:, start:end] = random_qkv(LENGTHS, seed=1)[:, start:end]
    after = padded_attention(*qkv, layout)
    is_equal = (before == after).all(-1).all(-1)
    assert not is_equal[start:end].any()
    assert is_equal[:start].all() and is_equal[end:].all()


def test_positions_restart_at_each_sample() -> None:
    layout = PackedLayout.from_lengths(np.array([3, 1, 2]))
    assert layout.positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert layout.cu_seqlens.tolist() == [0, 3, 4, 6]
    assert layout.max_seqlen == 3


def test_rotary_positions_rotate_channel_pairs_by_minus_theta() -> None:
    """Compared with multiplication by e^(−iθ)."""
    x = np.random.default_rng(0).normal(size=(300, 1, 16))
    angles = rotary_cos_sin(torch.arange(300), 16, 10_000.0, torch.float64)
    rotated = apply_rotary(torch.from_numpy(x), angles)[:, 0]
    np.testing.assert_allclose(rotated, rotate(x[:, 0], 10_000.0), rtol=0, atol=1e-12)
    assert rotary_cos_sin(torch.arange(3), 16, 10_000.0)[0].dtype == torch.float32


@CUDA
@pytest.mark.parametrize("lengths", [LENGTHS, np.arange(1, 201)])
def test_cuda_kernel_matches_padded_attention(lengths: np.ndarray) -> None:
    qkv = random_qkv(lengths, torch.bfloat16)
    layout = PackedLayout.from_lengths(lengths, "cuda")
    gpu = qkv.cuda().requires_grad_()
    mixed = causal_attention(*gpu, layout)
    assert (
        np.abs(mixed.detach().double().cpu().numpy() - attention_per_sample(qkv, lengths)).max()
        < 0.04
    )
    plain = qkv.cuda().double().requires_grad_()
    weights = random_qkv(lengths, seed=1)[0].cuda()
    (mixed.double() * weights).sum().backward()
    (padded_attention(*plain, layout) * weights).sum().backward()
    assert gpu.grad is not None and plain.grad is not None
    # Gradients are sums over up to 200 tokens, so the bound is on the mean.
    assert (gpu.grad.double() - plain.grad).abs().mean() < 0.02 * plain.grad.abs().mean()

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.bittoken.attention import Layout, attend, padded, rotated, rotation
from tests.bittoken import reference

LENGTHS = np.array([1, 200, 3, 64, 65, 1, 2, 17, 128, 40])
CUDA = pytest.mark.skipif(
    not torch.cuda.is_available(),
    reason="no CUDA device: run `pytest tests/bittoken/test_attention.py` where there is one",
)


def heads(lengths: np.ndarray, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    """q, k and v: (3, T, 2 heads, 8 channels)."""
    draw = np.random.default_rng(seed)
    return torch.from_numpy(draw.normal(size=(3, lengths.sum(), 2, 8))).to(dtype)


def one_by_one(qkv: torch.Tensor, lengths: np.ndarray) -> np.ndarray:
    """Each sample and head alone, in NumPy."""
    q, k, v = qkv.double().numpy()
    out = np.empty_like(q)
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        part = slice(end - length, end)
        for head in range(q.shape[1]):
            out[part, head] = reference.attention(q[part, head], k[part, head], v[part, head])
    return out


@pytest.mark.parametrize(
    "lengths",
    [LENGTHS, np.array([1]), np.array([1, 1, 1]), np.arange(1, 201), np.array([200] * 3)],
    ids=["mixed", "one token", "single tokens", "1 to 200", "equal"],
)
def test_packed_samples_attend_as_each_does_alone(lengths: np.ndarray) -> None:
    qkv = heads(lengths)
    mixed = padded(*qkv, Layout.of(lengths))
    np.testing.assert_allclose(mixed, one_by_one(qkv, lengths), rtol=0, atol=1e-12)


def test_gradients_are_those_of_each_sample_alone() -> None:
    qkv = heads(LENGTHS).requires_grad_()
    weights = heads(LENGTHS, seed=1)[0]
    (padded(*qkv, Layout.of(LENGTHS)) * weights).sum().backward()
    alone = heads(LENGTHS).requires_grad_()
    for end, length in zip(np.cumsum(LENGTHS), LENGTHS, strict=True):
        part = slice(end - length, end)
        q, k, v = alone[:, part].transpose(1, 2)
        scores = q @ k.transpose(1, 2) / 8**0.5
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        ((scores.softmax(-1) @ v).transpose(0, 1) * weights[part]).sum().backward()
    assert qkv.grad is not None and alone.grad is not None
    torch.testing.assert_close(qkv.grad, alone.grad, rtol=0, atol=1e-12)


def test_at_16_bits_the_error_stays_within_the_types_rounding() -> None:
    """Each output is a mean of values below 5, rounded at 2^-9 of its size a few times."""
    qkv = heads(LENGTHS, torch.bfloat16)
    mixed = padded(*qkv, Layout.of(LENGTHS)).double().numpy()
    assert np.abs(mixed - one_by_one(qkv, LENGTHS)).max() < 5 * 2**-7


def test_changing_one_sample_changes_no_bit_of_another() -> None:
    qkv = heads(LENGTHS)
    layout = Layout.of(LENGTHS)
    before = padded(*qkv, layout)
    start, end = np.cumsum(LENGTHS)[[2, 3]]
    qkv[:, start:end] = heads(LENGTHS, seed=1)[:, start:end]
    after = padded(*qkv, layout)
    same = (before == after).all(-1).all(-1)
    assert not same[start:end].any()
    assert same[:start].all() and same[end:].all()


def test_positions_start_again_at_each_sample() -> None:
    layout = Layout.of(np.array([3, 1, 2]))
    assert layout.positions.tolist() == [0, 1, 2, 0, 0, 1]
    assert layout.starts.tolist() == [0, 3, 4, 6]
    assert layout.longest == 3


def test_pairs_of_channels_turn_by_minus_theta() -> None:
    """Against multiplication with e^(−iθ)."""
    x = np.random.default_rng(0).normal(size=(300, 1, 16))
    angles = rotation(torch.arange(300), 16, 10_000.0, torch.float64)
    turned = rotated(torch.from_numpy(x), angles)[:, 0]
    np.testing.assert_allclose(turned, reference.rotate(x[:, 0], 10_000.0), rtol=0, atol=1e-12)
    assert rotation(torch.arange(3), 16, 10_000.0)[0].dtype == torch.float32


@CUDA
@pytest.mark.parametrize("lengths", [LENGTHS, np.arange(1, 201)])
def test_the_kernel_for_cuda_gives_the_plain_ways_numbers(lengths: np.ndarray) -> None:
    qkv = heads(lengths, torch.bfloat16)
    layout = Layout.of(lengths, "cuda")
    gpu = qkv.cuda().requires_grad_()
    mixed = attend(*gpu, layout)
    assert np.abs(mixed.detach().double().cpu().numpy() - one_by_one(qkv, lengths)).max() < 0.04
    plain = qkv.cuda().double().requires_grad_()
    weights = heads(lengths, seed=1)[0].cuda()
    (mixed.double() * weights).sum().backward()
    (padded(*plain, layout) * weights).sum().backward()
    assert gpu.grad is not None and plain.grad is not None
    # Gradients are sums over up to 200 tokens, so the bound is on the mean.
    assert (gpu.grad.double() - plain.grad).abs().mean() < 0.02 * plain.grad.abs().mean()

"""What every encoding promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.bittoken.encodings.base import NumberEncoding
from bench.errors import BadInput
from tests.bittoken.encodings.values import (
    ALL,
    HOLDS_NAN,
    decimals,
    everywhere,
    patterns,
    random_codes,
    same_bits,
)

each = pytest.mark.parametrize("encoding", ALL, ids=lambda encoding: encoding.name)


@each
def test_shapes_and_types_are_as_declared(encoding: NumberEncoding) -> None:
    for n in (0, 1, 7):
        values = np.arange(n) / 4
        codes = encoding.code(values)
        vectors = encoding.vector(codes)
        assert codes.shape == (n, encoding.columns) and codes.dtype == encoding.dtype
        assert vectors.shape == (n, encoding.width) and vectors.dtype == np.float32
        assert encoding.value(codes).shape == (n,)
        assert encoding.value(codes).dtype == np.float64
        for back in (
            encoding.nearest(vectors),
            encoding.decide(np.zeros((n, encoding.outputs), np.float32)),
        ):
            assert back.shape == codes.shape and back.dtype == encoding.dtype


@each
def test_a_vector_gives_back_its_code(encoding: NumberEncoding) -> None:
    for values in (everywhere(), decimals()):
        codes = encoding.code(values)
        assert same_bits(encoding.nearest(encoding.vector(codes)), codes)


@each
def test_a_vector_of_any_code_gives_it_back(encoding: NumberEncoding) -> None:
    codes = random_codes(encoding)
    assert same_bits(encoding.nearest(encoding.vector(codes)), codes)


@each
def test_torch_makes_the_same_vectors_bit_for_bit(encoding: NumberEncoding) -> None:
    values = patterns() if encoding.name in HOLDS_NAN else everywhere()
    for codes in (encoding.code(values), encoding.code(decimals()), random_codes(encoding)):
        theirs = encoding.torch_vector(torch.from_numpy(codes))
        assert same_bits(theirs.numpy(), encoding.vector(codes))


@each
def test_torch_decides_the_same_bit_for_bit(encoding: NumberEncoding) -> None:
    draws = np.random.default_rng(5)
    for scale in (0.0, 0.1, 1.0, 30.0):
        outputs = (draws.standard_normal((5000, encoding.outputs)) * scale).astype(np.float32)
        theirs = encoding.torch_decide(torch.from_numpy(outputs)).numpy()
        assert same_bits(theirs, encoding.decide(outputs))


@each
def test_torch_takes_any_leading_shape(encoding: NumberEncoding) -> None:
    codes = encoding.code(decimals(24))
    flat = encoding.torch_vector(torch.from_numpy(codes))
    shaped = encoding.torch_vector(torch.from_numpy(codes).view(2, 3, 4, -1))
    assert torch.equal(shaped.view(24, -1), flat) and shaped.shape[:3] == (2, 3, 4)
    outputs = torch.randn(24, encoding.outputs, generator=torch.Generator().manual_seed(1))
    decided = encoding.torch_decide(outputs.view(2, 3, 4, -1))
    assert torch.equal(decided.view(24, -1), encoding.torch_decide(outputs))
    assert decided.shape == (2, 3, 4, encoding.columns)


@each
def test_learning_by_the_loss_leads_to_the_code(encoding: NumberEncoding) -> None:
    """The head's outputs, moved against the gradient of the loss, come to decide the code."""
    codes = torch.from_numpy(encoding.code(decimals(20)))
    outputs = torch.zeros(20, encoding.outputs, requires_grad=True)
    for _ in range(200):
        losses = encoding.loss(outputs, codes)
        assert losses.shape == (20,)
        (step,) = torch.autograd.grad(losses.sum(), outputs)
        outputs = (outputs - 5 / encoding.outputs**0.5 * step).detach().requires_grad_()
        if encoding.name == "xval":
            outputs = (outputs + 4.9 * step).detach().requires_grad_()
    decided = encoding.torch_decide(outputs.detach())
    if encoding.name == "xval":
        assert torch.allclose(decided, codes, atol=1e-4)
    else:
        assert torch.equal(decided, codes)


@each
def test_the_loss_is_each_number_s_own(encoding: NumberEncoding) -> None:
    codes = torch.from_numpy(encoding.code(decimals(6)))
    outputs = torch.randn(6, encoding.outputs, generator=torch.Generator().manual_seed(2))
    together = encoding.loss(outputs, codes)
    alone = torch.cat([encoding.loss(outputs[i : i + 1], codes[i : i + 1]) for i in range(6)])
    assert torch.allclose(together, alone)
    assert len(set(together.tolist())) == 6


@each
def test_losses_of_16_bit_outputs_are_worked_out_in_32_bits(encoding: NumberEncoding) -> None:
    codes = torch.from_numpy(encoding.code(decimals(6)))
    outputs = torch.randn(6, encoding.outputs, generator=torch.Generator().manual_seed(2))
    coarse = outputs.to(torch.bfloat16)
    losses = encoding.loss(coarse, codes)
    assert losses.dtype == torch.float32
    assert torch.equal(losses, encoding.loss(coarse.float(), codes))
    assert torch.equal(encoding.torch_decide(coarse), encoding.torch_decide(coarse.float()))


@each
def test_nan_is_kept_or_refused(encoding: NumberEncoding) -> None:
    values = np.array([1.0, np.nan])
    if encoding.name in HOLDS_NAN:
        kept = encoding.value(encoding.nearest(encoding.vector(encoding.code(values))))
        assert kept[0] == 1 and np.isnan(kept[1])
    else:
        with pytest.raises(BadInput, match="NaN"):
            encoding.code(values)


@each
def test_an_unsigned_encoding_leaves_the_sign_to_the_text(encoding: NumberEncoding) -> None:
    values = decimals(500)
    mirrored = encoding.code(-values)
    if encoding.signed:
        found = encoding.value(mirrored)
        assert np.array_equal(found, -encoding.value(encoding.code(values)))
    else:
        assert np.array_equal(mirrored, encoding.code(values))
        assert (encoding.value(mirrored) >= 0).all()

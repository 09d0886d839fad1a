"""Properties of every encoding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bittoken.encodings.base import NumberEncoding
from numbench.errors import BadInput
from tests.bittoken.encodings.values import (
    ALL,
    decimals,
    finite_and_infinite,
    random_codes,
    same_bits,
)

each = pytest.mark.parametrize("encoding", ALL, ids=lambda encoding: encoding.name)


@each
def test_shapes_and_types_are_as_declared(encoding: NumberEncoding) -> None:
    for n in (0, 1, 7):
        values = np.arange(n) / 4
        codes = encoding.encode(values)
        vectors = encoding.vector(codes)
        assert codes.shape == (n, encoding.columns) and codes.dtype == encoding.dtype
        assert vectors.shape == (n, encoding.width) and vectors.dtype == np.float32
        assert encoding.decode(codes).shape == (n,)
        assert encoding.decode(codes).dtype == np.float64
        for back in (
            encoding.nearest_codes(vectors),
            encoding.predict_codes(np.zeros((n, encoding.outputs), np.float32)),
        ):
            assert back.shape == codes.shape and back.dtype == encoding.dtype


@each
def test_vectors_of_numbers_are_decoded_to_their_codes(encoding: NumberEncoding) -> None:
    for values in (finite_and_infinite(), decimals()):
        codes = encoding.encode(values)
        assert same_bits(encoding.nearest_codes(encoding.vector(codes)), codes)


@each
def test_vectors_of_any_codes_are_decoded(encoding: NumberEncoding) -> None:
    codes = random_codes(encoding)
    assert same_bits(encoding.nearest_codes(encoding.vector(codes)), codes)


@each
def test_torch_supports_leading_dimensions(encoding: NumberEncoding) -> None:
    codes = encoding.encode(decimals(24))
    flat = encoding.torch_vector(torch.from_numpy(codes))
    shaped = encoding.torch_vector(torch.from_numpy(codes).view(2, 3, 4, -1))
    assert torch.equal(shaped.view(24, -1), flat) and shaped.shape[:3] == (2, 3, 4)
    outputs = torch.randn(24, encoding.outputs, generator=torch.Generator().manual_seed(1))
    predicted = encoding.torch_predict_codes(outputs.view(2, 3, 4, -1))
    assert torch.equal(predicted.view(24, -1), encoding.torch_predict_codes(outputs))
    assert predicted.shape == (2, 3, 4, encoding.columns)


@each
def test_minimising_the_loss_predicts_the_code(encoding: NumberEncoding) -> None:
    """Gradient descent on the outputs of the head leads to the predicted code."""
    codes = torch.from_numpy(encoding.encode(decimals(20)))
    outputs = torch.zeros(20, encoding.outputs, requires_grad=True)
    optimizer = torch.optim.Adam([outputs], lr=0.2)
    for _ in range(300):
        losses = encoding.loss(outputs, codes)
        assert losses.shape == (20,)
        optimizer.zero_grad()
        losses.sum().backward()
        optimizer.step()
    predicted = encoding.torch_predict_codes(outputs.detach())
    assert torch.allclose(predicted.double(), codes.double(), rtol=0, atol=1e-3)


@each
def test_losses_of_numbers_are_independent(encoding: NumberEncoding) -> None:
    codes = torch.from_numpy(encoding.encode(decimals(6)))
    outputs = torch.randn(6, encoding.outputs, generator=torch.Generator().manual_seed(2))
    batch = encoding.loss(outputs, codes)
    separate = torch.cat([encoding.loss(outputs[i : i + 1], codes[i : i + 1]) for i in range(6)])
    assert torch.allclose(batch, separate)
    assert len(set(batch.tolist())) == 6


@each
def test_losses_of_bfloat16_outputs_are_computed_in_float32(encoding: NumberEncoding) -> None:
    codes = torch.from_numpy(encoding.encode(decimals(6)))
    outputs = torch.randn(6, encoding.outputs, generator=torch.Generator().manual_seed(2))
    half = outputs.to(torch.bfloat16)
    losses = encoding.loss(half, codes)
    assert losses.dtype == torch.float32
    assert torch.equal(losses, encoding.loss(half.float(), codes))
    assert torch.equal(
        encoding.torch_predict_codes(half), encoding.torch_predict_codes(half.float())
    )


@each
def test_nan_is_encoded_or_rejected(encoding: NumberEncoding) -> None:
    try:
        codes = encoding.encode(np.array([1.0, np.nan]))
    except BadInput as error:
        assert "cannot encode NaN" in str(error)
    else:
        decoded = encoding.decode(encoding.nearest_codes(encoding.vector(codes)))
        assert decoded[0] == 1 and np.isnan(decoded[1])


@each
def test_unsigned_encodings_ignore_the_sign(encoding: NumberEncoding) -> None:
    values = decimals(500)
    negated = encoding.encode(-values)
    if encoding.signed:
        decoded = encoding.decode(negated)
        assert np.array_equal(decoded, -encoding.decode(encoding.encode(values)))
    else:
        assert np.array_equal(negated, encoding.encode(values))
        assert (encoding.decode(negated) >= 0).all()

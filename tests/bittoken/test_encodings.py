"""Number encodings: round trips, formulas, plugins. Codes and vectors are pinned in contract/."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bittoken import encodings
from bittoken.encodings import ENCODINGS
from bittoken.encodings.base import NumberEncoding
from bittoken.encodings.xval import XVal
from numbench.errors import BadInput

FONE, XVAL = ENCODINGS["fone"], ENCODINGS["xval"]
SPECIAL = np.array(
    [0.0, -0.0, 1.0, -2.5, 0.1, 1e14, 5e-324, -5e-324, 2.2250738585072014e-308,
     2.2250738585072009e-308, 1.7976931348623157e308, -1.7976931348623157e308, np.inf, -np.inf]
)  # fmt: skip
each = pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=lambda encoding: encoding.name)


def not_nan() -> NDArray[np.float64]:
    """Return random bits without NaN, powers of two and ten, subnormals, zeros and infinities."""
    rng = np.random.default_rng(1)
    random = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    subnormal = rng.integers(0, 2**52, 2000).view(np.float64)
    tens = np.array([float(f"1e{power}") for power in range(-323, 309)])
    twos = 2.0 ** np.arange(-1074, 1024)
    return np.concatenate([SPECIAL, random[~np.isnan(random)], subnormal, tens, -twos])


def decimals(n: int = 20_000) -> NDArray[np.float64]:
    """Return signed decimals of at most 15 significant digits, from 1e-14 to below 1e15."""
    rng = np.random.default_rng(3)
    significand = rng.integers(0, 10 ** rng.integers(1, 16, n))
    return rng.choice([-1, 1], n) * significand / 10.0 ** rng.integers(0, 15, n)


@each
def test_shapes_and_types_are_as_declared(encoding: NumberEncoding) -> None:
    for shape in ((0,), (1,), (2, 3, 4)):
        n = math.prod(shape)
        codes = encoding.encode(np.arange(n) / 4)
        assert codes.shape == (n, encoding.columns) and codes.dtype == encoding.dtype
        assert encoding.decode(codes).shape == (n,) and encoding.decode(codes).dtype == np.float64
        rows = torch.from_numpy(codes)
        vectors = encoding.vector(rows.view(*shape, encoding.columns))
        assert vectors.shape == (*shape, encoding.width) and vectors.dtype == torch.float32
        assert torch.equal(vectors.view(n, encoding.width), encoding.vector(rows))
        outputs = torch.randn(n, encoding.outputs)
        predicted = encoding.predict(outputs.view(*shape, encoding.outputs))
        assert torch.equal(predicted.view(n, encoding.columns), encoding.predict(outputs))
        assert predicted.shape == (*shape, encoding.columns) and predicted.dtype == rows.dtype


@each
def test_numbers_are_decoded_as_far_as_the_encoding_reaches(encoding: NumberEncoding) -> None:
    for values in (not_nan(), decimals()):
        decoded = encoding.decode(encoding.encode(values))
        magnitudes = np.abs(values)
        if encoding is XVAL:
            reached = (magnitudes >= 1e-8) & (magnitudes < 1e15)
            np.testing.assert_allclose(decoded[reached], values[reached], rtol=4e-6)
        elif encoding is FONE:
            reached = (magnitudes >= 1e-16) & (magnitudes < 1e17)
            assert (decoded[reached] == magnitudes[reached]).all() and reached.sum() > 1000
        else:
            assert decoded.tobytes() == values.tobytes()


@each
def test_nan_is_encoded_or_rejected(encoding: NumberEncoding) -> None:
    try:
        codes = encoding.encode(np.array([1.0, np.nan]))
    except BadInput as error:
        assert "cannot encode NaN" in str(error)
    else:
        assert np.isnan(encoding.decode(codes)).tolist() == [False, True]


class Named(XVal):
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("name", ["fone", "digit", "mine"])
def test_encodings_of_plugins_have_names_of_their_own(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Named(name)
    monkeypatch.setattr(encodings, "load_plugins", lambda *_: [("entry", plugin)])
    registry = encodings._EncodingRegistry()
    if name == "mine":
        assert list(registry) == [*ENCODINGS, "mine"] and registry["mine"] is plugin
        return
    with pytest.raises(BadInput, match=f"plugin encoding '{name}' .*exists already; rename it"):
        list(registry)

"""Number encodings: round trips, formulas, plugins. Codes and vectors are pinned in contract/."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bittoken import encodings
from bittoken.encodings import ENCODINGS
from bittoken.encodings.base import NumberEncoding
from bittoken.encodings.xval import XVal
from numbench.errors import BadInput

BITTOKEN, FONE, XVAL, BASE10 = (ENCODINGS[n] for n in ("bittoken", "fone", "xval", "base10"))
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


def vector(encoding: NumberEncoding, values: NDArray[np.float64]) -> NDArray[np.float32]:
    return encoding.vector(torch.from_numpy(encoding.encode(values))).numpy()


def code_texts(encoding: NumberEncoding, values: list[float]) -> list[str]:
    return ["".join(map(str, row)) for row in encoding.encode(np.array(values)).tolist()]


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


def test_digits_of_fone_are_rounded_half_to_even_and_predicted_by_the_nearest_point() -> None:
    tiny = [1.5e-32, 2.5e-32, 5e-33, 5.1e-33, 0.1]
    endings = ["2", "2", "0", "1", "1" + "0" * 31]
    assert code_texts(FONE, tiny) == [ending.rjust(49, "0") for ending in endings]
    codes = FONE.encode(np.array([1e17, -1e300, np.inf]))
    assert (codes == 9).all() and FONE.decode(codes).tolist() == [1e17] * 3
    turns = torch.tensor([0.2, 0.34, 0.36, 0.96]) * 2 * math.pi
    outputs = torch.zeros(1, 98)
    outputs[0, :8:2], outputs[0, 1:8:2] = 0.01 * turns.cos(), 0.01 * turns.sin()
    assert FONE.predict(outputs)[0, :4].tolist() == [2, 3, 4, 0]
    one = torch.from_numpy(FONE.encode(np.array([1.0])))
    assert FONE.loss(torch.zeros(1, 98), one).item() == pytest.approx(math.log(10))


def test_xval_scales_by_its_formula() -> None:
    values = np.concatenate([decimals(400), not_nan()[::80]])
    values = values[np.isfinite(values)]
    with mpmath.workdps(40):
        for value, code in zip(values.tolist(), XVAL.encode(values)[:, 0].tolist(), strict=True):
            magnitude = mpmath.log10(abs(mpmath.mpf(value)) + mpmath.mpf("1e-14")) / 6 + 2.5
            exact = min(magnitude, 5) * (value > 0) - min(magnitude, 5) * (value < 0)
            assert abs(code - exact) <= float(np.spacing(np.float32(abs(code)))) * 0.5001
    assert XVAL.encode(np.array([1e16, -np.inf, 0.0]))[:, 0].tolist() == [5, -5, 0]
    assert XVAL.predict(torch.tensor([[7.0], [-9.0], [0.5]])).flatten().tolist() == [5, -5, 0.5]
    codes = torch.tensor([[2.5], [-2.5]])
    assert XVAL.loss(torch.tensor([[2.0], [2.0]]), codes).tolist() == [0.25, 20.25]


def test_digits_of_base10_are_those_of_the_shortest_decimal() -> None:
    cases = {
        -0.0: "10" + "000" + "0" * 17, -2.5: "10" + "000" + "25" + "0" * 15,
        0.1: "01" + "001" + "1" + "0" * 16, 5e-324: "01" + "324" + "5" + "0" * 16,
        math.inf: "00" + "999" + "0" * 17, math.nan: "00" + "999" + "1" + "0" * 16,
    }  # fmt: skip
    assert code_texts(BASE10, list(cases)) == list(cases.values())
    hot = [1, 2, 4, 14, 24, 34 + 2, 44 + 5, *(54 + 10 * position for position in range(15))]
    assert np.flatnonzero(vector(BASE10, np.array([-2.5]))[0]).tolist() == hot
    codes = BASE10.predict(torch.from_numpy(vector(BASE10, decimals())))
    assert BASE10.decode(codes.numpy()).tobytes() == decimals().tobytes()


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


@pytest.mark.slow
def test_a_plugin_can_be_imported_before_the_package(tmp_path: Path) -> None:
    """Importing the package from a plugin does not load the plugin again, half-imported."""
    (tmp_path / "early.py").write_text(
        "from bittoken import XVal\nclass Early(XVal):\n    name = 'early'\nEARLY = Early()\n"
    )
    info = tmp_path / "early-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: early\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bittoken.encodings]\nearly = early:EARLY\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import early; "
        "from bittoken import ENCODINGS; print('early' in ENCODINGS)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")

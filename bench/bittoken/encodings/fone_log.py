"""FoNE on ln|x| (paper, "Potential improvements to sinusoidal encoding")."""

from __future__ import annotations

import numpy as np

from bench.bittoken.encodings.base import Codes, Floats
from bench.bittoken.encodings.decimals import digits_of, number_of
from bench.bittoken.encodings.sinusoids import Sinusoidal
from bench.errors import BadInput

WHOLE, FRACTION = 4, 14
_UNIT = 10**FRACTION
_TURN = 10 ** (WHOLE + FRACTION)


class FoNELog(Sinusoidal):
    """The natural logarithm modulo 10^4 on a grid of 10^-14: periods 10^4 to 10^-13.

    Negative logarithms are counted from 10^4 downwards, so that the vectors of a product are the
    products of the vectors (as complex numbers). Logarithms reach from -5000 to 5000, more than
    any float64 needs; 0 takes the lowest place and inf the highest, and both read back as
    themselves.

    It cannot be exact: the grid gives about 14 significant digits, and the logarithm of a float64
    itself no more than that (13 towards 10^±308).
    """

    name = "fone-log"
    display = "FoNE, logarithmic"

    def __init__(self) -> None:
        super().__init__(WHOLE, FRACTION)

    def code(self, values: Floats) -> Codes:
        """BadInput for NaN, which has no digits."""
        if np.isnan(values).any():
            raise BadInput("FoNE cannot encode NaN: leave it out, or take BitToken")
        with np.errstate(divide="ignore"):
            logarithms = np.rint(np.log(np.abs(values)) * _UNIT)
        places = np.full(len(logarithms), -_TURN // 2)
        places[logarithms == np.inf] = _TURN // 2 - 1
        finite = np.isfinite(logarithms)
        places[finite] = logarithms[finite].astype(np.int64)
        return digits_of(places % _TURN, self.columns)

    def value(self, codes: Codes) -> Floats:
        places = number_of(codes)
        places[places >= _TURN // 2] -= _TURN
        with np.errstate(over="ignore", under="ignore"):
            values: Floats = np.exp(places / _UNIT)
        return values

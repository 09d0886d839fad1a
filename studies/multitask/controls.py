"""What the plan needs beyond `bittoken`: a control, and kernels for its optimizer."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bittoken.encodings import ENCODINGS
from bittoken.encodings.base import Codes, FloatArray
from bittoken.encodings.bittoken import BitToken

_LIBRARY = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]


class AlignedBits(BitToken):
    """A sign and the 63 bits of an integer, so that each place has the same bit in every number.

    The control for `bittoken-no-reciprocal`, in which the first set bit decides which place the
    others have. It is not an encoding for use: it drops fractions, and ends at 2^53.
    """

    def __init__(self) -> None:
        super().__init__(reciprocal=False)
        self.name, self.display = "aligned", "Aligned bits"

    def encode(self, values: FloatArray) -> Codes:
        sizes = np.minimum(np.abs(values), 2.0**53).astype(np.uint64)
        codes = sizes | (np.signbit(values).astype(np.uint64) << np.uint64(63))
        return codes.view(np.int64).reshape(-1, 1)

    def decode(self, codes: Codes) -> FloatArray:
        words = np.ascontiguousarray(codes[:, 0]).view(np.uint64)
        sizes = (words & np.uint64((1 << 63) - 1)).astype(np.float64)
        values: FloatArray = np.where(words >> np.uint64(63), -sizes, sizes)
        return values


def _mm(a: Tensor, b: Tensor) -> Tensor:
    return _product(a.new_empty(len(a), b.shape[1], dtype=torch.float32), a, b)


def _addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    out = a.new_empty(len(a), b.shape[1], dtype=torch.float32)
    torch.ops.aten.addmm.out(bias.float(), a.float(), b.float(), beta=beta, alpha=alpha, out=out)
    return out.to(a.dtype)


def _product(out: Tensor, a: Tensor, b: Tensor) -> Tensor:
    torch.ops.aten.mm.out(a.float(), b.float(), out=out)
    return out.to(a.dtype)


def register_control() -> None:
    """Make "aligned" the name of an encoding."""
    ENCODINGS.data.setdefault("aligned", AlignedBits())  # type: ignore[attr-defined]


def install() -> None:
    """Register the control, and multiply bfloat16 matrices by float32 kernels.

    Muon multiplies in bfloat16, which processors without such instructions do in scalar loops, 40
    times slower. Sums are in float32 and results are rounded to bfloat16, as those instructions do.
    """
    register_control()
    _LIBRARY.impl("mm", _mm, "CPU")  # type: ignore[no-untyped-call]
    _LIBRARY.impl("addmm", _addmm, "CPU")  # type: ignore[no-untyped-call]

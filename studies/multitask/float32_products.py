"""Train with products of bfloat16 matrices computed by float32 kernels.

    python -m studies.multitask.float32_products train small --set …     (the arguments of bittoken)

CPUs without instructions for bfloat16 multiply such matrices in scalar loops, many times slower.
Here the factors, which are bfloat16 already, are multiplied and summed in float32, and the result
is rounded to bfloat16, as those instructions do. Only the order of summation differs.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LIBRARY = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]


def mm(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of two matrices."""
    out = a.new_empty(len(a), b.shape[1], dtype=_accumulator(a))
    torch.ops.aten.mm.out(_wide(a), _wide(b), out=out)
    return out.to(a.dtype)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """Return the products of two batches of matrices."""
    out = a.new_empty(len(a), a.shape[1], b.shape[2], dtype=_accumulator(a))
    torch.ops.aten.bmm.out(_wide(a), _wide(b), out=out)
    return out.to(a.dtype)


def addmm(bias: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return `beta * bias + alpha * a @ b`."""
    out = a.new_empty(len(a), b.shape[1], dtype=_accumulator(a))
    factors = {"beta": beta, "alpha": alpha}
    torch.ops.aten.addmm.out(_wide(bias), _wide(a), _wide(b), **factors, out=out)
    return out.to(a.dtype)


def _accumulator(a: Tensor) -> torch.dtype:
    return torch.float32 if a.dtype is torch.bfloat16 else a.dtype


def _wide(a: Tensor) -> Tensor:
    return a.float() if a.dtype is torch.bfloat16 else a


if __name__ == "__main__":
    from bittoken.cli import main

    for function in (mm, bmm, addmm):
        _LIBRARY.impl(function.__name__, function, "CPU")  # type: ignore[no-untyped-call]
    main()

"""How much arithmetic a step takes, and how much a card could do."""

from __future__ import annotations

from typing import NamedTuple

from bench.bittoken.network import Network
from bench.bittoken.training.optimizers import parameter_groups
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.training.trainer import StepResult

PEAKS = {
    "NVIDIA A100 80GB PCIe": 312e12,
    "NVIDIA A100-PCIE-40GB": 312e12,
    "NVIDIA A100-SXM4-40GB": 312e12,
    "NVIDIA A100-SXM4-80GB": 312e12,
    "NVIDIA H100 80GB HBM3": 989e12,
    "NVIDIA H100 NVL": 835e12,
    "NVIDIA H100 PCIe": 756e12,
    "NVIDIA H200": 989e12,
    "NVIDIA L4": 121e12,
    "NVIDIA L40S": 362e12,
}
"""Dense bfloat16 operations per second, by the name that CUDA gives (makers' data sheets).

Whole names: a slice of a card has another name, and less.
"""

_FORWARD_AND_BACKWARD = 3


class Sizes(NamedTuple):
    """Parameters of each kind; `layers`: all that every token passes."""

    layers: int
    heads: int
    embedding: int

    @classmethod
    def of(cls, network: Network) -> Sizes:
        """Of a network, which may be without memory."""
        count = {
            kind: sum(parameter.numel() for parameter in group.values())
            for kind, group in parameter_groups(network).items()
        }
        return cls(count["muon"] + count["scalars"], count["heads"], count["embedding"])

    @property
    def whole(self) -> int:
        """All parameters."""
        return sum(self)


def step_flops(recipe: Recipe, sizes: Sizes, done: StepResult) -> float:
    """Operations of one step that the network itself needs: nothing computed twice is counted.

    6 for each token and parameter of the layers, 6 for each predicted token and parameter of the
    heads, which see no other place, and 12 · width · layers for each pair of tokens that attend.
    """
    model = recipe.model
    dense = 2 * (sizes.layers * done.tokens + sizes.heads * float(done.targets.sum()))
    attention = 4 * model.width * model.layers * done.pairs
    return _FORWARD_AND_BACKWARD * (dense + attention)


def peak(device: str, precision: str) -> float | None:
    """What the card of this name could do per second; None where that is not known."""
    return PEAKS.get(device) if precision == "bf16" else None

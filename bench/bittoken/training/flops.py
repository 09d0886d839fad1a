"""Floating-point operations of a training step, and the peak of known GPUs."""

from __future__ import annotations

from typing import NamedTuple

from bittoken.network import Network
from bittoken.training.optimizers import parameter_groups
from bittoken.training.recipe import Recipe
from bittoken.training.trainer import StepResult

PEAK_FLOPS = {
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
"""Dense bfloat16 operations per second by CUDA device name (source: vendors' data sheets).

Names are compared in full: a MIG slice of a GPU has another name and a lower peak.
"""

_FORWARD_AND_BACKWARD = 3


class ParameterCounts(NamedTuple):
    """Number of parameters by kind; `layers`: those that every token passes through."""

    layers: int
    heads: int
    embedding: int

    @classmethod
    def of(cls, network: Network) -> ParameterCounts:
        """Return the counts of a network, which may be on the meta device."""
        count = {
            kind: sum(parameter.numel() for parameter in group.values())
            for kind, group in parameter_groups(network).items()
        }
        return cls(count["muon"] + count["scalars"], count["heads"], count["embedding"])

    @property
    def total(self) -> int:
        """The total number of parameters."""
        return sum(self)


def step_flops(recipe: Recipe, sizes: ParameterCounts, result: StepResult) -> float:
    """Return the operations that one step needs, without any recomputation.

    6 per token and parameter of the layers, 6 per predicted token and parameter of the heads
    (which run at predicted positions only), and 12 · width · layers per attention pair.
    """
    model = recipe.model
    dense = 2 * (sizes.layers * result.tokens + sizes.heads * float(result.target_counts.sum()))
    attention = 4 * model.width * model.layers * result.attention_pairs
    return _FORWARD_AND_BACKWARD * (dense + attention)


def peak_flops(device: str, precision: str) -> float | None:
    """Return the peak operations per second of the device, None if unknown."""
    return PEAK_FLOPS.get(device) if precision == "bf16" else None

"""Muon for the layers' matrices, Adam for the rest, one schedule (appendix "Hyperparameters")."""

from __future__ import annotations

import math
from typing import Literal

import torch
from msgspec import Struct
from torch import nn

from bittoken.network import Network

MOMENTUM_START, MOMENTUM_STEPS = 0.85, 300

Schedule = Literal["cosine", "constant"]


class OptimizerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Peak learning rates by parameter group, Muon's momentum, and the schedule.

    scale: a factor of all four rates. warmup: the warm-up's share of the steps. schedule: what
    follows; see `learning_rate_share`.
    """

    muon: float = 0.02
    momentum: float = 0.95
    embedding: float = 0.03
    heads: float = 0.004
    scalars: float = 0.02
    scale: float = 1.0
    warmup: float = 0.1
    schedule: Schedule = "cosine"


def learning_rate_share(step: int, steps: int, warmup: float, schedule: Schedule) -> float:
    """Return the learning rate of step 0 … steps − 1 as a share of its peak.

    It rises linearly over the first `warmup` (share) of the steps, then falls to 0 along a cosine
    (the paper) or stays constant.
    """
    warmup_steps = round(warmup * steps)
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if schedule == "constant":
        return 1.0
    progress = (step - warmup_steps) / max(steps - warmup_steps, 1)
    return 0.5 * (1 + math.cos(math.pi * progress))


def muon_momentum(step: int, momentum: float) -> float:
    """Return Muon's momentum at a step: linear from 0.85 to `momentum` over 300 steps."""
    share = min(step / MOMENTUM_STEPS, 1.0)
    return (1 - share) * min(MOMENTUM_START, momentum) + share * momentum


class Optimizers:
    """Muon and Adam as one optimiser; every parameter belongs to exactly one group."""

    def __init__(self, network: Network, config: OptimizerConfig, steps: int) -> None:
        self._config = config
        self._steps = steps
        groups = parameter_groups(network)
        rates = {"embedding": config.embedding, "heads": config.heads, "scalars": config.scalars}
        self.muon = torch.optim.Muon(
            list(groups["muon"].values()),
            lr=config.muon * config.scale,
            weight_decay=0.0,
            momentum=config.momentum,
        )
        self.adam = torch.optim.Adam(
            [
                {"params": list(groups[kind].values()), "lr": rate * config.scale}
                for kind, rate in rates.items()
                if groups[kind]
            ],
            betas=(0.9, 0.95),
        )
        for optimizer in (self.muon, self.adam):
            for group in optimizer.param_groups:
                group["peak"] = group["lr"]

    def step(self, step: int) -> None:
        """Update the parameters with their gradients, then clear the gradients."""
        share = learning_rate_share(step, self._steps, self._config.warmup, self._config.schedule)
        optimizers: tuple[torch.optim.Optimizer, ...] = (self.muon, self.adam)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * share
        for group in self.muon.param_groups:
            group["momentum"] = muon_momentum(step, self._config.momentum)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def optimizer_for(self, parameter: nn.Parameter) -> torch.optim.Optimizer:
        """Return the optimiser that updates a parameter."""
        is_muon = any(p is parameter for group in self.muon.param_groups for p in group["params"])
        return self.muon if is_muon else self.adam


def parameter_groups(network: Network) -> dict[str, dict[str, nn.Parameter]]:
    """Return the parameters by group and name.

    muon: matrices of the layers. embedding: the token embedding. heads: both heads and the learned
    weights of number bits. scalars: norms and biases of the layers.
    """
    groups: dict[str, dict[str, nn.Parameter]] = {
        kind: {} for kind in ("muon", "embedding", "heads", "scalars")
    }
    for name, parameter in network.named_parameters():
        groups[_kind(name, parameter)][name] = parameter
    return groups


def _kind(name: str, parameter: nn.Parameter) -> str:
    if name.startswith("transformer.wte"):
        return "embedding"
    if name.startswith(("lm_head", "num_embedding_module")):
        return "heads"
    return "muon" if parameter.ndim == 2 else "scalars"

"""Muon for the layers' matrices, Adam for the rest, one schedule (appendix "Hyperparameters")."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from bittoken.network import Network
from bittoken.recipe import Recipe

MOMENTUM_START, MOMENTUM, MOMENTUM_STEPS = 0.85, 0.95, 300


def muon_momentum(step: int) -> float:
    """Return Muon's momentum at a step: linear from 0.85 to 0.95 over 300 steps."""
    share = min(step / MOMENTUM_STEPS, 1.0)
    return (1 - share) * MOMENTUM_START + share * MOMENTUM


class Optimizers:
    """Muon and Adam as one optimizer; every parameter belongs to exactly one group."""

    def __init__(self, network: Network, recipe: Recipe) -> None:
        muon, *others = (
            {"params": parameters, "peak": getattr(recipe.optimizer, kind) * recipe.optimizer.scale}
            for kind, parameters in parameter_groups(network).items()
        )
        self._muon: torch.optim.Optimizer = torch.optim.Muon([muon], weight_decay=0.0)
        self._adam: torch.optim.Optimizer = torch.optim.Adam(others, betas=(0.9, 0.95))
        self._rate_share = recipe.rate_share

    def step(self, step: int) -> None:
        """Update the parameters with the gradients of a step, then clear the gradients."""
        for group in self._muon.param_groups:
            group["momentum"] = muon_momentum(step)
        for optimizer in (self._muon, self._adam):
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * self._rate_share(step)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state_dict(self) -> list[dict[str, Any]]:
        """Return the state of both optimizers."""
        return [self._muon.state_dict(), self._adam.state_dict()]

    def load_state_dict(self, state: list[dict[str, Any]]) -> None:
        """Continue from the state of the optimizers of the same recipe."""
        self._muon.load_state_dict(state[0])
        self._adam.load_state_dict(state[1])


def parameter_groups(network: Network) -> dict[str, list[nn.Parameter]]:
    """Return the parameters by group.

    muon: matrices of the layers. embedding: the token embedding. heads: both heads and the learned
    weights of number bits. scalars: norms and biases of the layers.
    """
    groups: dict[str, list[nn.Parameter]] = {
        kind: [] for kind in ("muon", "embedding", "heads", "scalars")
    }
    for name, parameter in network.named_parameters():
        if name.startswith("transformer.wte"):
            kind = "embedding"
        elif name.startswith(("lm_head", "num_embedding_module")):
            kind = "heads"
        else:
            kind = "muon" if parameter.ndim == 2 else "scalars"
        groups[kind].append(parameter)
    return groups

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
        config, groups = recipe.optimizer, parameter_groups(network)
        rates = {"embedding": config.embedding, "heads": config.heads, "scalars": config.scalars}
        self._muon = torch.optim.Muon(
            groups.pop("muon"), lr=config.muon * config.scale, weight_decay=0.0
        )
        adam = torch.optim.Adam(
            [
                {"params": parameters, "lr": rates[kind] * config.scale}
                for kind, parameters in groups.items()
            ],
            betas=(0.9, 0.95),
        )
        self._optimizers: tuple[torch.optim.Optimizer, ...] = (self._muon, adam)
        self._peaks = [[g["lr"] for g in o.param_groups] for o in self._optimizers]
        self._rate_share = recipe.rate_share

    def step(self, step: int) -> None:
        """Update the parameters with the gradients of a step, then clear the gradients."""
        for group in self._muon.param_groups:
            group["momentum"] = muon_momentum(step)
        for optimizer, peaks in zip(self._optimizers, self._peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * self._rate_share(step)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state_dict(self) -> list[dict[str, Any]]:
        """Return the state of both optimizers."""
        return [optimizer.state_dict() for optimizer in self._optimizers]

    def load_state_dict(self, state: list[dict[str, Any]]) -> None:
        """Continue from the state of the optimizers of the same recipe."""
        for optimizer, saved in zip(self._optimizers, state, strict=True):
            optimizer.load_state_dict(saved)


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

"""The processes that train together (`torchrun`), each on its own part of every batch."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn


class Crew:
    """This process among `world` of them; alone where `torchrun` started none."""

    def __init__(self) -> None:
        self.world = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        local = int(os.environ.get("LOCAL_RANK", "0"))
        cuda = torch.cuda.is_available()
        self.device = torch.device(f"cuda:{local}" if cuda else "cpu")
        if cuda:
            torch.cuda.set_device(self.device)
        if self.world > 1:
            dist.init_process_group("nccl" if cuda else "gloo")

    @property
    def leads(self) -> bool:
        """Whether this process writes and speaks for all."""
        return self.rank == 0

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum over all processes."""
        if self.world == 1:
            return values
        tensor = torch.from_numpy(np.asarray(values, np.float64)).to(self.device)
        dist.all_reduce(tensor)
        summed: np.ndarray = tensor.cpu().numpy()
        return summed

    def add_gradients(self, network: nn.Module) -> None:
        """Every process's gradients become the sum of all."""
        if self.world == 1:
            return
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        _unflatten(flat, gradients)

    def shared(self, value: Any) -> Any:
        """What the leading process gives, in all processes: plain values."""
        if self.world == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def wait(self) -> None:
        """Until all have come here."""
        if self.world > 1:
            dist.barrier()

    def close(self) -> None:
        """Leave the group."""
        if self.world > 1:
            dist.destroy_process_group()


def _unflatten(flat: Tensor, gradients: list[Tensor]) -> None:
    start = 0
    for gradient in gradients:
        gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()

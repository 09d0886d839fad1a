"""Data-parallel training with `torchrun`: each process computes a part of every batch."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn


class DistributedContext:
    """This process's rank and device, and collective operations (no-ops for one process)."""

    def __init__(self) -> None:
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        local = int(os.environ.get("LOCAL_RANK", "0"))
        cuda = torch.cuda.is_available()
        self.device = torch.device(f"cuda:{local}" if cuda else "cpu")
        if cuda:
            torch.cuda.set_device(self.device)
        if self.world_size > 1:
            dist.init_process_group("nccl" if cuda else "gloo")

    @property
    def is_main_process(self) -> bool:
        """Whether this process (rank 0) writes the files and messages."""
        return self.rank == 0

    def all_reduce_sum(self, values: np.ndarray) -> np.ndarray:
        """Return the sum over all processes."""
        if self.world_size == 1:
            return values
        tensor = torch.from_numpy(np.asarray(values, np.float64)).to(self.device)
        dist.all_reduce(tensor)
        summed: np.ndarray = tensor.cpu().numpy()
        return summed

    def all_reduce_gradients(self, network: nn.Module) -> None:
        """Replace every gradient by its sum over all processes."""
        if self.world_size == 1:
            return
        gradients = [p.grad for p in network.parameters() if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        _unflatten(flat, gradients)

    def broadcast(self, value: Any) -> Any:
        """Return the main process's value (plain data) in all processes."""
        if self.world_size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            dist.barrier()

    def close(self) -> None:
        """Leave the process group."""
        if self.world_size > 1:
            dist.destroy_process_group()


def _unflatten(flat: Tensor, gradients: list[Tensor]) -> None:
    start = 0
    for gradient in gradients:
        gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()

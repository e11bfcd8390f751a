"""Several processes that train one network: each plays its own games, gradients are averaged over all decisions.

Started by torchrun, which names the processes by environment variables; a process on its own is a group of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

PATIENCE = timedelta(minutes=30)
"""How long a process waits for the others, one of which may be evaluating, before it gives up."""


class Group:
    """This process among those that train together.

    Args:
        device: Where it computes; of several GPUs, each process of a machine takes its own.

    Attributes:
        rank: Its number; rank 0 is the one that writes.
        size: How many there are.
        device: Where tensors that are summed must live.
    """

    def __init__(self, device: torch.device) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.size > 1 and device.type == "cuda":
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
            torch.cuda.set_device(device)
        self.device = device
        if self.size > 1 and not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)

    @property
    def leads(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def sum(self, numbers: Tensor) -> Tensor:
        """The sum of a tensor over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(numbers)
        return numbers

    def total(self, *numbers: float) -> list[float]:
        """The sum of each number over all processes, in float64."""
        if self.size == 1:
            return [float(number) for number in numbers]
        return self.sum(torch.tensor(numbers, dtype=torch.float64, device=self.device)).tolist()

    def least(self, number: int) -> int:
        """The least of a number over all processes."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, device=self.device)
        dist.all_reduce(tensor, op=dist.ReduceOp.MIN)
        return int(tensor)

    def average_gradients(self, parameters: Iterable[Tensor], loss: Tensor, count: int) -> Tensor:
        """Make gradients, each the mean over `count` decisions here, the mean over all decisions everywhere.

        One flat sum. Returns the loss, averaged in the same way.
        """
        if self.size == 1:
            return loss.detach()
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        parts = [gradient.flatten() for gradient in gradients] + [loss.detach().reshape(1), loss.new_ones(1)]
        flat = self.sum(torch.cat(parts) * count)
        flat /= flat[-1].clone()
        at = 0
        for gradient in gradients:
            gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
            at += gradient.numel()
        return flat[-2]

    def wait(self) -> None:
        """Until all processes have come here."""
        self.total(0)


def leave() -> None:
    """Leave the group that the process is in, if it is in one."""
    if dist.is_initialized():
        dist.destroy_process_group()

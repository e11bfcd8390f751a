"""The network: a policy and a value function of the observation, two separate multilayer perceptrons."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

ILLEGAL = -1e9
"""Logit of an illegal action: zero probability in fp32 and bf16, and finite in both."""


class ActorCritic(nn.Module):
    """Policy logits and values of a batch of observations.

    Args:
        width: Numbers in an observation.
        actions: Size of the action space.
        hidden: Widths of the hidden layers of either network.
        critic_width: Numbers in what the critic sees; an observation, if None.

    Attributes:
        bf16: Multiply in bfloat16 (weights, logits and values stay float32): about three times the speed on
            processors that have it.
    """

    def __init__(
        self, width: int, actions: int, hidden: Sequence[int] = (128, 128), critic_width: int | None = None
    ) -> None:
        super().__init__()
        self.bf16 = False
        self.critic_width = width if critic_width is None else critic_width
        self.width, self.actions, self.hidden = width, actions, tuple(hidden)
        self.actor = _perceptron(width, hidden, actions, gain=0.01)
        self.critic = _perceptron(self.critic_width, hidden, 1, gain=1.0)

    def log_probabilities(self, observation: Tensor, mask: Tensor) -> Tensor:
        """Log-probabilities of all actions, float32 ``[B, A]``.

        Args:
            observation: ``[B, width]``, of any dtype; int8 as the environments write it.
            mask: bool ``[B, A]``, legal actions; at least one a row.
        """
        logits = self._run(self.actor, observation)
        return torch.log_softmax(logits.masked_fill(~mask, ILLEGAL), dim=-1)

    def values(self, seen: Tensor) -> Tensor:
        """Expected return of the observing seat, float32 ``[B]``, from what the critic sees, ``[B, critic_width]``."""
        return self._run(self.critic, seen).squeeze(-1)

    def _run(self, network: nn.Module, observation: Tensor) -> Tensor:
        numbers = observation.to(torch.bfloat16 if self.bf16 else torch.float32)
        with torch.autocast(observation.device.type, dtype=torch.bfloat16, enabled=self.bf16):
            return network(numbers).float()


def entropy(log_probabilities: Tensor, mask: Tensor) -> Tensor:
    """Entropy over the legal actions in nats, ``[B]``."""
    return -(log_probabilities.exp() * log_probabilities).masked_fill(~mask, 0.0).sum(-1)


def _perceptron(width: int, hidden: Sequence[int], outputs: int, *, gain: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [_linear(width, size, gain=math.sqrt(2)), nn.ReLU()]
        width = size
    return nn.Sequential(*layers, _linear(width, outputs, gain=gain))


def _linear(inputs: int, outputs: int, *, gain: float) -> nn.Linear:
    """Orthogonal weights and zero biases, as PPO is usually started."""
    layer = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def fast_bf16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capable: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capable.get("avx512_bf16") or capable.get("amx_bf16") or capable.get("bf16"))


def find_device(name: str) -> torch.device:
    """The device called `name`; ``auto`` is a GPU if there is one.

    Raises:
        ValueError: there is no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device={name!r} cannot be used here: {reason}; allowed: auto, cpu, cuda") from None

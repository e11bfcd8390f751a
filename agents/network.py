"""The network: a policy and a value function of the observation, as multilayer perceptrons."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

ILLEGAL = -1e9
"""Logit of an illegal action: zero probability in fp32 and bf16, and finite in both."""

TRUNKS = ("separate", "shared")


class ActorCritic(nn.Module):
    """Policy logits and values of a batch of observations.

    Args:
        width: Numbers in an observation.
        actions: Size of the action space.
        hidden: Widths of the hidden layers.
        extra: Numbers that the critic sees beside the observation: the hands of the others, or 0.
        trunk: ``"separate"`` gives the critic hidden layers of its own; with ``"shared"`` it reads those of the actor
            and has one more.

    Attributes:
        actor: Linear layers with ReLU between them, from an observation to the logits.
        bf16: Multiply in bfloat16 (weights, logits and values stay float32): about three times the speed on
            processors that have it.
    """

    def __init__(
        self,
        width: int,
        actions: int,
        hidden: Sequence[int] = (128, 128),
        extra: int = 0,
        trunk: str = "separate",
    ) -> None:
        super().__init__()
        if trunk not in TRUNKS:
            raise ValueError(f"trunk={trunk!r} is not one of its values; allowed: {', '.join(TRUNKS)}")
        self.bf16 = False
        self.width, self.actions, self.hidden = width, actions, tuple(hidden)
        self.extra, self.trunk = extra, trunk
        self.actor = perceptron(width, hidden, actions, gain=0.01)
        if trunk == "separate":
            self.critic = perceptron(width + extra, hidden, 1, gain=1.0)
        else:
            self.critic = perceptron(hidden[-1] + extra, hidden[-1:], 1, gain=1.0)

    def forward(self, observation: Tensor, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of all actions, float32 ``[B, A]``, and values, float32 ``[B]``.

        Args:
            observation: ``[B, width]``, of any dtype; int8 as the environments write it.
            hidden: ``[B, extra]``, what the critic sees beside it.
            mask: bool ``[B, A]``, legal actions; at least one a row.
        """
        with self._arithmetic(observation):
            numbers = self._numbers(observation)
            features = self.actor[:-1](numbers)
            logits = self.actor[-1](features)
            values = self._criticise(numbers, features, hidden)
        return masked_log_softmax(logits.float(), mask), values.float().squeeze(-1)

    def log_probabilities(self, observation: Tensor, mask: Tensor) -> Tensor:
        """The first part of `forward` alone, the actor's."""
        with self._arithmetic(observation):
            logits = self.actor(self._numbers(observation))
        return masked_log_softmax(logits.float(), mask)

    def values(self, observation: Tensor, hidden: Tensor) -> Tensor:
        """The second part of `forward` alone, the critic's."""
        with self._arithmetic(observation):
            numbers = self._numbers(observation)
            features = numbers if self.trunk == "separate" else self.actor[:-1](numbers)
            values = self._criticise(numbers, features, hidden)
        return values.float().squeeze(-1)

    def _criticise(self, numbers: Tensor, features: Tensor, hidden: Tensor) -> Tensor:
        seen = numbers if self.trunk == "separate" else features
        return self.critic(torch.cat([seen, self._numbers(hidden)], dim=1) if self.extra else seen)

    def _numbers(self, observation: Tensor) -> Tensor:
        return observation.to(torch.bfloat16 if self.bf16 else torch.float32)

    def _arithmetic(self, like: Tensor) -> torch.autocast:
        return torch.autocast(like.device.type, dtype=torch.bfloat16, enabled=self.bf16)


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities ``[B, A]`` over the legal actions alone; about `ILLEGAL` elsewhere."""
    return torch.log_softmax(logits.masked_fill(~mask, ILLEGAL), dim=-1)


def entropy(log_probabilities: Tensor, mask: Tensor) -> Tensor:
    """Entropy over the legal actions in nats, ``[B]``."""
    return -(log_probabilities.exp() * log_probabilities).masked_fill(~mask, 0.0).sum(-1)


def divergence(log_probabilities: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """KL(policy ‖ other) over the legal actions in nats, ``[B]``; both are logarithms ``[B, A]``."""
    return (log_probabilities.exp() * (log_probabilities - other)).masked_fill(~mask, 0.0).sum(-1)


@torch.no_grad()
def blend(average: nn.Module, network: nn.Module, decay: float) -> None:
    """Move an exponential moving average of weights on: ``average = decay · average + (1 − decay) · network``."""
    for old, new in zip(average.parameters(), network.parameters(), strict=True):
        old.lerp_(new, 1 - decay)


def perceptron(width: int, hidden: Sequence[int], outputs: int, *, gain: float) -> nn.Sequential:
    """Linear layers with ReLU between them; `gain` scales the weights of the last."""
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
    if name.partition(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"device={name!r} cannot be used here; allowed: auto, cpu, cuda")
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"device={name!r} cannot be used here: {reason}; allowed: auto, cpu, cuda") from None

"""A trained network as a policy that sits at any table of its kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from agents.checkpoint import Card, load_agent
from agents.network import ActorCritic
from cucumber_env.policies import Policy, Turns
from cucumber_env.rules import MAX_SEATS, Rules


class NetworkPolicy(Policy):
    """Plays the network's action probabilities, or with `greedy` the likeliest action.

    Args:
        network: The network.
        card: What it was trained for.
        greedy: Play the likeliest action with certainty.
        name: Text by which reports call it.
    """

    def __init__(self, network: ActorCritic, card: Card, *, greedy: bool = False, name: str = "network") -> None:
        self.network, self.card, self.greedy, self.name = network, card, greedy, name
        self._rules = Rules.from_dict(card.rules)

    @classmethod
    def load(cls, folder: str | Path, *, greedy: bool = False) -> NetworkPolicy:
        """The agent saved in `folder`; errors as `agents.checkpoint.load_agent`."""
        network, card = load_agent(folder)
        return cls(network, card, greedy=greedy, name=f"checkpoint:{folder}")

    @torch.no_grad()
    def probabilities(self, turns: Turns) -> np.ndarray:
        """float32 ``[B, A]``.

        Raises:
            ValueError: the table is not one that the agent was trained for.
        """
        self._check(turns)
        device = next(self.network.parameters()).device
        # An agent of rounds may play whole matches: it then sees its round and not the totals.
        observation = replace(turns, episode=self.card.episode).observe(self.card.seats)
        mask = torch.from_numpy(np.ascontiguousarray(turns.mask)).to(device).bool()
        logs = self.network.log_probabilities(torch.from_numpy(observation).to(device), mask)
        if self.greedy:
            return np.eye(logs.shape[1], dtype=np.float32)[logs.argmax(-1).cpu().numpy()]
        return np.asarray(logs.exp().cpu().numpy())

    def _check(self, turns: Turns) -> None:
        if self.card.seats == MAX_SEATS and turns.mask.shape[1] == self.card.actions:
            return
        plays_here = self.card.episode == "round" or turns.episode == "match"
        if not plays_here or (turns.rules, turns.num_players) != (self._rules, self.card.players):
            raise ValueError(
                f"{self.name} was trained for {self.card.players} players, {self.card.episode} episodes and rules "
                f"{_differences(self._rules, turns.rules) or 'as here'}; it was asked to play with "
                f"{turns.num_players} players and {turns.episode} episodes"
            )


def _differences(mine: Rules, theirs: Rules) -> str:
    mine_fields, their_fields = mine.to_dict(), theirs.to_dict()
    return ", ".join(
        f"{field}={value!r} (here {their_fields[field]!r})"
        for field, value in mine_fields.items()
        if value != their_fields[field]
    )

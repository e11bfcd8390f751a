"""A trained network as a policy that sits at any table of its kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from agents.checkpoint import Card, load_agent
from agents.network import ActorCritic
from agents.tables import Table
from cucumber_env.policies import Policy, Turns, certain, with_revival
from cucumber_env.rules import Rules


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
        self.check(turns.rules, turns.num_players, turns.episode)
        device = next(self.network.parameters()).device
        # An agent of rounds may play whole matches: it then sees its round and not the totals.
        observation = replace(turns, episode=self.card.episode).observe(self.card.seats)
        mask = torch.from_numpy(widened(turns.mask, self.network.actions)).to(device)
        logs = self.network.log_probabilities(torch.from_numpy(observation).to(device), mask)
        logs = logs[:, : turns.mask.shape[1]]
        probabilities = np.asarray(logs.exp().cpu().numpy())
        if self.greedy:
            probabilities = certain(logs.argmax(-1).cpu().numpy(), probabilities)
        return probabilities if self.card.episode == turns.episode else with_revival(turns, probabilities)

    def check(self, rules: Rules, num_players: int, episode: str) -> None:
        """Refuse a table that the agent was not trained for.

        Raises:
            ValueError: names the tables and what differs.
        """
        card = self.card
        fits = card.seats is not None or Table(rules, num_players) in card.tables
        if fits and rules.num_actions <= card.actions and card.episode in ("round", episode):
            return
        trained = "; ".join(map(str, card.tables[:3])) + (" …" if len(card.tables) > 3 else "")
        raise ValueError(
            f"{self.name} was trained for {trained}, {card.episode} episodes; it was asked to play with "
            f"{num_players} players and {episode} episodes under "
            f"{_differences(card.tables[0].rules, rules) or 'the same rules'}"
        )


def widened(mask: np.ndarray, actions: int) -> np.ndarray:
    """A mask of any dtype ``[B, A]`` as bool ``[B, actions]``: a network across tables has outputs for all actions."""
    wide = np.zeros((len(mask), max(actions, mask.shape[1])), bool)
    wide[:, : mask.shape[1]] = mask
    return wide


def _differences(mine: Rules, theirs: Rules) -> str:
    mine_fields, their_fields = mine.to_dict(), theirs.to_dict()
    return ", ".join(
        f"{field}={their_fields[field]!r} (trained: {value!r})"
        for field, value in mine_fields.items()
        if value != their_fields[field]
    )

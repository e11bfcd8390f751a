"""Best responses to a policy in a round of two, exact in either seat: the most that honest play can gain."""

from __future__ import annotations

import numpy as np

from cucumber_env import exact
from cucumber_env.policies import Policy, Turns


class Responding(Policy):
    """Responds best to the policy of a name, whichever seat it has."""

    def __init__(self, rules: str, field: str) -> None:
        self.name = f"best response to {field}"
        self.seats = [exact.best_response(rules, field, seat)[0] for seat in (0, 1)]

    def probabilities(self, turns: Turns) -> np.ndarray:
        public = turns.views["public"]
        first = np.where(public["trick"] == 0, public["leader"], public["leaders"][:, 0])
        follows = first != turns.views["seat"]
        return np.where(follows[:, None], *(self.seats[seat].probabilities(turns) for seat in (1, 0)))

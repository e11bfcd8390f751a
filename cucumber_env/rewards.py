"""How much one seat's episode can pay: the range that documentation, tests and illegal actions refer to.

An illegal action ends an episode with the lower end of this range as the offender's return, so that no
legal way of playing is worse. What rewards are is said in `batch.add_round_rewards` and `batch.add_outcome`.
"""

from __future__ import annotations

import numpy as np

from cucumber_env.batch import OUTCOME, POINTS
from cucumber_env.rules import Rules

REWARD_VERSION = 1
"""Stored with results and agents; grows whenever the same game pays something else."""


def reward_range(rules: Rules, options: np.ndarray) -> tuple[float, float]:
    """Bounds (lowest, highest) of the sum of rewards that one seat can collect in one episode.

    Args:
        rules: Rules in force.
        options: What `batch.make_options` made of the arguments: players, episode, reward, limit, chip cost.

    Example:
        >>> from cucumber_env.batch import make_options
        >>> rules = Rules.preset("cucumber")
        >>> reward_range(rules, make_options(rules=rules, num_players=4, episode="round", reward="points"))
        (-14.0, 0.0)
    """
    table = options[0]
    players, match = int(table["players"]), bool(table["match"])
    chip = float(table["chip_cost"]) if match and rules.revival in ("chip", "choice") else 0.0
    if table["reward"] == OUTCOME:
        lowest = -1.0 if rules.end == "first_out_loses" else -1.0 / (players - 1)
        return lowest - chip, 1.0
    worst = max(rules.points_of(rank) for rank in rules.ranks)
    limit = int(table["max_rounds"]) or None
    most = _most_penalty(rules, worst, limit) if match else worst
    if table["reward"] == POINTS:
        return -float(most) - chip, 0.0
    return -float(most) - chip, _most_gain(rules, players, match, worst, most, limit)


def _most_penalty(rules: Rules, worst: int, limit: int | None) -> int:
    """Points that one seat can pay in a match, when a round costs it at most `worst`."""
    if rules.rounds is not None:
        rounds = min(rules.rounds, limit or rules.rounds)
        return rounds * worst
    assert rules.threshold is not None
    life = rules.threshold + (rules.threshold_rule == "exceed") - 1 + worst
    most = life if rules.revival == "none" else 2 * life  # whoever comes back may start from 0
    return min(most, limit * worst) if limit else most


def _most_gain(rules: Rules, players: int, match: bool, worst: int, most: int, limit: int | None) -> float:
    """What `zero_sum` can pay to a seat that never pays, from the mean penalties of the others."""
    one_payer = rules.payer != "non_winners" and rules.tie != "all"
    full_table = not match or rules.end != "last_survivor"  # nobody leaves before the end
    per_round = worst / (players - 1) if one_payer and full_table else float(worst)
    if not match:
        return per_round
    if rules.rounds is not None:
        return min(rules.rounds, limit or rules.rounds) * per_round
    if rules.end == "first_out_loses":
        gain = float(most)  # the mean of what the others pay is at most what each can pay
    elif rules.revival == "none":
        # The last of the others to leave pays to one seat at the least, the one before to two, and so on.
        gain = sum(most / others for others in range(1, players))
    else:
        gain = float(most * (players - 1))
    return min(gain, limit * per_round) if limit else gain

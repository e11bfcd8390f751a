"""What a leak would be worth: an agent that sees all cards, and policies that come suspiciously near to it.

A policy is given what its seat may know and nothing else. One that knows more, by a mistake in an adapter or on
purpose, shows it in its score alone; so every report has the score of an agent that does know, the `Seer`.

What honest play can reach is bounded by a best response, which is seldom known; what is known is how scripted policies
and the seer fare in the same place. A policy is suspect if it surely gains more than half of the way from the best
scripted policy to the seer. In six small games of two (two to four cards; Cucumber, without the Ace rule, the goal
turned round, Concombre) and among each of six fields, exact best responses, the most that honest play can gain, came
42 % of that way at most. But where scripted policies gain nearly what the seer does (a field so weak that anybody beats
it, a game so small that hidden cards hardly matter), best responses do come level with it: there the score tells
nothing, and nobody is suspect.

A suspect is a reason to look, no proof; and who is not suspect may know more than it should and make little of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cucumber_env.arena.statistics import Estimate
from cucumber_env.baselines import BASELINES
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.policies import Policy, PolicyError, Turns, decide, make
from cucumber_env.state import PLAY

if TYPE_CHECKING:
    from cucumber_env.arena.compare import Comparison

COPIES = 16_384
"""Games foreseen side by side; more are foreseen in turn."""

LINE = 0.5
"""Share of the way from the best scripted policy to the seer that no honest policy is expected to come."""

LEAST_LEAD = 0.1
"""Share of the seer's gain that no scripted policy has to reach, or the field tells nothing."""


class Seer(Policy):
    """Sees all hands and what the others will do, one own decision ahead.

    It sits at tables of the arena and nowhere else: no name makes it, nothing trains against it, and it answers no
    `Turns`. For each of its legal cards it plays a copy of the game to the end of the round, with the policies that
    really sit there and the uniform numbers that will really come, itself going on by a base policy, and takes the card
    that costs it least. On no deal of a round does it pay more than its base policy would in its place, if that is
    deterministic and the others take no random numbers but those of their turns. It is no upper bound on what can be
    known, as it plans one decision at a time. Decisions that are not about cards are those of the base: how many to
    deal, whether to come back.

    The others are asked about games that never come about: one that remembers what it was asked is led astray.

    Args:
        base: A policy, or the name of one.
    """

    name = "seer"
    samples_only = True

    def __init__(self, base: str | Policy = "careful") -> None:
        self.base = make(base)

    def act(self, turns: Turns) -> np.ndarray:
        """Refused: turns do not hold what it sees.

        Raises:
            TypeError: always.
        """
        raise TypeError("the seer needs the games themselves: it sits at tables of the arena alone")

    def foresee(self, games: SelfPlay, rows: np.ndarray, sits: np.ndarray, policies: Sequence[Policy]) -> np.ndarray:
        """The actions that it takes in some games, which are left as they are; int64 ``[k]``.

        Of cards that cost it as little, it takes one that costs the others most together, of these the lowest.

        Args:
            games: The games.
            rows: int64 ``[k]``, those in which it is to move.
            sits: int64 ``[k, n]``, who sits where in them: index into `policies`.
            policies: Who plays; wherever a seer does, its base policy is foreseen.

        Raises:
            PolicyError: a policy failed in a game that was foreseen; its row is a position in `rows`.
        """
        players = [policy.base if isinstance(policy, Seer) else policy for policy in policies]
        turns = games.turns(rows)
        actions = decide(self.base, turns)
        choices = np.where(turns.views["public"]["phase"] == PLAY, turns.mask.sum(axis=1), 0)
        open_ = np.flatnonzero(choices > 1)
        together = max(1, COPIES // games.rules.largest_hand)
        for first in range(0, len(open_), together):
            part = open_[first : first + together]
            actions[part] = _cheapest(games, rows, sits, players, turns.mask, part)
        return actions


def _cheapest(
    games: SelfPlay, rows: np.ndarray, sits: np.ndarray, players: Sequence[Policy], mask: np.ndarray, part: np.ndarray
) -> np.ndarray:
    """For the positions `part` in `rows`, the legal action of `mask` that costs the seat to move least; int64."""
    line, action = np.nonzero(mask[part])
    position = part[line]
    copies = SelfPlay(
        games.rules,
        num_games=len(position),
        num_players=games.num_players,
        episode=games.episode,
        skip_forced=games.episode == "round",  # forced turns of a match may lead far into the rounds to come
        autoreset=False,
        observe=False,
    )
    copies.games[:] = games.games[rows[position]]
    seat = copies.games["public"]["turn"].copy()
    _play_out(copies, action, sits[position], players, position)
    penalties = copies.games["public"]["penalties"].astype(np.int64)
    own = penalties[np.arange(len(seat)), seat]
    others = penalties.sum(axis=1) - own
    cost = np.full((len(part), mask.shape[1]), np.iinfo(np.int64).max)
    cost[line, action] = (own << 32) - others
    return cost.argmin(axis=1)


def _play_out(
    copies: SelfPlay, actions: np.ndarray, sits: np.ndarray, players: Sequence[Policy], position: np.ndarray
) -> None:
    """Play `actions` in all `copies`, and then on until the round that they are in is settled.

    Raises:
        PolicyError: a player failed; its row is the `position` of the copy.
    """
    phase, index = copies.games["public"]["phase"], copies.games["public"]["round_index"]
    now = index.copy()
    rows = np.arange(copies.num_games)
    copies.step(actions)
    while len(rows := rows[(phase[rows] == PLAY) & (index[rows] == now[rows])]):
        mover = sits[rows, copies.buffers.turn[rows]]
        actions = np.empty(len(rows), np.int64)
        for number, player in enumerate(players):
            mine = np.flatnonzero(mover == number)
            if len(mine):
                actions[mine] = _ask(player, copies, rows[mine], position)
        copies.step(actions, rows=rows)


def _ask(player: Policy, copies: SelfPlay, rows: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The actions of `player` in the copies of `rows`, int64 ``[k]``; errors as `_play_out`."""
    try:
        return decide(player, copies.turns(rows))
    except PolicyError as error:
        row, fault = int(position[rows[error.row]]), f"{error.fault}, in a game that the seer foresaw"
        raise PolicyError(error.policy, row, fault) from error.__cause__


@dataclass(frozen=True)
class Line:
    """Half of the way from the best scripted policy to the seer, among one field.

    Attributes:
        gain: Beyond which a policy is suspect.
        text: What it lies between.
    """

    gain: Estimate
    text: str


def suspects(comparisons: Iterable[Comparison], seen: Iterable[Comparison]) -> list[dict[str, str]]:
    """Policies that gain more among a field than is expected of one that sees its own cards alone.

    A policy has to be surely beyond the line: by more than the widths of all intervals together, as if the three
    had been measured on different deals (on common ones they differ by less).

    Args:
        comparisons: Policies among fields.
        seen: The seer among the same fields, fewer deals will do; scripted policies here count like those among
            `comparisons`.

    Returns:
        For each such policy and field their names and a `text`, JSON-friendly.
    """
    rows, known = list(comparisons), list(seen)
    lines = _lines(rows, known)
    found = []
    for row in rows:
        line = lines.get(row.field)
        if isinstance(line, Line) and row.gain - line.gain.mean > _together(row.difference, line.gain):
            text = f"gains {row.gain:.3f} ± {row.difference.half_width:.3f}, {line.text}"
            found.append({"policy": row.policy, "field": row.field, "text": text})
    return found


def unjudged(comparisons: Iterable[Comparison], seen: Iterable[Comparison]) -> dict[str, str]:
    """The fields of the seer among which nobody can be suspect, each with the reason; arguments as `suspects`."""
    lines = _lines(list(comparisons), list(seen))
    return {field: line for field, line in lines.items() if isinstance(line, str)}


def _lines(rows: list[Comparison], known: list[Comparison]) -> dict[str, Line | str]:
    """The line among each field of the seer, or why there is none."""
    return {seer.field: _line(seer, [*rows, *known]) for seer in known if seer.policy == Seer.name}


def _line(seer: Comparison, rows: Iterable[Comparison]) -> Line | str:
    scripted = [row for row in rows if row.field == seer.field and row.policy in BASELINES]
    if not scripted:
        return "no scripted policy was measured in its place"
    best = max(scripted, key=lambda row: row.gain)
    gain, width = (best.gain, best.difference.half_width) if best.gain > 0 else (0.0, 0.0)  # as its field plays
    base, top = Estimate(gain, width, best.difference.deals), seer.difference
    if seer.gain - gain - _together(base, top) <= LEAST_LEAD * seer.gain:
        gains = f"{best.policy} gains {best.gain:.3f} and an agent that sees all cards {seer.gain:.3f}"
        return f"{gains}: too little lies between them to judge by"
    line = Estimate(gain + LINE * (seer.gain - gain), LINE * _together(base, top), top.deals)
    text = (
        f"more than half of the way from the best scripted policy ({best.policy}, {best.gain:.3f}) to an agent that "
        f"sees all cards ({seer.gain:.3f})"
    )
    return Line(line, text)


def _together(one: Estimate, other: Estimate) -> float:
    """Half the width of the interval of a sum or difference of two that are independent."""
    return math.hypot(one.half_width, other.half_width)

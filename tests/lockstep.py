"""The kernel and the naive game side by side: the same actions in both, and everything compared after each.

The naive game (reference.py) knows nothing of the kernel; the only thing that passes from one to the
other are the cards that the kernel deals. Compared is everything that the two have in common, that is
every field of `PUBLIC` and the hands.
"""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

from reference import ReferenceGame, ReferenceRules, is_ace_led
from tables import Table, as_dict, members, packed

from cucumber_env.rules import MAX_CARDS, MAX_SEATS, Rules

MOST_ROUNDS = 200
"""Rounds after which a match is left: sudden death has no limit."""


class Pair:
    """One match, played by the kernel and by the naive game at once."""

    def __init__(self, rules: Rules, num_players: int, *, seed: int = 0, episode: str = "match") -> None:
        self.rules = rules
        self.kernel = Table(rules, num_players).begin(match=episode == "match", seed=seed)
        self.naive = ReferenceGame(
            ReferenceRules(**dataclasses.asdict(rules)),
            num_players,
            int(self.kernel.public["dealer"]),
            lambda _round, seats, _size: {seat: self.kernel.hand(seat) for seat in seats},
            episode,
        )
        self.actions: list[int] = []
        self.before: dict[str, Any] = {}
        self.charged: list[int] | None = None

    def compare(self) -> list[int]:
        """Assert that both are in the same state; the legal actions."""
        legal = self.kernel.legal()
        ours, theirs = kernel_state(self.kernel), naive_state(self.naive)
        ours["moves"], theirs["moves"] = int(self.kernel.public["moves"]), len(self.actions)
        ours["legal"], theirs["legal"] = legal, self.naive.legal()
        if ours != theirs:
            different = {key: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]}
            raise AssertionError(
                f"kernel and naive game differ in (kernel, naive) {different}\nafter {self.actions} of "
                f"{self.naive.num_players} players under {self.rules.to_json()}"
            )
        return legal

    def play(self, action: int) -> None:
        """The same action in both.

        `before` keeps how things stood in the naive game, `charged` the penalties if this ended a round.
        """
        self.actions.append(action)
        self.before = {
            "round": self.naive.round,
            "alive": set(self.naive.alive),
            "away": set(self.naive.away),
            "tied": set(self.naive.tied),
            "table": list(self.naive.plays),
        }
        ended = self.kernel.play(action)  # first, because the naive game takes the cards of the next deal from it
        self.charged = self.naive.play(action)
        assert bool(ended) == (self.charged is not None)

    @property
    def running(self) -> bool:
        return self.naive.phase != "over" and self.naive.round < MOST_ROUNDS


def kernel_state(table: Table) -> dict[str, Any]:
    """What there is to compare, from the records of the kernel."""
    n = table.num_players
    public = as_dict(table.public)
    state: dict[str, Any] = {name: public[name] for name in SCALARS}
    state["phase"] = table.phase
    for name in SEAT_SETS:
        state[name] = set(members(public[name]))
    if state["phase"] == "over":
        state["tied"] = set()  # the kernel keeps who played the last sudden death
    for name in PER_SEAT:
        assert len(set(public[name][n:])) <= 1, f"{name} of seats that do not exist: {public[name]}"
        state[name] = public[name][:n]
    state["played"] = public["played"]
    state["leaders"] = public["leaders"]
    state["hands"] = [table.hand(seat) for seat in range(n)]
    return state


SCALARS = (
    "gone",
    "players",
    "match",
    "turn",
    "round_index",
    "dealer",
    "hand_size",
    "trick",
    "leader",
    "count",
    "reference",
    "taker",
    "ace_led",
)
SEAT_SETS = ("seats", "alive", "away", "skipping", "undecided", "revived", "tied")
PER_SEAT = ("totals", "penalties", "out_round", "placement", "low", "high")


def or_nobody(number: int | None) -> int:
    return -1 if number is None else number


def naive_state(game: ReferenceGame) -> dict[str, Any]:
    """The same from the naive game."""
    n = game.num_players
    settled = game.phase in ("revive", "over")
    played = [trick["plays"] for trick in game.tricks] + ([] if settled else [game.plays])
    on_table = played[-1]
    taker = game.tricks[-1]["taker"] if settled else game.taker
    offers = set(game._undecided) - game.used if game.phase == "revive" else set()
    return {
        "phase": game.phase,
        "turn": or_nobody(game.turn),
        "players": n,
        "match": int(game.episode == "match"),
        "round_index": game.round,
        "dealer": game.dealer,
        "hand_size": game.hand_size or 0,
        "trick": len(played) - 1,
        "leader": game.tricks[-1]["leader"] if settled else game.leader,
        "count": len(on_table),
        "reference": or_nobody(None if taker is None else dict(on_table)[taker]),
        "taker": or_nobody(taker),
        "ace_led": int(is_ace_led(game.rules, on_table)),
        "gone": packed(rank for plays in played for _, rank in plays),
        "played": played_table(played),
        "leaders": ([plays[0][0] for plays in played if plays] + [-1] * MAX_CARDS)[:MAX_CARDS],
        "hands": [game.hands[seat] for seat in range(n)],
        "seats": set(game.seats),
        "alive": game.alive,
        "away": game.away,
        "skipping": game.skipping,
        "undecided": offers,
        "revived": game.used,
        "tied": game.tied,
        "totals": game.totals if game.episode == "match" else [0] * n,
        "penalties": [game.last_penalties.get(seat, 0) for seat in range(n)],
        "out_round": [game.round if seat in game.losers else game._out_round.get(seat, -1) for seat in range(n)],
        "placement": game.placement or [0] * n,
        "low": [game.bounds[seat][0] for seat in range(n)],
        "high": [game.bounds[seat][1] for seat in range(n)],
    }


def played_table(played: list[list[tuple[int, int]]]) -> list[list[int]]:
    """Ranks by seat and trick, as `PUBLIC` holds them."""
    table = [[-1] * MAX_CARDS for _ in range(MAX_SEATS)]
    for trick, plays in enumerate(played):
        for seat, rank in plays:
            table[seat][trick] = rank
    return table


def play_out(rules: Rules, num_players: int, seed: int, episode: str = "match") -> Pair:
    """A whole episode of random legal play, compared after every action."""
    pair = Pair(rules, num_players, seed=seed, episode=episode)
    chance = Random(seed)
    legal = pair.compare()
    while pair.running:
        pair.play(chance.choice(legal))
        legal = pair.compare()
    return pair

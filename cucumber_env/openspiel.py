"""A round of Cucumber as a game of OpenSpiel (Lanctot et al., "OpenSpiel: a framework for reinforcement learning in
games", 2019), and policies carried over in both directions.

OpenSpiel is optional: install ``open-spiel`` to import this module, which nothing else imports. Importing it registers
the game, so that ``pyspiel.load_game("python_cucumber(players=3,rules=three_card;ranks:9TJQKA)")`` finds it.

>>> game = load("three_card", num_players=2)
>>> state = game.new_initial_state()
>>> for card in "5T3J9K":  # to seat 0, seat 1, seat 0 and so on
...     state.apply_action(RANKS.index(card))
>>> print(state.information_state_string())
seat 0 of 2, 3 cards; dealt 359; played -
>>> [state.action_to_string(action) for action in state.legal_actions()]
['3', '5', '9']

Any rules and any number of players that they seat; always one round. Seat 0 leads the first trick, so the dealer is the
last seat (under ``first_leader: dealer`` seat 0). Utilities are the reward ``zero_sum``: the mean penalty of the others
minus the own, in points; for two players that is the opponent's penalty minus the own.

Decisions have the action ids of the whole project: 0–12 play rank 2 … A, and under a dealer's choice 13–19 deal 1–7
cards. Chance deals one card at a time, clockwise from seat 0, and its outcomes are ranks (0–12), since suits never
matter. Players look at their cards when all are dealt.

Information states have perfect recall within the round, which is all of the game: the string names the own deal and all
plays in order, the tensor is `Layout` with its history. Observations are `Layout` without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cucumber_env.batch import make_options
from cucumber_env.cards import ACTIONS, action_id, hand_text
from cucumber_env.game import Game
from cucumber_env.observation import Layout
from cucumber_env.policies import Policy, Turns, make
from cucumber_env.rewards import reward_range
from cucumber_env.rules import MAX_SEATS, RANKS, Rules
from cucumber_env.state import NOBODY, NUM_RANKS

try:
    import pyspiel
    from open_spiel.python.policy import Policy as SpielPolicy
except ImportError as error:
    raise ImportError(
        "cucumber_env.openspiel needs OpenSpiel, which is not installed: pip install 'open-spiel>=2,<3' "
        "(in a clone: uv sync --group peers)"
    ) from error

NAME = "python_cucumber"
"""Short name of the game in OpenSpiel's registry."""

GAME_TYPE = pyspiel.GameType(
    short_name=NAME,
    long_name="Cucumber (Python)",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=MAX_SEATS,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={"players": 2, "rules": "cucumber"},
)


def load(rules: Rules | str | Mapping[str, Any] = "cucumber", num_players: int = 2) -> CucumberGame:
    """The game of one round.

    Args:
        rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
        num_players: Seats at the table.

    Raises:
        ValueError, TypeError: an argument out of range, named.
    """
    rules = Rules.of(rules)
    return CucumberGame({"players": rules.check_players(num_players), "rules": str(rules)})


class CucumberGame(pyspiel.Game):
    """A round of Cucumber; see the module.

    Args:
        params: ``players`` and ``rules``: the text that `Rules.of` takes. For commas and equal signs, which mean
            something else in the text of a game, it may have semicolons and colons.

    Attributes:
        rules: Rules in force.
        start: The round before anything has happened.
    """

    def __init__(self, params: Mapping[str, Any] | None = None) -> None:
        params = {**GAME_TYPE.parameter_specification, **(params or {})}
        self.rules = Rules.of(params["rules"].translate(str.maketrans(";:", ",=")))
        players = self.rules.check_players(params["players"], name="players")
        text = str(self.rules).translate(str.maketrans(",=", ";:"))
        super().__init__(GAME_TYPE, _facts(self.rules, players), {"players": players, "rules": text})
        dealer = 0 if self.rules.first_leader == "dealer" else players - 1
        self.start = Game.by_hand(self.rules, players, dealer=dealer, episode="round")

    def new_initial_state(self) -> CucumberState:
        """The state before the deal, or before the dealer's choice of its size."""
        return CucumberState(self)

    def make_py_observer(self, iig_obs_type: Any = None, params: Mapping[str, Any] | None = None) -> CucumberObserver:
        """An observer of what a seat knows: information states with perfect recall, else observations."""
        return CucumberObserver(self, iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False), params)


def _facts(rules: Rules, players: int) -> Any:
    """The sizes of the game, a `GameInfo`."""
    low, high = reward_range(rules, make_options(rules=rules, num_players=players, episode="round"))
    return pyspiel.GameInfo(
        num_distinct_actions=rules.num_actions,
        max_chance_outcomes=NUM_RANKS,
        num_players=players,
        min_utility=low,
        max_utility=high,
        utility_sum=0.0,
        max_game_length=players * rules.largest_hand + rules.dealer_chooses,
    )


class CucumberState(pyspiel.State):
    """A state of the round.

    Args:
        game: The game.

    Attributes:
        table: The round as it is played; without cards until all are dealt.
        dealt: Ranks dealt so far.
    """

    def __init__(self, game: CucumberGame) -> None:
        super().__init__(game)
        self.table = game.start.copy()
        self.dealt: list[int] = []

    def current_player(self) -> int:
        """The seat to decide, or the id of chance or of the end."""
        if self.table.turn is not None:
            return self.table.turn
        return int(pyspiel.PlayerId.TERMINAL if self.table.over else pyspiel.PlayerId.CHANCE)

    def is_terminal(self) -> bool:
        """Whether the round is over."""
        return self.table.over

    def _legal_actions(self, player: int) -> list[int]:
        return [action_id(text) for text in self.table.legal()] if player == self.table.turn else []

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Ranks that the next card can have, each with its probability."""
        rules = self.table.rules
        left = {rank: rules.copies - self.dealt.count(rank) for rank in map(RANKS.index, rules.ranks)}
        return [(rank, count / sum(left.values())) for rank, count in left.items() if count]

    def _apply_action(self, action: int) -> None:
        if self.table.phase != "deal":
            self.table.play(action)
            return
        self.dealt.append(action)
        players = self.table.players
        if len(self.dealt) == players * self.table.public.hand_size:
            self.table.deal(["".join(RANKS[rank] for rank in self.dealt[seat::players]) for seat in range(players)])

    def _action_to_string(self, player: int, action: int) -> str:
        return f"card {RANKS[action]}" if player == pyspiel.PlayerId.CHANCE else ACTIONS[action]

    def returns(self) -> list[float]:
        """Utilities of all seats in points; zeros before the end."""
        penalties = self.table.penalties
        others = len(penalties) - 1
        return [(sum(penalties) - penalty) / others - penalty for penalty in penalties]

    def __str__(self) -> str:
        dealt = "".join(RANKS[rank] for rank in self.dealt) or "-"
        return f"{self.table.public.hand_size or '?'} cards; dealt {dealt}; played {_plays(self.table.public)}"


class CucumberObserver:
    """What a seat knows, as the observers of OpenSpiel's Python games offer it.

    Args:
        game: The game.
        kind: Whether with perfect recall; always what is public and the private cards of one player.
        params: None or empty.

    Attributes:
        layout: What `tensor` holds, without the zeros at its end.
        tensor: float32 ``[size]``, zeros and ones.
        dict: The sections of the layout by name, views of `tensor`.

    Raises:
        ValueError: parameters, or another kind.
    """

    def __init__(self, game: CucumberGame, kind: Any, params: Mapping[str, Any] | None) -> None:
        if params:
            raise ValueError(f"params={params!r}: this game's observers take none")
        if not kind.public_info or kind.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            raise ValueError(f"{kind} is not offered; allowed: what is public and the private cards of one player")
        self.history = kind.perfect_recall
        self.layout = Layout.of(game.rules, game.num_players(), "round", history=self.history)
        row = np.zeros(self.layout.size, np.float32)
        last = self.layout.sections[-1]
        self.tensor = row[: last.offset + last.size]
        self.dict = self.layout.views(row)

    def set_from(self, state: CucumberState, player: int) -> None:
        """Write what `player` knows at `state` to `tensor`."""
        self.tensor[:] = state.table.observation(player, history=self.history)[: len(self.tensor)]

    def string_from(self, state: CucumberState, player: int) -> str:
        """What `player` knows at `state`, as text."""
        if self.history:
            return information_state(state.table.view(player))
        return state.table.explain(player)


def information_state(view: Any) -> str:
    """The information state of a seat as text: its place, its deal and all plays of the round in order.

    Args:
        view: A `VIEW` record. Seats are told from the leader of the first trick, whatever their number at the table.
    """
    public, hand, seat = view["public"], int(view["hand"]), int(view["seat"])
    for rank in public["played"][seat].tolist():
        hand += 1 << 4 * rank if rank >= 0 else 0
    players, size = int(public["players"]), int(public["hand_size"]) or "?"
    place = (seat - _first(public)) % players
    return f"seat {place} of {players}, {size} cards; dealt {hand_text(hand)}; played {_plays(public)}"


def _first(public: Any) -> int:
    """The leader of the first trick."""
    first = int(public["leaders"][0])
    return first if first >= 0 else int(public["leader"])


def _plays(public: Any) -> str:
    """All plays of a round: for each trick the place of its leader and the ranks in order."""
    leaders, played, players = public["leaders"].tolist(), public["played"].tolist(), int(public["players"])
    tricks = []
    for trick in range(leaders.index(NOBODY) if NOBODY in leaders else len(leaders)):
        ranks = [played[(leaders[trick] + step) % players][trick] for step in range(players)]
        cards = "".join(RANKS[rank] for rank in ranks if rank != NOBODY)
        tricks.append(f"{(leaders[trick] - leaders[0]) % players}:{cards}")
    return " ".join(tricks) or "-"


class ToOpenSpiel(SpielPolicy):
    """A policy of this project as one of OpenSpiel, such as `open_spiel.python.algorithms.exploitability` measures.

    Args:
        game: What `load` returned.
        policy: A policy or the name of one.

    Raises:
        ValueError: an unknown name, or a policy that only samples.
    """

    def __init__(self, game: CucumberGame, policy: Policy | str) -> None:
        super().__init__(game, list(range(game.num_players())))
        self.policy = make(policy)
        if self.policy.samples_only:
            raise ValueError(f"policy {self.policy.name!r} only samples and cannot say its action probabilities")

    def action_probabilities(self, state: CucumberState, player_id: int | None = None) -> dict[int, float]:
        """Probabilities of the legal actions at a state; `player_id` is always the seat to decide.

        The policy is not asked where one action alone is legal.
        """
        legal = state.legal_actions()
        if len(legal) == 1:
            return {legal[0]: 1.0}
        turns = state.table.turns()
        answer = np.asarray(self.policy.probabilities(turns), np.float64)[0]
        return {action: float(answer[action]) for action in legal}


class FromOpenSpiel(Policy):
    """A tabular policy of OpenSpiel as one of this project, to be measured exactly or to play in the arena.

    Args:
        game: What `load` returned.
        table: Anything with OpenSpiel's ``policy_for_key(information state)``, such as a `TabularPolicy` or the
            average policy of `CFRSolver`.
        name: Text by which reports call it.
    """

    def __init__(self, game: CucumberGame, table: Any, *, name: str = "openspiel") -> None:
        self.game, self.table, self.name = game, table, name

    def probabilities(self, turns: Turns) -> np.ndarray:
        """float64 ``[B, A]``.

        Raises:
            ValueError: another table than a round under the rules of the game.
        """
        mine = (self.game.rules, self.game.num_players(), "round")
        if mine != (turns.rules, turns.num_players, turns.episode):
            raise ValueError(
                f"{self.name} plays {self.game}; here a {turns.episode} of {turns.num_players} under {turns.rules}"
            )
        return np.array([self.table.policy_for_key(information_state(view)) for view in turns.views])


pyspiel.register_game(GAME_TYPE, CucumberGame)

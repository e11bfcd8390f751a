"""One match for people, notebooks and tests: checked moves, history, copies, text in and out.

>>> game = Game.from_hands(["2479TQA", "358JJKA", "246689K"])
>>> game.turn, game.legal()
(1, ['3', '5', '8', 'J', 'K', 'A'])
>>> game.play("5")
>>> game.play("4")
Traceback (most recent call last):
    ...
ValueError: action '4' of seat 2 is illegal; legal: 6, 8, 9, K
>>> game.play("9")
>>> print(game.text(seat=0))
One round: trick 1 of 7, led by seat 1
          played  hand
> seat 0  .       2479TQA  deals
  seat 1  5       ??????
  seat 2  9*      ??????
Seat 0 is to play a card: 9, T, Q, A.

Cards come from a seed or from hand, and what has been played goes to text and back:

>>> game = Game.new("concombre", players=3, seed=1)
>>> game.turn, game.legal()
(2, ['deal 1', 'deal 2', 'deal 3', 'deal 4', 'deal 5'])
>>> game.play("deal 2")
>>> game.hands
['2A', '3T', '8A']
>>> Game.from_record(game.record()) == game
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, SupportsIndex

import numpy as np

from cucumber_env import batch, kernel
from cucumber_env.cards import ACTIONS, action_id, actions_text, check_deal, hand_text, parse_hand
from cucumber_env.observation import EPISODES, Layout
from cucumber_env.policies import Turns
from cucumber_env.records import MatchRecord
from cucumber_env.replay import replay, tell
from cucumber_env.rules import LARGEST, Rules
from cucumber_env.state import DEAL, GAME, OVER, PHASES, PUBLIC, VIEW, as_records, compile_rules

RulesLike = Rules | str | Mapping[str, Any]
_MOST = (1 << 63) - 1


class Game:
    """One match, or one round, in progress; made by `new`, `by_hand`, `from_hands` or `from_record`.

    Seats count clockwise from 0. Actions are text (``"K"``, ``"deal 3"``, ``"decline"``, ``"chip"``, ``"skip"``) or
    action ids. A pickled or copied game goes on like the original. Two games are equal if they are in the same
    state under the same rules and will be dealt the same cards.

    Attributes:
        rules: Rules in force.
        players: Seats at the table.
        episode: ``"match"`` or ``"round"``.
    """

    def __init__(self, rules: Rules, players: int, episode: str, start: np.ndarray, *, seeded: bool, by_hand: bool):
        """A game from its first state. For use inside; see `new`, `by_hand`, `from_hands` and `from_record`.

        Args:
            rules, players, episode: As the attributes; checked already.
            start: `GAME` array of one record that has just begun.
            seeded: Whether cards are dealt from the seed.
            by_hand: Whether those of the first round are given by hand all the same.
        """
        self.rules = rules
        self.players = players
        self.episode = episode
        self._seeded = seeded
        self._start = start.tobytes()
        self._given: dict[int, dict[int, str]] = {}
        self._moves: list[tuple[int, int]] = []
        self._stand(self._start, by_hand)

    def _stand(self, state: bytes, by_hand: bool) -> None:
        """Put the game into a state, given as the bytes of a `GAME` record."""
        self._table = compile_rules(self.rules)
        self._games = _games_of(state)
        self._public = self._games[0]["public"]
        self._by_hand = by_hand
        self._choices = int(kernel.legal_now(self._table[0], self._games[0]))

    @classmethod
    def new(
        cls,
        rules: RulesLike = "cucumber",
        players: int = 4,
        seed: int = 0,
        episode: str = "match",
        *,
        game: int = 0,
        episode_index: int = 0,
    ) -> Game:
        """A game whose cards are dealt from a seed, the same cards as in every face.

        Args:
            rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
            players: Seats at the table.
            seed: Any integer ≥ 0.
            episode: ``"match"`` or ``"round"``.
            game: Which game under the seed; the slot in a vector of games.
            episode_index: Which episode of that game.

        Raises:
            ValueError, TypeError: an argument out of range, named.
        """
        rules, players = _checked_table(rules, players, episode)
        games = batch.new_games(1)
        key = _key(seed, game, episode_index)
        kernel.begin(compile_rules(rules)[0], games[0], *key, players, int(episode == "match"))
        return cls(rules, players, episode, games, seeded=True, by_hand=False)

    @classmethod
    def by_hand(
        cls,
        rules: RulesLike = "cucumber",
        players: int = 4,
        *,
        dealer: int = 0,
        episode: str = "match",
        totals: Sequence[int] | None = None,
        seed: int | None = None,
        game: int = 0,
        episode_index: int = 0,
    ) -> Game:
        """A game whose cards somebody else deals, such as at a real table: it waits for `deal`.

        >>> game = Game.by_hand("three_card", players=2, dealer=1)
        >>> game.phase
        'deal'
        >>> game.deal(["5QA", "36K"])
        >>> game.turn
        0

        Args:
            rules: Rules, a preset with changes such as ``"cucumber,hand_size=3"``, or a mapping of fields.
            players: Seats at the table.
            dealer: Seat that deals the first round.
            episode: ``"match"`` or ``"round"``.
            totals: Points of every seat to begin with, in matches only; none by default.
            seed, game, episode_index: Where the cards come from after the first round, as in `new`; with None,
                those of every round are given.

        Raises:
            ValueError, TypeError: an argument out of range, named.
        """
        rules, players = _checked_table(rules, players, episode)
        games = batch.new_games(1)
        if seed is not None:
            games["seed"], games["game"], games["episode"] = _key(seed, game, episode_index)
        dealer = _integer("dealer", dealer, players - 1)
        kernel.start(compile_rules(rules)[0], games[0]["public"], players, int(episode == "match"), dealer)
        if totals is not None:
            games["public"]["totals"][0, :players] = _checked_totals(rules, players, episode, totals)
        return cls(rules, players, episode, games, seeded=seed is not None, by_hand=True)

    @classmethod
    def from_hands(
        cls,
        hands: Sequence[str],
        rules: RulesLike = "cucumber",
        *,
        dealer: int = 0,
        episode: str = "round",
        totals: Sequence[int] | None = None,
        seed: int | None = None,
    ) -> Game:
        """A game whose first hands are given; under a dealer's choice, he has chosen how many cards.

        >>> Game.from_hands(["2479TQA", "358JJKA", "246689K"]).legal()
        ['3', '5', '8', 'J', 'K', 'A']

        Args:
            hands: The hand of every seat.
            rules, dealer, episode, totals, seed: As in `by_hand`.

        Raises:
            ValueError, TypeError: an argument out of range, or cards that the rules do not deal.
        """
        if isinstance(hands, str) or not isinstance(hands, Sequence) or not all(isinstance(h, str) for h in hands):
            raise TypeError(f"hands={hands!r} must be a list of texts such as ['2479TQA', '358JJKA']")
        game = cls.by_hand(rules, len(hands), dealer=dealer, episode=episode, totals=totals, seed=seed)
        if game.rules.dealer_chooses:
            low, high = game.rules.hand_sizes
            if not low <= len(hands[0]) <= high:
                raise ValueError(f"hand {hands[0]!r} of seat 0: the dealer deals {low} to {high} cards")
            game.play(f"deal {len(hands[0])}")
        game.deal(hands)
        return game

    @classmethod
    def from_record(cls, text: str) -> Game:
        """The game that a match record tells, played move by move; its state is the same bytes.

        Raises:
            RecordError: another version, malformed, illegal or at odds with itself; says which line, which play
                and why.
        """
        return replay(MatchRecord.parse(text), cls)

    @property
    def turn(self) -> int | None:
        """The seat to decide, or None if the episode is over or cards are to be given."""
        seat = int(self._public["turn"])
        return seat if seat >= 0 else None

    @property
    def phase(self) -> str:
        """``"deal"`` (cards are to be given), ``"choose"``, ``"play"``, ``"revive"`` or ``"over"``."""
        return PHASES[self._public["phase"]]

    @property
    def over(self) -> bool:
        """Whether the episode is over."""
        return bool(self._public["phase"] == OVER)

    def legal(self) -> list[str]:
        """The actions open to the seat to decide, as text, lowest id first; none if nobody is to decide."""
        return list(actions_text(self._choices))

    def play(self, action: str | SupportsIndex) -> None:
        """Play an action of the seat to decide.

        Args:
            action: Text such as ``"K"``, or an action id.

        Raises:
            ValueError: no such action, or illegal now; names action, seat and the legal actions.
            TypeError: neither text nor an integer.
        """
        number = action_id(action)
        if not self._choices >> number & 1:
            raise ValueError(self._refusal(number))
        self._moves.append((int(self._public["turn"]), number))
        self._choices = batch.play_one(self._table, self._games, number, self._by_hand)

    def deal(self, hands: Sequence[str] | Mapping[int, str]) -> None:
        """Give the cards of a round that waits for them.

        Args:
            hands: The hand of every seat, ``"-"`` for those that sit out; or hands by seat.

        Raises:
            ValueError: no round waits for cards, or the rules do not deal these; nothing is changed then.
        """
        if self._public["phase"] != DEAL:
            raise ValueError(f"round {self.round_number} does not wait for cards (phase {self.phase!r})")
        if isinstance(hands, Sequence) and not isinstance(hands, str) and len(hands) != self.players:
            raise ValueError(f"{len(hands)} hands for {self.players} seats; '-' stands for one that sits out")
        seats = [seat for seat in range(self.players) if self._public["seats"] >> seat & 1]
        texts = check_deal(self.rules, hands, seats=seats, size=int(self._public["hand_size"]))
        for seat, hand in texts.items():
            self._games["hands"][0, seat] = parse_hand(hand)
        kernel.open_round(self._public)
        self._choices = int(kernel.legal_now(self._table[0], self._games[0]))
        self._given[self.round_number] = texts
        self._by_hand = not self._seeded

    def turns(self) -> Turns:
        """The decision to be made, as a batch of one for policies.

        >>> from cucumber_env.policies import Policy, decide
        >>> class First(Policy):
        ...     def act(self, turns):
        ...         return turns.mask.argmax(axis=1)
        >>> game = Game.from_hands(["5QA", "36K"], "three_card")
        >>> game.play(decide(First(), game.turns())[0])
        >>> game.history
        [(1, '3')]

        Raises:
            ValueError: nobody is to decide.
        """
        if self._public["turn"] < 0:
            raise ValueError(f"nobody is to decide (phase {self.phase!r})")
        u = np.empty(1)
        batch.draws(self._games, np.zeros(1, np.int64), u)
        views = as_records(self._views(self.turn))
        return Turns(self.rules, self.players, self.episode, views, self.action_mask[None], u)

    @property
    def action_mask(self) -> np.ndarray:
        """int8 ``[A]``, 1 where the action is open to the seat to decide."""
        return np.array([self._choices >> action & 1 for action in range(self.rules.num_actions)], np.int8)

    @property
    def public(self) -> Any:
        """What everybody knows: a copy of the `PUBLIC` record, read as ``game.public.leader``."""
        public = np.zeros(1, PUBLIC)
        public[:] = self._games["public"]
        return public.view(np.recarray)[0]

    def view(self, seat: int | None = None) -> Any:
        """What a seat (by default the one to decide) may know: a `VIEW` record, a copy without any other hand.

        >>> view = Game.from_hands(["5QA", "36K"], "three_card").view(0)
        >>> int(view.seat), int(view.public.leader), hand_text(view.hand)
        (0, 1, '5QA')
        """
        return self._views(seat).view(np.recarray)[0]

    def observation(self, seat: int | None = None, *, seats: int | None = None, history: bool = False) -> np.ndarray:
        """The observation of a seat (by default the one to decide), int8 ``[W]``.

        Args:
            seat: Who observes.
            seats, history: As in `Layout.of`: the layout for every table, the information state.
        """
        layout = self.layout(seats=seats, history=history)
        observation = np.empty((1, layout.size), np.int8)
        views = as_records(self._views(seat))
        batch.observe_views(self._table, layout.compiled, views, observation.view(np.int64))
        return observation[0]

    def explain(self, seat: int | None = None, *, seats: int | None = None, history: bool = False) -> str:
        """`observation` in words, section by section."""
        return self.layout(seats=seats, history=history).explain(self.observation(seat, seats=seats, history=history))

    def layout(self, *, seats: int | None = None, history: bool = False) -> Layout:
        """The layout of `observation`."""
        return Layout.of(self.rules, self.players, self.episode, seats, history)

    def hand(self, seat: int) -> str:
        """The cards of a seat, lowest first, ``-`` if it has none. For spectators: players have `view`."""
        return hand_text(self._games["hands"][0, self._seat(seat)])

    @property
    def hands(self) -> list[str]:
        """The cards of every seat, for spectators."""
        return [self.hand(seat) for seat in range(self.players)]

    @property
    def totals(self) -> list[int]:
        """Points of every seat in the match; zeros in a single round."""
        return self._by_seat("totals")

    @property
    def penalties(self) -> list[int]:
        """Points that every seat paid in the round settled last."""
        return self._by_seat("penalties")

    @property
    def placement(self) -> list[int] | None:
        """Final place of every seat, 1 is best and equals share; None before the end."""
        return self._by_seat("placement") if self.over else None

    @property
    def winner(self) -> int | None:
        """The seat that is alone in first place, or None."""
        placement = self.placement or []
        return placement.index(1) if placement.count(1) == 1 else None

    @property
    def round_number(self) -> int:
        """The round, from 1, sudden death included."""
        return int(self._public["round_index"]) + 1

    @property
    def history(self) -> list[tuple[int, str]]:
        """Every decision so far, as (seat, action)."""
        return [(seat, ACTIONS[action]) for seat, action in self._moves]

    @property
    def state(self) -> bytes:
        """The `GAME` record as bytes: equal if the same cards and standing, and the same cards to come."""
        return self._games.tobytes()

    def text(self, seat: int | None = None) -> str:
        """The table as text: as a spectator sees it, or as `seat` does."""
        from cucumber_env import render  # loaded only when asked for

        if seat is not None:
            return render.text(self.rules, self.view(seat))
        return render.table_text(self.rules, self._public, dict(enumerate(self._games["hands"][0].tolist())))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        doing = f"seat {self.turn} to decide" if self.turn is not None else self.phase
        return f"<Game of {self.players} players, round {self.round_number}, {doing}>"

    def copy(self) -> Game:
        """The same game once more, to be played on independently."""
        twin = Game.__new__(Game)
        twin.__dict__.update(self.__dict__)
        twin._given = dict(self._given)
        twin._moves = list(self._moves)
        twin._games = _games_of(self.state)
        twin._public = twin._games[0]["public"]
        return twin

    def __copy__(self) -> Game:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        """All that makes the game, arrays as bytes."""
        kept = ("rules", "players", "episode", "_seeded", "_start", "_by_hand")
        return {
            **{name: getattr(self, name) for name in kept},
            "_given": dict(self._given),
            "_moves": list(self._moves),
            "state": self.state,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        games = state.pop("state")
        self.__dict__.update(state)
        self._stand(games, self._by_hand)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        return (self.rules, self._seeded, self.state) == (other.rules, other._seeded, other.state)

    def record(self) -> str:
        """The game so far as a match record (see `cucumber_env.records`)."""
        return str(tell(self))

    def rewound(self) -> Game:
        """The same game before its first decision, and before any cards were given."""
        start = np.frombuffer(self._start, GAME)
        by_hand = not self._seeded or 1 in self._given
        return Game(self.rules, self.players, self.episode, start, seeded=self._seeded, by_hand=by_hand)

    @property
    def given(self) -> dict[int, dict[int, str]]:
        """Hands by seat that were given by `deal`, by the number of the round."""
        return {number: dict(hands) for number, hands in self._given.items()}

    @property
    def key(self) -> tuple[int, int, int] | None:
        """(seed, game, episode) that names the game's random numbers; None if all cards are given."""
        if not self._seeded:
            return None
        seed, game, episode_index = (int(self._games[field][0]) for field in ("seed", "game", "episode"))
        return seed, game, episode_index

    def _seat(self, seat: int | None) -> int:
        """`seat`, checked; the one to decide for None."""
        if seat is None:
            if self.turn is None:
                raise ValueError(f"seat=None stands for the seat to decide, but nobody is (phase {self.phase!r})")
            return self.turn
        return _integer("seat", seat, self.players - 1)

    def _by_seat(self, field: str) -> list[int]:
        values: list[int] = self._public[field][: self.players].tolist()
        return values

    def _views(self, seat: int | None) -> np.ndarray:
        """What a seat may know, as a `VIEW` array of one."""
        seat = self._seat(seat)
        views = np.zeros(1, VIEW)
        views["public"] = self._games["public"]
        views["seat"] = seat
        views["hand"] = self._games["hands"][:, seat]
        return views

    def _refusal(self, action: int) -> str:
        """Why an action is illegal."""
        if self.over:
            return f"action {ACTIONS[action]!r}: the {self.episode} is over"
        if self.turn is None:
            return f"action {ACTIONS[action]!r}: round {self.round_number} waits for its cards; give them by deal()"
        why = ""
        if self.phase == "play" and ACTIONS[action] not in self.hand(self.turn):
            why = " (no such card in hand)"
        return f"action {ACTIONS[action]!r} of seat {self.turn} is illegal{why}; legal: {', '.join(self.legal())}"


def _games_of(state: bytes) -> np.ndarray:
    """A `GAME` array of one from its bytes, which NumPy copies much faster than records."""
    return as_records(np.frombuffer(bytearray(state), GAME))


def _checked_table(rules: RulesLike, players: int, episode: str) -> tuple[Rules, int]:
    rules = Rules.of(rules)
    if episode not in EPISODES:
        raise ValueError(f"episode={episode!r} is not one of its values; allowed: {', '.join(EPISODES)}")
    return rules, rules.check_players(players, name="players")


def _checked_totals(rules: Rules, players: int, episode: str, totals: Sequence[int]) -> list[int]:
    """Points to begin a match with, all below the threshold."""
    if episode != "match":
        raise ValueError(f"totals={totals!r} belong to matches; with episode={episode!r} allowed: None")
    if len(totals) != players:
        raise ValueError(f"totals={totals!r} must be {players} numbers, one for each seat")
    highest = int(compile_rules(rules)["out_at"][0]) - 1 if rules.threshold else LARGEST
    return [_integer(f"totals[{seat}]", total, highest) for seat, total in enumerate(totals)]


def _key(seed: int, game: int, episode_index: int) -> tuple[np.uint64, int, int]:
    """What names the random numbers of a game."""
    return batch.seed_word(seed), _integer("game", game, _MOST), _integer("episode_index", episode_index, _MOST)


def _integer(name: str, value: int, highest: int) -> int:
    """`value` as an int from 0 to `highest`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}={value!r} must be an integer, got {type(value).__name__}; allowed: 0 to {highest}")
    if not 0 <= value <= highest:
        raise ValueError(f"{name}={value} is out of range; allowed: 0 to {highest}")
    return int(value)

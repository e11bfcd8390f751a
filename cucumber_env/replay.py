"""From games to match records and back: `tell` writes down what happened, `replay` plays it again.

Both go through the moves of `cucumber_env.game.Game`, so a record is checked by the rules themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cucumber_env.records import Decision, MatchRecord, RecordError, Round, Trick, by_seat

if TYPE_CHECKING:
    from cucumber_env.game import Game


def tell(game: Game) -> MatchRecord:
    """What has happened in a game."""
    twin = game.rewound()
    moves = deque(Decision(*move) for move in game.history)
    rounds = [_tell_round(twin, moves, game.given)]
    while twin.round_number > len(rounds):
        rounds.append(_tell_round(twin, moves, game.given))
    return MatchRecord(
        rules=game.rules,
        players=game.players,
        episode=game.episode,
        key=game.key,
        rounds=tuple(rounds),
        totals=_totals(game) if game.over else None,
        placement=None if game.placement is None else dict(enumerate(game.placement)),
    )


def _tell_round(twin: Game, moves: deque[Decision], given: Mapping[int, Mapping[int, str]]) -> Round:
    """Play the moves of one round, taken from the front, and tell it."""
    parts = _heading(twin)
    number = twin.round_number
    if twin.phase == "choose" and moves:
        parts["choice"] = _play_next(twin, moves)
    if number in given:
        twin.deal(given[number])
        parts["given"] = True
    if twin.phase == "play":
        seats = _seats(twin)
        parts["hands"] = {seat: twin.hand(seat) for seat in seats}
        plays = [_play_next(twin, moves) for _ in range(min(len(moves), len(seats) * int(twin.public.hand_size)))]
        tricks = (plays[at : at + len(seats)] for at in range(0, len(plays), len(seats)))
        parts["tricks"] = tuple(Trick(trick[0].seat, "".join(play.action for play in trick)) for trick in tricks)
    parts.update(_settlement(twin, number))
    answers = []
    while twin.phase == "revive" and moves:
        answers.append(_play_next(twin, moves))
    return Round(**parts, answers=tuple(answers))


def _play_next(twin: Game, moves: deque[Decision]) -> Decision:
    move = moves.popleft()
    twin.play(move.action)
    return move


def _seats(game: Game) -> list[int]:
    """Seats that take part in the round."""
    return [seat for seat in range(game.players) if game.public.seats >> seat & 1]


def _totals(game: Game) -> dict[int, int] | None:
    return dict(enumerate(game.totals)) if game.episode == "match" else None


def _heading(game: Game) -> dict[str, Any]:
    """What is known of a round when it begins."""
    public = game.public
    return {
        "number": game.round_number,
        "dealer": int(public.dealer),
        "sudden_death": bool(public.tied),
        "totals": _totals(game),
    }


def _settlement(game: Game, number: int) -> dict[str, Any]:
    """What round `number` came to; called before anybody answers an offer of revival."""
    if game.round_number == number and game.phase not in ("revive", "over"):
        return {"pays": None, "out": ()}
    out = tuple(seat for seat in range(game.players) if game.public.out_round[seat] == number - 1)
    return {"pays": {seat: points for seat, points in enumerate(game.penalties) if points}, "out": out}


def replay(record: MatchRecord, kind: type[Game]) -> Game:
    """The game that a record tells: set up as it says, then played, with all that it says checked.

    Raises:
        RecordError: an illegal play or cards that cannot have been dealt, or a line that does not agree with what
            was played; says which line, which play and why.
    """
    game = _set_up(record, kind)
    for told in record.rounds:
        _replay_round(game, told)
    _agree_on_end(game, record)
    return game


def _set_up(record: MatchRecord, kind: type[Game]) -> Game:
    """The game before anything has been played."""
    seed, game, episode_index = record.key or (None, 0, 0)
    first = record.rounds[0]
    if seed is not None and not first.given:
        return kind.new(record.rules, record.players, seed, record.episode, game=game, episode_index=episode_index)
    if first.dealer >= record.players:
        raise RecordError(first.lines["round"], f"dealer {first.dealer} is no seat; seats: 0 to {record.players - 1}")
    with _telling(first.lines.get("totals", first.lines["round"])):
        return kind.by_hand(
            record.rules,
            record.players,
            dealer=first.dealer,
            episode=record.episode,
            totals=None if first.totals is None else [first.totals.get(seat, 0) for seat in range(record.players)],
            seed=seed,
            game=game,
            episode_index=episode_index,
        )


@contextmanager
def _telling(line: int, where: str = "") -> Iterator[None]:
    """Turn what is refused inside into a `RecordError` of this line."""
    try:
        yield
    except RecordError:
        raise
    except (ValueError, TypeError) as error:
        raise RecordError(line, f"{where}{error}") from None


def _replay_round(game: Game, told: Round) -> None:
    _agree_on_heading(game, told)
    if told.choice is not None:
        _answer(game, told.choice, "choose", f"round {told.number} has no dealer's choice")
    _replay_hands(game, told)
    for number, trick in enumerate(told.tricks, 1):
        for index in range(len(trick.plays)):
            _replay_play(game, told, number, index)
    settled = _settlement(game, told.number)
    for word in ("pays", "out"):
        _agree(told, word, getattr(told, word), settled[word])
    for answer in told.answers:
        _answer(game, answer, "revive", f"round {told.number} has no offer of revival")


def _agree_on_heading(game: Game, told: Round) -> None:
    line = told.lines["round"]
    if game.over:
        raise RecordError(line, f"round {told.number} begins, but the {game.episode} is over")
    played = bool(game.history) and game.round_number == told.number - 1
    if played:
        raise RecordError(line, f"round {told.number} begins, but in round {game.round_number} {_waiting(game)}")
    heading = _heading(game)
    shown = Round(number=heading["number"], dealer=heading["dealer"], sudden_death=heading["sudden_death"])
    if (told.number, told.dealer, told.sudden_death) != (shown.number, shown.dealer, shown.sudden_death):
        raise RecordError(line, f"this does not agree with what was played, which makes it '{shown}'")
    _agree(told, "totals", told.totals, heading["totals"])


def _waiting(game: Game) -> str:
    """What a game waits for."""
    return "the cards are still to be given" if game.turn is None else f"seat {game.turn} is still to decide"


def _agree(told: Round | MatchRecord, word: str, found: Any, expected: Any) -> None:
    """Refuse a line that says something else than what follows from the moves."""
    if found == expected:
        return
    line = told.lines.get(word, max(told.lines.values()))
    if not expected:
        raise RecordError(line, f"'{_shown(word, found)}' does not agree with what was played: nothing to say here")
    if not found:
        raise RecordError(line, f"'{_shown(word, expected)}' should follow, but is missing")
    raise RecordError(line, f"'{_shown(word, found)}' does not agree with what was played: '{_shown(word, expected)}'")


def _shown(word: str, value: Any) -> str:
    return f"{word} {by_seat(value) if isinstance(value, Mapping) else ' '.join(map(str, value))}"


def _answer(game: Game, told: Decision, phase: str, what: str) -> None:
    """Play a decision that is no card."""
    if game.phase != phase:
        raise RecordError(told.line, f"'{told}' is out of place: {what} open")
    if game.turn != told.seat:
        raise RecordError(told.line, f"'{told}' is out of turn: it is for seat {game.turn} to decide")
    with _telling(told.line):
        game.play(told.action)


def _replay_hands(game: Game, told: Round) -> None:
    """Give the hands, or see that they are those that the seed deals."""
    line = told.lines.get("given", told.lines.get("dealt", told.lines["round"]))
    if game.phase == "deal" and told.given and told.hands is not None:
        with _telling(line):
            game.deal(told.hands)
    elif game.phase == "play":
        if told.given:
            raise RecordError(line, "these cards come from the seed, so the line must begin with 'dealt'")
        _agree(told, "dealt", told.hands, {seat: game.hand(seat) for seat in _seats(game)})
    elif told.hands is not None:
        why = "the dealer has not chosen how many" if game.phase == "choose" else "without a seed, write 'given'"
        raise RecordError(line, f"no cards are dealt now: {why}")


def _replay_play(game: Game, told: Round, number: int, index: int) -> None:
    """Play card `index` of trick `number` of a round."""
    trick = told.tricks[number - 1]
    where = f"round {told.number}, trick {number}, play {index + 1} ({trick.plays[index]}): "
    public = game.public
    if game.phase != "play" or game.round_number != told.number:
        why = "the cards have not been dealt" if game.phase in ("deal", "choose") else "the round has been played out"
        raise RecordError(trick.line, where + why)
    if index == 0 and public.count:
        raise RecordError(trick.line, f"{where}trick {number - 1} still lacks the play of seat {game.turn}")
    if index == 0 and trick.leader != game.turn:
        raise RecordError(trick.line, f"{where}seat {trick.leader} leads, but it is for seat {game.turn} to lead")
    if public.count != index:
        raise RecordError(trick.line, f"{where}the trick is complete with {index} plays")
    with _telling(trick.line, where):
        game.play(trick.plays[index])


def _agree_on_end(game: Game, record: MatchRecord) -> None:
    if record.placement is None:
        if game.over:
            raise RecordError(record.lines["unfinished"], f"the {game.episode} is over, but its end is missing")
        return
    if not game.over:
        raise RecordError(record.lines["end"], f"the {game.episode} ends here, but {_waiting(game)}")
    _agree(record, "totals", record.totals, _totals(game))
    _agree(record, "placement", record.placement, dict(enumerate(game.placement or [])))

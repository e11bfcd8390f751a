"""Match records: written, read, played again, and refused where they are wrong.

The golden records under tests/golden guard against silent changes of rules, deals and notation. They
were played at random and read against the rules by a person; here they are also played by the naive game.
"""

from __future__ import annotations

import dataclasses
import pickle
import textwrap
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import ReferenceGame, ReferenceRules
from strategies import all_rules, tables
from tables import ranks_of

from cucumber_env import records
from cucumber_env.cards import action_id
from cucumber_env.game import Game
from cucumber_env.records import RECORD_VERSION, Decision, MatchRecord, RecordError, Round, Trick
from cucumber_env.rules import PRESETS, RULES_VERSION, Rules

GOLDEN = {path.stem: path.read_text(encoding="ascii") for path in sorted(Path(__file__).parent.glob("golden/*.txt"))}
MOST_ROUNDS = 30


def played(game: Game, chance: Random, *, decisions: int | None = None) -> Game:
    """A game played on at random, to its end or for some `decisions`."""
    while not game.over and game.round_number <= MOST_ROUNDS:
        if decisions is not None and len(game.history) >= decisions:
            break
        game.play(chance.choice(game.legal()))
    return game


def assert_round_trip(game: Game) -> None:
    text = game.record()
    again = Game.from_record(text)
    assert again.state == game.state
    assert again == game
    assert again.history == game.history
    assert again.record() == str(MatchRecord.parse(text)) == text


@pytest.mark.parametrize("episode", ["match", "round"])
@pytest.mark.parametrize("name", PRESETS)
def test_presets_go_to_text_and_back(name: str, episode: str) -> None:
    for players in range(2, Rules.preset(name).max_players + 1, 2):
        game = Game.new(name, players, seed=players, episode=episode)
        assert_round_trip(played(game, Random(players)))


@settings(max_examples=120)
@given(tables(), st.integers(0, 2**64 - 1), st.sampled_from(["match", "round"]), st.none() | st.integers(0, 60))
def test_any_game_goes_to_text_and_back(
    table: tuple[Rules, int], seed: int, episode: str, decisions: int | None
) -> None:
    game = Game.new(*table, seed=seed, episode=episode, game=seed % 7, episode_index=seed % 3)
    assert_round_trip(played(game, Random(seed), decisions=decisions))


@settings(max_examples=60)
@given(tables(most_points=25), st.integers(0, 2**32), st.integers(0, 60))
def test_games_dealt_by_hand_go_to_text_and_back(table: tuple[Rules, int], seed: int, decisions: int) -> None:
    chance = Random(seed)
    rules, players = table
    later_rounds = chance.choice([None, seed])
    game = Game.by_hand(rules, players, dealer=chance.randrange(players), seed=later_rounds)
    while not game.over and len(game.history) < decisions:
        if game.phase == "deal":
            game.deal(some_deal(game, chance))
        else:
            game.play(chance.choice(game.legal()))
    if later_rounds is None or 1 in game.given:
        assert_round_trip(game)


def some_deal(game: Game, chance: Random) -> dict[int, str]:
    """Hands for the round that waits for cards."""
    deck = [rank for rank in game.rules.ranks for _ in range(game.rules.copies)]
    chance.shuffle(deck)
    size = int(game.public.hand_size)
    seats = [seat for seat in range(game.players) if game.public.seats >> seat & 1]
    return {seat: "".join(deck.pop() for _ in range(size)) for seat in seats}


@given(all_rules())
def test_rules_go_to_one_line_and_back(rules: Rules) -> None:
    line = str(rules)
    assert "\n" not in line
    assert Rules.of(line) == rules


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_written_by_name(name: str) -> None:
    assert str(Rules.preset(name)) == {"gurka": "cucumber"}.get(name, name)


def test_seeds_beyond_64_bits_are_stored_as_the_word_they_stand_for() -> None:
    game = Game.new(seed=10**30)
    assert game.key is not None
    assert game.key[0] < 2**64
    assert Game.new(seed=game.key[0]).hands == game.hands
    assert_round_trip(game)
    assert_round_trip(Game.new(seed=2**64 - 1, game=2**63 - 1, episode_index=2**63 - 1))


def test_a_round_alone_is_text_too() -> None:
    record = MatchRecord.parse(GOLDEN["revival"])
    for round_ in record.rounds:
        assert Round.parse(str(round_)) == round_
    assert record.rounds[7].answers == (Decision(2, "skip"),)
    assert record.rounds[7].tricks[0] == Trick(3, "459")
    assert record.rounds[7].hands == {0: "256789K", 2: "57899JA", 3: "456789K"}


def test_comments_empty_lines_and_the_order_of_cards_do_not_matter() -> None:
    text = GOLDEN["given"]
    loose = text.replace("1: 599", "# a lead in the middle\r\n\n  1:  599   # taken by seat 0").replace(
        "2479TQA", "A2947QT"
    )
    assert loose != text
    assert Game.from_record(loose).record() == text


def test_the_record_in_the_documentation_is_one() -> None:
    block = (records.__doc__ or "").partition("::\n\n")[2].partition("\nA line that begins")[0]
    text = textwrap.dedent(block).rstrip() + "\n"
    assert Game.from_record(text).record() == text


def naive_replay(record: MatchRecord) -> None:
    """Play a record with the naive game and assert that it agrees with every line."""

    def deal(index: int, seats: list[int], _size: int) -> dict[int, list[int]]:
        hands = record.rounds[index].hands or {}
        assert sorted(hands) == seats
        return {seat: ranks_of(hand) for seat, hand in hands.items()}

    rules = ReferenceRules(**dataclasses.asdict(record.rules))
    naive = ReferenceGame(rules, record.players, record.rounds[0].dealer, deal, record.episode)
    if record.rounds[0].totals is not None:
        naive.totals = list(record.rounds[0].totals.values())
    for number, told in enumerate(record.rounds, 1):
        assert (number, told.dealer, told.sudden_death) == (naive.round + 1, naive.dealer, bool(naive.tied))
        if record.episode == "match":
            assert told.totals == dict(enumerate(naive.totals))
        naive_round(naive, told)
    assert (naive.phase == "over") == (record.placement is not None)
    if record.placement is not None:
        assert record.placement == dict(enumerate(naive.placement))
        assert record.totals == (dict(enumerate(naive.totals)) if record.episode == "match" else None)


def naive_round(naive: ReferenceGame, told: Round) -> None:
    """Play a round with the naive game and assert who decides, who pays and who is out."""
    cards = [(trick.leader, trick.plays) for trick in told.tricks]
    before = set(naive.alive)
    charged = None
    if told.choice is not None:
        assert naive.turn == told.choice.seat
        naive.play(action_id(told.choice.action))
    for leader, plays in cards:
        assert naive.turn == leader
        for card in plays:
            charged = naive.play(action_id(card))
    assert told.pays == (None if charged is None else {seat: points for seat, points in enumerate(charged) if points})
    assert set(told.out) == before - naive.alive
    for answer in told.answers:
        assert naive.turn == answer.seat
        naive.play(action_id(answer.action))


def test_golden_records_cover_what_can_happen() -> None:
    every = "\n".join(GOLDEN.values())
    for word in ("deal 1", "chip", "skip", "decline", "sudden death", "given", "seed none", "unfinished", "out 0 2"):
        assert word in every, word
    assert sum(map(len, GOLDEN.values())) < 10_000


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_records_replay(name: str) -> None:
    assert Game.from_record(GOLDEN[name]).record() == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_records_agree_with_the_naive_game(name: str) -> None:
    naive_replay(MatchRecord.parse(GOLDEN[name]))


@pytest.mark.parametrize("name", [name for name, text in GOLDEN.items() if "given" not in text])
def test_golden_records_come_from_their_seed(name: str) -> None:
    record = MatchRecord.parse(GOLDEN[name])
    assert record.key is not None
    seed, index, episode_index = record.key
    game = Game.new(record.rules, record.players, seed, record.episode, game=index, episode_index=episode_index)
    for _, action in Game.from_record(GOLDEN[name]).history:
        game.play(action)
    assert game.record() == GOLDEN[name]


def refused(text: str) -> RecordError:
    with pytest.raises(RecordError) as caught:
        Game.from_record(text)
    return caught.value


BAD = [
    ("given", "cucumber record 1", "cucumber record 2", 1, r"record version 2 .* this one reads 1"),
    ("given", "rules version 1", "rules version 7", 1, r"rules version 7 .* this one reads 1"),
    ("given", "cucumber record 1, rules", "PGN", 1, r"expected 'cucumber record 1, rules version 1', found 'PGN"),
    ("given", "rules cucumber\n", "rules cucmber\n", 2, r"did you mean 'cucumber'"),
    ("given", "rules cucumber\n", "rules cucumber,hand_size=0\n", 2, r"hand_size=0 is out of range"),
    ("given", "players 3", "players 8", 3, r"players=8 is out of range; allowed: 2 to 7"),
    ("given", "players 3", "players two", 3, r"expected a number, found 'two'"),
    ("given", "players 3\n", "", 3, r"expected a line that begins with 'players', found 'episode round'"),
    ("given", "episode round", "episode game", 4, r"expected 'match' or 'round', found 'game'"),
    ("given", "seed none", "seed -1", 5, r"expected 'none' or numbers such as '7, game 0, episode 0'"),
    ("given", "seed none", f"seed {2**64}, game 0, episode 0", 5, r"out of range"),
    ("given", "seed none", f"seed 0, game {2**63}, episode 0", 5, r"game .* is out of range"),
    ("given", "round 1, dealer 0", "round 2, dealer 0", 7, r"which makes it 'round 1, dealer 0'"),
    ("given", "round 1, dealer 0", "round 1, dealer 3", 7, r"dealer 3 is no seat; seats: 0 to 2"),
    ("given", "given 0:2479TQA", "totals 0:0 1:0 2:0\ngiven 0:2479TQA", 8, r"totals=.* belong to matches"),
    ("given", "0:2479TQA", "0:2479TXA", 8, r"seat 0: .*'X' is no rank"),
    ("given", "0:2479TQA", "0:2479TQ", 8, r"seat 0 has 6 cards; each is dealt 7"),
    ("given", "0:2479TQA ", "", 8, r"hands for seats \[1, 2\]; those that take part: \[0, 1, 2\]"),
    ("given", "0:2479TQA", "0:2666TQA", 8, r"5 cards of rank 6 in the hands; the deck has 4"),
    ("given", "1:358JJKA", "0:358JJKA", 8, r"seat 0 stands there twice"),
    ("given", "given", "dealt", 8, r"without a seed, write 'given'"),
    ("given", "1: 599", "1: 5X9", 9, r"play 2 of '1: 5X9': 'X' is no rank; ranks: 23456789TJQKA"),
    ("given", "1: 599", "1: 699", 9, r"trick 1, play 1 \(6\): .*seat 1.*no such card in hand.*legal: 3, 5, 8, J, K, A"),
    ("given", "1: 599", "1: 549", 9, r"trick 1, play 2 \(4\): .*seat 2 is illegal; legal: 6, 8, 9, K"),
    ("given", "0: A32", "0: A35", 10, r"trick 2, play 3 \(5\): .*no such card in hand"),
    ("given", "0: TJK", "0: TJ", 12, r"trick 4, play 1 \(8\): trick 3 still lacks the play of seat 2"),
    ("given", "0: TJK", "0: TJK8", 11, r"trick 3, play 4 \(8\): the trick is complete with 3 plays"),
    ("given", "0: TJK", "1: TJK", 11, r"trick 3, play 1 \(T\): seat 1 leads, but it is for seat 0 to lead"),
    ("given", "1: 867", "1: 867\n1: 2", 16, r"trick 8, play 1 \(2\): the round has been played out"),
    ("given", "1: 867", "1: 867\n1: chip", 17, r"'pays 1:8' is out of place here, or unknown"),
    ("given", "pays 1:8", "pays 1:9", 16, r"'pays 1:9' does not agree with what was played: 'pays 1:8'"),
    ("given", "pays 1:8", "pays 2:8", 16, r"'pays 2:8' does not agree"),
    ("given", "pays 1:8\n", "", 15, r"'pays 1:8' should follow, but is missing"),
    ("given", "pays 1:8", "pays 1:8\nout 1", 17, r"'out 1' does not agree with what was played"),
    ("given", "pays 1:8", "pays 1:8\n\nround 2, dealer 1", 18, r"round 2 begins, but the round is over"),
    ("given", "1:3 2:1", "1:2 2:3", 19, r"'placement 0:1 1:2 2:3' does not agree .* 'placement 0:1 1:3 2:1'"),
    ("given", "end\nplacement 0:1 1:3 2:1", "unfinished", 18, r"the round is over, but its end is missing"),
    ("given", "1: 867\npays 1:8\n", "", 16, r"the round ends here, but seat 1 is still to decide"),
    ("given", "placement 0:1 1:3 2:1\n", "", 18, r"expected a line that begins with 'placement', found the end"),
    ("given", "2:1\n", "2:1\nend\n", 20, r"'end' follows the end of the record"),
    ("given", "pays 1:8", "pay 1:8", 16, r"'pay 1:8' is out of place here, or unknown"),
    ("given", "1: 599\n0: A32", "1: 599\nround 2, dealer 1\n0: A32", 10, r"but in round 1 seat 0 is still to decide"),
    ("concombre", "1: deal", "0: deal", 9, r"out of turn: it is for seat 1 to decide"),
    ("concombre", "1: deal 3", "1: deal 6", 9, r"action 'deal 6' of seat 1 is illegal; legal: deal 1, deal 2"),
    ("concombre", "1: deal 3", "1: deal 9", 9, r"action 'deal 9' does not exist"),
    ("concombre", "1: deal 3\n", "", 9, r"no cards are dealt now: the dealer has not chosen how many"),
    ("concombre", "1: deal 3\n", "1: deal 3\n2: deal 3\n", 10, r"'2: deal 3' is a second choice in round 1"),
    ("revival", "1: decline", "1: pass", 91, r"'1: pass' is out of place here, or unknown"),
    ("revival", "1: decline", "2: decline", 91, r"'2: decline' is out of turn: it is for seat 1 to decide"),
    (
        "revival",
        "2: skip\n",
        "2: skip\n2: chip\n",
        106,
        r"'2: chip' is out of place: round 8 has no offer of revival open",
    ),
    ("revival", "out 1\n1: decline\n", "out 1\n", 92, r"round 8 begins, but in round 7 seat 1 is still to decide"),
    ("revival", "out 1\n", "", 90, r"'out 1' should follow, but is missing"),
    ("revival", "2:23 3:23", "2:24 3:23", 120, r"'totals 0:12 1:33 2:24 3:23' does not agree .*2:23"),
    ("revival", "dealt 0:2458JQK", "dealt 0:2459JQK", 9, r"does not agree with what was played: 'dealt 0:2458JQK"),
    ("revival", "dealt 0:2458JQK", "given 0:2459JQK", 16, r"trick 7, play 3 \(8\): .*no such card in hand"),
    ("express", ", sudden death", "", 23, r"which makes it 'round 3, dealer 2, sudden death'"),
    ("unfinished", "given", "dealt", 7, r"which makes it 'round 1, dealer 1'"),
    ("unfinished", "totals 0:29", "totals 0:30", 8, r"totals\[0\]=30 is out of range; allowed: 0 to 29"),
    (
        "unfinished",
        "totals 0:29 1:0 ",
        "totals 0:29 ",
        8,
        r"does not agree with what was played: 'totals 0:29 1:0 2:17'",
    ),
    ("unfinished", "dealt 0:67T", "given 0:67T", 17, r"these cards come from the seed"),
]
"""Golden record, what in it is replaced, by what, the line that must be named, and why (a pattern)."""


@pytest.mark.parametrize(("name", "old", "new", "line", "why"), BAD)
def test_bad_records_say_which_line_and_why(name: str, old: str, new: str, line: int, why: str) -> None:
    assert old in GOLDEN[name]
    error = refused(GOLDEN[name].replace(old, new, 1))
    assert (error.line, str(error).startswith(f"line {line}: ")) == (line, True), str(error)
    with pytest.raises(RecordError, match=why):
        raise error


def test_the_versions_are_the_current_ones() -> None:
    assert Game.new().record().startswith(f"cucumber record {RECORD_VERSION}, rules version {RULES_VERSION}\n")


def test_an_empty_text_and_other_types_are_refused() -> None:
    assert "found the end of the text" in str(refused(""))
    with pytest.raises(TypeError, match="must be text, got bytes"):
        Game.from_record(b"cucumber record")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", GOLDEN)
def test_a_record_cut_short_is_refused(name: str) -> None:
    lines = GOLDEN[name].splitlines()
    for kept in range(len(lines)):
        error = refused("\n".join(lines[:kept]))
        assert error.line <= max(kept, 1)


@pytest.mark.parametrize("name", [name for name in GOLDEN if name != "unfinished"])
def test_a_finished_record_that_lacks_a_line_is_refused(name: str) -> None:
    lines = GOLDEN[name].splitlines()
    for number, line in enumerate(lines):
        if line:
            refused("\n".join(lines[:number] + lines[number + 1 :]))


@pytest.mark.parametrize("name", ["wikipedia", "concombre", "given"])
def test_no_letter_can_be_changed(name: str) -> None:
    text = GOLDEN[name]
    chance = Random(name)
    for at in range(len(text)):
        other = chance.choice([letter for letter in "0123456789TJQKA:, #-x" if letter != text[at]])
        assert_refused_or_the_same(text[:at] + other + text[at + 1 :], text)


@settings(max_examples=200)
@given(st.sampled_from(sorted(GOLDEN)), st.data())
def test_damaged_records_are_refused_or_tell_a_game(name: str, data: st.DataObject) -> None:
    text = GOLDEN[name]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 30, len(text))))
    other = data.draw(st.text("0123456789TJQKA:,# \n-dealtgivn", max_size=8) | st.text(max_size=3))
    try:
        game = Game.from_record(text[:start] + other + text[end:])
    except RecordError:
        return
    assert_round_trip(game)


def assert_refused_or_the_same(changed: str, text: str) -> None:
    """A change is noticed, or (in white space) means nothing."""
    try:
        game = Game.from_record(changed)
    except RecordError:
        return
    assert game.record() == text


def test_errors_survive_pickling() -> None:
    error = refused("nonsense")
    again = pickle.loads(pickle.dumps(error))
    assert (again.line, again.reason, str(again)) == (1, error.reason, str(error))

"""The worked cases of the rules against the kernel, through the calls that the environments make.

A case sets up a situation in `PUBLIC` and `GAME` records; `legal_now`, `play`, `advance` and `settle` do
the rest. No rule is written here. The head of rule_cases.yaml defines the kinds and their keys; a kind,
variant or key that is not listed in `FORM` fails. Further files of the same form run beside it::

    pytest tests/test_rule_cases.py --rule-cases FILE
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tables import Table, members, packed, ranks_of, text_of

from cucumber_env.rules import FIELDS, MAX_SEATS, PRESETS, Rules
from cucumber_env.state import CHIP, DEAL_ONE, DECLINE, SKIP

OWN_CASES = Path(__file__).with_name("rule_cases.yaml")

SHARED = ({"id", "kind", "variant", "expect"}, {"rules", "source", "note"})
FORM: dict[str, tuple[set[str], set[str], set[str]]] = {
    "legal": ({"plays", "hand"}, {"n", "leader", "out"}, {"legal"}),
    "trick": ({"n", "leader", "plays"}, {"out"}, {"winner", "next_leader"}),
    "last_trick": ({"n", "leader", "plays"}, {"out"}, {"taker", "penalties"}),
    "match": (
        {"n", "totals", "penalties"},
        {"last_round", "sudden_death", "out_before"},
        {"totals", "out", "status", "tied", "winner", "losers", "best"},
    ),
    "seat": ({"n", "dealer"}, {"out"}, {"leader", "next_dealer", "next_leader"}),
    "deal": ({"n", "hand_size"}, set(), {"ok", "undealt"}),
    "revive": (
        {"n", "totals", "seat", "how"},
        {"used", "out_before"},
        {"ok", "total", "plays_next_round", "rounds_skipped", "out"},
    ),
    "trace": ({"n", "hands", "dealer"}, {"out"}, {"tricks"}),
}
"""By kind: the keys it must have, those it may have, and those that can be expected."""

TRACE_FORM = ({"leader", "plays", "winner"}, {"legal", "penalties"})
ANSWERS = {"chip": CHIP, "skip": SKIP, "decline": DECLINE}


def load(path: Path) -> list[dict[str, Any]]:
    """The cases of a file, which must hold some and nothing else."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or set(content) != {"cases"} or not content["cases"]:
        raise pytest.UsageError(f"{path}: expected one key, cases, with a list of at least one case")
    return content["cases"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the own cases and those of every ``--rule-cases FILE``."""
    if "case" not in metafunc.fixturenames:
        return
    parameters = []
    for path in [OWN_CASES, *map(Path, metafunc.config.getoption("--rule-cases"))]:
        stem = "" if path == OWN_CASES else f"{path.stem}-"
        parameters += [
            pytest.param(case, id=f"{stem}{case.get('id', number)}" if isinstance(case, dict) else f"{stem}{number}")
            for number, case in enumerate(load(path))
        ]
    metafunc.parametrize("case", parameters)


def test_case(case: dict[str, Any]) -> None:
    check_case(case)


def check_case(case: dict[str, Any]) -> None:
    """Run one case.

    Raises:
        AssertionError: the kernel does not answer as expected, or the case is not of a known form.
    """
    check_form(case)
    wanted = case["expect"]
    answer = RUNNERS[case["kind"]](case)
    for key, value in wanted.items():
        assert key in answer, f"{case['id']}: {key} is never the answer to a case like this; answered: {answer}"
        assert answer[key] == normal(key, value), f"{case['id']}: {key}"


def normal(key: str, value: Any) -> Any:
    """An expected value in the form in which the runners answer."""
    if key == "penalties":
        return {int(seat): amount for seat, amount in value.items()}
    if key == "tricks":
        return [{name: normal(name, item) for name, item in trick.items()} for trick in value]
    return value


def check_keys(what: str, keys: Any, required: set[str], optional: set[str]) -> None:
    assert isinstance(keys, dict), f"{what} must be a mapping"
    assert set(keys) <= required | optional, f"{what} has unknown keys {sorted(set(keys) - required - optional)}"
    assert required <= set(keys), f"{what} lacks {sorted(required - set(keys))}"


def check_form(case: dict[str, Any]) -> None:
    """Refuse a case with a kind, variant or key that this module does not know."""
    assert isinstance(case, dict)
    assert case.get("kind") in FORM, f"unknown kind {case.get('kind')!r}"
    required, optional, expected = FORM[case["kind"]]
    check_keys(f"case {case.get('id')}", case, SHARED[0] | required, SHARED[1] | optional)
    assert case["variant"] in PRESETS, f"unknown variant {case['variant']!r}"
    check_keys(f"rules of {case['id']}", case.get("rules", {}), set(), set(FIELDS))
    check_keys(f"expect of {case['id']}", case["expect"], set(), expected)
    assert case["expect"], f"case {case['id']} expects nothing"
    for trick in case["expect"].get("tricks", []):
        check_keys(f"a trick of {case['id']}", trick, *TRACE_FORM)


def rules_of(case: dict[str, Any]) -> Rules:
    return Rules.preset(case["variant"], **case.get("rules", {}))


def table_of(case: dict[str, Any]) -> Table:
    n = case.get("n", MAX_SEATS)
    assert 2 <= n <= MAX_SEATS, f"n={n}: allowed are 2 to {MAX_SEATS}"
    return Table(rules_of(case), n)


def seats_in(case: dict[str, Any], num_players: int) -> list[int]:
    """Seats that are not out, ascending."""
    out = case.get("out", [])
    assert set(out) <= set(range(num_players)), f"out={out}: seats are 0 to {num_players - 1}"
    return [seat for seat in range(num_players) if seat not in out]


def clockwise(seats: list[int], first: int) -> list[int]:
    """The seats in playing order."""
    assert first in seats, f"seat {first} cannot lead, in are {seats}"
    at = seats.index(first)
    return seats[at:] + seats[:at]


def set_trick(table: Table, order: list[int], cards: list[int], *, tricks: int, last: bool) -> None:
    """A round of `tricks` tricks at its first or last, in which each seat of `order` holds its card of `cards`."""
    table.start(dealer=order[0], match=False, seats=order)
    table.hand_out(dict(zip(order, ([card] for card in cards), strict=False)), hand_size=tricks)
    table.public["trick"] = tricks - 1 if last else 0
    table.public["leader"] = table.public["turn"] = order[0]


def play_trick(case: dict[str, Any], *, last: bool) -> Table:
    """The table after all cards of a complete trick, played one by one."""
    table = table_of(case)
    order = clockwise(seats_in(case, case["n"]), case["leader"])
    cards = ranks_of(case["plays"])
    assert len(cards) == len(order), f"{len(cards)} plays by {len(order)} seats"
    set_trick(table, order, cards, tricks=2, last=last)
    for seat, card in zip(order, cards, strict=True):
        assert table.turn == seat
        table.play(card)
    return table


def penalties_of(table: Table) -> dict[int, int]:
    """Seat -> points, of the seats that pay."""
    return {seat: int(amount) for seat, amount in enumerate(table.public["penalties"]) if amount}


def run_legal(case: dict[str, Any]) -> dict[str, Any]:
    plays = ranks_of(case["plays"])
    table = table_of(case)
    seats = seats_in(case, table.num_players)
    order = clockwise(seats, case.get("leader", seats[0]))
    assert len(plays) < len(order), f"{len(plays)} plays leave none of {len(order)} seats to move"
    set_trick(table, order, plays, tricks=1, last=True)
    table.record["hands"][order[len(plays)]] = packed(ranks_of(case["hand"]))
    for card in plays:
        table.play(card)
    return {"legal": text_of(table.legal())}


def run_trick(case: dict[str, Any]) -> dict[str, Any]:
    table = play_trick(case, last=False)
    assert table.turn == table.public["leader"]
    return {"winner": int(play_trick(case, last=True).public["taker"]), "next_leader": table.turn}


def run_last_trick(case: dict[str, Any]) -> dict[str, Any]:
    table = play_trick(case, last=True)
    return {"taker": int(table.public["taker"]), "penalties": penalties_of(table)}


def set_match(case: dict[str, Any]) -> Table:
    """A match with the totals of a case, in the round that is to be settled."""
    table = table_of(case)
    rules, public, n = table.rules, table.public, table.num_players
    assert len(case["totals"]) == n
    before, tied = case.get("out_before", []), case.get("sudden_death", [])
    assert set(before) | set(tied) <= set(range(n))
    fixed = rules.end == "fixed_rounds"
    assert fixed or not case.get("last_round"), "last_round is about fixed_rounds alone"
    table.start(dealer=0, seats=[seat for seat in range(n) if seat not in before])
    public["round_index"] = 5
    if fixed:
        public["round_index"] = rules.rounds if tied else rules.rounds - 1 if case.get("last_round") else 0
    public["totals"][:n] = case["totals"]
    public["out_round"][before] = 1
    if tied:
        set_sudden_death(table, tied)
    return table


def set_sudden_death(table: Table, tied: list[int]) -> None:
    """These seats play sudden death; unless nobody goes out in this kind of match, all have gone out."""
    public = table.public
    public["tied"] = public["seats"] = sum(1 << seat for seat in tied)
    if table.rules.end != "fixed_rounds":
        public["out_round"][members(public["alive"])] = public["round_index"] - 1
        public["alive"] = 0


def run_match(case: dict[str, Any]) -> dict[str, Any]:
    table = set_match(case)
    penalties = {int(seat): amount for seat, amount in case["penalties"].items()}
    playing, alive = table.seats("seats"), table.seats("alive")
    assert set(penalties) <= set(playing), f"{penalties} are charged, but only {playing} take part"
    table.settle(penalties)
    n, public = table.num_players, table.public
    over, lost = table.phase == "over", table.rules.end == "first_out_loses"
    out = [seat for seat in alive if seat not in table.seats("alive")]
    first = [seat for seat in range(n) if public["placement"][seat] == 1]
    answer: dict[str, Any] = {"totals": public["totals"][:n].tolist(), "out": out, "status": "continue"}
    answer["tied"] = [] if over else table.seats("tied")
    answer["losers"] = out if over and lost else []
    if over:
        answer |= {"status": "lost" if lost else "won", "best": first}
        if not lost:
            (answer["winner"],) = first
    elif answer["tied"]:
        answer["status"] = "sudden_death"
    return answer


def run_seat(case: dict[str, Any]) -> dict[str, Any]:
    table = table_of(case)
    table.start(dealer=case["dealer"], seats=seats_in(case, case["n"]))
    answer = {"leader": int(table.public["leader"])}
    table.settle({})
    return answer | {"next_dealer": int(table.public["dealer"]), "next_leader": int(table.public["leader"])}


def run_deal(case: dict[str, Any]) -> dict[str, Any]:
    try:
        rules = rules_of(case)
        rules.check_players(case["n"])
    except ValueError as refusal:
        if str(refusal).split("=")[0] in ("hand_size", "players", "num_players"):
            return {"ok": False}
        raise
    table = table_of(case).begin()
    wanted = case["hand_size"]
    if table.phase == "choose":
        if DEAL_ONE + wanted - 1 not in table.legal():
            return {"ok": False}
        table.play(DEAL_ONE + wanted - 1)
    dealt = [len(table.hand(seat)) for seat in range(case["n"])]
    return {"ok": dealt == [wanted] * case["n"], "undealt": rules.deck_size - sum(dealt)}


def run_revive(case: dict[str, Any]) -> dict[str, Any]:
    table, seat = set_match(case), case["seat"]
    answer = ANSWERS[case["how"]]
    if case.get("used", False):
        table.public["revived"] = 1 << seat
    table.settle({})
    decline_others(table, seat)
    ok = table.turn == seat and table.phase == "revive" and answer in table.legal()
    if ok:
        table.advance(answer)
    elif table.turn == seat and table.phase == "revive":
        table.advance(DECLINE)
    total = int(table.public["totals"][seat])
    decline_others(table, seat)
    over, back = table.phase == "over", seat in table.seats("alive")
    result = {"ok": ok, "out": not back, "plays_next_round": not over and seat in table.seats("seats")}
    if ok and back and not over:
        result["rounds_skipped"] = rounds_until_back(table, seat)
        total = total if answer == CHIP else int(table.public["totals"][seat])
    return result | {"total": total}


def decline_others(table: Table, seat: int) -> None:
    """Every offer to a seat but `seat` is declined."""
    while table.phase == "revive" and table.turn != seat:
        table.advance(DECLINE)


def rounds_until_back(table: Table, seat: int) -> int:
    """Rounds, costing nothing, that are played before `seat` takes part again."""
    rounds = 0
    while seat not in table.seats("seats"):
        rounds += 1
        table.settle({})
    return rounds


def run_trace(case: dict[str, Any]) -> dict[str, Any]:
    table = table_of(case)
    seats = seats_in(case, case["n"])
    hands = [ranks_of(hand or "") for hand in case["hands"]]
    assert len(hands) == case["n"]
    assert {bool(hands[seat]) for seat in seats} == {True}
    assert len({len(hand) for hand in hands if hand}) == 1
    assert sum(map(bool, hands)) == len(seats), "seats that are out hold no cards"
    table.start(dealer=case["dealer"], match=False, seats=seats)
    if table.phase == "choose":
        choice = DEAL_ONE + len(hands[seats[0]]) - 1
        assert choice in table.legal()
        table.advance(choice)
    table.hand_out({seat: hands[seat] for seat in seats}, hand_size=len(hands[seats[0]]))
    played = [trace_trick(table, trick) for trick in case["expect"]["tricks"]]
    assert table.phase == "over", "a trace is a whole round"
    return {"tricks": played}


def trace_trick(table: Table, wanted: dict[str, Any]) -> dict[str, Any]:
    """Play the cards of a trick and answer whatever is wanted of it."""
    cards = ranks_of(wanted["plays"])
    assert len(cards) == len(table.seats("seats"))
    assert table.turn == table.public["leader"]
    answer: dict[str, Any] = {"leader": table.turn, "plays": wanted["plays"], "legal": []}
    for card in cards:
        assert card in table.hand(table.turn), f"seat {table.turn} does not hold {text_of([card])}"
        assert card in table.legal(), f"seat {table.turn} may not play {text_of([card])}"
        answer["legal"].append(text_of(table.legal()))
        table.play(card)
    over = table.phase == "over"
    answer["winner"] = int(table.public["taker"]) if over else table.turn
    answer["penalties"] = penalties_of(table)
    return {key: answer[key] for key in wanted}


RUNNERS = {
    "legal": run_legal,
    "trick": run_trick,
    "last_trick": run_last_trick,
    "match": run_match,
    "seat": run_seat,
    "deal": run_deal,
    "revive": run_revive,
    "trace": run_trace,
}


OWN = {case["id"]: case for case in load(OWN_CASES)}


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return "23" if value != "23" else "24"
    if isinstance(value, dict):
        return {**value, "0": value.get("0", 0) + 1}
    return [*value, 0]


def test_every_expectation_matters() -> None:
    """With any one expected value changed, a case fails."""
    for case in OWN.values():
        for key in case["expect"]:
            wrong = copy.deepcopy(case)
            if key == "tricks":
                wrong["expect"]["tricks"][-1]["winner"] += 1
            else:
                wrong["expect"][key] = changed(wrong["expect"][key])
            with pytest.raises((AssertionError, ValueError, IndexError)):
                check_case(wrong)


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("C02", ("kind",), "legall"),
        ("C02", ("variant",), "cucmber"),
        ("C02", ("hnad",), "4"),
        ("C02", ("expect", "leagl"), "Q"),
        ("C02", ("expect",), {}),
        ("C34", ("rules", "odrer"), "natural"),
        ("C34", ("rules", "order"), "naturel"),
        ("M01", ("sudden_deth",), [0]),
        ("M01", ("last_round",), True),
        ("M01", ("penalties",), {"7": 4}),
        ("M31", ("expect", "placement"), [1, 2, 3]),
        ("R01", ("how",), "buy"),
        ("R01", ("plays",), "4"),
        ("D02", ("rules",), {"follow": "maybe"}),
        ("X03", ("expect", "tricks", 0, "taker"), 0),
        ("X03", ("expect", "tricks", 0, "plays"), "3"),
        ("X03", ("hands",), ["5QA", "36"]),
    ],
)
def test_what_is_not_known_fails(name: str, path: tuple[Any, ...], value: Any) -> None:
    case = copy.deepcopy(OWN[name])
    inner = case
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises((AssertionError, ValueError, KeyError)):
        check_case(case)


@pytest.mark.parametrize("text", ["cases: []", "[]", "cases: [{}]\nextra: 1", ""])
def test_a_file_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(text)
    with pytest.raises(pytest.UsageError, match=r"cases\.yaml"):
        load(path)

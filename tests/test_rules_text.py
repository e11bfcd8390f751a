"""Rules written as one line of text: a preset and changes."""

from __future__ import annotations

import pytest

from cucumber_env.rules import Rules


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("cucumber", Rules()),
        ("cucumber,hand_size=3,threshold=21", Rules(hand_size=3, threshold=21)),
        (" cucumber , players = 2-4 ", Rules(players=(2, 4))),
        ("concombre,hand_size=2-4,order=natural", Rules.preset("concombre", hand_size=(2, 4), order="natural")),
        ("cucumber,threshold=None,end=fixed_rounds,rounds=5", Rules(threshold=None, end="fixed_rounds", rounds=5)),
        ("express,rounds=2", Rules.preset("express", rounds=2)),
        ("cucumber,revival=none,ace_lead=none", Rules(ace_lead="none")),
        ("cucumber,hand_size=2,ranks=23456789,copies=2", Rules(hand_size=2, ranks="23456789", copies=2)),
    ],
)
def test_text_is_a_preset_with_changes(text: str, rules: Rules) -> None:
    assert Rules.of(text) == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown preset ''"),
        ("cucmber,hand_size=3", "unknown preset 'cucmber' .did you mean 'cucumber'"),
        ("cucumber,", "'' must be FIELD=VALUE"),
        ("cucumber,hand_size", "'hand_size' must be FIELD=VALUE"),
        ("cucumber,handsize=3", "unknown field 'handsize' .did you mean 'hand_size'"),
        ("cucumber,hand_size=", "hand_size='' must be an integer"),
        ("cucumber,hand_size=three", "hand_size='three' must be an integer such as 3, a range such as 1-5, or none"),
        ("cucumber,hand_size=8", "hand_size=8 is out of range; allowed: 1 to 7"),
        ("cucumber,hand_size=5-3", r"hand_size=\(5, 3\) is empty"),
        ("cucumber,players=4", r"players=4 must be a pair \(low, high\)"),
        ("cucumber,threshold=none", "threshold=None under end='last_survivor'"),
        ("cucumber,payer=none", "payer='none' is not one of its values"),
        ("cucumber,hand_size=3,hand_size=4", "field 'hand_size' is given twice"),
    ],
)
def test_bad_text_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Rules.of(text)

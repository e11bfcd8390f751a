"""Agents that ship and play without torch: what they answer, at which tables, and which files are refused."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import export
from agents.checkpoint import Card, save_agent
from agents.network import ActorCritic
from agents.policy import NetworkPolicy
from agents.tables import Table
from cucumber_env import arena, champion, policies
from cucumber_env.champion import Champion
from cucumber_env.envs.vector import SelfPlay
from cucumber_env.observation import OBSERVATION_VERSION, Layout
from cucumber_env.policies import Turns
from cucumber_env.rules import RULES_VERSION, Rules
from cucumber_env.state import REVIVE, SKIP

ROOT = Path(__file__).parent.parent
Tables = Iterable[tuple[str, int]]


def write_agent(
    folder: Path, name: str = "mine", tables: Tables = (("three_card", 2),), *, scale: float = 1.0, **changes: Any
) -> dict[str, np.ndarray]:
    """A small made-up agent on disk, with `changes` to its card; returns its weights."""
    seated = [(Rules.of(rules), players) for rules, players in tables]
    episode, seats = changes.get("episode", "round"), changes.get("seats")
    card = {
        "format": 1,
        "name": name,
        "tables": [{"rules": rules.to_dict(), "players": players} for rules, players in seated],
        "episode": episode,
        "seats": seats,
        "width": Layout.of(*seated[0], episode, seats).size,
        "actions": 23 if seats else seated[0][0].num_actions,
        "hidden": [12, 9],
        "rules_version": RULES_VERSION,
        "observation_version": OBSERVATION_VERSION,
        "training": {"turns": 5},
        "strength": [],
    }
    weights = weights_for(card, scale=scale)
    (folder / f"{name}.json").write_text(json.dumps({**card, **changes}))
    np.savez(folder / f"{name}.npz", **weights)  # type: ignore[arg-type]
    return weights


def weights_for(card: dict[str, Any], *, scale: float = 1.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(sum(map(ord, card["name"])))
    weights: dict[str, np.ndarray] = {}
    for layer, (inputs, outputs) in enumerate(pairwise([card["width"], *card["hidden"], card["actions"]])):
        weights[f"{layer}.weight"] = (rng.normal(size=(outputs, inputs)) * scale).astype(np.float16)
        weights[f"{layer}.bias"] = rng.normal(size=outputs).astype(np.float16)
    return weights


def answer(weights: dict[str, np.ndarray], observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """What a network with these weights says, one decision after the other, in double precision."""
    said = np.zeros(mask.shape)
    layers = len(weights) // 2
    for row, numbers in enumerate(observation.astype(float)):
        for layer in range(layers):
            numbers = weights[f"{layer}.weight"].astype(float) @ numbers + weights[f"{layer}.bias"].astype(float)
            if layer < layers - 1:
                numbers[numbers < 0] = 0
        legal = np.flatnonzero(mask[row])
        likely = np.exp(numbers[legal] - numbers[legal].max())
        said[row, legal] = likely / likely.sum()
    return said


def met(rules: str | Rules, players: int, episode: str = "round", *, steps: int = 12, games: int = 40) -> list[Turns]:
    """Batches of decisions met at random."""
    play = SelfPlay(rules, num_games=games, num_players=players, episode=episode, observe=False)
    play.reset(seed=3)
    batches = []
    for _ in range(steps):
        batches.append(play.turns())
        play.step(policies.make("random").act(batches[-1]))
    return batches


def test_what_ships_plays_at_its_tables() -> None:
    assert champion.shipped()
    for name in champion.shipped():
        card = champion.read_card(None, name)
        policy = policies.make(f"champion:{name}")
        for rules, players in card.tables[:8]:
            for episode in {card.episode, "match"}:
                for turns in met(rules, players, episode, steps=6):
                    said = policy.probabilities(turns)
                    assert said.dtype == np.float32
                    np.testing.assert_array_equal(said[turns.mask == 0], 0)
                    np.testing.assert_allclose(said.sum(axis=1), 1, rtol=1e-6)
                    assert turns.mask[np.arange(len(turns)), policy.act(turns)].all()


def test_what_ships_is_small_and_says_what_it_is() -> None:
    for name in champion.shipped():
        files = [Path(champion.__file__).parent / "champions" / f"{name}{kind}" for kind in (".json", ".npz")]
        assert sum(file.stat().st_size for file in files) <= 1_000_000
        card = champion.read_card(None, name)
        assert {"turns", "seed"} <= card.training.keys()


def test_it_beats_the_strongest_simple_player() -> None:
    result = arena.compare_with("champion", ["highest"], deals=2000, seed=7)[0]
    assert result.difference.sign == -1
    assert result.score.mean < 1.6  # `highest` pays 2.2 in its place


@pytest.mark.parametrize(
    ("tables", "seats", "at", "episode"),
    [
        ([("three_card", 2)], None, ("three_card", 2), "round"),
        ([("concombre", 5)], None, ("concombre", 5), "round"),
        ([("cucumber", 3)], None, ("cucumber", 3), "match"),
        ([("cucumber", 4), ("agurk", 2), ("concombre", 3)], 8, ("agurk", 2), "match"),  # 13 of 23 outputs
        ([("cucumber", 4), ("agurk", 2), ("concombre", 3)], 8, ("concombre", 3), "round"),
    ],
)
def test_it_is_the_network_on_disk(
    tables: Tables, seats: int | None, at: tuple[str, int], episode: str, tmp_path: Path
) -> None:
    weights = write_agent(tmp_path, tables=tables, seats=seats, scale=0.3)
    policy = policies.make(f"champion:mine,folder={tmp_path}")
    for turns in met(*at, episode):
        own = Layout.of(Rules.of(at[0]), at[1], "round", seats)
        observation = turns.observe(seats) if episode == "round" else round_of(turns, seats)
        assert observation.shape[1] == own.size
        said = policy.probabilities(turns)
        np.testing.assert_allclose(said, answer(weights, observation, turns.mask), atol=1e-5)
        np.testing.assert_array_equal(said[turns.mask == 0], 0)


def round_of(turns: Turns, seats: int | None) -> np.ndarray:
    """What seats in a match would observe if the round were the whole episode."""
    return Turns(turns.rules, turns.num_players, "round", turns.views, turns.mask, turns.u).observe(seats)


@pytest.mark.parametrize("actions", [13, 23])
def test_torch_says_the_same(actions: int, tmp_path: Path) -> None:
    rules = "cucumber" if actions == 13 else "concombre"
    weights = write_agent(tmp_path, tables=[(rules, 4)], scale=0.3)
    sizes = [weights["0.weight"].shape[1], 12, 9, actions]
    layers = [torch.nn.Linear(*pair) for pair in pairwise(sizes)]
    network = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    for number, layer in enumerate(layers):
        layer.load_state_dict(
            {kind: torch.from_numpy(weights[f"{number}.{kind}"]).float() for kind in ("weight", "bias")}
        )
    for turns in met(rules, 4):
        with torch.no_grad():
            logits = network(torch.from_numpy(turns.observation).float())
        expected = torch.softmax(logits.masked_fill(torch.from_numpy(turns.mask) == 0, -torch.inf), dim=1).numpy()
        said = Champion("mine", folder=tmp_path).probabilities(turns)
        np.testing.assert_allclose(said, expected, atol=1e-5)


def test_greedy_is_the_likeliest_action(tmp_path: Path) -> None:
    write_agent(tmp_path)
    drawn, greedy = (policies.make(f"champion:mine,folder={tmp_path}{option}") for option in ("", ",greedy=1"))
    for turns in met("three_card", 2):
        actions = greedy.act(turns)
        np.testing.assert_array_equal(actions, drawn.probabilities(turns).argmax(axis=1))
        np.testing.assert_array_equal(greedy.probabilities(turns), np.eye(13)[actions])


def test_a_decision_does_not_depend_on_its_batch() -> None:
    """To the last bit: products of other shapes are rounded otherwise."""
    policy = policies.make("champion")
    rng = np.random.default_rng(1)
    for turns in met("cucumber", 4, games=300, steps=6):
        said = policy.probabilities(turns)
        for size in (0, 1, 2, 15, 16, 17, 90):
            rows = rng.choice(len(turns), size, replace=False)
            np.testing.assert_array_equal(policy.probabilities(turns.select(rows)), said[rows])


def who(policy: Champion, at: tuple[str, int], episode: str, folder: Path) -> str:
    """The agent of `folder` that answers, told by its answers."""
    turns = met(*at, episode, steps=3, games=8)[-1]
    said = policy.probabilities(turns)
    names = sorted(path.stem for path in folder.glob("*.json"))
    answers = [Champion(name, folder=folder) for name in names]
    same = []
    for name, one in zip(names, answers, strict=True):
        try:
            same += [name] if np.array_equal(one.probabilities(turns), said) else []
        except ValueError:  # not for this table
            continue
    (found,) = same
    return found


def test_the_table_chooses_the_agent(tmp_path: Path) -> None:
    every = [("three_card", 2), ("three_card", 3), ("agurk", 3)]
    write_agent(tmp_path, "all", every, seats=8)
    write_agent(tmp_path, "three", [("three_card", 2)])
    write_agent(tmp_path, "two", [("agurk", 3)], episode="match")
    policy = Champion(folder=tmp_path)
    assert who(policy, ("three_card", 2), "round", tmp_path) == "three"
    assert who(policy, ("three_card", 2), "match", tmp_path) == "three"
    assert who(policy, ("three_card", 3), "round", tmp_path) == "all"
    assert who(policy, ("agurk", 3), "round", tmp_path) == "all"  # the specialist knows whole matches alone
    assert who(policy, ("agurk", 3), "match", tmp_path) == "two"


def test_a_table_without_an_agent_is_told_which_there_are(tmp_path: Path) -> None:
    write_agent(tmp_path, "all", [("agurk", 4), ("agurk", 2), ("concombre", 3)], seats=8)
    write_agent(tmp_path, "two", [("cucumber,hand_size=5", 2)], episode="match")
    turns = met("cucumber", 4, steps=1)[0]
    with pytest.raises(ValueError) as caught:
        Champion(folder=tmp_path).probabilities(turns)
    assert str(caught.value) == (
        "no agent was trained for rounds of cucumber with 4 players; agents play "
        "matches of cucumber,hand_size=5 with 2 players; rounds and matches of agurk with 2, 4 players; "
        "rounds and matches of concombre with 3 players"
    )
    with pytest.raises(
        ValueError, match=r"agent 'two' was not trained for rounds of cucumber with 4 players; it plays"
    ):
        Champion("two", folder=tmp_path).probabilities(turns)
    # An agent that sees every table alike can be sent to any, if it is named.
    assert Champion("all", folder=tmp_path).probabilities(turns).shape == turns.mask.shape
    with pytest.raises(ValueError, match="agents play nowhere"):
        Champion(folder=tmp_path / "empty").probabilities(turns)


def test_agents_of_rounds_come_back_as_the_scripted_do(tmp_path: Path) -> None:
    rules = Rules.of("revival,hand_size=2,threshold=12")
    write_agent(tmp_path, tables=[("revival,hand_size=2,threshold=12", 4)])
    policy = Champion("mine", folder=tmp_path)
    offers = 0
    for turns in met(rules, 4, "match", steps=60):
        offered = turns.views["public"]["phase"] == REVIVE
        said = policy.probabilities(turns)
        np.testing.assert_array_equal(said[offered], np.eye(23)[np.full(offered.sum(), SKIP)])
        offers += offered.sum()
    assert offers > 20


def test_names_and_options_are_checked(tmp_path: Path) -> None:
    write_agent(tmp_path, "three")
    assert "champion" in policies.names()
    shipped = ", ".join(champion.shipped())
    with pytest.raises(ValueError, match=rf"no agent 'nobody' with the package; agents: {shipped}"):
        policies.make("champion:nobody")
    with pytest.raises(ValueError, match=r"no agent 'tree' in .* \(did you mean 'three'\?\); agents: three"):
        policies.make(f"champion:tree,folder={tmp_path}")
    with pytest.raises(ValueError, match="agents: none"):
        Champion("three", folder=tmp_path / "empty")
    with pytest.raises(ValueError, match=r"greedy=2 is out of range; allowed: 0 or 1"):
        policies.make("champion:greedy=2")
    with pytest.raises(ValueError, match="policy 'champion:gredy=1'"):
        policies.make("champion:gredy=1")


def test_weights_are_read_late_and_once(tmp_path: Path) -> None:
    write_agent(tmp_path)
    turns = met("three_card", 2, steps=1)[0]
    weights = tmp_path / "mine.npz"
    hidden = weights.rename(tmp_path / "elsewhere.npz")
    policy = Champion(folder=tmp_path)  # needs no weights yet
    with pytest.raises(FileNotFoundError, match=r"agent 'mine' has a card but no weights: .*mine.npz is missing"):
        policy.probabilities(turns)
    hidden.rename(weights)
    said = policy.probabilities(turns)
    weights.unlink()
    np.testing.assert_array_equal(Champion("mine", folder=tmp_path).probabilities(turns), said)


def test_copies_and_pickles_carry_no_weights() -> None:
    policy = policies.make("champion")
    turns = met("cucumber", 4, steps=1)[0]
    said = policy.probabilities(turns)
    stored = pickle.dumps(policy)
    assert len(stored) < 1000
    for other in (pickle.loads(stored), copy.deepcopy(policy)):
        assert other.name == "champion"
        np.testing.assert_array_equal(other.probabilities(turns), said)


def damage_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def change(arrays: dict[str, np.ndarray | None]) -> Callable[[Path], None]:
    """A function that puts other arrays, or none, in the place of those of a file."""

    def put(path: Path) -> None:
        with np.load(path) as found:
            kept = {**found, **arrays}
        with path.open("wb") as file:
            np.savez(file, **{name: array for name, array in kept.items() if array is not None})

    return put


def save_torch(path: Path) -> None:
    torch.save({"0.weight": torch.zeros(3)}, path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (damage_middle, "0.weight.npy is damaged"),
        (lambda path: path.write_bytes(path.read_bytes()[:-30]), "File is not a zip file"),
        (lambda path: path.write_bytes(b""), "File is not a zip file"),
        (lambda path: path.write_bytes(pickle.dumps({"0.weight": np.zeros(3)})), "it is a pickle"),
        (save_torch, r"its arrays are .*data.pkl.*; by its card 0.bias, 0.weight, 1.bias"),
        (change({"0.bias": np.array([None] * 12)}), "Object arrays cannot be loaded when allow_pickle=False"),
        (change({"0.bias": np.zeros(13, np.float16)}), r"0.bias is float16 \(13,\); by its card float16 \(12,\)"),
        (change({"1.weight": np.zeros((12, 9), np.float16)}), r"1.weight is float16 \(12, 9\); .* \(9, 12\)"),
        (change({"2.bias": np.zeros(13, np.float32)}), r"2.bias is float32 \(13,\); by its card float16 \(13,\)"),
        (change({"2.bias": np.full(13, np.nan, np.float16)}), "2.bias holds numbers that are not finite"),
        (change({"2.bias": None}), r"its arrays are 0.bias, .*, 2.weight; by its card 0.bias, .* 2.bias, 2.weight"),
        (change({"3.bias": np.zeros(13, np.float16)}), "its arrays are .*, 3.bias; by its card"),
    ],
)
def test_spoilt_weights_are_refused(spoil: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write_agent(tmp_path)
    spoil(tmp_path / "mine.npz")
    with pytest.raises(ValueError, match=rf"mine.npz does not hold the weights of agent 'mine': {message}"):
        champion.read_agent(tmp_path, "mine")


def test_nothing_damaged_is_ever_read(tmp_path: Path) -> None:
    """Whatever byte changes: the file is refused, or the weights are the same."""
    weights = write_agent(tmp_path, hidden=[12, 9])
    path = tmp_path / "mine.npz"
    data = path.read_bytes()
    turns = met("three_card", 2, steps=1)[0]
    expected = answer(weights, turns.observation, turns.mask)
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(300):
        spoilt = bytearray(data)
        spoilt[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(spoilt[: rng.integers(len(data)) if rng.random() < 0.1 else len(data)])
        try:
            agent = champion.read_agent(tmp_path, "mine")
        except ValueError:
            refused += 1
            continue
        np.testing.assert_allclose(agent.probabilities(turns.observation, turns.mask), expected, atol=1e-5)
    assert 100 < refused < 300


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format is 2 and this program reads 1: it belongs to another version"),
        ({"rules_version": 0}, f"rules_version is 0 and this program reads {RULES_VERSION}"),
        ({"observation_version": None}, f"observation_version is None and this program reads {OBSERVATION_VERSION}"),
        ({"width": 999}, r"width=999 is not that of its table three_card with 2 players, \d+"),
        ({"actions": 23}, "actions=23 do not fit its table three_card with 2 players, 13"),
        ({"hidden": [12.5]}, "'float' object cannot be interpreted as an integer"),
        ({"hidden": [0]}, "a layer of 0 numbers; allowed: 1 and more"),
        ({"tables": []}, r"tables=\[\] is empty"),
        ({"tables": [{"rules": {}, "players": 9}]}, "players=9 is out of range"),
        ({"tables": [{"rules": {"hands": 3}, "players": 2}]}, "unknown field 'hands'"),
        ({"tables": [{"players": 2}]}, "'rules' is missing"),
        ({"tables": 3}, "'int' object is not iterable"),
        ({"seats": 5}, "seats=5 is not one of its values"),
        ({"episode": "rubber"}, "episode='rubber' is not one of its values"),
        ({"name": "yours"}, "describes an agent of another name, 'yours'"),
        ({"colour": "green"}, "unexpected keyword argument 'colour'"),
    ],
)
def test_cards_that_do_not_fit_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_agent(tmp_path)
    card = json.loads((tmp_path / "mine.json").read_text())
    (tmp_path / "mine.json").write_text(json.dumps({**card, **changes}))
    with pytest.raises(ValueError, match=rf"mine.json .*{message}"):
        champion.read_card(tmp_path, "mine")


@pytest.mark.parametrize(
    ("text", "message"), [("{", "Expecting property name"), ("[1]", "not list"), ("\0", "JSON|Exp")]
)
def test_what_is_no_card_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(ValueError, match=rf"mine.json does not describe an agent: .*({message})"):
        champion.read_card(tmp_path, "mine")
    with pytest.raises(FileNotFoundError, match=r"no agent 'yours': .*yours.json is missing"):
        champion.read_card(tmp_path, "yours")


NO_TORCH = """
import sys
sys.modules.update(dict.fromkeys(("torch", "safetensors", "agents")))  # importing any of them fails
import gymnasium
import cucumber_env
assert "cucumber_env.champion" not in sys.modules  # importing the package does not read it

env = gymnasium.make("cucumber_env/Cucumber-v0", opponents="champion")
_, info = env.reset(seed=4)
total, over = 0.0, False
while not over:
    _, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
    total, over = total + reward, terminated or truncated

many = gymnasium.make_vec("cucumber_env/Cucumber-v0", num_envs=64, opponents=["champion", "champion:greedy=1"])
_, info = many.reset(seed=4)
earned = 0.0
for _ in range(70):
    _, rewards, *_, info = many.step(info["action_mask"].argmax(axis=1))
    earned += rewards.sum()
print(total, earned)
"""


def test_it_is_an_opponent_where_torch_cannot_be_imported() -> None:
    """The learner plays its lowest card always, which leaves the high ones to the end: it loses to all that plan."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_TORCH], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    total, earned = map(float, done.stdout.split())
    assert -14 <= total <= 14
    assert earned < -1000


def save(folder: Path, *, trunk: str = "separate", seats: int | None = None, **shape: Any) -> tuple[ActorCritic, Card]:
    """A network as training would save it, with random weights."""
    tables = (Table(Rules.of("three_card"), 2),) if seats is None else (Table(Rules(), 4), Table(Rules(), 7))
    width = Layout.of(tables[0].rules, tables[0].players, "round", seats).size
    actions = 13 if seats is None else 23
    torch.manual_seed(5)
    card = Card(
        tables, "round", seats, width, actions, shape.get("hidden", (24, 24)), 0, trunk, {"turns": 9, "seed": 5}
    )
    network = card.network()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=shape.get("std", 0.2))
    save_agent(folder, network, card)
    return network, card


@pytest.mark.parametrize("trunk", ["separate", "shared"])
@pytest.mark.parametrize("seats", [None, 8])
def test_export_keeps_the_policy(trunk: str, seats: int | None, tmp_path: Path) -> None:
    network, card = save(tmp_path / "run" / "last", trunk=trunk, seats=seats)
    done = export.export(tmp_path / "run" / "last", "mine", out=tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["mine.json", "mine.npz"]
    assert done.decisions >= export.DECISIONS
    read = champion.read_card(tmp_path / "out", "mine")
    assert [(table.rules, table.players) for table in card.tables] == list(read.tables)
    assert (read.seats, read.hidden, read.training) == (seats, (24, 24), {"turns": 9, "seed": 5})
    ours, theirs = NetworkPolicy(network, card), policies.make(f"champion:mine,folder={tmp_path / 'out'}")
    largest = 0.0
    for turns in met(card.tables[-1].rules, card.tables[-1].players, steps=20):
        largest = max(largest, np.abs(ours.probabilities(turns) - theirs.probabilities(turns)).max())
    assert 0 < largest < 1.5 * done.difference + 1e-4
    assert done.difference <= export.TOLERANCE


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ({"std": 3.0}, r"half precision changes the probability of an action by 0\.\d+; allowed: 0.02"),
        ({"std": 1e5}, "0.weight holds numbers that half precision cannot"),
        ({"hidden": (700, 700)}, r"mine takes 1,\d+,\d+ bytes; allowed: at most 1,000,000"),
    ],
)
def test_export_refuses_what_it_cannot_keep(shape: dict[str, Any], message: str, tmp_path: Path) -> None:
    save(tmp_path / "agent", **shape)
    with pytest.raises(ValueError, match=message):
        export.export(tmp_path / "agent", "mine", out=tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_export_refuses_what_is_not_finite() -> None:
    layer = torch.nn.Linear(3, 2)
    torch.nn.init.constant_(layer.bias, float("nan"))
    with pytest.raises(ValueError, match=r"0\.bias holds numbers that half precision cannot"):
        export.half_precision(torch.nn.Sequential(layer))


def test_export_refuses_other_networks() -> None:
    for layers in ([torch.nn.Linear(2, 2), torch.nn.Tanh(), torch.nn.Linear(2, 2)], [torch.nn.ReLU()], []):
        with pytest.raises(ValueError, match=r"layers are \[.*\]; allowed: Linear, ReLU, …, Linear"):
            export.half_precision(torch.nn.Sequential(*layers))


REPORT = {
    "config": {"games": 4, "threads": 2, "out": "somewhere"},
    "training": {"turns": 10, "training_seconds": 3.5},
    "tables": [
        {
            "rules": Rules.of("three_card").to_dict(),
            "players": 2,
            "episode": "round",
            "deals": 7,
            "seed": 2,
            "rows": [
                {"policy": "trained", "field": "highest", "difference": {"mean": -1 / 3, "deals": 7}},
                {"policy": "checkpoint:elsewhere", "field": "trained", "difference": {"mean": 0.1}},
            ],
        }
    ],
}
"""What a run reports, with a specialist beside it."""


def test_export_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "run" / "last")
    (tmp_path / "run" / "report.json").write_text(json.dumps(REPORT))
    command = [str(tmp_path / "run"), "--name", "mine", "--out", str(tmp_path / "out")]
    assert export.main(command) == 0
    card = champion.read_card(tmp_path / "out", "mine")
    assert card.training == {"turns": 10, "seed": 5, "training_seconds": 3.5, "settings": {"games": 4}}
    facts = {"rules": "three_card", "players": 2, "episode": "round", "deals": 7, "seed": 2}
    assert card.strength == [{**facts, "field": "highest", "difference": {"mean": -0.33333, "deals": 7}}]
    out, _ = capsys.readouterr()
    assert "Action probabilities differ by at most 0.00" in out
    said = next(line for line in out.splitlines() if "evaluate.py" in line)
    policy = next(word for word in said.split() if word.startswith("champion:"))
    assert policies.make(policy).probabilities(met("three_card", 2, steps=1)[0]).shape == (40, 13)
    assert "--rules three_card --players 2" in said
    for wrong, message in (
        (["--name", "Mine"], "name='Mine' must be small letters"),
        (["--report", str(tmp_path / "out" / "mine.npz")], "mine.npz is not the report of a run: UnicodeDecodeError"),
        (["--report", str(tmp_path / "out" / "mine.json")], "is not the report of a run: KeyError: 'config'"),
        (["--report", str(tmp_path / "no.json")], "No such file"),
    ):
        assert export.main([*command, *wrong]) == 2
        assert message in capsys.readouterr().err
    assert export.main([str(tmp_path), "--name", "mine"]) == 2
    assert f"agents.export: error: no agent in {tmp_path}" in capsys.readouterr().err

"""The pieces of `benchmarks.exact_study`, each of which returns JSON-friendly results."""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from cucumber_env import exact
from cucumber_env.baselines import BASELINES
from cucumber_env.exact import Tabular
from cucumber_env.exact.decisions import Decisions, decisions, hand_values
from cucumber_env.exact.solve import Solver
from cucumber_env.exact.tree import build, check_rules
from cucumber_env.observation import Layout
from cucumber_env.policies import Policy, Turns, make
from cucumber_env.rules import CHOICES, PRESETS, RANKS, Rules

SCHEMES = {
    "cfr": exact.Scheme(np.inf, np.inf, 0.0),
    "cfr+": exact.SCHEMES["cfr+"],
    "linear": exact.Scheme(1.0, 1.0, 1.0),
    "dcfr": exact.SCHEMES["dcfr"],
}
"""What is compared: no discounting at all, and the schemes of the literature as instances of `exact.Scheme`."""

CHECKS = {3: (1, 2, 4, 8, 16, 32, 64, 128, 256, 512), 4: (1, 2, 4, 8, 16, 32)}
"""Iterations after which curves are measured, by number of cards."""

POLICIES = (*BASELINES, "solution", "solution, greedy")
"""What is measured."""

WORDS = ("follow", "ace_lead", "order", "points", "payer", "penalty", "tie")
"""Fields of `Rules` that are words and matter in a round of two."""


def fingerprint(rules: Rules) -> str:
    """Two rules are the same game for two, and get the same text, if plays, turns and payoffs are all the same."""
    tree = build(check_rules(rules))
    found = hashlib.sha256((tree.payoffs + 0.0).tobytes())  # + 0.0: no negative zeros
    for level in tree.levels:
        for array in (level.turn, level.rank, level.children, level.legal):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def preset_classes() -> list[list[str]]:
    """Presets by the game that a round of two and of three cards is."""
    classes: dict[str, list[str]] = {}
    for name in PRESETS:
        classes.setdefault(fingerprint(Rules.preset(name, hand_size=3)), []).append(name)
    return list(classes.values())


def word_classes() -> dict[str, int]:
    """How many different games there are among all combinations of words, with two cards each."""
    combinations = list(itertools.product(*(CHOICES[field] for field in WORDS)))
    games = {fingerprint(Rules(hand_size=2, **dict(zip(WORDS, words, strict=True)))) for words in combinations}
    return {"combinations": len(combinations), "games": len(games)}


def solve(rules: str, nash_conv: float, file: Path) -> dict[str, Any]:
    """Solve, keep the solution in `file`; value, distance and size of the game."""
    tree = build(check_rules(rules))
    policy, report = exact.solve(rules, nash_conv=nash_conv, iterations=400, every=20)
    policy.save(file)
    facts = {name: getattr(report, name) for name in ("nash_conv", "information_states", "decisions", "seconds")}
    low, high = -report.best_response[1], report.best_response[0]
    nodes = sum(map(len, tree.levels))
    return {"rules": rules, "low": low, "high": high, "iterations": policy.facts["iterations"], "nodes": nodes, **facts}


def curve(cards: int, scheme: str) -> list[dict[str, float]]:
    """NashConv of the average strategy after some iterations of Cucumber, and the seconds they took alone."""
    solver = Solver(build(check_rules(f"cucumber,hand_size={cards}")), SCHEMES[scheme])
    seconds, points = 0.0, []
    for check in CHECKS[cards]:
        started = time.perf_counter()
        while solver.iterations < check:
            solver.iterate()
        seconds += time.perf_counter() - started
        points.append({"iterations": check, "seconds": seconds, "nash_conv": solver.nash_conv()})
    return points


class Seats(Policy):
    """Plays one policy as the first leader and another in the other seat."""

    def __init__(self, first: Policy, second: Policy) -> None:
        self.name, self.policies = f"{first.name} before {second.name}", (first, second)

    def probabilities(self, turns: Turns) -> np.ndarray:
        answer = np.zeros(turns.mask.shape)
        for seat, policy in enumerate(self.policies):
            rows = np.flatnonzero(turns.views["seat"] == seat)
            if len(rows):
                answer[rows] = policy.probabilities(turns.select(rows))
        return answer


def greedy(policy: Tabular) -> Tabular:
    """The policy that plays the likeliest card of `policy` with certainty."""
    tables = []
    for table in policy.tables:
        pure = np.zeros_like(table)
        np.put_along_axis(pure, table.argmax(axis=2)[..., None], 1.0, axis=2)
        tables.append(pure * (table > 0))
    return Tabular(policy.tree, tables, name="solution, greedy")


def measure(name: str, file: Path) -> dict[str, float]:
    """Exploitability of a policy, and what it loses to the solution in `file` on average over both seats, in points."""
    solution = Tabular.load(file)
    policies = {"solution": solution, "solution, greedy": greedy(solution)}
    policy = policies.get(name) or make(name)
    rules = solution.tree.rules
    report = exact.exploitability(rules, policy)
    against = [exact.exploitability(rules, Seats(*pair)).value for pair in ((policy, solution), (solution, policy))]
    facts = {"value": report.value, "nash_conv": report.nash_conv, "seconds": report.seconds}
    return {**facts, "loss": (against[1] - against[0]) / 2}


MIXED = 0.95
"""Decisions at which no card is played more often than that count as mixed."""

REACHED = 1e-9
"""Decisions that come up more often in a round count as reached."""

ROLES = ("leads", "follows")
STYLES = ("lowest", "between", "highest")
"""Which of the legal cards is played."""


def play(file: Path) -> dict[str, Any]:
    """What the solution in `file` plays: mixing, the cards it chooses by trick, when leading pays."""
    solution = Tabular.load(file)
    styles: dict[str, dict[str, list[float]]] = {}
    ace_led = 0.0
    for batch in decisions(solution):
        trick, role = str(batch.level.depth // 2 + 1), ROLES[batch.level.depth % 2]
        found = styles.setdefault(trick, {}).setdefault(role, [0.0] * len(STYLES))
        styles[trick][role] = [old + new for old, new in zip(found, chosen(batch), strict=True)]
        if batch.level.depth == 0:
            ace = batch.ranks == RANKS.index("A")
            ace_led = float(batch.chance @ (batch.sigma * ace).sum(axis=1) / batch.chance[ace.any(axis=1)].sum())
    return {**mixing(solution), "ace_led": ace_led, "styles": styles, "leading": leading(solution)}


def mixing(solution: Tabular) -> dict[str, dict[str, float]]:
    """How many decisions there are, are reached and are mixed, and how many of them come up in a round."""
    count = {"all": 0, "mixed": 0, "reached": 0, "reached and mixed": 0}
    chance = {"all": 0.0, "mixed": 0.0}
    for batch in decisions(solution):
        mixed, reached = batch.sigma.max(axis=1) < MIXED, batch.chance > REACHED
        count["all"] += len(batch)
        count["mixed"] += int(mixed.sum())
        count["reached"] += int(reached.sum())
        count["reached and mixed"] += int((reached & mixed).sum())
        chance["all"] += float(batch.chance.sum())
        chance["mixed"] += float(batch.chance[mixed].sum())
    return {"decisions": count, "per_round": chance}


def survey(file: Path) -> dict[str, Any]:
    """NashConv of every baseline in the game of the solution in `file`, and how much the solution mixes."""
    solution = Tabular.load(file)
    found = {name: exact.exploitability(solution.tree.rules, name).nash_conv for name in BASELINES}
    return {"nash_conv": found, **mixing(solution)}


def deviations(rules: str, players: int) -> dict[str, Any]:
    """What each seat gains by deviating alone from every baseline at a larger table, and the size of the game."""
    reports = {name: exact.deviation(rules, name, players) for name in BASELINES}
    size = {name: getattr(reports["random"], name) for name in ("information_states", "decisions")}
    return {"rules": rules, **size, "gains": {name: list(report.gains) for name, report in reports.items()}}


def chosen(batch: Decisions) -> list[float]:
    """Chance that the lowest legal card is played, one between, or the highest, summed over decisions."""
    rows = np.arange(len(batch))
    low = batch.legal.argmax(axis=1)
    high = batch.legal.shape[1] - 1 - batch.legal[:, ::-1].argmax(axis=1)
    lowest, highest = (float(batch.chance @ batch.sigma[rows, slot]) for slot in (low, high))
    return [lowest, float(batch.chance.sum()) - lowest - highest, highest]


def leading(solution: Tabular) -> dict[str, Any]:
    """What a hand gains by leading rather than following, by its lowest and its highest card.

    The mean over hands with these two, each as often as it is dealt; None where there is none.
    """
    hands = solution.tree.levels[0].hands
    gain = np.subtract(*hand_values(solution))
    ranks = len(RANKS)
    often, total = np.zeros((ranks, ranks)), np.zeros((ranks, ranks))
    copies = solution.tree.rules.copies
    for hand, packed in enumerate(hands.packed.tolist()):
        held = [(rank, packed >> 4 * rank & 15) for rank in range(ranks) if packed >> 4 * rank & 15]
        deals = math.prod(math.comb(copies, number) for _, number in held)
        often[held[0][0], held[-1][0]] += deals
        total[held[0][0], held[-1][0]] += deals * gain[hand]
    mean = [[total[i, j] / often[i, j] if often[i, j] else None for j in range(ranks)] for i in range(ranks)]
    return {"ranks": RANKS, "by_lowest_and_highest": mean}


HEURISTICS = ("highest", "careful")
"""What the solution is compared with, decision by decision."""


def positions(file: Path) -> dict[str, Any]:
    """Where scripted policies play another card than the solution in `file`, and what it costs."""
    solution = Tabular.load(file)
    return {name: compare(solution, make(name)) for name in HEURISTICS}


def compare(solution: Tabular, other: Policy, most: int = 6) -> dict[str, Any]:
    """The chance that `other` plays what the solution hardly ever does, what it loses by that, and where most.

    What a single card loses: its worth, against the best card's, if the solution plays on in both seats. All
    decisions are weighed as often as the solution comes to them.
    """
    by_trick: dict[str, dict[str, dict[str, float]]] = {}
    found: list[dict[str, Any]] = []
    for batch in decisions(solution):
        batch = batch.select(np.flatnonzero(batch.chance > 0))
        theirs = batch.by_slot(other.probabilities(batch.turns()))
        worth = np.where(batch.legal, batch.worth, -np.inf)
        loss = worth.max(axis=1) - (theirs * np.where(batch.legal, batch.worth, 0.0)).sum(axis=1)
        rare = (theirs * (batch.sigma < 1 - MIXED)).sum(axis=1)
        trick, role = str(batch.level.depth // 2 + 1), ROLES[batch.level.depth % 2]
        sums = {"chance": batch.chance.sum(), "differs": batch.chance @ rare, "loss": batch.chance @ loss}
        before = by_trick.setdefault(trick, {}).setdefault(role, dict.fromkeys(sums, 0.0))
        by_trick[trick][role] = {name: before[name] + float(value) for name, value in sums.items()}
        cost = batch.chance * loss
        rows = np.argsort(-cost)[:most]
        rows = rows[cost[rows] > 1e-6]
        found += described(batch.select(rows), theirs[rows], loss[rows])
    found.sort(key=lambda position: -position["chance"] * position["loss"])
    return {"by_trick": by_trick, "positions": best_of_each(found)}


def best_of_each(found: list[dict[str, Any]], most: int = 4) -> list[dict[str, Any]]:
    """Of positions in order, the first few of each trick and role."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for position in found:
        groups.setdefault(len(position["plays"].translate(NO_SEATS)), []).append(position)
    return [position for depth in sorted(groups) for position in groups[depth][:most]]


NO_SEATS = str.maketrans("", "", "01: ")
"""Leaves the cards alone of what `plays` writes."""


def described(batch: Decisions, theirs: np.ndarray, loss: np.ndarray) -> list[dict[str, Any]]:
    """Positions as JSON-friendly facts."""
    publics = batch.tree.publics(batch.level)[batch.nodes]
    rows = []
    for i in range(len(batch)):
        packed = int(batch.level.hands.packed[batch.hands[i]])
        ranks = [int(rank) for rank in batch.ranks[i]]
        legal = [slot for slot in range(len(ranks)) if batch.legal[i, slot]]
        cards = {
            RANKS[ranks[slot]]: {
                "solution": float(batch.sigma[i, slot]),
                "other": float(theirs[i, slot]),
                "worth": float(batch.worth[i, slot]),
            }
            for slot in legal
        }
        hand = "".join(RANKS[rank] * (packed >> 4 * rank & 15) for rank in range(len(RANKS)))
        facts = {"hand": hand, "plays": plays(publics[i]), "cards": cards}
        rows.append({**facts, "chance": float(batch.chance[i]), "loss": float(loss[i])})
    return rows


def plays(public: np.ndarray) -> str:
    """The round so far: tricks as two cards, the leader's first, each with the seat that led."""
    tricks = []
    for trick in range(int(public["trick"]) + 1):
        leader = int(public["leaders"][trick])
        cards = [int(public["played"][seat, trick]) for seat in (leader, 1 - leader)]
        played = "".join(RANKS[card] for card in cards if card >= 0)
        if played:
            tricks.append(f"{leader}:{played}")
    return " ".join(tricks)


def forget(file: Path) -> dict[str, float]:
    """NashConv of the solution in `file` as seen through observations, which forget some of the round.

    Decisions with the same observation get one distribution: the mean of theirs, as often as they come up. It is what
    a network with these inputs learns from the solution if nothing else limits it.
    """
    solution = Tabular.load(file)
    places, keys, shares, weights = [], [], [], []
    for batch in decisions(solution):
        places.append((batch.level.depth, batch.nodes + batch.level.start, batch.hands))
        keys.append(hashed(batch.turns()))
        sigma = np.zeros((len(batch), solution.tree.rules.largest_hand), np.float32)
        sigma[:, : batch.sigma.shape[1]] = batch.sigma
        shares.append(sigma)
        weights.append(batch.chance + 1e-9 * batch.reach + 1e-18)
    _, group = np.unique(np.concatenate(keys), return_inverse=True)
    share, weight = np.concatenate(shares), np.concatenate(weights)
    observations = int(group.max()) + 1
    total = np.bincount(group, weight)
    for slot in range(share.shape[1]):
        share[:, slot] = (np.bincount(group, weight * share[:, slot]) / total)[group]
    at = 0
    for depth, nodes, hands in places:
        slots = solution.tables[depth].shape[2]
        solution.tables[depth][nodes, hands] = share[at : at + len(nodes), :slots]
        at += len(nodes)
    report = exact.exploitability(solution.tree.rules, Tabular(solution.tree, solution.tables, name="forgetful"))
    return {"decisions": len(share), "observations": observations, "nash_conv": report.nash_conv}


def hashed(turns: Turns, rows: int = 65_536) -> np.ndarray:
    """A 64-bit number for every observation, uint64 ``[B]``: the sum of a random number for each bit that is set."""
    width = Layout.of(turns.rules, 2, "round").size
    numbers = np.random.default_rng(1).integers(2**64, size=width, dtype=np.uint64)
    parts = np.split(np.arange(len(turns)), range(rows, len(turns), rows))
    return np.concatenate([turns.select(part).observe().astype(np.uint64) @ numbers for part in parts])


def distilled(file: Path, history: bool, steps: int, seed: int) -> dict[str, Any]:
    """NashConv of a network trained on the solution in `file`, in one thread."""
    from agents import distil  # torch takes its time

    arguments = distil.Arguments(solution=file, history=history, steps=steps, seed=seed)
    return distil.distil(Tabular.load(file), arguments)[1]

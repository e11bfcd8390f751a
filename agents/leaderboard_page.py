"""The page of the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agents.leaderboard import FOLDER, Board, Entry, boards, entries, stale
from cucumber_env.arena import SCORES, better
from cucumber_env.arena.document import (
    Block,
    Bullets,
    Cell,
    Facts,
    Grid,
    Listing,
    Number,
    Paragraph,
    Section,
    Verbatim,
    half,
    minus,
    named,
    number,
    place,
)
from cucumber_env.arena.ranking import Rank, ranks

TITLE = "Leaderboard"

COMMANDS = """\
uv run evaluate.py leaderboard reproduce leaderboard/entries/rounds-4p/careful.json
uv run evaluate.py leaderboard reproduce leaderboard/entries/rounds-4p/*.json --deals 200
uv run evaluate.py leaderboard add champion --board rounds-4p
uv run evaluate.py leaderboard page"""


def document(folder: Path = FOLDER) -> tuple[str, list[Section]]:
    """Title and sections: how to read it, and each board."""
    return TITLE, [_opening(), *(_board(board, entries(board, folder)) for board in boards(folder).values())]


def _opening() -> Section:
    points = [
        (
            "Each policy was measured alone: one of it among n−1 of each scripted opponent, on the same duplicate "
            "deals as all others, in every rotation of the seats. The score is the mean over the six opponents.",
        ),
        (
            "Ranks compare scores deal by deal. One is above another if the interval of their difference leaves zero "
            "out, at a confidence of 95 % for all decisions of a board together (Bonferroni); 1–2 is a tie.",
        ),
        ("Intervals beside scores are of 95 %, over deals, each for itself.",),
        (
            "NashConv, for two players: what two best responses win together against the policy, in points, exact; 0 "
            "at equilibrium. To beat scripted opponents and to be hard to exploit are not the same.",
        ),
        (
            "An entry is stale if the rules, what is paid, what is observed or the board has changed since. Stale "
            "entries are listed but not ranked.",
        ),
    ]
    return Section("reading", "How to read and repeat this", [Bullets(points), Listing(COMMANDS)])


def _board(board: Board, all_entries: Sequence[Entry]) -> Section:
    changes = [(entry, stale(entry, board)) for entry in all_entries]
    fresh = [entry for entry, changed in changes if not changed]
    facts = Facts(
        [
            ("Rules", (Verbatim(board.rules),)),
            ("Players", (str(board.players),)),
            ("Episode", (f"{board.episode}; score: {SCORES[board.episode]}, {better(board.episode)}",)),
            ("Deals", (f"{board.deals:,} duplicate deals, seed {board.seed}",)),
        ]
    )
    blocks: list[Block] = [facts]
    if fresh:
        standing = _standing(board, fresh)
        blocks += [_ranking(board, standing), _matrix(board, [entry for _, entry in standing])]
    else:
        blocks.append(Paragraph(("No entry stands.",)))
    old = [(entry, changed) for entry, changed in changes if changed]
    if old:
        blocks += _stale(old)
    return Section(board.name, board.title, blocks)


def _standing(board: Board, fresh: Sequence[Entry]) -> list[tuple[Rank, Entry]]:
    """Entries with their ranks, best first."""
    samples = np.stack([entry.scores.mean(axis=0) for entry in fresh], axis=1)
    by_name = {entry.policy: entry for entry in fresh}
    table = ranks(list(by_name), samples, lower_is_better=board.episode == "round")
    return [(rank, by_name[rank.policy]) for rank in table]


def _ranking(board: Board, standing: Sequence[tuple[Rank, Entry]]) -> Grid:
    rows: list[list[Cell]] = []
    for rank, entry in standing:
        places = place([rank.best, rank.worst])
        exact = [f"{entry.exact['nash_conv']:.4f}" if entry.exact else "–"] if board.solvable else []
        rows.append([places, named(entry.policy), number(rank.score.to_dict()), *exact, entry.kind, _budget(entry)])
    heads = ["rank", "policy", SCORES[board.episode], *(["NashConv"] if board.solvable else []), "kind", "budget"]
    words = frozenset({len(heads) - 2, len(heads) - 1})
    return Grid("Entries, best first", heads, rows, left=2, words=words)


def _matrix(board: Board, order: Sequence[Entry]) -> Grid:
    fields = list(order[0].table["fields"])
    rows: list[list[Cell]] = [
        [named(entry.policy), *(_score(row["score"]) for row in entry.against)] for entry in order
    ]
    title = f"Mean {SCORES[board.episode]} among {board.players - 1} of each (column)"
    return Grid(title, ["", *map(named, fields)], rows)


def _score(estimate: dict[str, float]) -> Number:
    return Number(minus(estimate["mean"]), half(estimate))


def _stale(old: Sequence[tuple[Entry, list[str]]]) -> list[Block]:
    rows: list[list[Cell]] = [
        [named(entry.policy), minus(entry.scores.mean()), "; ".join(changed)] for entry, changed in old
    ]
    text = "These entries are stale: what they measured is not what is played now. Measure them again to rank them."
    return [
        Paragraph((text,), alert=True),
        Grid("Stale entries, not ranked", ["policy", "score then", "changed since"], rows, words=frozenset({2})),
    ]


def _budget(entry: Entry) -> str:
    budget = entry.budget
    if "turns" in budget:
        return f"{budget['turns'] / 1e6:.1f} million turns, {budget['training_seconds']:.0f} s"
    if "iterations" in budget:
        return f"{budget['iterations']} iterations"
    return "none"

"""Who is better than whom: ranks that say how sure they are, ratings, and cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cucumber_env.arena.optional import optional
from cucumber_env.arena.statistics import ENOUGH, Estimate, mean_interval, paired_difference, simultaneous


@dataclass(frozen=True)
class Rank:
    """Place of a policy among others.

    Attributes:
        policy: Its name.
        best, worst: First and last place that it may have. ``1, 1`` is alone first, ``1, 2`` tied for it.
        score: Its mean score, with an interval for itself.
    """

    policy: str
    best: int
    worst: int
    score: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Name, ``[best, worst]`` and score, for JSON."""
        return {"policy": self.policy, "rank": [self.best, self.worst], "score": self.score.to_dict()}


@dataclass(frozen=True)
class Rating:
    """What the games of a policy say of its strength, on the scale of openskill (a newcomer is 25 ± 8.3).

    Attributes:
        policy: Its name.
        mu, sigma: Mean and standard deviation of the strength.
        ordinal: ``mu - 3 * sigma``, what the strength surely is.
        games: How many games it was rated on.
    """

    policy: str
    mu: float
    sigma: float
    ordinal: float
    games: int

    def to_dict(self) -> dict[str, float]:
        """The numbers, for JSON."""
        return {"mu": self.mu, "sigma": self.sigma, "ordinal": self.ordinal, "games": self.games}


def surely_better(samples: ArrayLike, *, lower_is_better: bool, confidence: float = 0.95) -> np.ndarray:
    """Which policies are better than which, with `confidence` for all pairs together: int64 ``[k, k]`` of -1, 0, 1.

    ``signs[i, j]`` is 1 if `i` is better than `j`: the interval of their paired difference by deal leaves zero out, at
    the confidence that Bonferroni's inequality asks of each of the k (k − 1) / 2 pairs, and `ENOUGH` deals differ.

    Args:
        samples: float ``[deals, k]``, the score of every policy on every deal, at the same kinds of tables.
        lower_is_better: Whether scores are penalties rather than outcomes.
        confidence: That all answers other than 0 are right.

    Raises:
        ValueError: another shape, fewer than two deals, a score that is not finite, a confidence outside (0, 1).
    """
    scores = _checked(samples)
    count = scores.shape[1]
    signs = np.zeros((count, count), np.int64)
    each = simultaneous(max(1, count * (count - 1) // 2), confidence=confidence)
    for one in range(count):
        for other in range(one):
            if np.count_nonzero(scores[:, one] != scores[:, other]) >= ENOUGH:
                sign = paired_difference(scores[:, one], scores[:, other], confidence=each).sign
                signs[one, other] = -sign if lower_is_better else sign
    return signs - signs.T


def ranks(names: Sequence[str], samples: ArrayLike, *, lower_is_better: bool, confidence: float = 0.95) -> list[Rank]:
    """Ranks of policies as ranges, best mean score first; equal means in the order given.

    As many policies as are `surely_better` stand before, and as many as are surely worse behind; the true ranks all
    lie in their ranges with `confidence` (simultaneous confidence intervals for ranks: Al Mohamad, Goeman and van
    Zwet, 2022).

    Args:
        names: Of the k policies.
        samples, lower_is_better, confidence: As in `surely_better`; `confidence` is that of the scores' intervals, too.

    Raises:
        ValueError: as `surely_better`, or another number of names than of policies.
    """
    scores = _checked(samples)
    _check_names(names, scores.shape[1])
    signs = surely_better(scores, lower_is_better=lower_is_better, confidence=confidence)
    table = [
        Rank(
            policy=name,
            best=1 + int((signs[index] < 0).sum()),
            worst=len(names) - int((signs[index] > 0).sum()),
            score=mean_interval(scores[:, index], confidence=confidence),
        )
        for index, name in enumerate(names)
    ]
    return sorted(table, key=lambda rank: rank.score.mean if lower_is_better else -rank.score.mean)


def openskill(
    names: Sequence[str],
    tables: Sequence[Mapping[int, ArrayLike]],
    *,
    lower_is_better: bool,
    most: int = 4000,
) -> tuple[list[Rating], int]:
    """Ratings by the Plackett–Luce model of Weng and Lin (2011), as openskill has it, and how many games they rest on.

    A deal at a table is one game between the different policies there, placed by their mean scores on it, with ties.
    Games are rated in a fixed order, the first deal of every table, then the second, at most `most` in all and
    equally many of each table (a game takes 0.1 ms). The strength of a policy is taken to be the same in all games
    (`tau` is 0), so that ratings settle. Policies without a game keep the rating of a newcomer.

    Ratings say less than the matrix of all against all: they have no intervals over deals (`sigma` supposes that
    the model is true), and being one number for each policy they cannot show that A beats B beats C beats A.

    Args:
        names: Of the policies.
        tables: For each table float ``[deals]`` for two or more of the policies by their index in `names`: the
            mean score of the policy's seats on each deal.
        lower_is_better: Whether scores are penalties rather than outcomes.
        most: Games to rate, at least one for each table.

    Raises:
        ImportError: openskill is not installed.
        ValueError: a table of fewer than two policies, of unknown ones, without deals, or whose arrays differ in
            shape or hold numbers that are not finite; a `most` too small.
    """
    games = [_game_scores(names, index, table) for index, table in enumerate(tables)]
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < max(1, len(games)):
        raise ValueError(f"most={most!r} must be an integer ≥ {max(1, len(games))}, a game for each table")
    # Policies do not change between games, so nothing is added to their uncertainty.
    model = optional("openskill.models").PlackettLuce(tau=0.0)
    ratings = [model.rating(name=name) for name in names]
    played = [0] * len(names)
    each = most // max(1, len(games))
    for deal in range(max((min(each, len(scores)) for _, scores in games), default=0)):
        for policies, scores in games:
            if deal < len(scores):
                places = (scores[deal] if lower_is_better else -scores[deal]).tolist()
                rated = model.rate([[ratings[policy]] for policy in policies], ranks=places)
                for policy, (rating,) in zip(policies, rated, strict=True):
                    ratings[policy] = rating
                    played[policy] += 1
    table = [
        Rating(name, rating.mu, rating.sigma, rating.ordinal(), count)
        for name, rating, count in zip(names, ratings, played, strict=True)
    ]
    return table, sum(min(each, len(scores)) for _, scores in games)


def cycles(names: Sequence[str], signs: ArrayLike) -> list[list[str]]:
    """Shortest cycles, A beats B beats C beats A: one for each group of policies among which there is any.

    A group is a strongly connected component of the graph of who beats whom. Of the shortest cycles of a group it is
    one through the policy that is named first in any of them, and starts with it.

    Args:
        names: Of the k policies.
        signs: ``[k, k]`` of -1, 0 and 1: ``signs[i, j]`` is 1 if `i` surely beats `j`, and ``signs[j, i]`` is -1 then.

    Raises:
        ImportError: scipy is not installed.
        ValueError: another shape, other numbers, or answers that contradict each other.
    """
    matrix = np.asarray(signs)
    _check_names(names, len(matrix) if matrix.ndim else 0)
    if matrix.shape != (len(names),) * 2 or not np.isin(matrix, (-1, 0, 1)).all() or (matrix != -matrix.T).any():
        raise ValueError(
            f"signs of shape {matrix.shape} must be [{len(names)}, {len(names)}] "
            "of -1, 0 and 1 with signs[i, j] = -signs[j, i]"
        )
    if not len(names):
        return []
    graphs = optional("scipy.sparse.csgraph")
    beats = matrix > 0
    _, group = graphs.connected_components(beats, directed=True, connection="strong")
    distance, before = graphs.shortest_path(beats, unweighted=True, return_predecessors=True)
    # A cycle through i and j, where i beats j, is that step and the way back from j to i.
    length = np.where(beats, 1 + distance.T, np.inf)
    found = []
    for one in dict.fromkeys(group.tolist()):
        inside = np.where((group == one)[:, None], length, np.inf)
        if np.isfinite(inside).any():
            start, second = np.unravel_index(np.argmin(inside), inside.shape)
            found.append([names[policy] for policy in _cycle(int(start), int(second), before)])
    return found


def _cycle(start: int, second: int, before: np.ndarray) -> list[int]:
    """The cycle from `start` to `second` and back on the shortest way; `before` are predecessors ``[k, k]``."""
    back = []
    policy = int(before[second, start])
    while policy != second:
        back.append(policy)
        policy = int(before[second, policy])
    return [start, second, *reversed(back)]


def _game_scores(names: Sequence[str], index: int, table: Mapping[int, ArrayLike]) -> tuple[list[int], np.ndarray]:
    """The policies at a table and their scores float64 ``[deals, policies]``, checked."""
    policies = list(table)
    if len(policies) < 2 or any(policy not in range(len(names)) for policy in policies):
        raise ValueError(
            f"tables[{index}] seats {policies}; expected two or more of the {len(names)} policies, by index in names"
        )
    columns = [np.asarray(values, np.float64) for values in table.values()]
    if columns[0].ndim != 1 or not columns[0].size or len({column.shape for column in columns}) > 1:
        raise ValueError(
            f"tables[{index}] has scores of shapes {[column.shape for column in columns]}; "
            "expected one per deal for each policy"
        )
    scores = np.stack(columns, axis=1)
    if not np.isfinite(scores).all():
        raise ValueError(f"tables[{index}] has {np.count_nonzero(~np.isfinite(scores))} scores that are not finite")
    return policies, scores


def _checked(samples: ArrayLike) -> np.ndarray:
    """`samples` as float64 ``[deals, k]``; what the columns hold is checked with their intervals."""
    scores = np.asarray(samples, np.float64)
    if scores.ndim != 2 or not scores.shape[1]:
        raise ValueError(f"samples of shape {scores.shape}; expected [deals, policies] with at least one policy")
    return scores


def _check_names(names: Sequence[str], count: int) -> None:
    if len(names) != count:
        raise ValueError(f"{len(names)} names for {count} policies: {list(names)}")

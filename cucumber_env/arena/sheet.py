"""A checked report, with what all its sections have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cucumber_env.arena.statistics import ENOUGH

Report = Mapping[str, Any]
"""See `cucumber_env.arena.contents`."""

NEEDED = ("rules", "rules_text", "num_players", "episode", "deals", "seed", "score", "policies", "against", "pairs")
"""What every report has."""


class Sheet:
    """A checked report with what its sections have in common.

    Attributes:
        report: The report.
        names: The policies, best first; those without a place in the ranking last.
        lower: Whether a lower score is better.
        unit: Unit of the score in a sentence, with a space before it, or empty.
        level: The confidence of intervals, such as ``95 %``.

    Raises:
        ValueError: keys are missing.
    """

    def __init__(self, report: Report) -> None:
        missing = [key for key in NEEDED if key not in report]
        if missing:
            raise ValueError(f"the report lacks {', '.join(missing)}; it is what evaluate.py arena writes as JSON")
        self.report = report
        ranked = [row["policy"] for row in report.get("ranking", ())]
        self.names: list[str] = list(dict.fromkeys([*ranked, *report["policies"]]))
        self.lower = report["score"] == "penalty"
        self.unit = " points" if self.lower else ""
        self.level = f"{100 * report.get('confidence', 0.95):g} %"
        self.against = {(row["policy"], row["field"]): row for row in report["against"]}
        self.pairs = self._pairs()

    def _pairs(self) -> list[dict[str, Any]]:
        """All pairs with the one that ranks higher first, in the order of the ranking."""
        place = {name: number for number, name in enumerate(self.names)}
        turned = [
            dict(pair) if place[pair["first"]] < place[pair["second"]] else _turned(pair)
            for pair in self.report["pairs"]
        ]
        return sorted(turned, key=lambda pair: (place[pair["first"]], place[pair["second"]]))

    def verdict(self, difference: Mapping[str, float]) -> str:
        """``better``, ``worse`` or ``even``: where the interval of a difference of scores lies."""
        sign = (difference["low"] > 0) - (difference["high"] < 0)
        return "even" if not sign else "better" if (sign < 0) == self.lower else "worse"

    def decided(self, pair: Mapping[str, Any]) -> str:
        """The same of the first of a pair, ``even`` also where too few deals differ to tell."""
        return self.verdict(pair["difference"]) if pair.get("differing", ENOUGH) >= ENOUGH else "even"


def _turned(pair: Mapping[str, Any]) -> dict[str, Any]:
    """A pair seen from the other side."""
    found, chance = pair["difference"], pair.get("improvement")
    turned = {"mean": -found["mean"], "low": -found["high"], "high": -found["low"], "deals": found["deals"]}
    other = chance and {"mean": 1 - chance["mean"], "low": 1 - chance["high"], "high": 1 - chance["low"]}
    return {**pair, "first": pair["second"], "second": pair["first"], "difference": turned, "improvement": other}

"""Comparisons of policies that can be trusted: duplicate deals, every rotation, intervals over deals.

    play          policies at a table, on duplicate deals in all rotations of the seats
    one_against   one policy against n−1 of another, by deal
    compare_with  one policy against tables of several others, with intervals
    round_robin   every policy against every other

>>> row = compare_with("lowest", ["highest"], deals=200, seed=1)[0]
>>> row.difference.sign  # it pays more in the place of one of three `highest`
1
"""

from cucumber_env.arena.compare import (
    Comparison,
    Pair,
    RoundRobin,
    Sample,
    check_deals,
    compare_with,
    one_against,
    round_robin,
)
from cucumber_env.arena.match import EVALUATION_EPISODE, Result, play
from cucumber_env.arena.report import SCORES, Table, better, comparison_table, format_table, matrix_table, pair_table
from cucumber_env.arena.statistics import Estimate, mean_interval, paired_difference

__all__ = [
    "EVALUATION_EPISODE",
    "SCORES",
    "Comparison",
    "Estimate",
    "Pair",
    "Result",
    "RoundRobin",
    "Sample",
    "Table",
    "better",
    "check_deals",
    "compare_with",
    "comparison_table",
    "format_table",
    "matrix_table",
    "mean_interval",
    "one_against",
    "pair_table",
    "paired_difference",
    "play",
    "round_robin",
]

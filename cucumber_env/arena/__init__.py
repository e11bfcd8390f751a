"""Comparisons of policies that can be trusted: duplicate deals, every rotation, intervals over deals.

    play           policies at a table, on duplicate deals in all rotations of the seats
    play_tables    many tables, into a file that can be continued, on many cores
    one_against    one policy against n−1 of another, by deal
    compare_with   one policy against tables of several others, with intervals
    round_robin    every policy against every other
    tournament     the same with ranking, ratings, cycles and an agent that sees all cards
    duel           two policies until it is clear which is better
    read, analyse  the same from files of results
    markdown, page what came of a tournament, to be read

Statistics are in `statistics`, `resampling`, `sample_size` and `sequential`; policies of other libraries sit down with
an `adapter`. What goes beyond `play`, `compare_with` and `round_robin` needs the extra ``arena`` of the package.

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
from cucumber_env.arena.duel import MOST, duel
from cucumber_env.arena.markdown import markdown
from cucumber_env.arena.match import EVALUATION_EPISODE, Progress, Result, TableError, play
from cucumber_env.arena.page import page
from cucumber_env.arena.report import (
    SCORES,
    Table,
    better,
    comparison_table,
    format_table,
    matrix_table,
    pair_table,
    report_tables,
)
from cucumber_env.arena.results import VERSIONS, Failure, Results, Setting, read
from cucumber_env.arena.seer import Seer
from cucumber_env.arena.sequential import ConfidenceSequence
from cucumber_env.arena.statistics import Estimate, mean_interval, paired_difference
from cucumber_env.arena.tables import PART, play_tables
from cucumber_env.arena.tournament import (
    SEER_DEALS,
    Tournament,
    analyse,
    size,
    tournament,
)

__all__ = [
    "EVALUATION_EPISODE",
    "MOST",
    "PART",
    "SCORES",
    "SEER_DEALS",
    "VERSIONS",
    "Comparison",
    "ConfidenceSequence",
    "Estimate",
    "Failure",
    "Pair",
    "Progress",
    "Result",
    "Results",
    "RoundRobin",
    "Sample",
    "Seer",
    "Setting",
    "Table",
    "TableError",
    "Tournament",
    "analyse",
    "better",
    "check_deals",
    "compare_with",
    "comparison_table",
    "duel",
    "format_table",
    "markdown",
    "matrix_table",
    "mean_interval",
    "one_against",
    "page",
    "pair_table",
    "paired_difference",
    "play",
    "play_tables",
    "read",
    "report_tables",
    "round_robin",
    "size",
    "tournament",
]

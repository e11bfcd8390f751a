"""Exact play of a round: equilibria, best responses and the exploitability of any policy.

For two players:

    exploitability   what a policy is worth against itself, and what best responses win against it
    best_response    a best response to a policy, as a policy (for any number of players, too)
    solve            an approximate equilibrium, with its exact distance from one

For any number, without a claim of equilibrium:

    deviation        what a policy is worth in every seat, and what each seat alone gains by deviating

Importing this registers ``exact:FILE``, a solution that was saved.

>>> round(exploitability("cucumber,hand_size=2,ace_lead=none", "highest").value, 5)
2.73812
"""

from cucumber_env.exact.evaluation import Progress, refuse_sampling
from cucumber_env.exact.measure import best_response, deviation, exploitability
from cucumber_env.exact.reports import CLAIM, Deviation, Report
from cucumber_env.exact.solve import SCHEMES, Scheme, SolveProgress, solve
from cucumber_env.exact.tabular import ROUND_FIELDS, SOLUTION_VERSION, Tabular
from cucumber_env.exact.tree import check_rules

__all__ = [
    "CLAIM",
    "ROUND_FIELDS",
    "SCHEMES",
    "SOLUTION_VERSION",
    "Deviation",
    "Progress",
    "Report",
    "Scheme",
    "SolveProgress",
    "Tabular",
    "best_response",
    "check_rules",
    "deviation",
    "exploitability",
    "refuse_sampling",
    "solve",
]

"""Exact play of a round for two: equilibria, best responses and the exploitability of any policy.

    exploitability   what a policy is worth against itself, and what best responses win against it
    best_response    a best response to a policy, as a policy
    solve            an approximate equilibrium, with its exact distance from one

Importing this registers ``exact:FILE``, a solution that was saved.

>>> round(exploitability("cucumber,hand_size=2,ace_lead=none", "highest").value, 5)
2.73812
"""

from cucumber_env.exact.measure import Report, best_response, exploitability, refuse_sampling
from cucumber_env.exact.solve import SCHEMES, Scheme, solve
from cucumber_env.exact.tabular import ROUND_FIELDS, SOLUTION_VERSION, Tabular
from cucumber_env.exact.tree import check_rules

__all__ = [
    "ROUND_FIELDS",
    "SCHEMES",
    "SOLUTION_VERSION",
    "Report",
    "Scheme",
    "Tabular",
    "best_response",
    "check_rules",
    "exploitability",
    "refuse_sampling",
    "solve",
]

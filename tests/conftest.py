"""Options and settings of the whole test suite."""

import pytest
from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("project")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rule-cases",
        action="append",
        default=[],
        metavar="FILE",
        help="YAML file of further worked cases for tests/test_rule_cases.py, in the form of tests/rule_cases.yaml; "
        "may be given several times",
    )

"""A check as a test: fixture `biaskit_check`, option `--biaskit-thresholds` (howto/compare-and-check#check).

    def test_the_new_model_treats_jobs_as_the_old_one(biaskit_check):
        biaskit_check("runs/old", "runs/new")

Pytest loads this module at every start, so it imports nothing that takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from biaskit.compare.check import CheckResult


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--biaskit-thresholds FILE`."""
    group = parser.getgroup("biaskit")
    group.addoption(
        "--biaskit-thresholds", metavar="FILE", help="Thresholds of `biaskit_check`, if a test names none."
    )


@pytest.fixture
def biaskit_check(request: pytest.FixtureRequest) -> Callable[..., CheckResult]:
    """Fails the test, in the words of `biaskit check`, where runs do not reach its thresholds.

    The callable takes what `biaskit.check` takes; `thresholds` is by default that of `--biaskit-thresholds`.
    """

    def check(*runs: Any, thresholds: Any = None, **options: Any) -> CheckResult:
        import biaskit as bk

        chosen = thresholds if thresholds is not None else request.config.getoption("--biaskit-thresholds")
        if chosen is None and "max_flips" not in options:
            pytest.fail("Name thresholds: --biaskit-thresholds FILE, or thresholds=.", pytrace=False)
        try:
            result = bk.check(*runs, thresholds=chosen, **options)
        except bk.BiaskitError as error:
            pytest.fail(f"biaskit: {error}", pytrace=False)
        if not result.holds:
            pytest.fail(result.text, pytrace=False)
        return result

    return check

"""A gate as a test: the fixture `biaskit_gate` and the option `--biaskit-policy` (docs/reading.md#gate).

    def test_the_new_model_treats_jobs_as_the_old_one(biaskit_gate):
        biaskit_gate("runs/old", "runs/new")

Pytest loads this module at every start, so it imports nothing that takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from biaskit.compare.gate import GateResult


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--biaskit-policy FILE`."""
    group = parser.getgroup("biaskit")
    group.addoption(
        "--biaskit-policy", metavar="FILE", help="Thresholds of `biaskit_gate`, if a test names none."
    )


@pytest.fixture
def biaskit_gate(request: pytest.FixtureRequest) -> Callable[..., GateResult]:
    """Fails the test, in the words of `biaskit gate`, where runs do not show what a policy requires.

    The callable takes what `biaskit.gate` takes; `policy` is by default that of `--biaskit-policy`.
    """

    def check(*runs: Any, policy: Any = None, **options: Any) -> GateResult:
        import biaskit as bk

        chosen = policy if policy is not None else request.config.getoption("--biaskit-policy")
        if chosen is None:
            pytest.fail("Name a file of thresholds: --biaskit-policy FILE, or policy=.", pytrace=False)
        try:
            result = bk.gate(*runs, policy=chosen, **options)
        except bk.BiaskitError as error:
            pytest.fail(f"biaskit: {error}", pytrace=False)
        if not result.holds:
            pytest.fail(result.text, pytrace=False)
        return result

    return check

"""What the shell must allow before a command starts."""

from __future__ import annotations

from biaskit.errors import BiaskitError

LEAST_MB = 512
"""Of address space, for the tables of a small run. With less, libraries end the process in their own words,
or wait without end: OpenBLAS under 280 MB, and others up to 420 MB (measured with one thread)."""


def check_memory_limit() -> None:
    """Refuse a limit of memory under which no error of ours would be seen."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_MB * 2**20:
        raise BiaskitError(
            f"The limit on memory of this shell is {limit // 2**20:,} MB, and biaskit needs {LEAST_MB} MB,"
            " and more with a model. Raise it (ulimit -v), or the container's."
        )

"""`python -m biaskit`, and the console script."""

import gc
from typing import NoReturn

SELDOM = (100_000, 50, 100)
"""Objects more, then rounds, between two looks for rings of garbage. Tokenizers, models and rows are millions
of objects that live to the end: Python's own 700 took a fifth of the time in which a model opens."""


def main() -> NoReturn:
    """Run a command in a process of its own."""
    gc.set_threshold(*SELDOM)
    from biaskit.cli import main as run

    try:
        run()
    finally:
        gc.freeze()  # the process ends: what lives is not looked through once more (1.2 s with a model)


if __name__ == "__main__":
    main()

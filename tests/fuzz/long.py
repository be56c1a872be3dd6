"""Try a stranger's cases for as long as asked, each command in a process of its own that can be ended.

    python tests/fuzz/long.py --minutes 30 [--seed 1] [--only studies]

Prints how many cases of each generator were tried and each that failed; leaves with 1 where one did.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes.command import Cli, Said

from fuzz import environments, run_folders, studies, texts
from fuzz.base_runs import personas_run, probe_run

LONGEST_S = 120
"""After which a command counts as hanging."""


class Generator(Protocol):
    """What makes cases, the same for the same seed, and holds a command against its oracle."""

    def cases(self, n: int, seed: int) -> list[Any]:
        """n cases."""

    def check(self, case: Any, home: Path, call: Cli) -> None:
        """Prepare the folder, call the command; `AssertionError` where something does not hold."""


class Folders:
    """Changes of the files of one run."""

    def __init__(self, run: Path) -> None:
        self.run = run

    def cases(self, n: int, seed: int) -> list[run_folders.Case]:
        return run_folders.cases(self.run, n, seed)

    def check(self, case: run_folders.Case, home: Path, call: Cli) -> None:
        run_folders.check(case, self.run, home, call)


class Environments:
    """Environments that people have; each command in a shell of its own."""

    def __init__(self, run: Path) -> None:
        self.run = run

    def cases(self, n: int, seed: int) -> list[environments.Case]:
        return environments.cases(n, seed)

    def check(self, case: environments.Case, home: Path, call: Cli) -> None:  # noqa: ARG002  a shell calls
        environments.check(case, self.run, home)


def generators(home: Path) -> Mapping[str, Generator]:
    """Every generator by name; a module with `cases` and `check` is one. `home`: for what they share."""
    home.chmod(0o755)  # a user without a home must come in
    of_probe = probe_run(home)
    return {
        "probe runs": Folders(of_probe),
        "personas runs": Folders(personas_run(home)),
        "studies": studies,
        "texts": texts,
        "environments": Environments(of_probe),
    }


def call(*arguments: str) -> Said:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "biaskit", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LONGEST_S, errors="replace", stdin=subprocess.DEVNULL
    )
    return Said(done.returncode, done.stdout, done.stderr)


def main() -> int:
    """Try cases of each generator in turn until the time is over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one generator by its name")
    options = parser.parse_args()
    tried, failed = Counter[str](), Counter[str]()
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        known = {n: g for n, g in generators(home).items() if options.only in (None, n)}
        while time.monotonic() < end:
            for name, generator in known.items():
                (case,) = generator.cases(1, seed=1_000_003 * options.seed + tried[name])
                tried[name] += 1
                try:
                    generator.check(case, home / name.replace(" ", "-") / "home", call)
                except (AssertionError, subprocess.TimeoutExpired) as error:
                    failed[name] += 1
                    print(f"FAILED {name}: {case}: {str(error)[:600]}", flush=True)
                if tried.total() % 100 == 0:
                    print(f"{tried.total():,} cases, {failed.total()} failed", flush=True)
    shown = ", ".join(f"{name} {n:,}" for name, n in tried.items())
    print(f"{tried.total():,} cases ({shown}), {failed.total()} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

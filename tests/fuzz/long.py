"""Change run folders for as long as asked, each command in a process of its own that can be ended.

    python tests/fuzz/long.py --minutes 30 [--seed 1]

Prints how many cases were tried and each that failed; leaves with 1 where one did.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes.command import Said

from fuzz.base_runs import personas_run, probe_run
from fuzz.run_folders import Case, cases, check

LONGEST_S = 120
"""After which a command counts as hanging."""


def call(*arguments: str) -> Said:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "biaskit", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, errors="replace")
    return Said(done.returncode, done.stdout, done.stderr)


def main() -> int:
    """Try cases until the time is over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed: list[tuple[Case, str]] = []
    n = 0
    end = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        runs = [probe_run(home), personas_run(home)]
        while time.monotonic() < end:
            run = runs[n % 2]
            (case,) = cases(run, 1, seed=1_000_003 * options.seed + n)
            n += 1
            try:
                check(case, run, home / "home", call)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                failed.append((case, str(error)[:400]))
                print(f"FAILED {case}: {str(error)[:400]}", flush=True)
            if n % 100 == 0:
                print(f"{n} cases, {len(failed)} failed", flush=True)
    print(f"{n} cases, {len(failed)} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

"""Environments that people have, the commands that meet them, and what must hold there.

The oracle is that of all generators: a documented exit code, one line of error, no traceback, nothing that
was there before changed; and the command ends.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fakes.command import Said
from places import ROOT

from fuzz.oracle import EXIT_CODES, snapshot

LONGEST_S = 120
FAR_FUTURE = "import time\n_now = time.time\ntime.time = lambda: _now() + 3e9\n"
_POWERLESS = (
    "setpriv --reuid 12345 --regid 12345 --clear-groups --inh-caps=-all,+dac_read_search"
    " --ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search"
)
"""A user without a name, a home or a right to write, who may read Python wherever it is installed."""


@dataclass(frozen=True)
class Environment:
    """What a shell sets, limits and redirects, and files that lie in the working folder."""

    variables: Mapping[str, str | None] = field(default_factory=dict)
    before: str = ""  # shell commands
    user: str = ""  # what the command runs under
    after: str = ""  # redirections
    files: Mapping[str, bytes] = field(default_factory=dict)
    works: bool = True  # every command ends with 0


def _limit(what: str) -> Environment:
    return Environment(before=f"ulimit {what}; ", works=False)


ENVIRONMENTS: Mapping[str, Environment] = {
    "notebook": Environment({"MPLBACKEND": "module://matplotlib_inline.backend_inline"}),
    "no such backend": Environment({"MPLBACKEND": "nonsense"}),
    "broken matplotlibrc": Environment(files={"matplotlibrc": b"\xff\xfebackend: foo\n"}),
    "named matplotlibrc": Environment({"MATPLOTLIBRC": "/nowhere/at/all"}),
    "no home": Environment({"HOME": None}),
    "home nowhere": Environment({"HOME": "/nonexistent"}),
    "nameless user": Environment({"HOME": None}, user=_POWERLESS, works=False),
    "stdout full": Environment(after=">/dev/full", works=False),
    "stderr full": Environment(after="2>/dev/full"),
    "reader has enough": Environment(after="| head -1; exit ${PIPESTATUS[0]}"),
    "ascii": Environment({"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}),
    "far future": Environment(files={"sitecustomize.py": FAR_FUTURE.encode()}),
    "no large files": _limit("-f 1"),
    "few open files": _limit("-n 12"),
}
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "probe": ("probe", "scripted:SCRIPT", "--jobs", "nurse,plumber", "--templates", "1-2", "--out", "new"),
    "analyze": ("analyze", "RUN", "--out", "copy"),
    "report": ("report", "RUN", "--out", "page.html"),
    "cite": ("cite", "RUN"),
    "runs": ("runs",),
}
ANSWERED = frozenset({"stdout full"})
"""Environments in which a command that prints cannot end with 0."""


@dataclass(frozen=True)
class Case:
    """A command in an environment."""

    environment: str
    command: str


def possible(name: str) -> bool:
    """Whether this machine can make the environment: another user needs root's rights."""
    if ENVIRONMENTS[name].user:
        return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("setpriv") is not None
    return not ENVIRONMENTS[name].after.startswith((">/dev/full", "2>/dev/full")) or os.path.exists(
        "/dev/full"
    )


def cases(n: int, seed: int) -> list[Case]:
    """n different cases, as far as there are so many; the same for the same seed."""
    every = [Case(name, command) for name in ENVIRONMENTS if possible(name) for command in COMMANDS]
    random.Random(seed).shuffle(every)
    return every[:n]


def in_shell(line: str, home: Path, variables: Mapping[str, str | None]) -> Said:
    """A line of bash in a folder; `TimeoutExpired` where it hangs."""
    environment = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    for name in (name for name, value in variables.items() if value is None):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-c", line], cwd=home, env=environment, capture_output=True, text=True, errors="replace",
        timeout=LONGEST_S, check=False,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


Shell = Callable[[str, Path, Mapping[str, str | None]], Said]


def check(case: Case, run: Path, home: Path, shell: Shell = in_shell) -> Said:
    """Call a command on a copy of a run of the prober, and hold what came of it against the oracle."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    shutil.copytree(run, home / "run")
    script = home / "script.jsonl"
    script.write_bytes((run.parent / "m.jsonl").read_bytes())
    environment = ENVIRONMENTS[case.environment]
    for name, content in environment.files.items():
        (home / name).write_bytes(content)
    if environment.user:
        home.chmod(0o777)
    words = [word.replace("RUN", "run").replace("SCRIPT", script.name) for word in COMMANDS[case.command]]
    before = snapshot(home)
    line = shlex.join([sys.executable, "-m", "biaskit", *words])
    variables = {
        "PYTHONPATH": os.pathsep.join([str(home), str(ROOT)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **environment.variables,
    }
    said = shell(f"{environment.before}{environment.user} {line} {environment.after}", home, variables)
    _hold(case, said, environment)
    after = snapshot(home)
    assert before == {path: after.get(path) for path in before}, case
    return said


def _hold(case: Case, said: Said, environment: Environment) -> None:
    assert said.code in EXIT_CODES, (case, said)
    assert "Traceback" not in said.err + said.out, (case, said.err)
    if environment.works:
        assert said.code == 0, (case, said.err)
    elif case.environment in ANSWERED:
        assert said.code == 1, (case, said)
    if said.code in (1, 2) and "2>" not in environment.after:
        errors = [line for line in said.err.splitlines() if line.startswith("biaskit: ")]
        assert len(errors) == 1, (case, said.err)

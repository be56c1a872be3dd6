"""kill -9 at random moments of a command, up to five in a row, then the same command until it ends.

    python tests/fuzz/kills.py --command probe --kills 100 [--seed 1]

What stands then must be what one unbroken start in a process of its own leaves, byte for byte but for times
(`lives.NOT_COMPARED`). A start is a fork of a process that has imported everything and run nothing. It is
killed before its n-th operation on a file, or after so many seconds; only starts that were killed before
they ended are counted. Prints "probe: 100 kills, lost 0, doubled 0, unequal 0", and leaves with 1 where
one of these is not 0.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Before numpy and torch are imported: a process with threads cannot be forked.
os.environ.update({f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")})
os.environ |= {"TOKENIZERS_PARALLELISM": "false", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz.lives import FAKE_DEMO, LIVES, Life, tree, whole_rows

LONGEST_S = 300
IN_A_ROW = 5
KILLED = -signal.SIGKILL


# --- one start ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """How one start went: its exit code (-9: killed), operations it came to, seconds."""

    code: int
    operations: int
    seconds: float


def forked(act: Callable[[], Any], log: Path, *, counted: Path, at: int = 0, after_s: float = 0) -> Start:
    """Act in a child: killed before its `at`-th operation below `counted`, or after some time, if not 0."""
    began = time.monotonic()
    count = log.with_name("operations")
    count.unlink(missing_ok=True)
    child = os.fork()
    if not child:
        _live(act, log, counted, at, count)
    code, killed_at = None, after_s or LONGEST_S
    while code is None:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
        elif time.monotonic() - began > killed_at:
            with contextlib.suppress(ProcessLookupError):  # its group may not be made yet
                os.killpg(child, signal.SIGKILL)
            os.kill(child, signal.SIGKILL)
            assert after_s, f"not over after {LONGEST_S} s"
        else:
            time.sleep(0.001)
    return Start(code, int(count.read_text()) if count.exists() else 0, time.monotonic() - began)


def _live(act: Callable[[], Any], log: Path, counted: Path, at: int, count: Path) -> None:
    """The child's life; it does not come back."""
    code, operations = 70, [0]
    try:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(out, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _count(counted, at, operations)
        act()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        done = operations[0]
        count.write_text(str(done))
        os._exit(code)


EVENTS = (
    *("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "os.link"),
    *("os.symlink", "os.utime", "os.scandir", "os.listdir", "shutil.rmtree", "shutil.copyfile"),
)


def _count(folder: Path, at: int, operations: list[int]) -> None:
    """From here on count this process's operations on files of a folder, and kill it before number `at`."""
    inside = f"{folder}{os.sep}"

    def one() -> None:
        operations[0] += 1
        if operations[0] == at:
            os.killpg(0, signal.SIGKILL)

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and arguments and isinstance(arguments[0], str | os.PathLike):
            name = os.fspath(arguments[0])
            if isinstance(name, str) and os.path.join(os.getcwd(), name).startswith(inside):
                one()

    def sync(descriptor: int, call: Callable[[int], None] = os.fsync) -> None:
        one()  # a descriptor has no name; what syncs here is the writer
        call(descriptor)

    os.fsync = sync  # type: ignore[assignment]
    sys.addaudithook(seen)


# --- one command, killed and given again --------------------------------------------------------------


@dataclass
class Counts:
    """What came of the kills of a command."""

    kills: int = 0
    ended: int = 0  # starts that ended before their kill
    lost: int = 0
    doubled: int = 0
    unequal: int = 0
    places: Counter[str] = field(default_factory=Counter)  # what stood there at a kill
    said: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing went wrong."""
        return not self.lost + self.doubled + self.unequal

    def __str__(self) -> str:
        return f"{self.kills} kills, lost {self.lost}, doubled {self.doubled}, unequal {self.unequal}"


class Stage:
    """One life in one folder, which is always the same: a path may stand in what a command writes."""

    def __init__(self, life: Life, home: Path) -> None:
        self.life, self.home = life, home
        self.work, self.base = home / "work", home / "base"
        self.counted = (self.work / life.moments).resolve()
        self.work.mkdir(parents=True)
        self._run(lambda: life.prepare(_call), "prepare")
        shutil.copytree(self.work, self.base)

    def start(self, *, at: int = 0, after_s: float = 0) -> Start:
        """The command once, in a fork."""
        return forked(
            lambda: _command(self.life.words, self.work),
            self.log,
            counted=self.counted,
            at=at,
            after_s=after_s,
        )

    def start_afresh(self) -> None:
        """The command once, in a process of its own."""
        environment = {**os.environ, **_environment(self.work)}
        search = [
            str(self.work / FAKE_DEMO),
            str(Path(__file__).parents[2]),
            environment.get("PYTHONPATH", ""),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "biaskit", *self.life.words],
            cwd=self.work,
            env=environment | {"PYTHONPATH": os.pathsep.join(search)},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=LONGEST_S,
        )
        assert done.returncode == 0, done.stderr

    def reset(self) -> None:
        """The folder as the command finds it first."""
        shutil.rmtree(self.work)
        shutil.copytree(self.base, self.work)

    @property
    def log(self) -> Path:
        """What the last start in a fork said."""
        return self.home / "said"

    def _run(self, act: Callable[[], Any], what: str) -> None:
        def there() -> None:
            _settle(self.work)
            act()

        done = forked(there, self.log, counted=self.counted)
        assert done.code == 0, (what, self.log.read_text())


def _environment(work: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(work / "cache"), "MPLCONFIGDIR": str(work.parent / "matplotlib")}


def _settle(work: Path) -> None:
    """Stand in the folder, with its cache and its demo; what an import has fixed is as after a new one."""
    import biaskit.runs.usage as usage

    os.chdir(work)
    os.environ.update(_environment(work))
    sys.path.insert(0, str(work / FAKE_DEMO))
    usage._THIS_PROCESS = time.time()


def _command(words: Sequence[str], work: Path) -> None:
    from biaskit.cli import main

    _settle(work)
    _call(*words, main=main)


def _call(*words: str, main: Callable[[], Any] | None = None) -> None:
    """The command line in this process; as a part of making a base it must come out well."""
    from biaskit.cli import main as whole

    sys.argv = ["biaskit", *words]
    try:
        (main or whole)()
    except SystemExit as ended:
        if main or ended.code:
            raise


def kill_life(stage: Stage, kills: int, rng: random.Random, counts: Counts) -> None:
    """Kill a command as often as asked, up to five times in a row before it may end."""
    stage.start_afresh()
    whole, rows = tree(stage.work), whole_rows(stage.work)
    stage.reset()
    unbroken = stage.start()
    assert unbroken.code == 0, stage.log.read_text()
    _compare("unbroken in a fork", whole, tree(stage.work), counts)
    enough = counts.kills + kills
    while counts.kills < enough:
        stage.reset()
        moments: list[str] = []
        before: dict[str, list[bytes]] = {}
        left = min(rng.randint(1, IN_A_ROW), enough - counts.kills)
        code = KILLED
        while code == KILLED and left:
            if rng.random() < 0.7:
                how: dict[str, Any] = {"at": rng.randint(1, unbroken.operations)}
            else:
                how = {"after_s": rng.uniform(0.001, unbroken.seconds)}
            code = stage.start(**how).code
            moments.append(str(how))
            left -= 1
            if code == KILLED:
                counts.kills += 1
                before = _kept(before, whole_rows(stage.work), counts, moments)
                counts.places[_place(stage.work, whole)] += 1
            else:
                counts.ended += 1
        if code == KILLED:
            code = stage.start().code
        if code != 0:
            counts.unequal += 1
            counts.said.append(f"{stage.life.name} {moments}: exit {code}: {stage.log.read_text()[-600:]}")
            continue
        _kept(before, whole_rows(stage.work), counts, moments)
        _check_rows(rows, whole_rows(stage.work), counts, moments)
        _compare(f"{stage.life.name} {moments}", whole, tree(stage.work), counts)


def _kept(
    before: dict[str, list[bytes]], after: dict[str, list[bytes]], counts: Counts, moments: Sequence[str]
) -> dict[str, list[bytes]]:
    """Rows that were whole at an earlier kill stand there still, first and unchanged."""
    for name, lines in before.items():
        now = after.get(name, [])
        if lost := sum(line not in set(now) for line in lines) or int(now[: len(lines)] != lines):
            counts.lost += lost
            counts.said.append(f"{moments}: {name}: {lost} of {len(lines)} rows lost or moved")
    return after


def _check_rows(
    whole: dict[str, list[bytes]], found: dict[str, list[bytes]], counts: Counts, moments: Sequence[str]
) -> None:
    """At the end the keys are those of the unbroken run, each once."""
    for name, lines in whole.items():
        keys = Counter(json.loads(line)["key"] for line in found.get(name, []))
        lost = {json.loads(line)["key"] for line in lines} - keys.keys()
        doubled = sum(n - 1 for n in keys.values())
        counts.lost += len(lost)
        counts.doubled += doubled
        if lost or doubled:
            counts.said.append(f"{moments}: {name}: {len(lost)} rows lost, {doubled} doubled")


def _compare(what: str, whole: dict[str, bytes], found: dict[str, bytes], counts: Counts) -> None:
    apart = [name for name in sorted({*whole, *found}) if whole.get(name) != found.get(name)]
    counts.unequal += bool(apart)
    if apart:
        counts.said.append(f"{what}: unequal: {apart[:6]}")


def _place(work: Path, whole: dict[str, bytes]) -> str:
    """How far a killed start had come: which files of the end there were."""
    try:
        found = tree(work)
    except (ValueError, AssertionError):
        return "within a row"
    changed = [name for name in whole if found.get(name) == whole[name]]
    return f"{len(changed)} of {len(whole)} files done"


# --- the whole ----------------------------------------------------------------------------------------


def warm(stages: Sequence[Stage]) -> None:
    """Import, without running, what the commands import: names come from a child that ran each once."""
    for stage in stages:
        names = stage.home / "names"

        def noted(stage: Stage = stage, names: Path = names) -> None:
            try:
                _command(stage.life.words, stage.work)
            finally:
                names.write_text("\n".join(sys.modules))

        done = forked(noted, stage.log, counted=stage.counted)
        assert done.code == 0, stage.log.read_text()
        for name in names.read_text().splitlines():
            if not name.startswith(("__", "gemma3_270m")):
                with contextlib.suppress(Exception), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    importlib.import_module(name)
        stage.reset()
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads: a fork would not be a whole process"
    gc.collect()
    gc.freeze()


def kill_command(command: str, kills: int, seed: int, home: Path, quick: bool = False) -> Counts:
    """Kill each life of a command in turn."""
    lives, counts = LIVES[command][: 1 if quick else None], Counts()
    rng = random.Random(f"{command} {seed}")
    stages = [Stage(life, home / life.name) for life in lives]
    warm(stages)
    for number, stage in enumerate(stages):
        share = kills * (number + 1) // len(lives) - kills * number // len(lives)
        if share:
            kill_life(stage, share, rng, counts)
    return counts


def main() -> int:
    """Kill one command, or all of them in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--command", choices=[*LIVES, "all"], default="all")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="the first life of a command alone")
    options = parser.parse_args()
    clean = True
    for command in LIVES if options.command == "all" else [options.command]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            counts = kill_command(command, options.kills, options.seed, Path(folder).resolve(), options.quick)
        for said in counts.said:
            print(f"FAILED {said}", flush=True)
        print(f"{command}: {counts}", flush=True)
        seconds = time.monotonic() - began
        print(
            f"  {seconds:.0f} s; {counts.ended} more starts ended before their kill; at the kills:"
            f" {', '.join(f'{place} {n}' for place, n in sorted(counts.places.items()))}",
            file=sys.stderr,
            flush=True,
        )
        clean &= counts.is_clean
    return int(not clean)


if __name__ == "__main__":
    sys.exit(main())

"""Fixtures that several test files share."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

pytest.register_assert_rewrite("fakes")  # before the first of them is imported

from fakes.command import Cli, Said  # noqa: E402

import biaskit.cli  # noqa: E402
import biaskit.progress  # noqa: E402

if TYPE_CHECKING:
    from fakes.tiny_models import Tiny

# Both cores of a machine are busy, so no example has a time limit. `.ci/test --quick` takes the second,
# `.ci/nightly` the third: its examples are new every time.
# Workers that fill one folder at once read files that another is about to replace.
set_hypothesis_home_dir(Path(".hypothesis", os.environ.get("PYTEST_XDIST_WORKER", "alone")).absolute())
settings.register_profile("daily", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("fresh", deadline=None)
settings.load_profile("daily")

NIGHTLY = ("real_server", "process", "browser", "real_model", "slow")
"""Markers of tests that are `nightly`, unless they are `daily` by name."""


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is for the night is marked so, and files that take longest come first.

    A worker takes whole files (`--dist loadfile`): fixtures of a module are made once, and none is left alone
    with a long one at the end.
    """
    long = (*NIGHTLY, "nightly")
    weight: dict[Path, int] = {}
    for item in items:
        if any(map(item.get_closest_marker, NIGHTLY)) and not item.get_closest_marker("daily"):
            item.add_marker("nightly")
        rank = min((i for i, name in enumerate(long) if item.get_closest_marker(name)), default=len(long))
        weight[item.path] = min(rank, weight.get(item.path, rank))
    items.sort(key=lambda item: weight[item.path])
    # What has been imported stays: statsmodels collects garbage at every call of Holm, and would look through
    # all of torch each time.
    gc.collect()
    gc.freeze()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str | bytes], str]:
    """Write a user's file and give its name, relative to the current directory."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, content: str | bytes) -> str:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return name

    return write_file


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tiny]:
    """`saved_models(architecture, tokenizer, chat_template=...)`: a folder and its oracle, made once."""
    from fakes.tiny_models import Oracle, Tiny, save_model

    root = tmp_path_factory.mktemp("tiny")

    @functools.cache
    def saved(architecture: str, tokenizer: str, *, chat_template: str | None = None) -> Tiny:
        folder = root / str(len(list(root.iterdir())))
        save_model(folder, architecture, tokenizer, chat_template=chat_template)
        return Tiny(folder, Oracle(folder))

    return saved


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder beside the user's: digests of files that live for one session do not belong there."""
    cache = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny matrices gain nothing from a second thread, and lose much beside another process."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def tiny(saved_models: Callable[..., Tiny], own_cache: Path, one_thread: None) -> Any:
    """`saved_models` with a cache of its own, on one thread."""
    return saved_models


@pytest.fixture(autouse=True)
def _asks_every_question(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs that a test makes side by side are both asked, unless it is about answers taken over."""
    if request.node.get_closest_marker("reuse") is None:
        monkeypatch.setattr(import_module("biaskit.runs.reuse"), "list_runs", lambda parent: [])


@pytest.fixture(autouse=True)
def _vectors_of_this_session(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Vectors that tests train are kept for as long as they run, and the user's are left alone."""
    kept = tmp_path_factory.getbasetemp() / "vectors"
    monkeypatch.setattr(import_module("biaskit.measures.personas.vectors.cache"), "folder", lambda: kept)


# --- stored runs -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def stored_probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two jobs and three templates, asked of a scripted model (`m.jsonl` beside it); copy it to change it."""
    from fakes.stored_runs import probe_run

    return probe_run(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="session")
def stored_personas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight texts of one occupation, imported and analysed; copy it to change it."""
    from fakes.stored_runs import personas_run

    return personas_run(tmp_path_factory.mktemp("stored"))


# --- the command line ------------------------------------------------------------------------------------


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """The console script in this process."""
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(biaskit.progress, "FIRST_SIGN_S", 1e6)  # a loaded machine would say it in any test

    def call(*arguments: str | Path) -> Said:
        monkeypatch.setattr(sys, "argv", ["biaskit", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            biaskit.cli.main()
        streams = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Said(code or 0, streams.out, streams.err)

    yield call
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def cli(console: Cli) -> Cli:
    """`console`; tests of some folders put something around it."""
    return console


# --- no waiting --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def no_waiting() -> Iterator[None]:
    """Neither for disks, since power cuts are tested elsewhere, nor for garbage.

    statsmodels collects it at every call of Holm: half the time of the tests that analyse runs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(gc, "collect", lambda *generation: 0)
        yield


@pytest.fixture
def quick_folder(tmp_path: Path, no_waiting: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own to stand in, without waiting."""
    monkeypatch.chdir(tmp_path)
    return tmp_path

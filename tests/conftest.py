"""Fixtures that several test files share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tiny_models import Tiny


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tiny]:
    """`saved_models(architecture, tokenizer, chat_template=...)`: a folder and its oracle, made once."""
    from tiny_models import Oracle, Tiny, save_model

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

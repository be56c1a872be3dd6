"""Records by what they have in common, some of their attributes as a row, and values that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_MOST_KEPT = 500_000


def group_by(items: Iterable[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    """Group items by a key, keys and items in order of appearance."""
    groups: dict[K, list[V]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def attributes(record: object, names: Sequence[str]) -> dict[str, Any]:
    """Map the names of some attributes to their values, unlike `asdict` without a copy of each."""
    return {name: getattr(record, name) for name in names}


class Memo(dict[K, V]):
    """What a function returns for each key: looked up faster than `lru_cache`; emptied when full."""

    def __init__(self, function: Callable[[K], V]) -> None:
        self._function = function

    def __missing__(self, key: K) -> V:
        if len(self) >= _MOST_KEPT:
            self.clear()
        self[key] = value = self._function(key)
        return value

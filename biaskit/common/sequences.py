"""Sequences whose entries are made where they are looked at: a product of millions of cells holds none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T", covariant=True)


class Computed(Sequence[T], Generic[T]):
    """`n` entries, each made by its place from 0 on whenever it is asked for, and never kept."""

    __slots__ = ("_at", "_n")

    def __init__(self, n: int, at: Callable[[int], T]) -> None:
        self._n, self._at = n, at

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        """Make one entry, or a list of those of a slice."""
        places = range(self._n)[place]
        return self._at(places) if isinstance(places, int) else [self._at(i) for i in places]

    def __iter__(self) -> Iterator[T]:
        return map(self._at, range(self._n))


def cut(entries: Sequence[T], size: int) -> Computed[tuple[T, ...]]:
    """Cut entries, in their order, into tuples of `size`; the last has what is left."""
    return Computed(-(-len(entries) // size), lambda i: tuple(entries[i * size : (i + 1) * size]))

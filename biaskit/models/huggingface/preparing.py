"""Requests in one model's tokens, with every check that needs no weights (docs/methods.md#word-boundary)."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from biaskit.errors import TokenizationError
from biaskit.models.base import naming
from biaskit.models.conversation import forms_of
from biaskit.models.huggingface.rendering import Continuation, Renderer
from biaskit.models.token_trie import TokenIds, TokenTrie, build_trie, shortest_extensions
from biaskit.progress import duration
from biaskit.records import Expression, ScoreRequest

Forms = Sequence[tuple[Expression, str]]

AT_ONCE = 512  # requests tokenised in one call: enough for the tokenizer's threads, few enough for memory
MANY = 100_000
"""Texts of a plan above which it pays to look for the endings that its prompts share."""
LONG_S = 10  # without a word


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request in one model's tokens."""

    key: str
    rendered: str
    ids: TokenIds
    continuations: tuple[Continuation, ...]
    trie: TokenTrie


def prepare(
    renderer: Renderer,
    requests: Sequence[ScoreRequest],
    *,
    ends: bool,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Prepared]:
    """Key → prepared request; equal expressions share one trie. `ends`: complete sequences are nodes too.

    `tell`: how long it will take, once, where that is long.
    """
    started = time.perf_counter()
    behind, prepared = _Behind(renderer, requests, ends=ends), dict[str, Prepared]()
    for start in range(0, len(requests), AT_ONCE):
        some = requests[start : start + AT_ONCE]
        rendered = [_rendered(renderer, request) for request in some]
        prompts = _encode_prompts(renderer, some, [text for text, _ in rendered])
        looked_at = [behind.looked_at(text, forms) for text, forms in rendered]
        texts = [
            text + forms[k][1] for (text, forms), at in zip(rendered, looked_at, strict=True) for k in at
        ]
        joint = iter(renderer.encode(texts))
        for request, (text, forms), at, ids in zip(some, rendered, looked_at, prompts, strict=True):
            with naming(request):
                if not ids:
                    raise TokenizationError("the prompt is empty for this tokenizer: nothing to condition on")
                found, trie = behind.found(text, ids, forms, {k: next(joint) for k in at})
            prepared[request.key] = Prepared(request.key, text, ids, found, trie)
        spent = time.perf_counter() - started
        if tell is not None and spent > LONG_S:
            left = spent * (len(requests) - len(prepared)) / len(prepared)
            if left > LONG_S:
                tell(f"reading {len(requests):,} prompts as tokens takes about {duration(left)} more.")
            tell = None
    return prepared


@dataclass(frozen=True, slots=True)
class _Followed:
    """What was found behind one ending."""

    own: Sequence[TokenIds]  # of each form
    continuations: tuple[Continuation, ...]
    trie: TokenTrie


class _Behind:
    """The expressions' own tokens behind each prompt; in a long plan, once for prompts that end alike.

    There one form, in turn, is still tokenised behind every prompt: were it another than that behind the
    first prompt with this ending, no ending would be believed any more.
    """

    def __init__(self, renderer: Renderer, requests: Sequence[ScoreRequest], *, ends: bool) -> None:
        self.renderer, self.ends = renderer, ends
        self._tries: dict[tuple[TokenIds, ...], TokenTrie] = {}
        self._followed: dict[Hashable, _Followed | None] = {}  # None: being tokenised
        self._turn = itertools.count()
        n_texts = sum(len(request.expressions) for request in requests)
        self._ending = renderer.endings() if n_texts > MANY else None

    def looked_at(self, text: str, forms: Forms) -> Sequence[int]:
        """Which forms are to be tokenised behind this prompt."""
        key = self._key(text, forms)
        if key in self._followed:
            return (next(self._turn) % len(forms),)
        if key is not None:
            self._followed[key] = None
        return range(len(forms))

    def _key(self, text: str, forms: Forms) -> Hashable:
        ending = self._ending(text) if self._ending else ""
        return (ending, *forms) if ending else None

    def found(
        self, text: str, ids: TokenIds, forms: Forms, joint: Mapping[int, TokenIds]
    ) -> tuple[tuple[Continuation, ...], TokenTrie]:
        """Continuations and trie of a prompt, from the ids of (prompt + form) that were looked at."""
        key = self._key(text, forms)
        known = self._followed.get(key)
        if known is not None and all(both == ids + known.own[k] for k, both in joint.items()):
            return known.continuations, known.trie
        if len(joint) < len(forms):
            self._ending = None
            joint = dict(enumerate(self.renderer.encode([text + form for _, form in forms])))
        found = self.renderer.continuations(text, ids, forms, [*joint.values()])
        sequences = tuple(c.ids for c in found)
        if sequences not in self._tries:
            self._tries[sequences] = build_trie(sequences, ends=self.ends)
        if key is not None:
            own = [both[len(ids) :] for both in joint.values()]
            self._followed[key] = _Followed(own, found, self._tries[sequences])
        return found, self._tries[sequences]


def _rendered(renderer: Renderer, request: ScoreRequest) -> tuple[str, Forms]:
    """The prompt as this model reads it, and every form of every expression after it."""
    with naming(request):
        if not request.expressions:
            raise TokenizationError("nothing is asked after this prompt: give at least one expression")
        text = renderer.render(request.prompt)
        return text, forms_of(request, text)


def _encode_prompts(
    renderer: Renderer, requests: Sequence[ScoreRequest], texts: Sequence[str]
) -> list[TokenIds]:
    try:
        return renderer.encode(texts)
    except TokenizationError:
        # Once more one by one, so that the error names its cell.
        for request, text in zip(requests, texts, strict=True):
            with naming(request):
                renderer.encode([text])
        raise


def name_prefixes(prepared: Iterable[Prepared], *, refuse: bool) -> tuple[str, ...]:
    """A note for every expression whose tokens begin another's; with `refuse`, an error across groups."""
    notes: dict[str, None] = {}
    firsts: dict[int, Prepared] = {}
    for entry in prepared:
        firsts.setdefault(id(entry.trie), entry)
    for entry in firsts.values():
        for i, extensions in enumerate(shortest_extensions(entry.trie.sequences)):
            for j in extensions:
                short, long = entry.continuations[i], entry.continuations[j]
                pair = f"{short.text!r} ({short.group}) begins {long.text!r} ({long.group})"
                if short.group == long.group:
                    notes[f"{pair}: counted once"] = None
                elif refuse:
                    raise TokenizationError(
                        f"in this model's tokens {pair}, and on_prefix = refuse:"
                        " change the expressions, or set on_prefix=exclusive"
                    )
                else:
                    notes[f"{pair}: {short.text!r} counts without it"] = None
    return tuple(notes)

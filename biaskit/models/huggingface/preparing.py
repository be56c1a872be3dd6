"""From requests to this model's tokens, with every check that needs no weights.

See docs/methods.md#word-boundary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from biaskit.errors import BiaskitError, TokenizationError
from biaskit.models.conversation import join_continuation, starts_turn
from biaskit.models.huggingface.rendering import Continuation, Renderer
from biaskit.models.token_trie import TokenIds, TokenTrie, build_trie, shortest_extensions
from biaskit.records import Expression, ScoreRequest

AT_ONCE = 512
"""Requests tokenised in one call: enough for the tokenizer's threads, few enough for memory."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request in one model's tokens."""

    rendered: str
    ids: TokenIds
    continuations: tuple[Continuation, ...]
    trie: TokenTrie


def prepare(renderer: Renderer, requests: Sequence[ScoreRequest], *, ends: bool) -> dict[str, Prepared]:
    """Key → prepared request; equal expressions share one trie. `ends`: complete sequences are nodes too."""
    tries: dict[tuple[TokenIds, ...], TokenTrie] = {}
    prepared: dict[str, Prepared] = {}
    for start in range(0, len(requests), AT_ONCE):
        some = requests[start : start + AT_ONCE]
        texts = [_render(renderer, request) for request in some]
        forms = [_forms(request, text) for request, text in zip(some, texts, strict=True)]
        ids = _encode_prompts(renderer, some, texts)
        joint = iter(
            renderer.encode([t + form for t, own in zip(texts, forms, strict=True) for _, form in own])
        )
        for request, text, own, asked in zip(some, texts, ids, forms, strict=True):
            with _Naming(request):
                if not own:
                    raise TokenizationError("the prompt is empty for this tokenizer: nothing to condition on")
                found = renderer.continuations(text, own, asked, [next(joint) for _ in asked])
            sequences = tuple(c.ids for c in found)
            if sequences not in tries:
                tries[sequences] = build_trie(sequences, ends=ends)
            prepared[request.key] = Prepared(text, own, found, tries[sequences])
    return prepared


def _render(renderer: Renderer, request: ScoreRequest) -> str:
    with _Naming(request):
        if not request.expressions:
            raise TokenizationError("nothing is asked after this prompt: give at least one expression")
        return renderer.render(request.prompt)


def _encode_prompts(
    renderer: Renderer, requests: Sequence[ScoreRequest], texts: Sequence[str]
) -> list[TokenIds]:
    try:
        return renderer.encode(texts)
    except TokenizationError:
        # Once more one by one, so that the error names its cell.
        for request, text in zip(requests, texts, strict=True):
            with _Naming(request):
                renderer.encode([text])
        raise


def _forms(request: ScoreRequest, rendered: str) -> list[tuple[Expression, str]]:
    turn_start = starts_turn(request.prompt)
    with _Naming(request):
        return [
            (expression, text)
            for expression in request.expressions
            for text in join_continuation(rendered, expression.text, turn_start=turn_start)
        ]


def name_prefixes(prepared: Iterable[Prepared], *, refuse: bool) -> tuple[str, ...]:
    """A note for every expression whose tokens begin another's; with `refuse`, an error across groups."""
    notes: dict[str, None] = {}
    seen: set[tuple[TokenIds, ...]] = set()
    for entry in prepared:
        if entry.trie.sequences in seen:
            continue
        seen.add(entry.trie.sequences)
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


class _Naming:
    """Give an error the key of its request, so that the engine can name template and job."""

    def __init__(self, request: ScoreRequest) -> None:
        self.request = request

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, BiaskitError) and not hasattr(error, "request_key"):
            error.request_key = self.request.key  # type: ignore[attr-defined]

"""Requests as a model's tokens, with checks that need no weights (methods/probabilities#word-boundary)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from biaskit.common.sequences import cut
from biaskit.errors import ModelError, TokenizationError
from biaskit.models.base import naming
from biaskit.models.conversation import forms_of
from biaskit.models.huggingface.rendering import Continuation, LeftOut, Renderer
from biaskit.models.thoughts import inside_thought
from biaskit.models.token_trie import TokenIds, TokenTrie, build_trie, shortest_extensions
from biaskit.records import ScoreRequest, TargetWord

Forms = Sequence[tuple[TargetWord, str]]

AT_ONCE = 512  # requests tokenised in one call: enough for the tokenizer's threads, few enough for memory


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as one model's tokens."""

    key: str
    rendered: str
    ids: TokenIds
    continuations: tuple[Continuation, ...]
    trie: TokenTrie
    left_out: LeftOut = ()
    rest: TokenIds = ()  # of a sentence, after the tokens that it shares

    @property
    def text(self) -> TokenIds:
        """The tokens whose plain forward checks head and cache: the prompt, or a whole sentence."""
        return self.ids + self.rest


def prepare(
    renderer: Renderer, requests: Sequence[ScoreRequest], *, ends: bool, prompts_only: bool = False
) -> dict[str, Prepared]:
    """Prepare requests: key → prepared request; equal target words share one trie.

    `ends`: complete sequences are nodes too; `prompts_only`: only the prompt itself is a node.
    """
    prepared: dict[str, Prepared] = {}
    tries: dict[tuple[TokenIds, ...], TokenTrie] = {}
    for chunk in cut(requests, AT_ONCE):
        rendered: list[tuple[str, Forms]] = []
        for request in chunk:
            with naming(request):
                if not request.target_words:
                    raise TokenizationError("this prompt has no target words: give at least one")
                text = renderer.render(request.prompt)
                if mark := renderer.opened(request.prompt, text):
                    raise ModelError(inside_thought(f"the prompt ends inside a thought ({mark})"))
                rendered.append((text, forms_of(request, text)))
        prompts = _encode_prompts(renderer, chunk, [text for text, _ in rendered])
        joint = iter(renderer.encode([text + form for text, forms in rendered for _, form in forms]))
        for request, (text, forms), ids in zip(chunk, rendered, prompts, strict=True):
            with naming(request):
                joined = [next(joint) for _ in forms]
                if request.prompt.prompt_format == "sentence":
                    ids, continuations = renderer.sentences(text, forms, joined)
                    left_out: LeftOut = ()
                elif ids:
                    continuations, left_out = renderer.continuations(text, ids, forms, joined)
                if not ids:
                    raise TokenizationError("the prompt is empty for this tokenizer: nothing to condition on")
            sequences = tuple(c.ids for c in continuations)
            if sequences not in tries:
                trie = build_trie(sequences, ends=ends)
                if prompts_only:
                    trie = replace(trie, nodes=((),), parents=(-1,), levels=(), steps=())
                tries[sequences] = trie
            rest = max(sequences, key=len) if request.prompt.prompt_format == "sentence" else ()
            prepared[request.key] = Prepared(
                request.key, text, ids, continuations, tries[sequences], left_out, rest
            )
    return prepared


def _encode_prompts(
    renderer: Renderer, requests: Sequence[ScoreRequest], texts: Sequence[str]
) -> list[TokenIds]:
    """Encode prompts together; an error names the request that caused it."""
    try:
        return renderer.encode(texts)
    except TokenizationError:
        for request, text in zip(requests, texts, strict=True):
            with naming(request):
                renderer.encode([text])
        raise


def name_misread(renderer: Renderer) -> tuple[str, ...]:
    """Return a note for each form that the tokenizer writes as another text, or cannot write."""
    notes = []
    for text, read_as in renderer.misread.items():
        if read_as is None:
            notes.append(f"this model's tokenizer cannot write {text!r}: it is left out")
        elif read_as != text:
            notes.append(f"this model's tokenizer writes {text!r} as {read_as!r}")
    return tuple(notes)


def name_prefixes(prepared: Iterable[Prepared], *, refuse: bool) -> tuple[str, ...]:
    """Return a note for each target word that begins another's tokens; `refuse`: raise if groups differ."""
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
                        " change the target words, or set on_prefix=exclusive"
                    )
                else:
                    notes[f"{pair}: {short.text!r} counts without it"] = None
    return tuple(notes)

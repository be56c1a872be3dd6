"""Ready-made specs: the models behind an API that the papers asked, by label."""

from __future__ import annotations

import re
from pathlib import Path

from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Filled, ListEntry, shown
from biaskit.errors import CorpusError

KNOWN = "corpus:models/papers.toml"

_OPENAI = "OPENAI_API_KEY"


class KnownModel(ListEntry):
    """A model of a paper: what its label stands for, the variable of its key, and how it was asked."""

    label: Filled
    spec: Filled
    api_key_env: Filled
    paper: Filled
    note: Filled


_LAYOUT = SourceLayout("models", "model", KnownModel)


def find_known(name: str, source: str | Path = KNOWN) -> KnownModel | None:
    """The model of exactly this label; None for any other name."""
    return next((model for model in list_known(source) if model.label == name), None)


def list_known(source: str | Path = KNOWN) -> tuple[KnownModel, ...]:
    """All of them, as listed. Raises `CorpusError` for an entry that is wrong or there twice."""
    listed: dict[str, KnownModel] = {}
    for where, model in read_list(source, _LAYOUT).entries:
        _check(model, where)
        if model.label in listed:
            raise CorpusError(f"{where}: the label {shown(model.label)} is there twice. Keep one.")
        listed[model.label] = model
    return tuple(listed.values())


def _check(model: KnownModel, where: str) -> None:
    # Neither a kind of spec, nor a path, nor LABEL=SPEC: a bare name means nothing else.
    for key, pattern, what in (
        ("label", r"(?!demo$)[A-Za-z0-9][A-Za-z0-9._-]*", "is not a name of letters, digits, dots, hyphens"),
        (
            "spec",
            r"openai:[^\s@]+|api:[^\s@]+@https://[^\s@?#,]+",
            "is neither openai:NAME nor api:NAME@https://HOST/v1",
        ),
        ("api_key_env", r"[A-Z][A-Z0-9_]*", "is not the name of a variable"),
    ):
        value = getattr(model, key)
        if not re.fullmatch(pattern, value):
            raise CorpusError(f"{where}: {key} {shown(value)} {what}.")
    # This list decides which key goes where without asking: OpenAI's never leaves OpenAI.
    if model.spec.startswith("openai:") != (model.api_key_env == _OPENAI):
        raise CorpusError(
            f"{where}: {shown(model.api_key_env)} is not a key for {shown(model.spec)}:"
            f" {_OPENAI} goes to openai: specs, and nothing else does."
        )

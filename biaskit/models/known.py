"""Ready-made specs: the models behind an API that the papers asked, by label."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from biaskit.corpora.rows import SourceLayout, read_source_rows
from biaskit.corpora.sources import SourceRow, shown, text_of
from biaskit.errors import CorpusError

KNOWN = "corpus:models/papers.toml"

_LAYOUT = SourceLayout(
    kind="models", table="model", required=("label", "spec", "api_key_env", "paper", "note")
)
_OPENAI = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model of a paper: what its label stands for, the variable of its key, and how it was asked."""

    label: str
    spec: str
    api_key_env: str
    paper: str
    note: str


def find_known(name: str, source: str | Path = KNOWN) -> KnownModel | None:
    """The model of exactly this label; None for any other name."""
    return next((model for model in list_known(source) if model.label == name), None)


def list_known(source: str | Path = KNOWN) -> tuple[KnownModel, ...]:
    """All of them, as listed. Raises `CorpusError` for an entry that is wrong or there twice."""
    listed: dict[str, KnownModel] = {}
    for row in read_source_rows(source, _LAYOUT).rows:
        model = _read(row)
        if model.label in listed:
            raise CorpusError(f"{row.where}: the label {shown(model.label)} is there twice. Keep one.")
        listed[model.label] = model
    return tuple(listed.values())


def _read(row: SourceRow) -> KnownModel:
    model = KnownModel(**{key: text_of(row, key, required=True) for key in _LAYOUT.required})
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
            raise CorpusError(f"{row.where}: {key} {shown(value)} {what}.")
    # This list decides which key goes where without asking: OpenAI's never leaves OpenAI.
    if model.spec.startswith("openai:") != (model.api_key_env == _OPENAI):
        raise CorpusError(
            f"{row.where}: {shown(model.api_key_env)} is not a key for {shown(model.spec)}:"
            f" {_OPENAI} goes to openai: specs, and nothing else does."
        )
    return model

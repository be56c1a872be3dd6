"""Ready-made specs: the models behind an API that the papers asked, by label."""

from __future__ import annotations

from biaskit.corpora.rows import SourceLayout, read_list
from biaskit.corpora.sources import Filled, ListEntry

KNOWN = "corpus:models/papers.toml"


class KnownModel(ListEntry):
    """A model of a paper: what its label stands for, the variable of its key, and how it was asked."""

    label: Filled
    spec: Filled
    api_key_env: Filled
    paper: Filled
    note: Filled


_LAYOUT = SourceLayout("models", "model", KnownModel)


def find_known(name: str) -> KnownModel | None:
    """Return the model of exactly this label; None for any other name."""
    return next((model for model in list_known() if model.label == name), None)


def list_known() -> tuple[KnownModel, ...]:
    """Return all ready-made models in the order of their list."""
    return tuple(model for _, model in read_list(KNOWN, _LAYOUT).entries)

"""A tokenizer without its model: token ids as a server of the same model reads a text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from biaskit.errors import MissingExtraError, ModelError
from biaskit.inputs import expanded
from biaskit.models.huggingface.folder import SIDECAR, TOKENIZER_FILES, check_entries
from biaskit.models.huggingface.loading import INSTALL_LOCAL, quiet

TokenIds = tuple[int, ...]
_READ = (*TOKENIZER_FILES, "config.json")


def open_tokenizer(name: str, *, offline: bool) -> Callable[[Sequence[str]], list[TokenIds]]:
    """Token ids of texts, special tokens included, by the tokenizer of `ORG/NAME[@revision]` or of a folder.

    It is loaded at its first use, which raises `ModelError` where it cannot be. `offline`: nothing is
    downloaded.
    """
    load = functools.cache(functools.partial(_load, name, offline=offline))

    def encode(texts: Sequence[str]) -> list[TokenIds]:
        if not texts:
            return []
        with quiet():
            found = load()(list(texts), add_special_tokens=True)["input_ids"]
        return [tuple(ids) for ids in found]

    return encode


def _load(name: str, *, offline: bool) -> Callable[..., dict[str, list[list[int]]]]:
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError(
            f"A tokenizer needs transformers, which is not installed: {INSTALL_LOCAL}"
        ) from error
    folder = _folder(name.removeprefix("hf:"), offline=offline)
    with quiet():
        try:
            loaded: Callable[..., dict[str, list[list[int]]]] = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # transformers raises many kinds; the user can act on one line
            why = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            raise ModelError(f"{folder}: its tokenizer cannot be loaded: {why}") from error
    return loaded


def _folder(name: str, *, offline: bool) -> Path:
    """The folder that holds a tokenizer's files; a server may name any, so they are looked at first."""
    if name.startswith((".", "/", "~")) or Path(name).is_dir():
        folder = expanded(name)
        if not folder.is_dir():
            raise ModelError(f"{folder}: no such folder. Give --tokenizer hf:ORG/NAME or a folder.")
        names = check_entries(folder, allow_links=True, only=frozenset(_READ))
        if not names & {"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"}:
            raise ModelError(f"{folder} holds no tokenizer: it has no tokenizer.json.")
        for file in (name for name in names if name.endswith(".json")):
            SIDECAR.json(folder / file)
        return folder
    repository, _, revision = name.partition("@")
    if repository.count("/") != 1 or not all(repository.split("/")):
        raise ModelError(f"{name!r} is neither a folder nor a name like ORG/NAME[@revision].")
    return _snapshot(repository, revision or None, offline=offline)


def _snapshot(repository: str, revision: str | None, *, offline: bool) -> Path:
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(
            snapshot_download(
                repository, revision=revision, allow_patterns=list(_READ), local_files_only=offline
            )
        )
    except (errors.HfHubHTTPError, OSError, ValueError) as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelError(f"The tokenizer of {repository} cannot be fetched: {first}") from error

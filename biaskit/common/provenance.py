"""What a number depends on, as canonical JSON, digests and one signature line."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

ROW_FORMAT = 1  # version of a row's layout; part of every key
SCORING_VERSION = 1
"""Version of the exact scorer's definition; raised when the same request would get another number."""
MEASURED = (
    *("biaskit", "numpy", "scipy", "pandas", "torch", "transformers", "tokenizers"),
    *("gensim", "scikit-learn", "nltk"),
)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def canonical_json(value: object) -> str:
    """Write JSON with one spelling for each value: sorted keys, no spaces, ASCII, no NaN."""
    return _CANONICAL.encode(value)


FIRST_NAMES: Mapping[str, str] = {
    "debiasing": "instructions",
    "debiasing_effect": "instruction_effect",
    "debiasing_id": "instruction_id",
    "context": "setting",
    "contexts": "settings",
    "prompt_format": "form",
    "requested": "specified",
    "inferred": "associated",
    "requested_gender": "specified_gender",
    "auc_requested": "auc_specified",
    "auc_inferred": "auc_associated",
    "workforce": "labour",
    "workforce_share": "labour_female_share",
    "workforce_gap": "labour_gap",
    "samples": "draws",
}
"""Today's words → those inside keys and seeds, where other words would be other answers and numbers."""


def first_name(text: str) -> str:
    """Give a text in a key or a seed its first name; of a relation `a~b`, each side."""
    return "~".join(FIRST_NAMES.get(part, part) for part in text.split("~"))


def first_named(scope: Mapping[str, object]) -> dict[str, object]:
    """Give the columns of a scope the names that keys are made of."""
    return {FIRST_NAMES.get(name, name): value for name, value in scope.items()}


def digest(value: object) -> str:
    """Compute the SHA-256 of the canonical JSON of `value`, in hex."""
    sha256 = hashlib.sha256()
    for part in _CANONICAL.iterencode(value):  # long lists are not held twice
        sha256.update(part.encode("ascii"))
    return sha256.hexdigest()


def key_of(value: object) -> str:
    """Compute a row's key: the first 32 hex digits of the digest of everything its numbers depend on."""
    return key_of_json(canonical_json(value))


def key_of_json(content: str) -> str:
    """Compute the same key from canonical JSON."""
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:32]


def versions() -> dict[str, str]:
    """Look up the installed versions of what computes numbers; what is not installed is left out."""
    installed = {}
    for name in MEASURED:
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def signature(parts: Mapping[str, str]) -> str:
    """Write the line that stands beside a number: `name=value` in the order given, without empty values."""
    return " | ".join(f"{name}={value}" for name, value in parts.items() if value)

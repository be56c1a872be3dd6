"""What a caller in Python may write wrong is refused by name, before a model is looked for."""

from __future__ import annotations

from typing import Any

import pytest

import biaskit as bk
from biaskit.errors import UsageError
from biaskit.models.options import LocalOptions, ScoringOptions


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ScoringOptions, {"word_boundary": "wrd"}),
        (ScoringOptions, {"on_prefix": "exclude"}),
        (ScoringOptions, {"estimator": "top_k"}),
        (LocalOptions, {"dtype": "float64"}),
    ],
)
def test_an_unknown_choice_is_refused_with_the_known_ones(kind: Any, wrong: dict[str, str]) -> None:
    (value,) = wrong.values()
    with pytest.raises(UsageError, match=rf"{value}.*Use one of \w+"):
        kind(**wrong)


def test_an_unknown_word_boundary_is_not_taken_for_token() -> None:
    with pytest.raises(UsageError, match=r"word_boundary = 'words'.*Did you mean 'word'"):
        bk.score_continuations("demo", ["The nurse said that"], ["she"], word_boundary="words")  # type: ignore[arg-type]


def test_an_unknown_dtype_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(UsageError, match="dtype = 'float23'"):
        bk.probe("hf:./no-such-folder", dtype="float23", dry_run=True)  # type: ignore[arg-type]

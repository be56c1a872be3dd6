"""What a caller in Python may write wrong is refused by name, before a model is looked for."""

from __future__ import annotations

from typing import Any

import pytest

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

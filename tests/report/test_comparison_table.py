"""The table of models side by side (docs/methods.md#both-engines)."""

from __future__ import annotations

from typing import Any

from biaskit.report.content import Content
from biaskit.report.render.comparison import overview
from biaskit.runs.collection import Model, Part


def texts(shares: dict[str, dict[str, float | None]]) -> Content:
    rows: list[dict[str, Any]] = [
        {"model": model, "occupation": job, "template_id": "all", "female_share": share}
        for model, own in shares.items()
        for job, share in own.items()
    ]
    models = tuple(Model(m, m, m, "unknown", "api", "chat", "", "run") for m in shares)
    part = Part("personas", "s", "", {"representation": rows}, models, ("run",), ("",), (), ({},))
    return Content("t", (part,), {})


def shown(content: Content) -> dict[str, str]:
    table = overview(content)
    assert table is not None
    return {row[0]: row[2] for row in table.rows}


def test_means_of_models_are_over_the_same_occupations() -> None:
    both = {"a": {"nurse": 0.9, "cook": 0.5, "guard": 0.1}, "b": {"nurse": 0.9, "cook": 0.5, "guard": None}}
    assert {"a": "70.0", "b": "70.0"} == shown(texts(both))


def test_a_model_without_texts_of_its_own_takes_none_from_the_others() -> None:
    assert {"a": "90.0", "b": "–"} == shown(texts({"a": {"nurse": 0.9}, "b": {"nurse": None}}))


def test_models_without_a_common_occupation_have_no_mean() -> None:
    assert {"a": "–", "b": "–"} == shown(texts({"a": {"nurse": 0.9}, "b": {"cook": 0.5}}))

"""Each of a run's models is held against its own stored texts, whatever they were called before."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from biaskit.measures.personas.design import resolve
from biaskit.measures.personas.sampling.samples import sample_texts
from biaskit.measures.personas.study import PersonasStudy
from biaskit.models.scripted import ScriptedGenerator
from biaskit.progress import Silent
from biaskit.records import Prompt
from biaskit.runs.rows import row_line
from biaskit.runs.session import Outcome, Session
from biaskit.study.config import load_as

RUN, ROWS = Path("run"), Path("run/personas.jsonl")


class Renders(ScriptedGenerator):
    """Its prompts come out otherwise where its name is among `otherwise`."""

    otherwise: frozenset[str] = frozenset()

    def rendered(self, prompt: Prompt) -> str:
        sent = super().rendered(prompt)
        return f"<|new|>{sent}" if self.identity.spec in self.otherwise else sent


def opened(label: str, spec: str, *_: object) -> Renders:
    texts = [f"She is known, and her friends like her {spec}.", "He is known, and his friends like him."]
    return Renders([{"texts": texts}], label=label, spec=spec)


def start(
    models: Mapping[str, str],
    run: Path = RUN,
    occupations: tuple[str, ...] = ("nurse", "cook"),
    *,
    dry_run: bool = False,
    reuse: bool = False,
    **keys: Any,
) -> Outcome:
    keys = {"per_gender": 2, "max_samples": 8, **keys, "occupations.select": occupations}
    design = resolve(load_as(PersonasStudy, "gasp-pilot", keys))
    session: Session[Any] = Session(run, models, opened, Silent(), dry_run=dry_run, reuse=reuse)
    return sample_texts(design, session)


def models(n: int, label: str = "m") -> dict[str, str]:
    return {f"{label}{i}": f"scripted:{i}" for i in range(n)}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def n_rows(run: Path = RUN) -> int:
    return (run / "personas.jsonl").read_bytes().count(b"\n")


def renders_otherwise(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    monkeypatch.setattr(Renders, "otherwise", frozenset(f"scripted:{i}" for i in numbers))


def left_out(outcome: Outcome) -> list[str]:
    assert all(
        "the prompts differ from those of stored rows" in why for why in outcome.failed_models.values()
    )
    return [*outcome.failed_models]


@pytest.mark.parametrize("dry_run", [True, False])
def test_each_models_own_texts_are_held(monkeypatch: pytest.MonkeyPatch, dry_run: bool) -> None:
    start(models(4), occupations=("nurse",))
    start(models(4), occupations=("nurse", "cook"))
    renders_otherwise(monkeypatch, 1, 3)
    assert left_out(start(models(4), dry_run=dry_run)) == ["m1", "m3"]
    assert left_out(start(models(4, "named"), dry_run=dry_run)) == ["named1", "named3"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_texts_under_a_label_that_is_another_models_by_now_are_held(
    monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    """Neither the row's label nor the manifest says whose they are: their keys do."""
    start({"a": "scripted:0"})
    n = n_rows()
    start({"a": "scripted:1", "other": "scripted:2"})
    assert n_rows() == 3 * n
    asked = {"b": "scripted:0", "other": "scripted:2"}
    assert [plan.n_stored for plan in start(asked, dry_run=True).plans] == [n, n]
    renders_otherwise(monkeypatch, 0)
    assert left_out(start(asked, dry_run=dry_run)) == ["b"]


def test_a_row_that_is_no_text_is_left_out_and_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key stands in the file, so what is asked again would be paid for and never read."""
    start(models(2))
    first, rest = ROWS.read_text().split("\n", 1)
    sound = json.loads(first)
    ROWS.write_text(f"{row_line({**sound, 'finish_reason': 'odd'})}\n{rest}")
    before = ROWS.read_bytes()
    asked: list[int] = []
    generate = ScriptedGenerator.generate

    def counted(self: ScriptedGenerator, batches: Any) -> Any:
        whole = [*batches]
        asked.extend(map(len, whole))
        return generate(self, whole)

    monkeypatch.setattr(ScriptedGenerator, "generate", counted)
    start(models(2), skip_bad_lines=True)
    assert asked == []
    assert ROWS.read_bytes() == before

"""A run of many models holds each against its own stored texts: all of them for each are models squared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from biaskit.models.scripted import ScriptedGenerator
from biaskit.personas.sampling.design import DrawSeries, resolve_design
from biaskit.personas.sampling.drawn import Drawn, TextsBeside
from biaskit.personas.sampling.draws import draw_texts
from biaskit.progress import Silent
from biaskit.records import Prompt
from biaskit.runs import store
from biaskit.runs.rows import lines_under, row_line
from biaskit.runs.session import Outcome, Session
from biaskit.runs.store import read_rows
from biaskit.study.config import load_personas_study

RUN, ROWS = Path("run"), Path("run/generations.jsonl")


class Renders(ScriptedGenerator):
    """Its prompts come out otherwise where its name is among `otherwise`."""

    otherwise: frozenset[str] = frozenset()

    def rendered(self, prompt: Prompt) -> str:
        sent = super().rendered(prompt)
        return f"<|new|>{sent}" if self.identity.spec in self.otherwise else sent


def opened(label: str, spec: str, *_: object) -> Renders:
    texts = [f"She is known, and her friends like her {spec}.", "He is known, and his friends like him."]
    return Renders([{"texts": texts}], label=label, spec=spec)


@dataclass
class Reads:
    n: int = 0

    def by(self, models: Mapping[str, str], run: Path = RUN, **more: Any) -> int:
        """How many rows a start reads that draws texts of these models."""
        self.n = 0
        start(models, run, **more)
        return self.n


def start(
    models: Mapping[str, str],
    run: Path = RUN,
    occupations: tuple[str, ...] = ("nurse", "cook"),
    *,
    dry_run: bool = False,
    reuse: bool = False,
    **keys: Any,
) -> Outcome:
    keys = {"per_gender": 2, "max_draws": 8, **keys, "occupations.select": occupations}
    design = resolve_design(load_personas_study("gasp-pilot", keys))
    session: Session[Any] = Session(run, models, opened, Silent(), dry_run=dry_run, reuse=reuse)
    return draw_texts(design, session)


def models(n: int, label: str = "m") -> dict[str, str]:
    return {f"{label}{i}": f"scripted:{i}" for i in range(n)}


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reads:
    monkeypatch.chdir(tmp_path)
    reads, of_line = Reads(), store.read_row

    def counted(line: bytes) -> Any:
        reads.n += 1
        return of_line(line)

    monkeypatch.setattr(store, "read_row", counted)
    return reads


def n_rows(run: Path = RUN) -> int:
    return (run / "generations.jsonl").read_bytes().count(b"\n")


def test_rows_that_are_read_grow_with_the_rows_there_are(reads: Reads) -> None:
    assert reads.by(models(2)) == 0
    each = n_rows() / 2
    assert reads.by(models(2)) / 2 == 3 * each  # as it opens, their genders, the model's own
    assert reads.by(models(8)) == 2 * 3 * each  # nor does a model read what those before it have just said
    assert reads.by(models(8)) == 8 * 3 * each
    assert reads.by(models(8), dry_run=True) == 8 * 2 * each


def test_a_run_that_grew_has_a_models_rows_in_several_places(reads: Reads) -> None:
    for occupations in (("nurse",), ("nurse", "cook"), ("nurse", "cook", "clerk")):
        start(models(6), occupations=occupations)
    assert reads.by(models(6), occupations=("nurse", "cook", "clerk")) == 3 * n_rows()


def test_models_that_got_other_names_are_found_without_reading_those_of_others(reads: Reads) -> None:
    start(models(6))
    n = n_rows()
    assert reads.by(models(6, "named")) == reads.by(models(6, "named")) == 3 * n
    assert n_rows() == n
    assert reads.by(models(6, "again"), dry_run=True) == 2 * n


def test_models_that_are_not_what_they_were_look_at_the_rows_of_before_once(reads: Reads) -> None:
    start(models(6))
    n = n_rows()
    others = {label: f"{spec}, another" for label, spec in models(6).items()}
    assert reads.by(others, dry_run=True) == 3 * n  # what was asked before, genders, those under the label


@pytest.mark.reuse
def test_rows_beside_the_run_are_read_once_and_then_for_the_model_that_they_are_of(reads: Reads) -> None:
    start(models(6), Path("all/first"))
    n = n_rows(Path("all/first"))
    assert reads.by(models(6), Path("all/second"), occupations=("clerk",), reuse=True) == n
    shutil.rmtree("all/second")
    assert reads.by(models(6), Path("all/second"), reuse=True) == n + n // 6 * 5 + n  # looked for; taken over
    assert n_rows(Path("all/second")) == n
    made = start(models(6), Path("all/third"), reuse=True, dry_run=True)
    assert all(plan.n_taken == n // 6 for plan in made.plans)


# --- and every one of them is held --------------------------------------------------------------------


def renders_otherwise(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    monkeypatch.setattr(Renders, "otherwise", frozenset(f"scripted:{i}" for i in numbers))


def left_out(outcome: Outcome) -> list[str]:
    assert all("stored rows answer other prompts" in why for why in outcome.failed_models.values())
    return [*outcome.failed_models]


@pytest.mark.parametrize("dry_run", [True, False])
def test_each_models_own_texts_are_held(reads: Reads, monkeypatch: pytest.MonkeyPatch, dry_run: bool) -> None:
    start(models(4), occupations=("nurse",))
    start(models(4), occupations=("nurse", "cook"))
    renders_otherwise(monkeypatch, 1, 3)
    assert left_out(start(models(4), dry_run=dry_run)) == ["m1", "m3"]
    assert left_out(start(models(4, "named"), dry_run=dry_run)) == ["named1", "named3"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_texts_under_a_label_that_is_another_models_by_now_are_held(
    reads: Reads, monkeypatch: pytest.MonkeyPatch, dry_run: bool
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


def test_a_draw_that_is_not_wanted_any_more_is_held_too(
    reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(models(2), per_gender=4, specified=())
    rows = [row for row in read_rows(ROWS) if row["draw"] >= 2]
    ROWS.write_text("".join(f"{row_line(row)}\n" for row in rows), "ascii")
    renders_otherwise(monkeypatch, 0)
    few = {"per_gender": 1, "max_draws": 2, "specified": ()}
    assert left_out(start(models(2, "named"), **few)) == ["named0"]


@pytest.mark.reuse
def test_a_file_beside_that_changed_meanwhile_is_read_anew(tmp_path: Path) -> None:
    def lines(*draws: int) -> bytes:
        rows = [{"key": f"{d:032x}", "occupation": "cook", "template_id": "t", "draw": d} for d in draws]
        return "".join(f"{row_line(row)}\n" for row in rows).encode("ascii")

    def found(drawn: Drawn) -> Any:
        return iter(())

    path, beside = tmp_path / "generations.jsonl", TextsBeside()
    path.write_bytes(lines(0, 1))
    assert [row["draw"] for row in beside.rows(found, path)] == [0, 1]
    assert [*beside.rows(found, path)] == []
    with path.open("ab") as file:
        file.write(lines(2))
    assert [row["draw"] for row in beside.rows(found, path)] == [0, 1, 2]
    assert [*beside.rows(lambda drawn: iter([f"{1:032x}"]), path)] == [
        {"key": f"{1:032x}", "occupation": "cook", "template_id": "t", "draw": 1}
    ]


def test_hostile_rows_draw_nothing_that_hides_another() -> None:
    scope = {"occupation": "cook", "template_id": "t", "specified_gender": None}
    drawn = Drawn()
    for draw in (3, True, 1.0, "1", -1, None, [1], 0, 10**30, 1, 1, 2):
        drawn.add({**scope, "draw": draw})
    drawn.add({**scope, "occupation": ["cook"], "draw": 0})
    of = {("cook", "t", None, None, None): DrawSeries("cook", "t", None, Prompt("", "raw"))}
    keys = [*drawn.keys(of, lambda _: str)]
    assert sorted(keys) == sorted(["0", "1", "2", "3", f"{10**30}"])


def test_a_line_is_told_by_its_key_or_may_be_the_row() -> None:
    wanted = lines_under(["a" * 32, "b"])
    row = {"key": "a" * 32, "text": "x"}
    assert wanted(row_line(row).encode())
    assert wanted(json.dumps(row).encode())  # another spelling of it
    assert wanted(b"")
    assert wanted(b'{"key":"b"}')
    assert not wanted(row_line({**row, "key": "c" * 32}).encode())
    assert not wanted(row_line({**row, "key": "a" * 33}).encode())
    assert not wanted(b'{"key":"' + b"a" * 32)  # an unfinished end


def test_a_row_that_is_no_text_is_left_out_and_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key stands in the file, so what is asked again would be paid for and never read."""
    monkeypatch.chdir(tmp_path)
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

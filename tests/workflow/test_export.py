"""`biaskit export`: the course that all formats share."""

from __future__ import annotations

from pathlib import Path

import pytest

import biaskit as bk


@pytest.fixture
def run(tmp_path: Path) -> Path:
    model = tmp_path / "m.jsonl"
    model.write_text('{"log_probs": {" He": -1.2, " She": -1.5, " They": -3.0}}\n')
    return bk.probe(
        f"scripted:{model}", jobs="1-3,21-23", templates="1-3", out=tmp_path / "run", watcher=bk.Silent()
    ).path


def test_files_lie_in_the_run_and_are_written_again(run: Path) -> None:
    made = bk.export(run, to="card", watcher=bk.Silent())
    assert run / "exports" / "card" / "card.md" == made.path
    first = made.path.read_text()
    made.path.write_text("mine")
    again = bk.export(run, to="card", watcher=bk.Silent())
    assert "mine" == (made.path.parent / "card.md.changed-1").read_text()
    assert first == again.path.read_text()


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"to": "crad"}, "Did you mean 'card'"),
        ({"to": "card", "out": "-"}, "give out= a name"),
        ({"to": "card", "texts": False}, "takes no option, not texts=False"),
        ({"to": "evidence", "url": "x"}, "takes texts=False, not url="),
    ],
)
def test_a_mistake_is_one_line(run: Path, chosen: dict[str, object], said: str) -> None:
    with pytest.raises(bk.BiaskitError, match=said) as told:
        bk.export(run, watcher=bk.Silent(), **chosen)  # type: ignore[arg-type]
    assert "\n" not in str(told.value)

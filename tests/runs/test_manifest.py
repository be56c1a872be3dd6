"""A manifest is read, held and written: byte for byte, with one line for what does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.numbered_runs import USUAL, entry, write_run

from biaskit.common.files import data_dir
from biaskit.errors import RunError
from biaskit.records import Estimator
from biaskit.runs.manifest import MANIFEST, Manifest, read_manifest
from biaskit.runs.shards import Shard

FOREIGN = {"spec": "x:y", "prompt_format": "braille", "estimator": "exact", "of_later": [1, {"a": None}]}


def a_run(folder: Path, **more: Any) -> Path:
    (folder / "run" / "tables").mkdir(parents=True)
    return write_run(folder / "run", "probe", {"m": more})


def changed(run: Path, change: Callable[[Any], Any]) -> bytes:
    """Write another manifest in the place of a run's."""
    manifest = json.loads((run / MANIFEST).read_bytes())
    change(manifest)
    content = (json.dumps(manifest, indent=1) + "\n").encode("ascii")
    (run / MANIFEST).write_bytes(content)
    return content


@pytest.mark.parametrize("shard", [None, [2, 3]])
def test_what_is_read_is_written_byte_for_byte(shard: list[int] | None, tmp_path: Path) -> None:
    run = a_run(tmp_path, batch_size=None)
    of_shard = {} if shard is None else {"shard": shard}
    texts = {"fingerprint": "f", "estimator": {"name": "sampling", "samples": 5, "max_new_tokens": 8}}
    before = changed(run, lambda m: m.update(of_shard) or m["models"]["m"].update(continuations=texts))
    read_manifest(run).write(tmp_path / "copy")
    assert before == (tmp_path / "copy" / MANIFEST).read_bytes()
    assert Shard(*shard or ()) == read_manifest(run).shard


def test_the_recorded_corpus_is_written_as_it_was_shipped(tmp_path: Path) -> None:
    source = data_dir("corpora") / "recorded" / "demo-base"
    read_manifest(source).write(tmp_path)
    assert (source / MANIFEST).read_bytes() == (tmp_path / MANIFEST).read_bytes()


def test_a_run_of_an_unknown_kind_is_readable_and_says_so(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    before = changed(
        run,
        lambda m: m.update(measurement="smells", resolved={"odours": 3}, models={"m": {**USUAL, **FOREIGN}}),
    )
    manifest = read_manifest(run)
    assert ("smells", 3, "braille") == (
        manifest.measurement,
        manifest.resolved["odours"],
        manifest.models["m"].prompt_format,
    )
    with pytest.raises(RunError, match="run is a run of the measurement 'smells', unknown to this version"):
        _ = manifest.kind
    assert json.loads(before) == manifest.as_json()


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("models.m.estimator.k", lambda m: m["models"]["m"].update(estimator={"name": "top-k", "k": "20"})),
        ("models.m.estimator", lambda m: m["models"]["m"].update(estimator=5)),
        ("models.m.batch_size", lambda m: m["models"]["m"].update(batch_size=0)),
        ("resolved.items", lambda m: m["resolved"].update(items={})),
        ("shard.0", lambda m: m.update(shard=[0, 2])),
        ("signature", lambda m: m.update(signature=None)),
    ],
)
def test_what_does_not_fit_is_named(place: str, change: Callable[[Any], Any], tmp_path: Path) -> None:
    run = a_run(tmp_path)
    changed(run, change)
    with pytest.raises(RunError, match=rf"manifest\.json: {place} is not what a run writes there\. Restore"):
        read_manifest(run)
    changed(run, lambda m: m.pop("study"))
    with pytest.raises(RunError, match="study is missing"):
        read_manifest(run)


def test_a_field_too_many_is_no_manifest_of_ours(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    item = {"name": "nurse", "group": "female-dominated", "ye5ar": 2020}
    changed(run, lambda m: m["resolved"].update(items=[item]))
    with pytest.raises(RunError, match="is not a manifest written by biaskit"):
        read_manifest(run)


def test_an_entry_names_its_estimator() -> None:
    for stated, name in (
        ("exact", "exact"),
        ({"name": "top-k", "k": 20}, "top-k(k=20)"),
        ({"name": "sampling", "samples": 5, "max_new_tokens": 8}, "sampling(samples=5,max_new_tokens=8)"),
    ):
        model = entry(estimator=stated)
        assert (name, stated) == (model.estimator_name, model.estimator_key)
    assert Estimator("sampling", samples=5, max_new_tokens=8) == model.estimator
    assert ("", None, None) == (
        entry(estimator=None).estimator_name,
        entry(estimator=None).estimator_key,
        entry(estimator=None).samples,
    )


def test_a_new_manifest_holds_nothing_that_was_never_set() -> None:
    new = Manifest.new("probe", "s", models={"m": entry()}, shard=Shard())
    assert {*USUAL} == {*new.as_json()["models"]["m"]}
    assert not {"shard", "recorded", "command"} & {*new.as_json()}

"""Runs of texts as one run: what either asked, every draw once, and what shards still lack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from biaskit.errors import RunError
from biaskit.measures.personas.sampling.design import PersonasDesign, part_of
from biaskit.measures.personas.sampling.draws import gender_of
from biaskit.measures.personas.sampling.open_draws import OpenDraws
from biaskit.measures.personas.sampling.stored_design import design_signature, read_design
from biaskit.runs.merge import Engine, united
from biaskit.runs.shards import shard_of
from biaskit.runs.store import StoredRows, rows_file


def merging() -> Engine[PersonasDesign]:
    """Return what merging needs to know of this engine."""
    return Engine("personas", unite=_unite, read=read_design, sign=design_signature)


def what_is_open(
    run: Path, manifest: Mapping[str, Any], design: PersonasDesign, *, skip_bad: bool = False
) -> tuple[int, int, int]:
    """Count a stored run's draws still certain to be asked, those that may follow, and their rounds.

    Draws are those of all models together; the rounds are those of the series that may take most.
    """
    sharded = part_of(design, shard_of(manifest))
    stored = StoredRows(gender_of(design), None).read(rows_file(run, "personas"), skip_bad=skip_bad)
    left = later = rounds = 0
    for entry in manifest["models"].values():
        draws = OpenDraws(sharded, entry["prompt_form"], entry["fingerprint"], stored.values)
        due, may_follow = draws.outlook()
        left, later = left + len(due), later + may_follow
        rounds = max(rounds, draws.rounds_after(due) if may_follow else 0)
    return left, later, rounds


def _unite(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Unite two designs of one study; how many texts are drawn must agree."""
    for name in ("per_gender", "batch", "max_samples"):
        if (one := first["study"][name]) != (other := second["study"][name]):
            raise RunError(f"The runs have {name} = {one} and {name} = {other}: they cannot be merged.")
    return united(first, second, "items", "prompts", "templates", "instructions")

"""What `biaskit compare` and `bk.compare` do: stored tables of runs side by side; no model is asked."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from biaskit.arguments import checked
from biaskit.common.files import digest_of, remove_abandoned
from biaskit.common.provenance import digest, signature, versions
from biaskit.compare.aliases import read_aliases
from biaskit.compare.changes import ZONE
from biaskit.compare.check import Outcome, coverage_of_parts, require_equivalent
from biaskit.compare.comparison import Axis, ComparisonTables, compare_collection
from biaskit.compare.pairs import named_groups
from biaskit.errors import RunError, StudyError, UsageError, nearest
from biaskit.models.entry import ModelEntry
from biaskit.report.content import Content
from biaskit.report.findings import BETWEEN, Finding, first_about
from biaskit.report.render.document import Document
from biaskit.report.render.headline import side_by_side
from biaskit.report.result import RunResult, table_property
from biaskit.runs.collection import Collection
from biaskit.runs.folder import check_run_folder, run_folder
from biaskit.runs.manifest import COMPARISON, MANIFEST, ComparisonManifest, read_manifest
from biaskit.runs.start import command_line
from biaskit.study.keys import in_fractions, notes_on_margins
from biaskit.tables.quantities import QUANTITIES
from biaskit.tables.sets import TableSet, read_set
from biaskit.workflow.analyze import gathered

MARGIN = "margin."


@dataclass(frozen=True, repr=False)
class ComparisonResult(RunResult):
    """Holds several runs' models side by side: tests between them, the four gaps, changes of SRB.

    >>> compared.pairs
    (('probe', 'other', 'mine'),)
    """

    headline = "tests"

    content: Content = field(default_factory=lambda: Content("", (), {}), repr=False)
    pairs: tuple[tuple[str, str, str], ...] = ()  # (measurement, later, earlier) of the models compared

    changes = table_property("changes")
    changed_prompts = table_property("changed_prompts")
    curve = table_property("curve")
    gaps = table_property("gaps")
    validity = table_property("validity")
    srb_change = table_property("srb_change")

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return every table that this comparison made, by name, as typed rows.

        >>> list(compared.tables())
        ['changes', 'tests']
        """
        return read_set(self.path).rows()

    def requirement(self, contrast: str = "models") -> Outcome:
        """Judge which rows of a contrast that have a margin are equivalent within it, and which are not.

        Rows between models are this comparison's, rows of other contrasts the runs' own as well.

        >>> compared.requirement().n_rows, len(compared.requirement().failing)
        (24, 24)
        """
        coverage = coverage_of_parts(self.content.parts)
        return require_equivalent(self.content.every_test, contrast, self.pairs, coverage)

    def equivalent(self, contrast: str = "models") -> bool:
        """Tell whether there are rows of the contrast with a margin, and all are equivalent within it.

        >>> compared.equivalent()
        False
        """
        return self.requirement(contrast).holds

    def document(self) -> Document:
        """Lay out a table for each study with models in rows; `findings` say what differs.

        >>> [row[0] for row in compared.document().tables[0].rows]
        ['mine', 'mine', 'other', 'other']
        """
        return Document(side_by_side(self.content), self.warnings, str(self.analysis()["signature"]))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Say what the comparison shows, in sentences; those that compare models come first.

        >>> compared.findings[0].topic
        'models'
        """
        return first_about(BETWEEN, self.content)

    def screen(self) -> Content:
        """Return what the comparison was made of.

        >>> len(compared.screen().parts)
        1
        """
        return self.content


@checked()
def compare(
    *runs: str | Path | RunResult,
    out: str | Path | None = None,
    groups: Sequence[str] = (),
    aliases: str | Path | None = None,
    axis: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ComparisonResult:
    """Compare the models of several runs, or of one, from stored tables alone.

    >>> he = bk.writer("other", lambda prompts: ["He"] * len(prompts))
    >>> other = bk.probe(he, jobs="nurse,plumber", templates="1-2", out="other", watcher=bk.Silent())
    >>> compared = bk.compare(probed, other, out="compared")
    >>> compared.tests[["model_a", "model_b", "gender", "group_a", "estimate"]].values.tolist()[0]
    ['other', 'mine', 'male', 'female-dominated', 1.0]

    Args:
        runs: folders or results of probes or of texts; a difference is the model named later minus the
            one named earlier.
        out: the comparison's folder; by default biaskit-runs/compare-MODEL-MODEL.
        groups: "NAME=LABEL,LABEL", at least two: their means are compared.
        aliases: a file of two columns, two names of one occupation a line, so that probes and texts meet.
        axis: "NAME=VALUE,VALUE,…", a value for each run: the table `curve` follows shares along it.
        settings: margins within which a difference counts as equivalent, such as `{"margin.share": 0.1}`, and
            how far apart two groups are nearly a tie, `{"tie_zone": 0.04}`.

    Returns a `ComparisonResult` with the tables `tests`, `changes`, `gaps`, …, and `equivalent()`. Raises
    `BiaskitError` where a run cannot be read or there is only one model.
    """
    collection = gathered(runs, "compare RUN RUN")
    return compare_gathered(collection, out=out, groups=groups, aliases=aliases, axis=axis, settings=settings)


def compare_gathered(
    collection: Collection,
    *,
    out: str | Path | None = None,
    groups: Sequence[str] = (),
    aliases: str | Path | None = None,
    axis: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ComparisonResult:
    """Do what `compare` does, for runs whose tables are read already."""
    if isinstance(groups, str):
        groups = (groups,)
    labels = _labels(collection)
    if len(labels) == 1 and len(collection.runs) == 1:
        alone = collection.runs[0].path
        raise UsageError(f"{alone} has only one model, {labels[0]}: name another run to compare it with.")
    joined = read_aliases(Path(aliases)) if aliases is not None else {}
    margins, notes = margins_of(collection, settings or {})
    sides = named_groups(groups, labels)
    along = Axis.of(axis, labels) if axis is not None else None
    tables = compare_collection(collection, groups=sides, aliases=joined, margins=margins, axis=along)
    tables.notes += notes
    runs = []
    for run in collection.runs:
        digests = {name: str(run.analysis.get(name, "")) for name in ("signature", "rows_digest")}
        runs.append({"measurement": run.measurement, **digests})
    question = {
        "runs": runs,
        "models": labels,
        "groups": list(groups),
        "aliases": dict(sorted(joined.items())),
        "margins": dict(sorted(margins.items())),
    }
    if axis is not None:
        question["axis"] = axis
    with run_folder(COMPARISON, labels, question, out) as path:
        content = _write(path, _manifest(path, collection, question, aliases), collection, tables)
    return ComparisonResult(path, tuple(tables.notes), content=content, pairs=tuple(tables.pairs))


def compared_tables(
    collection: Collection, groups: Sequence[str] = (), aliases: str | Path | None = None
) -> ComparisonTables:
    """Make the tests between models and between measurements; none where one model ran alone."""
    labels = _labels(collection)
    if len(labels) == 1 and len(collection.runs) == 1:
        return ComparisonTables()
    joined = read_aliases(Path(aliases)) if aliases is not None else {}
    sides, margins = named_groups(groups, labels), margins_of(collection, {})[0]
    return compare_collection(collection, groups=sides, aliases=joined, margins=margins)


def _labels(collection: Collection) -> list[str]:
    return list(dict.fromkeys(label for run in collection.runs for label in run.manifest.models))


def margins_of(collection: Collection, settings: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """Map quantity to margin: the runs' own, the smallest where they differ, then what this call sets.

    Also returns notes: margins of which the smallest was taken, and wide ones. Raises `StudyError`.
    """
    margins: dict[str, float] = {}
    apart: dict[str, None] = {}
    for run in collection.runs:
        study = run.manifest.resolved["study"]
        choices = run.analysis.get("choices", {})
        stated = dict(choices.get("margin", study.get("margin", {})))
        stated |= {name: value for name, value in choices.items() if name == ZONE}
        for quantity, value in stated.items():
            if margins.get(quantity, value) != value:
                apart[quantity] = None
            margins[quantity] = min(float(value), margins.get(quantity, math.inf))
    for key, value in settings.items():
        quantity = key.removeprefix(MARGIN)
        known = [ZONE, *(f"{MARGIN}{name}" for name in (*QUANTITIES, *margins) if name != ZONE)]
        if key not in known:
            raise StudyError(f"compare accepts only margins, not {key!r}.{nearest(key, known)}")
        most = 1 if key == ZONE else math.inf
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < most:
            raise StudyError(f"{key} = {value!r}: give a number such as 0.05.")
        try:
            margins |= in_fractions({quantity: float(value)})
        except ValueError as error:
            raise StudyError(f"{error}.") from None
        apart.pop(quantity, None)
    notes = [
        f"The runs' margins of {name} differ: the smallest, {margins[name]:g}, is used." for name in apart
    ]
    return margins, [*notes, *notes_on_margins(margins)]


def _manifest(
    path: Path, collection: Collection, question: Mapping[str, Any], aliases: str | Path | None
) -> ComparisonManifest:
    """Describe a comparison; paths are seen from its folder, so that all can move together."""
    studies = list(dict.fromkeys(run.study for run in collection.runs))
    study = ", ".join(studies)
    papers = dict.fromkeys(paper for part in collection.parts for paper in part.papers)
    runs, signed_runs = [], []
    models: dict[str, dict[str, ModelEntry]] = {}
    for run, stated in zip(collection.runs, question["runs"], strict=True):
        runs.append({"path": os.path.relpath(run.path, path), **stated})
        of_signature = digest_of(stated["signature"].encode("utf-8", "surrogatepass"))
        signed_runs.append(f"{of_signature[:8]}@{stated['rows_digest'][:12]}")
        for label, entry in run.manifest.models.items():
            models.setdefault(label, {})[run.measurement] = entry
    resolved = {
        "study": {"name": study, "papers": list(papers)},
        "runs": runs,
        "groups": question["groups"],
        "aliases": os.path.relpath(aliases, path) if aliases is not None else None,
        "margins": question["margins"],
    }
    if "axis" in question:
        resolved["axis"] = question["axis"]
    aliases_digest = digest(question["aliases"])[:12] if question["aliases"] else ""
    margins = ",".join(f"{name}:{value:g}" for name, value in question["margins"].items())
    signed = {
        "biaskit": versions().get("biaskit", ""),
        "compare": ",".join(studies),
        "runs": ",".join(signed_runs),
        "models": ",".join(question["models"]),
        "groups": "; ".join(question["groups"]),
        "aliases": aliases_digest,
        "margins": margins,
    }
    signed["axis"] = question.get("axis", "")
    asked = {"question": question, "resolved": resolved, "models": models}
    how = {"command": command_line(), "signature": signature(signed)}
    return ComparisonManifest.new(COMPARISON, study, **asked, **how)


def _write(
    path: Path, manifest: ComparisonManifest, collection: Collection, compared: ComparisonTables
) -> Content:
    """Write the comparison's folder; one that holds a run of a measurement is refused (`RunError`)."""
    check_run_folder(path)
    if (path / MANIFEST).exists() and (kind_name := read_manifest(path).measurement) != COMPARISON:
        raise RunError(f"{path} is a run of the measurement {kind_name}: choose another --out.")
    question, tables = manifest.question, TableSet(path)
    made: dict[str, list[Any]] = {"tests": compared.tests, **compared.rows}
    for name, rows in made.items():
        if rows:  # a table that was not made is absent
            tables.add(name, rows, groups=[*compared.groups], contrast=compared.contrast)
        rows.clear()  # read back below: rows of 100 models are not held twice
    tables.analysis |= {
        "signature": manifest.signature,
        "notes": compared.notes,
        "choices": {"margin": question["margins"], "groups": question["groups"]},
        "versions": manifest.versions,
    }
    remove_abandoned(path, MANIFEST)
    manifest.write(path)
    compared.notes = [*compared.notes, *tables.write()]
    return Content(
        title=", ".join(manifest.models),
        parts=collection.parts,
        between=read_set(path).rows(),
        notes=tuple(compared.notes),
        command=manifest.command,
        versions=manifest.versions,
    ).judged()

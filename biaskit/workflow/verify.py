"""What `biaskit verify` and `bk.verify` do: a stored run held against itself and against its model."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Unpack

from biaskit.arguments import POSITIVE, TEXT_OR_TEXTS, checked
from biaskit.common.files import write_or_refuse
from biaskit.common.inputs import expanded
from biaskit.common.provenance import versions
from biaskit.errors import UsageError
from biaskit.models.api.endpoint import hide_urls
from biaskit.models.options import IN_MEMORY
from biaskit.models.spec import split_label
from biaskit.progress import LineWatcher, Watcher
from biaskit.report.result import RunResult, run_path
from biaskit.runs.manifest import read_manifest
from biaskit.runs.objects import lending
from biaskit.runs.start import ApiArguments, LocalArguments
from biaskit.runs.verification import FILE, Check, Verification, check_place
from biaskit.workflow.verify_again import Again, VerifyArguments
from biaskit.workflow.verify_stored import check_lists, check_rows, check_tables

PROMPTS = 50


@lending
@checked(LocalArguments, ApiArguments, model=TEXT_OR_TEXTS, prompts=POSITIVE)
def verify(
    run: str | Path | RunResult,
    *,
    prompts: int = PROMPTS,
    seed: int | None = None,
    ask: bool = True,
    model: Any = (),
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    **options: Unpack[VerifyArguments],
) -> Verification:
    """Check a stored run, and query its models again for a random sample of its answers.

    >>> bk.verify(probed, ask=False, watcher=bk.Silent()).outcome
    'agrees'

    Args:
        run: a run's folder, or a result; no row is added or changed.
        prompts: prompts or texts of each model to query again, chosen at random.
        seed: of the choice; by default another one each time, which the result names.
        ask: False queries no model.
        model: a spec or `bk.model(...)` that replaces the run's only model; LABEL=SPEC for one of several.
        out: another file for the result than verification.json in the run's folder.
        watcher: sees the progress.

    Returns the verification: `outcome` (agrees, differs, not-checked) and `checks`, the same for rows, lists,
    tables, models and answers. Raises `BiaskitError` where there is no run or an argument does not fit.
    """
    path = run_path(run)
    manifest = read_manifest(path)
    kind, models = manifest.kind, manifest.models
    seed = secrets.randbelow(2**31) if seed is None else seed
    specs = {}  # those that stand for the manifest's, by label
    for text in [model] if isinstance(model, str) else model:
        label, spec = split_label(text)
        if len(models) == 1 and (spec == text or spec.startswith(IN_MEMORY)):
            label = next(iter(models))
        if label not in models:
            raise UsageError(f"--model {hide_urls(text)}: write LABEL=SPEC with one of {', '.join(models)}.")
        specs[label] = spec
    target = expanded(out) if out is not None else path / FILE
    check_place(target)
    imported, seen = bool(manifest.imported), watcher or LineWatcher()
    if ask and not imported:
        # A folder from somebody else may name any file or server as its model.
        foreign = []
        for label, entry in models.items():
            # Shipped models are known, and models in memory nothing can open.
            is_safe = entry.spec in ("demo", "demo-base") or entry.spec.startswith(IN_MEMORY)
            if label not in specs and not is_safe:
                foreign.append(f"{label} = {hide_urls(entry.spec)}")
        if foreign:
            seen.confirm(f"The run names its models itself: {', '.join(foreign)}.")
    design = manifest.design()
    row_check, drawn = check_rows(path, kind, kind.finder(manifest, design), prompts if ask else 0, seed)
    table_checks, rows_digest = check_tables(path, kind, seen) if manifest.shard.whole else ([], "")
    checks = [row_check, check_lists(manifest.resolved), *table_checks]
    if ask and imported:
        checks.append(Check.left_out("texts", "imported texts: no model to query"))
    elif ask:
        again = Again(kind, design, options, seen, seed)
        for label, entry in models.items():
            checks += again.checks(label, specs.get(label, entry.spec), entry, drawn.get(label, ()))
    verification = Verification(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        seed=seed,
        prompts=prompts if ask else 0,
        versions=versions(),
        rows_digest=rows_digest,
        checks=tuple(checks),
    )
    check_place(target)  # again: a model may have answered for an hour
    write_or_refuse(target, (verification.model_dump_json(indent=1) + "\n").encode("utf-8"))
    return verification

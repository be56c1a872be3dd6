"""Runs of made-up numbers: the tables and the manifest that `compare` reads, and no model behind them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from biaskit.common.files import _as_record, read_record
from biaskit.common.inputs import digest_of_file
from biaskit.models.entry import ModelEntry
from biaskit.tables.io import columns
from fakes.tables import write_table

GROUPS = ("male", "female", "diverse")
JOBS = ("Nurse", "teacher", "clerk", "cook", "lawyer", "pilot", "smith", "guard", "farmer", "tailor", "judge")
WORKFORCE = {job: 0.95 - 0.08 * i for i, job in enumerate(JOBS)}
TEMPLATES = (1, 2, 3)
Row = dict[str, Any]


def drawn(*names: object) -> float:
    """A number in [0, 1) that follows from the names."""
    return float(np.random.default_rng(list("|".join(map(str, names)).encode())).random())


def share_of(model: str, job: str, template: int, noise: float = 0.02) -> float:
    """The share of women in a cell; models differ by noise and by what follows a "+" in their label."""
    shift = float(model.partition("+")[2] or 0)
    return 0.1 + 0.6 * WORKFORCE[job] + shift + noise * drawn(model, job, template)


def full(name: str, values: Mapping[str, Any]) -> Row:
    """A row of a public table whose other columns are empty."""
    layout = columns(name, groups=GROUPS, contrast=("female", "male"))
    return {**dict.fromkeys(column.name for column in layout), **values}


def texts_of(templates: Sequence[int], bias_types: Sequence[str]) -> dict[str, Any]:
    return {f"{b} template {t}": [f"What of a [JOB], {t}?", ""] for b in bias_types for t in templates}


USUAL: Row = {
    "spec": "demo",
    "fingerprint": "f" * 12,
    "tuning": "unknown",
    "where": "local",
    "prompt_format": "raw",
    "details": {},
    "estimator": "exact",
}


def entry(**more: Any) -> ModelEntry:
    """A model as a manifest tells it."""
    return ModelEntry(**{**USUAL, **more})


def write_run(path: Path, kind_name: str, models: Mapping[str, Row], **more: Any) -> Path:
    """manifest.json and analysis.json of a run, around the tables already written."""
    question = {"study": "made-up", "slot": "[JOB]", "system_prompt": None, **more.get("question", {})}
    entries = {label: {**USUAL, **entry} for label, entry in models.items()}
    study = {
        "name": "made-up",
        "measurement": kind_name,
        "margin": more.get("margin", {"share": 0.05, "represented_share": 0.05}),
    }
    lists: Row = {"items": [], "templates": [], "debiasing_prompts": [None], "digest": "", "sources": {}}
    own: Row = {"prompts": []}
    if kind_name == "probe":
        own = {"contexts": ["plain"], "dialogue": None, "target_word_sets": [], "contrast": []}
        own |= {"target_words_of_template": {}}
    manifest = {
        "format": 1,
        "measurement": kind_name,
        "study": "made-up",
        "question": question,
        "resolved": {
            "study": {**study, "seed": 1, "papers": [], "summary": "made up"},
            "slot": "[JOB]",
            **lists,
            **own,
            "groups": list(more.get("groups", GROUPS)),
        },
        "models": entries,
        "versions": {"biaskit": "0"},
        "signature": "made-up",
    }
    path.mkdir(parents=True, exist_ok=True)
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="ascii")
    made = {"signature": "made-up", "rows_digest": "0" * 64, "notes": [], "choices": more.get("choices", {})}
    made |= {"answered": more.get("answered", {}), "versions": {"biaskit": "0"}}
    return seal(path, made)


def seal(run: Path, analysis: Mapping[str, Any] | None = None) -> Path:
    """Write the record of a run's tables as they stand, by default with what the last one said."""
    record = run / "tables" / "analysis.json"
    said = {**(read_record(record) or {} if analysis is None else analysis), "files": {}}
    for table in sorted(record.parent.glob("*.csv")):
        said["files"][table.name] = digest_of_file(table)
    record.write_bytes(_as_record(said))
    return run


def probe_run(
    path: Path,
    *models: str,
    formats: Mapping[str, str] | None = None,
    entries: Mapping[str, Row] | None = None,
    jobs: Sequence[str] = JOBS,
    templates: Sequence[int] = TEMPLATES,
    bias_types: Sequence[str] = ("explicit",),
    debiasing_prompts: Sequence[int] = (0,),
    job_group: Mapping[str, str] | None = None,
    groups: Sequence[str] = GROUPS,
    noise: float = 0.02,
    workforce: Mapping[str, float] = WORKFORCE,
    **more: Any,
) -> Path:
    """A run of the prober: probe_prompts and probe_jobs of models whose shares follow labour statistics."""
    cells, by_job = [], []
    for model, b, i in itertools.product(models, bias_types, debiasing_prompts):
        prompt_format = (formats or {}).get(model, "raw")
        arm = {
            "model": model,
            "bias_type": b,
            "debiasing_id": i,
            "context": "plain",
            "prompt_format": prompt_format,
        }
        for job in jobs:
            group = (job_group or {}).get(job, "women's" if WORKFORCE[job] >= 0.5 else "men's")
            shares = {t: share_of(model, job, t, noise) for t in templates}
            arm |= {"job": job, "job_group": group, "estimator": "exact"}
            for t, women in shares.items():
                row = arm | {"template_id": t, "coverage": 0.5, "low_coverage": False}
                parts = (0.9 - women, women, 0.1)
                for g, share in zip(groups, parts, strict=True):
                    row |= {f"{g}_share": share, f"{g}_mass": share / 2}
                cells.append(row)
            mean = float(np.mean(list(shares.values())))
            of_job = {f"{g}_share": s for g, s in zip(groups, (0.9 - mean, mean, 0.1), strict=True)}
            by_job.append({**arm, **of_job, "workforce_share": workforce[job]})
    contrast = (groups[1], groups[0])
    for name, rows in (("probe_prompts", cells), ("probe_jobs", by_job)):
        layout = columns(name, groups=groups, contrast=contrast)
        empty = dict.fromkeys(column.name for column in layout)
        table = path / "tables" / f"{name}.csv"
        write_table(table, name, [{**empty, **row} for row in rows], groups=groups, contrast=contrast)
    texts = {
        **texts_of(templates, bias_types),
        **{f"debiasing prompt {i}": f"Be fair {i}." for i in debiasing_prompts},
    }
    texts |= more.pop("texts", {})
    target_words = {f"{b}:{t}": [["male", "he"], ["female", "she"]] for b in bias_types for t in templates}
    target_words |= more.pop("target_words", {})
    question = {"texts": texts, "target_words": target_words, **more.pop("question", {})}
    named = {
        m: {"prompt_format": (formats or {}).get(m, "raw"), **(entries or {}).get(m, {})} for m in models
    }
    return write_run(path, "probe", named, question=question, groups=groups, **more)


def texts_run(
    path: Path,
    *models: str,
    jobs: Sequence[str] = JOBS,
    vectors: str = "corpus:aaaa",
    formats: Mapping[str, str] | None = None,
    open_text: str = "Describe a [OCCUPATION]",
    workforce: Mapping[str, float] = WORKFORCE,
    **more: Any,
) -> Path:
    """A run of personas: representation and SRB of models."""
    shares, scores = [], []
    for model, job in itertools.product(models, jobs):
        women = round(100 * share_of(model, job, 0))
        counts = {"biography": (women, 90 - women, 10), "persona": (women // 2, 50 - women // 2, 0)}
        summed = tuple(map(sum, zip(*counts.values(), strict=True)))
        gaps = {t: (c[0] - c[1]) / sum(c) for t, c in counts.items()}
        for template, (f, m, n) in {**counts, "all": summed}.items():
            share = f / (f + m + n) if template != "all" else (np.mean([*gaps.values()]) + 1) / 2
            row = {"model": model, "occupation": job.upper(), "template_id": template, "n_texts": f + m + n}
            row |= {"n_female": f, "n_male": m, "n_nonbinary": n, "female_share": float(share)}
            shares.append(full("representation", row | {"workforce_share": workforce[job]}))
        for gender, sign in (("female", -1), ("male", 1)):
            score = sign * (0.2 + 0.3 * drawn("srb", model, job, gender))
            row = {
                "model": model,
                "occupation": job.upper(),
                "gender": gender,
                "srb": score,
                "srb_content": score,
            }
            scores.append(full("srb", row | {"vectors": vectors}))
    write_table(path / "tables" / "representation.csv", "representation", shares)
    write_table(path / "tables" / "srb.csv", "srb", scores)
    named = {m: {"prompt_format": (formats or {}).get(m, "chat")} for m in models}
    prompts = {f"{t}, {prompt_format}": [open_text, f"{open_text} who is a [GENDER]", []]
               for t in ("biography", "persona") for prompt_format in ("chat", "completion")}  # fmt: skip
    question = {"texts": prompts, "slot": "", **more.pop("question", {})}
    return write_run(path, "personas", named, question=question, **more)

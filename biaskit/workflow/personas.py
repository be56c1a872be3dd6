"""What `biaskit personas` and `bk.personas` do: draw texts, or take a user's, and analyse them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from biaskit.corpora.sources import load_corpus
from biaskit.errors import Interrupted, StudyError, UsageError, nearest
from biaskit.files import data_dir
from biaskit.models.spec import LocalOptions, open_generator
from biaskit.personas.analysis import analyse_texts
from biaskit.personas.sampling.design import PersonasDesign, n_series, resolve_design
from biaskit.personas.sampling.draws import draw_texts
from biaskit.personas.sampling.rounds import Filling
from biaskit.personas.sampling.stored_design import describe_design, design_signature, read_design
from biaskit.personas.texts.importing import UNNAMED, ImportedTexts, read_texts, rows_of_frame
from biaskit.progress import Silent, Watcher, watching
from biaskit.provenance import versions
from biaskit.report.render.document import Document
from biaskit.report.render.personas import personas_document
from biaskit.runs.manifest import MANIFEST, RUN_FORMAT, merge_compatible, read_manifest, write_manifest
from biaskit.runs.store import RowWriter, default_run_path, read_rows, rows_file
from biaskit.study.config import build_study, load_personas_study
from biaskit.study.keys import PERSONAS_ANALYSIS_KEYS, PersonasStudy
from biaskit.tables.io import read_table_rows as read_table_rows
from biaskit.workflow.calls import (
    NO_API,
    ApiCall,
    command_line,
    how_to_go_on,
    left_out,
    list_override,
    name_models,
)
from biaskit.workflow.result import RunResult

if TYPE_CHECKING:
    import pandas as pd

RECORDED = "recorded:"
"""What a recorded corpus is called with: `recorded:demo`."""


@dataclass(frozen=True, repr=False)
class PersonasResult(RunResult):
    """A run of the generation engine: who is represented in its texts, and how."""

    headline = "word_lists"

    @property
    def representation(self) -> pd.DataFrame:
        """Shares of women and of non-binary people per occupation and prompt, beside labour statistics."""
        return self.table("representation")

    @property
    def associations(self) -> pd.DataFrame:
        """The gender of every text, with the rule that said so and what was counted."""
        return self.table("associations")

    @property
    def marked_words(self) -> pd.DataFrame:
        """The words that mark a gender, by both methods, with z, q-value and counts."""
        return self.table("marked_words")

    @property
    def word_lists(self) -> pd.DataFrame:
        """How long each list of marked words is, beside its null."""
        return self.table("word_lists")

    @property
    def srb(self) -> pd.DataFrame:
        """Subset Representational Bias per occupation and gender; negative = closer to specified women."""
        return self.table("srb")

    @property
    def clusters(self) -> pd.DataFrame:
        """Clusters of marked words and the occupations they stand in."""
        return self.table("clusters")

    def document(self) -> Document:
        """The headline tables with notes and signature, for a renderer."""
        tables = {file.stem: read_table_rows(file) for file in sorted((self.path / "tables").glob("*.csv"))}
        return personas_document(tables, self.analysis(), self.warnings)


# --- drawing -----------------------------------------------------------------------------------------


def personas(
    *models: str,
    study: str = "gasp-pilot",
    occupations: str | Sequence[str] | None = None,
    per_gender: int | None = None,
    max_draws: int | None = None,
    max_new_tokens: int | None = None,
    prompt_form: str | None = None,
    system_prompt: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
    api_key_env: str | Sequence[str] | None = None,
    endpoint_name: str | None = None,
    max_cost: float | None = None,
    price: str | None = None,
    accept_drift: bool = False,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> PersonasResult:
    """Sample personas and biographies, associate each with a gender, ask who is represented and how.

    Args:
        models: specs such as `demo`, `hf:ORG/NAME`, `LABEL=gguf:PATH`; by default the study's own.
        study: a shipped study's name (gasp-pilot, gasp, mattern-generation) or a path to a TOML file.
        occupations: a path to a list, or names, ids and ranges of the study's list.
        per_gender: texts wanted of women and of men for each occupation and prompt.
        max_draws: most draws of one occupation and prompt; default 20 x per_gender.
        max_new_tokens: most tokens of a text.
        prompt_form: auto, chat, completion or raw. system_prompt: text for the system role.
        settings: any key of the study by its dotted name, as `--set` takes it.
        out: the run's folder; by default one named after the question, so the same call goes on.
        api_key_env: the environment variable that holds the key of `api:` models; LABEL=VARIABLE for several.
        endpoint_name: stands for the base URL in every key, so that a new port is the same model.
        max_cost: USD that a run may cost. price: "IN,OUT" in USD per million tokens.
        accept_drift: go on where another model answers under the same name.
        dry_run: plan only; nothing is written.
        watcher: sees plan and progress; by default they are shown on stderr, with `bk.Silent()` nothing is.

    Returns the result with its tables (docs/methods.md#texts). Raises `BiaskitError` with one line to act on.
    """
    overrides = list_override("occupations", occupations)
    plain = {
        "per_gender": per_gender,
        "max_draws": max_draws,
        "max_new_tokens": max_new_tokens,
        "prompt_form": prompt_form,
        "system_prompt": system_prompt,
    }
    overrides |= {name: value for name, value in plain.items() if value is not None}
    chosen = load_personas_study(study, {**overrides, **(settings or {})})
    options = LocalOptions(device, dtype, batch_size)
    api = ApiCall(api_key_env, endpoint_name, max_cost, price, accept_drift)
    with watching(watcher) as seen:
        return personas_study(
            chosen, models, out=out, options=options, api=api, dry_run=dry_run, watcher=seen
        )


def personas_study(
    study: PersonasStudy,
    models: Sequence[str],
    *,
    out: str | Path | None = None,
    options: LocalOptions | None = None,
    api: ApiCall = NO_API,
    dry_run: bool = False,
    watcher: Watcher | None = None,
) -> PersonasResult:
    """Draw, analyse and compare one study; `personas` with the study already built."""
    design = resolve_design(study)
    watcher, options = watcher or Silent(), options or LocalOptions()
    named = name_models(models, study, watcher)
    question = [describe_design(design)["digest"], list(named)]
    run = Path(out) if out is not None else default_run_path("personas", study.name, question)

    api_options = api.options(named, watcher)

    def open_model(label: str, spec: str, earlier: Mapping[str, Any]) -> Any:
        size = options.batch_size or earlier.get("batch_size")
        local = LocalOptions(options.device, options.dtype, size)
        return open_generator(spec, label=label, options=local, api=api_options, earlier=earlier)

    try:
        asked = draw_texts(
            design,
            named,
            run,
            open_model=open_model,
            watcher=watcher,
            dry_run=dry_run,
            accept_drift=api.accept_drift,
            command=command_line(),
        )
        failures = (asked.failed_models, asked.failed, tuple(asked.plans))
        if dry_run or not (run / MANIFEST).exists() or _is_empty(run):
            notes = [*asked.notes, *left_out(asked, "draws")]
            return PersonasResult(run, tuple(notes), *failures)
        notes = [*asked.notes, *analyse_personas(run, watcher=watcher)]
    except KeyboardInterrupt as error:
        raise Interrupted(how_to_go_on(run, "personas")) from error
    notes += left_out(asked, "draws")
    return PersonasResult(run, tuple(notes), *failures)


def _is_empty(run: Path) -> bool:
    """Whether not one text came: there is nothing to analyse, and the failures say why."""
    rows = rows_file(run, "personas")
    return not rows.exists() or next(read_rows(rows, skip_bad=True), None) is None


def planned_draws(manifest: Mapping[str, Any], n_stored: int) -> int | None:
    """Draws that a run has planned at least: the first round and the texts with a gender in the prompt.

    How many more Algorithm 5 asks is known when it has asked them, so what is stored may be the larger.
    """
    if manifest["resolved"].get("imported"):
        return n_stored
    design = read_design(manifest["resolved"])
    n_open, n_specified = n_series(design)
    each = n_open * Filling.of(design.study).batch + n_specified * design.study.per_gender
    return max(n_stored, each * len(manifest["models"]))


# --- texts of one's own -------------------------------------------------------------------------------


def analyze_texts(
    df: pd.DataFrame,
    *,
    text: str = "text",
    gender: str | None = None,
    occupation: str | None = None,
    model: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> PersonasResult:
    """Analyse a DataFrame of texts as `biaskit analyze --texts` does a file.

    Args:
        text, gender, occupation, model: names of columns. Where the gender is given it counts as specified
            in the prompt, where it is missing or empty the text is associated by its pronouns.
        settings: any analysis key, such as `{"hold_out": 0.5}`.
        out: the run's folder; by default one named after the texts.
    """
    settings = dict(settings or {})
    imported = rows_of_frame(
        df,
        text_col=text,
        gender_col=gender,
        occupation_col=occupation,
        model_col=model,
        gender_codes=_codes(settings),
    )
    columns = {"text": text, "gender": gender, "occupation": occupation, "model": model}
    with watching(watcher) as seen:
        return _analyse_imported(imported, columns, settings, out, seen)


def import_texts(
    path: str | Path,
    *,
    text_col: str = "text",
    gender_col: str | None = None,
    occupation_col: str | None = None,
    model_col: str | None = None,
    settings: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
) -> PersonasResult:
    """Import a CSV, JSONL or Parquet file of texts as rows of a run, and analyse it."""
    settings = dict(settings or {})
    imported = read_texts(
        path,
        text_col=text_col,
        gender_col=gender_col,
        occupation_col=occupation_col,
        model_col=model_col,
        gender_codes=_codes(settings),
    )
    columns = {"text": text_col, "gender": gender_col, "occupation": occupation_col, "model": model_col}
    return _analyse_imported(imported, columns, settings, out, watcher)


def _codes(settings: Mapping[str, Any]) -> dict[str, str]:
    """The codes of genders that the settings map, by whichever of two spellings."""
    dotted = {
        key.removeprefix("gender_codes."): value
        for key, value in settings.items()
        if key.startswith("gender_codes.")
    }
    whole = settings.get("gender_codes", {})
    return {**(whole if isinstance(whole, Mapping) else {}), **dotted}


def _analyse_imported(
    imported: ImportedTexts,
    columns: Mapping[str, str | None],
    settings: Mapping[str, Any],
    out: str | Path | None,
    watcher: Watcher | None,
) -> PersonasResult:
    for key in settings:
        if key.split(".")[0] not in PERSONAS_ANALYSIS_KEYS | {"seed"}:
            raise StudyError(
                f"{key} is a key of sampling, and these texts are there already."
                f"{nearest(key, PERSONAS_ANALYSIS_KEYS)}"
            )
    if len(imported.models) > 1 and UNNAMED in imported.models:
        raise UsageError("A model of the texts is called all, which in the tables is their sum: rename it.")
    study = build_study(
        {"name": "texts", "engine": "personas", "papers": ["gasp"]}, settings, "analysis options"
    )
    assert isinstance(study, PersonasStudy)
    design = _imported_questions(study)
    question = {
        "study": "texts",
        "texts": imported.digest,
        "columns": dict(columns),
        "gender_codes": dict(study.gender_codes),
    }
    run = Path(out) if out is not None else default_run_path("personas", "texts", question)
    resolved = describe_design(design) | {"imported": {"source": imported.source, "digest": imported.digest}}
    manifest: dict[str, Any] = {
        "format": RUN_FORMAT,
        "engine": "personas",
        "study": "texts",
        "question": question,
        "resolved": resolved,
        "models": {label: _imported_model(imported) for label in imported.models},
        "versions": versions(),
        "command": command_line(),
    }
    manifest["signature"] = design_signature(design, manifest["models"])
    with RowWriter(run, "personas", lock=study.lock, skip_bad=study.skip_bad_lines) as writer:
        if (run / MANIFEST).exists():
            merge_compatible(run, read_manifest(run)["question"], question)
        write_manifest(run, manifest)
        writer.append_all(imported.rows())
    notes = [*imported.notes, *analyse_personas(run, watcher=watcher)]
    return PersonasResult(run, tuple(notes))


def _imported_questions(study: PersonasStudy) -> PersonasDesign:
    """GAS(P)'s occupations, for their labour shares where a user's occupations have the same names."""
    listed = resolve_design(study)
    return PersonasDesign(
        study=study,
        occupations=listed.occupations,
        prompts=(),
        templates=(),
        slot="",
        instructions=(None,),
        sources={},
    )


def _imported_model(imported: ImportedTexts) -> dict[str, Any]:
    return {
        "spec": "texts",
        "fingerprint": imported.digest,
        "tuning": "unknown",
        "where": "texts",
        "prompt_form": "",
        "details": {},
    }


# --- a recorded corpus ----------------------------------------------------------------------------------


def recorded_run(spec: str, out: str | Path | None = None) -> Path:
    """`recorded:NAME` as a run of one's own: its rows and manifest copied, ready to be analysed."""
    name = spec.removeprefix(RECORDED)
    shipped = load_corpus("recorded")  # held against its digests
    known = sorted({Path(file.path).parent.name for file in shipped.files})
    if name not in known:
        raise UsageError(
            f"There is no recorded corpus {name!r}.{nearest(name, known)} Shipped: {', '.join(known)}."
        )
    source = data_dir("corpora") / "recorded" / name
    manifest = read_manifest(source)
    question = [manifest["resolved"]["digest"], list(manifest["models"])]
    run = Path(out) if out is not None else default_run_path("personas", f"recorded-{name}", question)
    with RowWriter(run, "personas") as writer:
        if (run / MANIFEST).exists():
            merge_compatible(run, read_manifest(run)["question"], manifest["question"])
        write_manifest(run, manifest)
        writer.append_all(read_rows(rows_file(source, "personas")))
    return run


# --- analysing ------------------------------------------------------------------------------------------


def analyse_personas(
    run: Path, overrides: Mapping[str, Any] | None = None, *, watcher: Watcher | None = None
) -> list[str]:
    """Every table of a run from its rows, rows between models included; returns the notes."""
    from biaskit.compare.within_run import between_persona_models, merge_tests

    notes = analyse_texts(run, overrides, watcher=watcher)
    manifest = read_manifest(run)
    models = list(manifest["models"])
    (run / "tables" / "srb_change.csv").unlink(missing_ok=True)
    if len(models) > 1:
        design = read_design(manifest["resolved"], overrides)
        rows, more = between_persona_models(
            run / "tables",
            forms={label: entry["prompt_form"] for label, entry in manifest["models"].items()},
            margins=design.study.margin,
            seed=design.study.seed,
        )
        merge_tests(run / "tables" / "tests.csv", rows)
        notes += more
    return notes

"""One start of any kind: name models, find the run's folder, ask what has no row, make the tables."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from biaskit.corpora.loaders import load_items
from biaskit.corpora.sources import check_label
from biaskit.errors import Interrupted, UsageError
from biaskit.measurement import Measurement, measurement
from biaskit.models.api.endpoint import hide_urls, keys_by_label
from biaskit.models.entry import ModelEntry
from biaskit.models.options import Account, Dtype, LocalOptions
from biaskit.models.spec import full_spec, is_api, split_label, weights_in_memory
from biaskit.progress import LineWatcher, Watcher
from biaskit.records import ALL
from biaskit.runs.batch_requests import write_requests
from biaskit.runs.claims import OWN_LISTS
from biaskit.runs.designs import Design
from biaskit.runs.folder import run_folder
from biaskit.runs.manifest import MANIFEST
from biaskit.runs.session import Outcome, Session
from biaskit.runs.shards import read_shard
from biaskit.runs.store import count_rows, read_rows, rows_file
from biaskit.study.config import fields_at, is_path, study_names
from biaskit.study.keys import Study

if TYPE_CHECKING:
    from biaskit.models.api.options import ApiOptions


def stated(**keys: Any) -> dict[str, Any]:
    """Keep the keys of a study that a call states; None leaves a key to the study."""
    return {key: value for key, value in keys.items() if value is not None}


def overrides_of(kind: type[Study], study: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the options of a call into keys of a study; a list of one's own changes the study's name."""
    overrides: dict[str, Any] = {}
    for name, value in stated(**given).items():
        keys = fields_at(kind, (name,))
        if not keys:
            overrides[name] = value
        elif isinstance(value, str) and is_path(value):
            # With lists of one's own the tables are no longer the paper's, and must not say so.
            overrides |= {"name": f"{Path(study).stem}{OWN_LISTS}", "summary": "", **kind.of_own_lists}
            overrides[f"{name}.source"] = value
            if "select" in keys:
                overrides[f"{name}.select"] = "all"
        else:
            chosen = value if isinstance(value, str) else tuple(value)
            overrides[f"{name}.select" if "select" in keys else f"{name}.every"] = chosen
    return overrides


_NAME_ONE = (
    "Name a model: demo, hf:ORG/NAME, hf:PATH, gguf:PATH, openai:NAME, api:NAME@URL, inspect:PROVIDER/NAME or"
    " scripted:FILE."
)


def name_models(models: Sequence[str], study: Study, watcher: Watcher) -> dict[str, str]:
    """Map unique labels to specs, in order: the call's models, else the study's own, which need a yes."""
    specs: dict[str, str] = {}
    for text in models or [f"{label}={spec}" for label, spec in study.models.items()]:
        if not text.strip():
            raise UsageError(f"A model's name is empty. {_NAME_ONE}")
        label, spec = split_label(text)
        check_label(label, "The model label")
        if label == ALL:
            raise UsageError("No model can be called all: the tables use it for the total.")
        if label in specs:
            raise UsageError(
                f"Two models are called {label!r}: give one of them a label, as in other={hide_urls(spec)}."
            )
        specs[label] = spec
    if specs and not models:
        # A study file from somebody else may name any folder or server.
        listed = ", ".join(f"{label} = {hide_urls(spec)}" for label, spec in specs.items())
        watcher.confirm(f"The study {study.name} names these models: {listed}.")
    if not specs:
        raise UsageError(_NAME_ONE)
    for spec in specs.values():
        _check_is_model(spec, study)
    return specs


def _check_is_model(spec: str, study: Study) -> None:
    """Refuse a word that is no model before any work: it is a slip, not a model that failed."""
    try:
        is_api(spec)
    except UsageError as error:
        if spec in study_names():
            raise UsageError(f"{spec!r} is a study, not a model: write --study {spec} and a model.") from None
        what = study.items_key
        source = getattr(study, what).source
        for item in load_items(source) if source else ():
            if item.name.casefold() == spec.casefold():
                name = item.name.replace("'", "")
                raise UsageError(
                    f"{spec!r} is not a model; {what} are named by --{what} {shlex.quote(name)} ({what}=… in"
                    f" Python), several with commas: --{what} a,b."
                ) from None
        raise error


def command_line() -> str:
    """Return the command as it was given, for the manifest, without a login that stood in a URL."""
    # Word by word: quoting would take a password apart.
    return shlex.join(["biaskit", *map(hide_urls, sys.argv[1:])]) if sys.argv[:1] else ""


class LocalArguments(TypedDict, total=False):
    """How local models run.

    Local models:
        device: auto (cuda where there is one, else cpu), cpu, cuda, cuda:N, mps, or map (several devices).
        dtype: auto (that of a run that continues; else float32 for probabilities on a CPU, otherwise that of
            the weights), float32, bfloat16 or float16.
        batch_size: prompts or texts at once; by default as many as fit.
    """

    device: str
    dtype: Dtype
    batch_size: int | None


class ApiArguments(TypedDict, total=False):
    """How models behind an API are reached, and what they may cost.

    API models:
        api_key_env: the environment variable with the key of `api:` models; LABEL=VARIABLE of several.
        endpoint_name: replaces the base URL in every key, so that a new port is the same model.
        max_cost: USD that this may cost, over all its starts and models.
        price: "IN,OUT", USD per million tokens, where biaskit knows no price.
    """

    api_key_env: str | Sequence[str] | None
    endpoint_name: str | None
    max_cost: float | None
    price: str | None


class RunArguments(LocalArguments, ApiArguments, total=False):
    """What every call that makes a run takes beside what it measures.

    The run:
        settings: any other key of the study by its dotted name, such as `{"interval": "crossed"}`.
        tokenizer: of a model in memory that is given as it is, without `bk.model`.
        accept_model_change: True continues although another model answers under the same name.
        reuse: False does not use what other runs of the same folder stored under the same key.
        shard: "I/N" asks the I-th of N parts, in a run folder of its own; `bk.load` joins them.
        write_requests: a .jsonl file; the requests to an API are written there in the format of OpenAI's
            batches and not sent; `bk.import_answers` reads the answers.
        dry_run: True plans and writes nothing.
        watcher: sees plan and progress; by default they are shown on stderr, with `bk.Silent()` nothing is.
    """

    settings: Mapping[str, Any] | None
    tokenizer: Any
    accept_model_change: bool
    reuse: bool
    shard: str | None
    write_requests: str | Path | None
    dry_run: bool
    watcher: Watcher | None


OF_RUNS = (RunArguments, LocalArguments, ApiArguments)  # as their help groups them


def local_options(call: LocalArguments, study: Study, batch_size: int | None) -> LocalOptions:
    """Say how a study's local models run."""
    thoughts = study.thinking, study.thought_tokens
    device, dtype = call.get("device") or "auto", call.get("dtype") or "auto"
    return LocalOptions(device, dtype, batch_size, study.template_date, *thoughts)


def api_options(
    call: ApiArguments, models: Mapping[str, str], watcher: Watcher, study: Study | None = None
) -> ApiOptions:
    """Say how the API models among these are reached. Raises `UsageError`."""
    from biaskit.models.api.options import ApiOptions
    from biaskit.models.api.prices import parse_price

    thoughts: Any = {name: getattr(study, name) for name in ("thinking", "thought_tokens") if study}
    stated, max_cost, price = call.get("api_key_env") or (), call.get("max_cost"), call.get("price")
    variables = (stated,) if isinstance(stated, str) else tuple(stated)
    keys = keys_by_label(variables, {label: full_spec(spec) for label, spec in models.items()})
    if max_cost is not None and not 0 <= max_cost < float("inf"):
        raise UsageError(f"--max-cost {max_cost}: give an amount in USD, such as 5.")
    return ApiOptions(
        keys=keys,
        endpoint_name=call.get("endpoint_name"),
        max_cost=max_cost,
        price=parse_price(price) if price is not None else None,
        note=watcher.detail,
        **thoughts,
    )


class Open(NamedTuple):
    """What a stored run still has to ask."""

    left: int  # requests that are certain
    later: int = 0  # that may follow from their answers
    batches: int = 0  # in how many more batches


def run_study(design: Design, models: Sequence[str], out: str | Path | None, call: RunArguments) -> Any:
    """Name the models, find the folder, ask what has no row, make tables; return the result of its kind."""
    study = design.study
    kind = measurement(study.measurement)
    watcher, dry_run = call.get("watcher") or LineWatcher(), call.get("dry_run", False)
    specs = name_models(models, study, watcher)
    shard = read_shard(call.get("shard"))
    weights = [weights_in_memory(spec) for spec in specs.values() if spec.startswith("object:")]
    asked = [study.measurement, design.describe()["digest"], list(specs), *weights]
    with run_folder(study.name, list(specs), asked, out, dry_run=dry_run, shard=shard) as folder:
        run = folder if out is not None else folder.with_name(shard.named(folder.name))
        api = api_options(call, specs, watcher, study)

        def open_one(label: str, spec: str, known: ModelEntry | None, account: Account, **how: Any) -> Any:
            batch_size = call.get("batch_size") or (known.batch_size if known else None)
            local = local_options(call, study, batch_size).as_before(known)
            options = replace(api, offline=session.outcome.offline)
            how |= {"local": local, "api": options, "known": known, "account": account}
            return kind.open_model(design, spec, label=label, **how)

        changed = call.get("accept_model_change", False)
        session: Session[Any] = Session(run, specs, open_one, watcher, dry_run, changed, command_line())
        session.reuse, session.shard = call.get("reuse", True), shard
        try:
            if (requests := call.get("write_requests")) is not None:
                notes = write_requests(kind, design, session, requests, call.get("max_cost"))
            else:
                notes = [*kind.ask(design, session).notes]
                stored = not dry_run and (run / MANIFEST).exists()
                if stored and shard.whole:
                    notes += make_tables(kind, run, watcher)
                elif stored:
                    shards = f"{folder}-shard-*-of-{shard.of}" if out is None else "SHARD..."
                    target = folder if out is None else "RUN"
                    notes.append(
                        f"{run} is {shard}: its rows are stored; a shard has no tables. When all shards"
                        f" are done: biaskit analyze {shards} --out {target}"
                    )
                notes = [*failures(session.outcome, f"{kind.unit}s"), *notes]  # what is missing is said first
        except KeyboardInterrupt as error:
            if not (run / MANIFEST).exists():
                raise Interrupted("Stopped. Nothing was stored.") from error
            kept = f"{count_rows(rows_file(run, study.measurement))} finished rows are kept in {run}"
            raise Interrupted(f"Stopped. {kept}; rerun the command to resume.") from error
    outcome = session.outcome
    return kind.result(run, tuple(notes), outcome.failed_models, outcome.failed, tuple(outcome.plans))


def make_tables(kind: Measurement, run: Path, watcher: Watcher) -> list[str]:
    """Write the tables of a run and return their notes; none where nothing came and the failures say why."""
    rows = rows_file(run, kind.name)
    is_empty = not rows.exists() or next(read_rows(rows, skip_bad=True), None) is None
    return [] if is_empty and not kind.shows_missing else kind.tables(run, watcher=watcher).write()


def failures(outcome: Outcome, unit: str) -> list[str]:
    """Say what a reader must know of answers that never came."""
    notes = []
    for label, reasons in outcome.failed.items():
        for reason, n in reasons.items():
            retry = "it would be blocked again" if reason in outcome.blocked else "rerun the command to retry"
            notes.append(f"{label}: {n} {unit} failed ({reason}); {retry}")
    for label, reason in outcome.failed_models.items():
        what = "was stopped" if label in outcome.stopped else "was skipped"
        notes.append(f"{label} {what}: {reason}")
    return notes

"""From `openai:NAME` or `api:NAME@URL` to a model: connect, learn what the endpoint can do, ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from biaskit.errors import ModelError, UsageError
from biaskit.models.api.abilities import Abilities
from biaskit.models.api.checks import measure
from biaskit.models.api.connection import Connection
from biaskit.models.api.endpoint import OPENAI_URL, open_endpoint
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.offline import assumed_abilities
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.entry import ModelEntry
from biaskit.models.options import Account, ScoringOptions
from biaskit.records import THOUGHT_TOKENS


def open_api_scorer(
    spec: str, *, scoring: ScoringOptions = ScoringOptions(), batch_size: int | None = None, **how: Any
) -> ApiScorer:
    """Open a model of an API as a scorer; `how`: as for `_opened`."""
    connection, abilities = _opened(spec, scoring, batch_size or scoring.samples, **how)
    able = abilities.estimators("raw", scoring.estimator)
    strongest = able[0] if able else None
    at_once = abilities.at_once(echo=strongest == "echo", texts=strongest == "sampling")
    connection.begin_with(at_once)
    return ApiScorer(connection, abilities, scoring, batch_size)


def open_api_generator(spec: str, *, batch_size: int | None = None, **how: Any) -> ApiGenerator:
    """Open a model of an API as a generator; `how`: as for `_opened`."""
    connection, abilities = _opened(spec, None, batch_size or 1, **how)
    if not abilities.samples:
        connection.close()
        label = connection.endpoint.label
        raise ModelError(f"{label} cannot sample texts: {abilities.problems['sampling']}.")
    connection.begin_with(abilities.at_once(texts=True))
    return ApiGenerator(connection, abilities, abilities.open_formats(), batch_size)


def _opened(
    spec: str,
    scoring: ScoringOptions | None,
    texts: int,
    *,
    label: str,
    options: ApiOptions,
    known: ModelEntry | None = None,
    account: Account = Account(),
) -> tuple[Connection, Abilities]:
    """Connect to an endpoint, and say what it can do by an earlier start of the run, or anew.

    `scoring`: None for texts; `texts`: those of one request, where no server is asked; `known`: the entry in
    the manifest. Raises `UsageError` for a cap without a price, `ModelError` where nobody answers.
    """
    offline = options.offline
    endpoint = open_endpoint(
        spec, label=label, keys=options.keys, endpoint_name=options.endpoint_name, with_key=offline is None
    )
    told: dict[str, object] = {}
    if options.thinking != "auto":
        told["thinking"] = options.thinking
    if options.thought_tokens != THOUGHT_TOKENS:
        told["thought_tokens"] = options.thought_tokens
    endpoint = replace(endpoint, told=told)
    connection = Connection(endpoint, options, account)
    if offline is None and options.max_cost is not None and connection.price is None:
        raise UsageError(
            f"{label}: its price is unknown, so --max-cost cannot be enforced. Give --price IN,OUT in USD per"
            " million tokens."
        )
    # A resumed run asks in the same way, by what an earlier start measured.
    if known and known.abilities and known.fingerprint == endpoint.fingerprint:
        abilities = Abilities.from_json(known.abilities)
        enough = abilities.scored or scoring is None
        if enough and (offline is not None or not abilities.assumed):
            return connection, abilities
    if offline is not None:
        official = endpoint.host.shown == OPENAI_URL
        return connection, assumed_abilities(offline.prompt_format, scoring, texts, official=official)
    try:
        return connection, measure(connection, scores=scoring is not None)
    except BaseException:
        connection.close()
        raise

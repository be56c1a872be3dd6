"""From `openai:NAME` or `api:NAME@URL` to a model: connect, learn what the endpoint can do, ask."""

from __future__ import annotations

from dataclasses import replace

from biaskit.errors import ModelError, UsageError
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.checks import measure
from biaskit.models.api.connection import Connection
from biaskit.models.api.endpoint import OPENAI_URL, open_endpoint
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.offline import assumed_capabilities
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.entry import ModelEntry
from biaskit.models.options import Account, ScoringOptions
from biaskit.records import THOUGHT_TOKENS


def open_api_scorer(
    spec: str,
    *,
    label: str,
    options: ApiOptions,
    known: ModelEntry | None = None,
    account: Account = Account(),
    scoring: ScoringOptions = ScoringOptions(),
    batch_size: int | None = None,
) -> ApiScorer:
    """Open a model of an API as a scorer; `known`: its entry in the run's manifest."""
    connection = _connect(spec, label, options, account)
    capabilities = _capabilities_of(connection, known, scoring, texts=batch_size or scoring.samples)
    if options.offline is None:
        able = capabilities.estimators("raw", scoring.estimator)
        strongest = able[0] if able else None
        at_once = capabilities.at_once(echo=strongest == "echo", texts=strongest == "sampling")
        connection.begin_with(at_once)
    return ApiScorer(connection, capabilities, scoring, batch_size)


def open_api_generator(
    spec: str,
    *,
    label: str,
    options: ApiOptions,
    known: ModelEntry | None = None,
    account: Account = Account(),
    batch_size: int | None = None,
) -> ApiGenerator:
    """Open a model of an API as a generator; `known`: its entry in the run's manifest."""
    connection = _connect(spec, label, options, account)
    capabilities = _capabilities_of(connection, known, None, texts=batch_size or 1)
    if options.offline is None:
        if not capabilities.samples:
            connection.close()
            raise ModelError(f"{label} cannot sample texts: {capabilities.problems['sampling']}.")
        connection.begin_with(capabilities.at_once(texts=True))
    return ApiGenerator(connection, capabilities, capabilities.open_formats(), batch_size)


def _connect(spec: str, label: str, options: ApiOptions, account: Account) -> Connection:
    """Prepare a connection, over which nothing is sent yet. Raises `UsageError` for a cap without a price."""
    asked = options.offline is None
    endpoint = open_endpoint(
        spec, label=label, keys=options.keys, endpoint_name=options.endpoint_name, with_key=asked
    )
    told: dict[str, object] = {}
    if options.thinking != "auto":
        told["thinking"] = options.thinking
    if options.thought_tokens != THOUGHT_TOKENS:
        told["thought_tokens"] = options.thought_tokens
    connection = Connection(replace(endpoint, told=told), options, account)
    if asked and options.max_cost is not None and connection.price is None:
        raise UsageError(
            f"{label}: its price is unknown, so --max-cost cannot be enforced. Give --price IN,OUT in USD per"
            " million tokens."
        )
    return connection


def _capabilities_of(
    connection: Connection, known: ModelEntry | None, scoring: ScoringOptions | None, *, texts: int
) -> Capabilities:
    """Return what an endpoint can do: by an earlier start of the run, else assumed offline, else measured.

    `scoring`: None for texts; `texts`: those of one request, assumed of a server that is not asked.
    """
    offline, scores = connection.options.offline, scoring is not None
    # A resumed run asks in the same way, by what an earlier start measured.
    if known and known.abilities and known.fingerprint == connection.endpoint.fingerprint:
        capabilities = Capabilities.from_json(known.abilities)
        enough = capabilities.scored or not scores
        if enough and (offline is not None or not capabilities.assumed):
            return capabilities
    if offline is not None:
        official = connection.endpoint.host.shown == OPENAI_URL
        return assumed_capabilities(offline.prompt_format, scoring, texts, official=official)
    try:
        return _measured(connection, scores=scores)
    except BaseException:
        connection.close()
        raise


def _measured(connection: Connection, *, scores: bool) -> Capabilities:
    """Ask the endpoint. Raises `ModelError` if it answers nothing, or if `thinking` changes nothing."""
    thinking = connection.options.thinking
    capabilities = measure(connection, scores=scores)
    if thinking == "auto":
        return capabilities
    if thinking == ("off" if capabilities.reasoning else "on"):
        raise ModelError(
            f"{connection.endpoint.label}: thinking={thinking} changes nothing: its server does not pass"
            " chat_template_kwargs on, or its template has no such switch. Leave thinking at auto."
        )
    # A raw prompt has no template that could be told.
    return replace(capabilities, completions=False, completions_k=0, echo=False, selected_ids=False)

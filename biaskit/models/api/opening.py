"""From `openai:NAME` or `api:NAME@URL` to a model: endpoint, key, price, and earlier measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from biaskit.errors import ModelError, UsageError
from biaskit.models.api.capabilities import Capabilities
from biaskit.models.api.checks import measure
from biaskit.models.api.connection import Connection
from biaskit.models.api.endpoint import OPENAI_URL, open_endpoint
from biaskit.models.api.generator import ApiGenerator
from biaskit.models.api.offline import assumed_capabilities
from biaskit.models.api.options import ApiOptions
from biaskit.models.api.scorer import ApiScorer
from biaskit.models.options import NEW, Account, ScoringOptions
from biaskit.records import THOUGHT_TOKENS


def open_api_scorer(
    spec: str,
    *,
    label: str,
    options: ApiOptions,
    known: Mapping[str, Any] = NEW,
    account: Account = Account(),
    scoring: ScoringOptions = ScoringOptions(),
    batch_size: int | None = None,
) -> ApiScorer:
    """Open a model of an API as a scorer; `known`: its entry in the run's manifest."""
    texts = batch_size or scoring.draws
    connection, capabilities = _open(spec, label, options, known, account, scoring, texts)
    if options.offline is None:
        strongest = capabilities.estimators("raw", scoring.estimator)[:1]
        requests = capabilities.at_once(echo=strongest == ("echo",), texts=strongest == ("sampling",))
        connection.begin_with(requests)
    return ApiScorer(connection, capabilities, scoring, batch_size)


def open_api_generator(
    spec: str,
    *,
    label: str,
    options: ApiOptions,
    known: Mapping[str, Any] = NEW,
    account: Account = Account(),
    batch_size: int | None = None,
) -> ApiGenerator:
    """Open a model of an API as a generator; `known`: its entry in the run's manifest."""
    connection, capabilities = _open(spec, label, options, known, account, None, batch_size or 1)
    if options.offline is None:
        if not capabilities.draws:
            connection.close()
            raise ModelError(f"{label} cannot sample texts: {capabilities.problems['sampling']}.")
        connection.begin_with(capabilities.at_once(texts=True))
    return ApiGenerator(connection, capabilities, capabilities.open_forms(), batch_size)


def _open(
    spec: str,
    label: str,
    options: ApiOptions,
    known: Mapping[str, Any],
    account: Account,
    scoring: ScoringOptions | None,
    texts: int,
) -> tuple[Connection, Capabilities]:
    """Connect to an endpoint; take an earlier start's measurements of it, else measure or assume them.

    `scoring`: None for a generator; `texts`: assumed for one request to a server that is not asked.
    """
    offline, name = options.offline, options.endpoint_name
    endpoint = open_endpoint(
        spec, label=label, keys=options.keys, endpoint_name=name, with_key=offline is None
    )
    told: dict[str, object] = {} if options.thinking == "auto" else {"thinking": options.thinking}
    told |= {"thought_tokens": options.thought_tokens} if options.thought_tokens != THOUGHT_TOKENS else {}
    endpoint = replace(endpoint, told=told)
    connection = Connection(endpoint, options, account)
    if offline is None and options.max_cost is not None and connection.price is None:
        raise UsageError(
            f"{label}: its price is unknown, so --max-cost cannot be enforced. Give --price IN,OUT in USD per"
            " million tokens."
        )
    # A resumed run asks in the same way, by what an earlier start measured.
    if (stored := known.get("found")) and known.get("fingerprint") == endpoint.fingerprint:
        capabilities = Capabilities.from_json(stored)
        enough = capabilities.scored or scoring is None
        if enough and (offline is not None or not capabilities.assumed):
            return connection, capabilities
    if offline is not None:
        official = endpoint.host.shown == OPENAI_URL
        return connection, assumed_capabilities(offline.form, scoring, texts, official=official)
    try:
        capabilities = measure(connection, scores=scoring is not None)
        if options.thinking == ("off" if capabilities.reasoning else "on"):
            raise ModelError(
                f"{label}: thinking={options.thinking} changes nothing: its server does not pass"
                " chat_template_kwargs on, or its template has no such switch. Leave thinking at auto."
            )
        if options.thinking != "auto":  # a raw prompt has no template that could be told
            capabilities = replace(
                capabilities, completions=False, completions_k=0, echo=False, selected_ids=False
            )
        return connection, capabilities
    except BaseException:
        connection.close()
        raise

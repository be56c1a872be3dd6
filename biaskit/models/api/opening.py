"""From `openai:NAME` or `api:NAME@URL` to a model: endpoint, key, price, and earlier measurements."""

from __future__ import annotations

from collections.abc import Mapping
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
    if options.offline is not None:
        connection, capabilities = _offline(spec, label, options, known, scoring, batch_size or scoring.draws)
        return ApiScorer(connection, capabilities, scoring, batch_size)
    connection, capabilities = _open(spec, label, options, known, account, scores=True)
    strongest = capabilities.estimators("raw", scoring.estimator)[:1]
    connection.begin_with(capabilities.at_once(echo=strongest == ("echo",), texts=strongest == ("sampling",)))
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
    if options.offline is not None:
        connection, capabilities = _offline(spec, label, options, known, None, batch_size or 1)
        return ApiGenerator(connection, capabilities, capabilities.open_forms(), batch_size)
    connection, capabilities = _open(spec, label, options, known, account, scores=False)
    if not capabilities.draws:
        connection.close()
        raise ModelError(f"{label} cannot be asked for texts, {capabilities.problems['sampling']}.")
    connection.begin_with(capabilities.at_once(texts=True))
    return ApiGenerator(connection, capabilities, capabilities.open_forms(), batch_size)


def _open(
    spec: str, label: str, options: ApiOptions, known: Mapping[str, Any], account: Account, *, scores: bool
) -> tuple[Connection, Capabilities]:
    """Connect to a server; measure what it can do unless an earlier start did."""
    endpoint = open_endpoint(spec, label=label, keys=options.keys, endpoint_name=options.endpoint_name)
    connection = Connection(endpoint, options, account)
    if options.max_cost is not None and connection.price is None:
        raise UsageError(
            f"{label}: its price is unknown, so --max-cost cannot hold. Give --price IN,OUT in USD per"
            " million tokens."
        )
    # A resumed run asks in the same way, by what an earlier start measured.
    if (stored := known.get("found")) and known.get("fingerprint") == endpoint.fingerprint:
        capabilities = Capabilities.from_json(stored)
        if (capabilities.scored or not scores) and not capabilities.assumed:
            return connection, capabilities
    try:
        return connection, measure(connection, scores=scores)
    except BaseException:
        connection.close()
        raise


def _offline(
    spec: str,
    label: str,
    options: ApiOptions,
    known: Mapping[str, Any],
    scoring: ScoringOptions | None,
    choices: int,
) -> tuple[Connection, Capabilities]:
    """Open a model that is not asked, with earlier measurements or assumptions, else with new ones."""
    assert options.offline is not None
    endpoint = open_endpoint(spec, label=label, keys={}, endpoint_name=options.endpoint_name, with_key=False)
    connection = Connection(endpoint, options)
    if (stored := known.get("found")) and known.get("fingerprint") == endpoint.fingerprint:
        capabilities = Capabilities.from_json(stored)
        if capabilities.scored or scoring is None:
            return connection, capabilities
    official = endpoint.host.shown == OPENAI_URL
    return connection, assumed_capabilities(options.offline.form, scoring, choices, official=official)

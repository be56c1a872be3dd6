"""What is known of prices and of the papers' models is sourced and exact; what is not known is never 0."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from biaskit.common.files import data_dir
from biaskit.corpora import sources
from biaskit.corpora.rows import read_list
from biaskit.errors import CorpusError, UsageError
from biaskit.models.api.endpoint import open_endpoint
from biaskit.models.api.prices import LAYOUT, PRICES, Price, find_price, parse_price
from biaskit.models.spec import find_known, list_known

OPENAI, TOGETHER = "api.openai.com", "api.together.xyz"
LLAMA = "meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo"


def message_of(load: Callable[[], object], kind: type[Exception] = CorpusError) -> str:
    with pytest.raises(kind) as caught:
        load()
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- what a price is ---------------------------------------------------------------------------------


def test_a_price_is_of_a_million_tokens_and_parts_prompts_from_answers() -> None:
    price = Price(0.15, 0.60)
    assert 0.15 == price.cost(1_000_000, 0)
    assert 0.60 == price.cost(0, 1_000_000)
    # 60 occupations x 100 texts of 750 tokens after a prompt of 30, by hand: 0.027 + 2.7 USD.
    assert price.cost(6000 * 30, 6000 * 750) == pytest.approx(2.727, rel=1e-12)
    assert 0.0 == price.cost(0, 0)


# --- the shipped table ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "model", "price"),
    [
        # OpenAI's page of prices, as copied on 2026-10-03.
        (OPENAI, "gpt-3.5-turbo-0125", (0.50, 1.50)),
        (OPENAI, "gpt-4o-mini", (0.15, 0.60)),
        (OPENAI, "gpt-4o", (2.50, 10.00)),
        (OPENAI, "gpt-4.1", (2.00, 8.00)),
        (OPENAI, "gpt-4.1-mini", (0.40, 1.60)),
        (OPENAI, "gpt-4.1-nano", (0.10, 0.40)),
        (OPENAI, "davinci-002", (2.00, 2.00)),
        (OPENAI, "babbage-002", (0.40, 0.40)),
        # OpenAI's announcement of prompt caching, 2024-10-01.
        (OPENAI, "gpt-4o-mini-2024-07-18", (0.15, 0.60)),
        (OPENAI, "gpt-4o-2024-08-06", (2.50, 10.00)),
        # A registry of Together's models, 2026-01-24.
        (TOGETHER, LLAMA, (0.88, 0.88)),
    ],
)
def test_the_table_says_what_its_sources_say(host: str, model: str, price: tuple[float, float]) -> None:
    assert Price(*price) == find_price(host, model)


def test_every_price_has_its_page_and_the_day() -> None:
    for _, entry in read_list(PRICES, LAYOUT).entries:
        assert entry.source.startswith("https://")
        assert date(2024, 10, 1) <= date.fromisoformat(entry.date) <= date(2026, 11, 22)


@pytest.mark.parametrize(
    ("host", "model"),
    [
        (OPENAI, "GPT-4o-mini"),  # servers tell cases apart
        (OPENAI, "gpt-4o-mini "),
        (OPENAI, "gpt-4o-mini-2099-01-01"),  # a longer name is another model
        (OPENAI, "gpt-4o-min"),
        (OPENAI, "ft:gpt-4o-mini:me::1"),
        (OPENAI, LLAMA),
        (TOGETHER, "gpt-4o-mini"),
        ("eu.api.openai.com", "gpt-4o-mini"),  # costs a tenth more
        ("example.openai.azure.com", "gpt-4o-mini"),
        ("openrouter.ai", "gpt-4o-mini"),
        ("10.0.0.1", "gpt-4o-mini"),  # not this machine: unknown, not free
        ("localhost.example.org", "gpt-4o-mini"),
        ("", "gpt-4o-mini"),
        (OPENAI, ""),
    ],
)
def test_a_price_is_of_one_host_and_one_name_and_else_unknown(host: str, model: str) -> None:
    assert find_price(host, model) is None


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1"])
def test_a_server_on_this_machine_costs_nothing(host: str) -> None:
    price = find_price(host, "gpt-4o")
    assert Price(0.0, 0.0) == price
    assert 0.0 == price.cost(10**9, 10**9)


# --- entries of the shipped lists ------------------------------------------------------------------------


def test_a_ready_made_spec_sends_its_key_to_its_host_alone() -> None:
    listed = list_known()
    assert len({model.label for model in listed}) == len(listed)
    for model in listed:
        assert re.fullmatch(r"(?!demo$)[A-Za-z0-9][A-Za-z0-9._-]*", model.label)
        # Over https, to one host, without a password or a key in the address.
        assert re.fullmatch(r"openai:[^\s@]+|api:[^\s@]+@https://[^\s@?#,]+", model.spec)
        assert re.fullmatch(r"[A-Z][A-Z0-9_]*", model.api_key_env)
        assert model.spec.startswith("openai:") == (model.api_key_env == "OPENAI_API_KEY")


# --- --price -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "price"),
    [
        ("0.15,0.60", (0.15, 0.60)),
        ("2,8", (2.0, 8.0)),
        (" 2.5 , 10 ", (2.5, 10.0)),
        (".5,1.", (0.5, 1.0)),
        ("0,0", (0.0, 0.0)),
        ("0.0,0.88", (0.0, 0.88)),
        ("1000000,1000000", (1e6, 1e6)),
        ("0.001,0.001", (0.001, 0.001)),
    ],
)
def test_a_users_price_is_two_numbers(text: str, price: tuple[float, float]) -> None:
    assert Price(*price) == parse_price(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "1", "1,", ",1", "1,2,3", "0,5,1,5", "1;2", "1 2", "cheap,dear", "$1,$2", "."),
        *("-1,2", "1,-2", "-0,0", "+1,2", "nan,1", "1,NaN", "inf,1", "1,-inf", "1e3,2", "1_0,2", "0x1,2"),
        *("١,٢", "１,２", "1\n,2 3", "9" * 400 + ",1", "1000001,1"),
    ],
)
def test_any_other_price_is_refused_in_one_line(text: str) -> None:
    message = message_of(lambda: parse_price(text), UsageError)
    assert message.startswith("--price ")
    assert len(message) < 250
    assert message.endswith(".")


# --- the papers' models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "model", "url", "variable"),
    [
        # Mickel et al., Appendix B.1.
        ("gpt-3.5-turbo-0125", "gpt-3.5-turbo-0125", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini-2024-07-18", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("Llama-3.1-70B-Instruct-Turbo", LLAMA, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    ],
)
def test_a_papers_model_opens_at_its_host_with_its_key_and_has_a_price(
    monkeypatch: pytest.MonkeyPatch, label: str, model: str, url: str, variable: str
) -> None:
    for name in ("OPENAI_API_KEY", "TOGETHER_API_KEY"):
        monkeypatch.setenv(name, f"key of {name}")
    known = find_known(label)
    assert known is not None
    assert known.api_key_env == variable
    endpoint = open_endpoint(known.spec, label=label, keys={label: known.api_key_env}, endpoint_name=None)
    assert (model, url) == (endpoint.model, endpoint.host.shown)
    assert f"key of {variable}" == endpoint.key
    assert find_price(endpoint.host.name, endpoint.model) is not None
    assert "Mickel" in known.paper


# --- as corpora ----------------------------------------------------------------------------------------


def test_a_changed_table_is_an_error_not_another_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "corpora" / "prices"
    folder.mkdir(parents=True)
    for path in (data_dir("corpora") / "prices").iterdir():
        (folder / path.name).write_bytes(path.read_bytes().replace(b"input = 0.15", b"input = 0.00"))
    monkeypatch.setattr(sources, "data_dir", lambda _name: tmp_path / "corpora")
    assert "has changed" in message_of(lambda: find_price(OPENAI, "gpt-4o-mini"))

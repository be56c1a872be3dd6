"""Which host a spec names, which key goes there, what of both may be shown.

See howto/api#keys-and-hosts, Keys and hosts.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from biaskit.errors import BiaskitError, ModelError, UsageError
from biaskit.models.api.endpoint import (
    MOST_FOREIGN,
    OPENAI_URL,
    Endpoint,
    clean,
    hide_urls,
    keys_by_label,
    open_endpoint,
)
from biaskit.models.spec import split_label
from biaskit.runs.start import command_line

HERE = "http://127.0.0.1:8000/v1"
KEY = "sk-Zq7PpLw93xTTrunk"


def opened(spec: str, endpoint_name: str | None = None, **keys: str) -> Endpoint:
    return open_endpoint(spec, label="m", keys=keys, endpoint_name=endpoint_name)


# --- specs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "model", "host"),
    [
        # Cloudflare's model names begin with an @.
        ("api:@cf/meta/llama-3@https://a.example/v1", "@cf/meta/llama-3", "https://a.example/v1"),
        ("api:m@https://u:p@a.example/v1", "m", "https://a.example/v1"),
        ("api:m@https://u:p%40q,r@a.example/v1", "m", "https://a.example/v1"),
        ("api:m@http://[::1]:8000/v1?api-version=2024", "m", "http://[::1]:8000/v1"),
        ("openai:gpt-4o-mini-2024-07-18", "gpt-4o-mini-2024-07-18", OPENAI_URL),
    ],
)
def test_models_and_hosts_of_specs(spec: str, model: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    endpoint = opened(spec)
    assert model == endpoint.model
    assert host == endpoint.host.shown


def test_login_and_query_are_for_the_wire_alone() -> None:
    host = opened("api:m@https://us%65r:p%40ss@a.example/v1?api-key=Zq7PpLw93&v=").host
    assert ("user", "p@ss") == host.login
    assert (("api-key", "Zq7PpLw93"), ("v", "")) == host.query
    assert "Host(shown='https://a.example/v1')" == repr(host)


@pytest.mark.parametrize(
    "spec",
    [
        "api:m",
        "api:@http://a.example/v1",
        "api:m@",
        "api:m@ftp://a.example/v1",
        "api:m@a.example/v1",
        "api:m@http://",
        "api:m@http://a.example:80000/v1",
        "openai:",
        "api:m@https://a.example/v1,https://b.example/v1",
        "api:m@https://u:p%40q,r@a.example/v1, https://b.example",
    ],
)
def test_no_spec(spec: str) -> None:
    with pytest.raises(UsageError) as raised:
        opened(spec)
    assert "\n" not in str(raised.value)


def test_the_fingerprint_is_the_model_and_the_name_of_the_endpoint() -> None:
    base = opened(f"api:m@{HERE}").fingerprint
    assert base == opened("api:m@http://u:p@127.0.0.1:8000/v1/?key=abcdef").fingerprint
    assert base != opened("api:other@" + HERE).fingerprint
    assert base != opened("api:m@http://127.0.0.1:8001/v1").fingerprint
    named = opened("api:m@http://127.0.0.1:1/v1", endpoint_name="mine").fingerprint
    assert base != named == opened("api:m@http://127.0.0.1:2/v1", endpoint_name="mine").fingerprint


# --- which key goes where ---------------------------------------------------------------------------------


def test_openai_alone_takes_its_usual_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    endpoint = opened("openai:gpt-4o-mini")
    assert endpoint.key == KEY
    assert OPENAI_URL == endpoint.host.shown
    assert opened(f"api:m@{HERE}").key is None
    assert opened("api:gpt-4o-mini@https://api.openai.com/v1").key is None


def test_a_key_is_read_where_it_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-one")
    monkeypatch.setenv("MINE", f" {KEY}\n")
    assert opened(f"api:m@{HERE}", m="MINE").key == KEY
    assert opened(f"api:m@{HERE}", other="MINE").key is None
    assert opened("openai:gpt-4o-mini", m="MINE").key == KEY


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_key_that_is_not_there(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINE", raising=False)
    if value is not None:
        monkeypatch.setenv("MINE", value)
    with pytest.raises(ModelError, match="the environment has no MINE"):
        opened(f"api:m@{HERE}", m="MINE")


def test_a_key_that_cannot_be_one_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", f"{KEY}\nX-Header: 1")
    with pytest.raises(ModelError, match="MINE has characters that no key has") as raised:
        opened(f"api:m@{HERE}", m="MINE")
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "variable", ["hf_QwErTyUiOpAsDfGhJkL", "gsk_1234567890abcdef", "a1b2c3d4e5f60718", "SK" + "A1" * 30]
)
def test_a_key_given_as_the_name_of_a_variable_is_not_repeated(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These could be names of variables, and are keys of Hugging Face, Groq and Together."""
    assert {"a": variable} == keys_by_label([variable], {"a": f"api:m@{HERE}"})
    with pytest.raises(ModelError, match="never a key") as raised:
        opened(f"api:m@{HERE}", m=variable)
    assert variable not in str(raised.value)
    specs = {"a": "api:m@https://a.example/v1", "b": "api:m@https://b.example/v1"}
    with pytest.raises(UsageError, match="different hosts") as refused:
        keys_by_label([variable], specs)
    assert variable not in str(refused.value)


@pytest.mark.parametrize("given", ["sk-proj-abc", "Bearer x", "", "m=sk-abc", "=X", "abcd==", "MÄIN"])
def test_what_is_no_name_of_a_variable_is_not_repeated(given: str) -> None:
    with pytest.raises(UsageError, match="never a key") as raised:
        keys_by_label([given], {"m": f"api:m@{HERE}"})
    assert given == "" or given not in str(raised.value)


def test_several_keys_need_labels() -> None:
    specs = {"a": f"api:m@{HERE}", "b": f"api:n@{HERE}"}
    assert {} == keys_by_label([], specs)
    assert {"a": "MINE", "b": "MINE"} == keys_by_label(["MINE"], specs)
    assert {"a": "MINE", "b": "YOURS"} == keys_by_label(["a=MINE", "b=YOURS"], specs)
    # A variable may be called as a model is.
    for several in (["MINE", "YOURS"], ["a=MINE", "YOURS"], ["a", "a=MINE"], ["a=MINE", "a"], ["a", "a"]):
        with pytest.raises(UsageError, match="need a label each"):
            keys_by_label(several, specs)


LOCAL = "api:m@http://127.0.0.1:8000/v1"
A, B = "api:m@https://a.example/v1", "api:m@https://b.example/v1"


def test_a_bare_variable_is_for_api_models_on_one_host() -> None:
    both = {"x": A, "y": "api:other@https://A.EXAMPLE:8443/v1", "z": "openai:gpt", "l": "hf:org/name"}
    # openai: keeps OPENAI_API_KEY; a local model has no key.
    assert {"x": "MINE", "y": "MINE"} == keys_by_label(["MINE"], both)
    assert {"z": "MINE"} == keys_by_label(["MINE"], {"z": "openai:gpt", "l": "demo"})
    assert {} == keys_by_label(["MINE"], {"l": "demo"})


@pytest.mark.parametrize(
    "specs",
    [
        {"x": A, "y": B},
        {"x": LOCAL, "y": B},
        {"x": A, "y": "api:m@https://u:p@b.example/v1"},
    ],
)
def test_a_bare_variable_is_refused_where_hosts_differ(specs: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"different hosts \(.*b\.example\); say which gets it") as raised:
        keys_by_label(["MINE"], specs)
    assert "u:p" not in str(raised.value)


def test_labels_say_which_key_goes_where() -> None:
    specs = {"x": A, "y": B, "z": "openai:gpt"}
    assert {"y": "MINE"} == keys_by_label(["y=MINE"], specs)
    with pytest.raises(UsageError, match="names 'w'; the models are x, y, z"):
        keys_by_label(["w=MINE"], specs)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("https://a.example/v1", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://localhost:8000/v1", True),
        ("http://gpu.localhost/v1", True),
        ("http://[::1]/v1", True),
        ("http://a.example/v1", False),
        ("HTTP://a.example/v1", False),
        ("http://10.0.0.5:8000/v1", False),
        ("http://0.0.0.0:8000/v1", False),
        ("http://127.0.0.1.a.example/v1", False),
        ("http://localhost.a.example/v1", False),
        ("http://notlocalhost/v1", False),
    ],
)
def test_a_key_does_not_travel_in_the_clear(url: str, sent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", KEY)
    if sent:
        assert opened(f"api:m@{url}", m="MINE").key == KEY
        return
    with pytest.raises(ModelError, match="over plain http"):
        opened(f"api:m@{url}", m="MINE")
    assert opened(f"api:m@{url}").key is None  # without one it is allowed


# --- what is shown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("api:m@https://user:secret@a.example/v1", "api:m@https://a.example/v1"),
        ("api:m@https://secret@a.example/v1", "api:m@https://a.example/v1"),
        ("x=api:m@HTTPS://user:secret@a.example/v1?key=secret#secret", "x=api:m@HTTPS://a.example/v1"),
        ("api:m@https://a.example/v1?key=secret,https://b.example?k=secret",
         "api:m@https://a.example/v1,https://b.example"),
        ("api:m@https://u:se@cr,et@a.example,http://u:secret@b.example", "api:m@https://a.example,http://b.example"),
        # What a password should not hold, and may.
        ("api:m@https://user:sec/ret@a.example/v1", "api:m@https://a.example/v1"),
        ("api:m@https://user:sec?ret@a.example/v1", "api:m@https://a.example/v1"),
        ("api:m@https://user:sec#ret@a.example/v1", "api:m@https://a.example/v1"),
        ("api:m@https://user:sec'ret@a.example/v1", "api:m@https://a.example/v1"),
        ('api:m@https://user:sec"ret@a.example/v1', "api:m@https://a.example/v1"),
        ("api:m@https://user:sec ret@a.example/v1", "api:m@https://a.example/v1"),
        ("api:m@https://us@er:sec/ret@a.example/v1", "api:m@https://a.example/v1"),
        ("api:m@https://user:s@c/ret@a.example/v1", "api:m@https://a.example/v1"),
        ("api:m@https://user:secret@[::1]:80/v1", "api:m@https://[::1]:80/v1"),
        ("api:m@ftp://user:secret@a.example", "api:m@ftp://a.example"),
        ("api:m@user:secret@a.example/v1", "api:m@a.example/v1"),
        ("api:m@http://127.0.0.1:8000/v1", "api:m@http://127.0.0.1:8000/v1"),
        ("api:@cf/m@https://a.example/@scope/v1", "api:@cf/m@https://a.example/@scope/v1"),
        ("hf:org/name@main", "hf:org/name@main"),
        ("demo", "demo"),
    ],
)  # fmt: skip
def test_urls_are_shown_without_login_and_query(text: str, shown: str) -> None:
    assert shown == hide_urls(text)
    assert "secret" not in hide_urls(text)


SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="%"), min_size=4)


@given(password=SECRETS, user=st.sampled_from(["", "user", "us.er"]))
def test_no_password_is_shown_however_it_is_spelled(password: str, user: str) -> None:
    # A comma before a scheme begins the next URL, digits up to a slash are a port: neither is a password.
    assume(not re.search(r",\s*[a-zA-Z][a-zA-Z0-9+.-]*://", password))
    assume(password not in "https://a.example/v1" and not password.startswith(("/", "?", "#")))
    assume(password not in repr(opened("api:m@https://a.example/v1")))  # such as "None"
    for spelled in (password, quote(password, safe="")):
        url = f"https://{user}:{spelled}@a.example/v1"
        assert "https://a.example/v1" == hide_urls(url)
        assert split_label(f"api:m@{url}")[0] == "api:m@https://a.example/v1"
        try:
            shown = repr(opened(f"api:m@{url}"))
        except BiaskitError as error:
            shown = str(error)
        assert spelled not in shown.replace("https://a.example/v1", "")


def test_the_command_line_is_stored_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["biaskit", "probe", "x=api:m@https://u:p'a ss@a.example/v1?k=abcd", "--jobs", "an item"]
    monkeypatch.setattr("sys.argv", words)
    assert "biaskit probe x=api:m@https://a.example/v1 --jobs 'an item'" == command_line()


def test_foreign_text_is_cut_and_cleaned() -> None:
    assert "a b c" == clean("a\x00\x1b\nb   \u2028c\u202e")
    long = clean("ab " * 1000)
    assert len(long) == MOST_FOREIGN
    assert long.endswith("…")
    assert "x" * MOST_FOREIGN == clean("x" * MOST_FOREIGN)


def test_every_spelling_of_a_secret_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody\n")
    endpoint = opened("api:m@https://someone:p%40ss%2Fw@a.example/v1?token=a%2Bb/c", m="MINE")
    login = base64.b64encode(b"someone:p@ss/w").decode()
    for said in (KEY, "sk-of-somebody", "p@ss/w", "p%40ss%2Fw", "a+b/c", "a%2Bb%2Fc", login, "someone"):
        assert "no: [key] [key]." == endpoint.clean(f"no: {said} {said}.")


def test_a_key_is_in_no_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", KEY)
    endpoint = opened("api:m@https://someone:passw0rd@a.example/v1?token=t0ken", m="MINE")
    for secret in (KEY, "passw0rd", "t0ken", "someone"):
        assert secret not in repr(endpoint)
        assert secret not in str(endpoint)

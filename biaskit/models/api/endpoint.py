"""Which server a spec names, which key goes there, what may be shown (docs/apis.md#keys-and-hosts)."""

from __future__ import annotations

import base64
import ipaddress
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from biaskit.common.provenance import digest
from biaskit.errors import ModelError, UsageError

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
MOST_FOREIGN = 500  # characters of a server's message that are shown or stored
MOST_READ = 20_000  # characters of it that are looked at, white space included


@dataclass(frozen=True, slots=True)
class Host:
    """One base URL, taken apart: what is shown, and what only the wire sees."""

    shown: str  # scheme, host, port and path
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Host name in lower case, as prices and keys are found by."""
        return (urlsplit(self.shown).hostname or "").lower()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind a base URL, and the key for it."""

    model: str
    host: Host
    name: str  # `--endpoint-name`, or the base URL
    label: str
    spec: str = field(repr=False)
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None

    @property
    def fingerprint(self) -> str:
        """What stands for the model in a key: its name and the endpoint's, never a port that changes."""
        return digest({"api": self.model, "endpoint": self.name})

    def clean(self, text: object) -> str:
        """Foreign text as it may be shown and stored: no key, no control characters, 500 characters."""
        return clean(text, self.secrets)

    def silence(self, record: logging.LogRecord) -> bool:
        """A filter of other libraries' logs: what they say of a request, without its secrets."""
        if isinstance(record.args, tuple):
            record.args = tuple(hide_urls(str(a)) if "://" in str(a) else a for a in record.args)
        record.msg, record.args = unsaid(record.getMessage(), self.secrets), ()
        return True

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must not appear anywhere, in every spelling that a server may repeat."""
        login, queries = self.host.login, [value for _, value in self.host.query]
        logins = [*login, basic(login)] if login else []
        known = [self.key, os.environ.get(OPENAI_KEY, "").strip(), *logins, *queries]
        spelled = {text for value in known if value for text in (value, quote(value, safe=""))}
        return tuple(sorted((text for text in spelled if len(text) > 3), key=len, reverse=True))


def open_endpoint(
    spec: str, *, label: str, keys: Mapping[str, str], endpoint_name: str | None, asked: bool = True
) -> Endpoint:
    """The endpoint of `openai:NAME` or `api:NAME@URL`, its key read from the environment.

    `keys`: label → variable; none is read where nobody is `asked`. Raises `UsageError` for a spec that is
    none, `ModelError` where a key is missing or would travel in the clear.
    """
    model, host = model_and_host(spec)
    variable = keys.get(label, OPENAI_KEY if spec.startswith("openai:") else None)
    endpoint = Endpoint(model, host, endpoint_name or host.shown, label, spec, None, variable)
    if not asked:
        return endpoint
    is_open = host.shown.startswith("http:") and not is_loopback(host.name)
    if is_open and (variable is not None or host.login or host.query):
        raise ModelError(
            f"{label}: a key is not sent to {host.shown} over plain http. Use https, or a tunnel to"
            " this machine (http://127.0.0.1:PORT/v1)."
        )
    if variable is None:
        return endpoint
    value = os.environ.get(variable, "").strip()
    if not value and _may_be_a_key(variable):
        raise ModelError(
            f"{label}: the environment has no variable of the name that --api-key-env gives. It takes"
            " the name of a variable, never a key."
        )
    if not value:
        raise ModelError(
            f"{label}: the environment has no {variable}. Set it to your key: export {variable}=..."
        )
    if not value.isprintable() or not value.isascii():
        raise ModelError(f"{label}: {variable} holds characters that no key has. Set it again.")
    return replace(endpoint, key=value)


def model_and_host(spec: str) -> tuple[str, Host]:
    """Model name and host of a spec; no key is read. Raises `UsageError` for a spec that is none."""
    kind, _, rest = spec.partition(":")
    if kind == "openai":
        model, url = rest.strip(), OPENAI_URL
    else:  # an @ inside a URL's login is no separator
        parts = re.fullmatch(r"(.*?)@([a-zA-Z][a-zA-Z+.-]*://.*|[^@]*)", rest, flags=re.DOTALL)
        model, url = (parts[1].strip(), parts[2].strip()) if parts else ("", "")
    if not model or not url:
        raise UsageError(
            f"{hide_urls(spec)!r} is no API model: write openai:NAME, or api:NAME@http://HOST:PORT/v1."
        )
    if re.search(r",\s*[a-zA-Z]+://", url):
        raise UsageError(
            f"{hide_urls(spec)!r} names several addresses: put the servers behind one (docs/apis.md#several)."
        )
    return model, _host(url, spec)


def _host(url: str, spec: str) -> Host:
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
        # A password with a / of its own ends the host too early: then an @ stands behind it.
        clear = parts.username is None or "@" not in url.rpartition(parts.netloc)[2]
    except ValueError:  # whose message may hold half a password: "Port could not be cast ... as 'pa'"
        clear = False
    if not clear:
        raise UsageError(
            f"{hide_urls(spec)!r}: the address cannot be read. In a user name or password write @ as %40,"
            " : as %3A, / as %2F, ? as %3F and # as %23."
        )
    if parts.scheme not in ("http", "https") or not name:
        raise UsageError(
            f"{hide_urls(spec)!r}: a base URL begins with http:// or https:// and a host, such as"
            " http://127.0.0.1:8000/v1."
        )
    bare = f"[{name}]" if ":" in name else name
    place = bare if port is None else f"{bare}:{port}"
    shown = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
    given = parts.username is not None or parts.password is not None
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if given else None
    return Host(shown, tuple(parse_qsl(parts.query, keep_blank_values=True)), login)


def _may_be_a_key(variable: str) -> bool:
    """Whether what was given as a variable's name could be a key itself (hf_..., gsk_...): then unsaid."""
    return re.fullmatch(r"[A-Z_][A-Z0-9_]{0,39}", variable) is None


def basic(login: tuple[str, str]) -> str:
    """User and password as the header of HTTP's basic authentication holds them."""
    return base64.b64encode(":".join(login).encode()).decode("ascii")


def is_loopback(name: str) -> bool:
    """Whether a host name is this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


_URL = re.compile(r"([a-z][a-z0-9+.-]*://)(.*?)(?=,\s*[a-z][a-z0-9+.-]*://|$)", re.IGNORECASE | re.DOTALL)


def hide_urls(text: str) -> str:
    """A spec, or a word of a command, without user, password and query of its URLs: to be stored and shown.

    A URL ends with the text, or where the next one of the spec begins.
    """
    if "://" not in text:  # an address without its scheme is refused, and the refusal shows it
        return re.sub(r"^((?:[^=@]*=)?api:[^@]*@).*@", r"\1", text, flags=re.DOTALL)
    return _URL.sub(lambda url: url[1] + _without_login(url[2]), text)


def _without_login(rest: str) -> str:
    """What follows a URL's `://`, without login, query and fragment."""
    place = re.match(r"[^/?#]*", rest)
    assert place is not None
    if "@" in rest and re.search("[:@]", place[0]):
        # A password may itself hold a / ? # or @: everything up to the last @ is taken for login.
        return _without_login(rest[rest.rindex("@") + 1 :])
    return re.split(r"[?#]", rest, maxsplit=1)[0]


def clean(text: object, secrets: tuple[str, ...] = ()) -> str:
    """Foreign text: known secrets replaced, control characters removed, 500 characters at most."""
    shown = unsaid(str(text), secrets)[:MOST_READ]  # in this order: a cut could leave half a key
    shown = "".join(c if c.isprintable() else " " for c in shown)
    shown = re.sub(r" {2,}", " ", shown).strip()
    return shown if len(shown) <= MOST_FOREIGN else f"{shown[: MOST_FOREIGN - 1]}…"


def unsaid(text: str, secrets: tuple[str, ...]) -> str:
    """A text with every secret replaced; the longest come first, since one may hold another."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text


def keys_of(texts: tuple[str, ...]) -> Mapping[str, str] | str | None:
    """`--api-key-env`, repeated: one bare variable, or LABEL=VARIABLE for each model."""
    if not texts:
        return None
    named = [text.partition("=") for text in texts]
    bare = [label for label, equals, _ in named if not equals]
    for label, equals, variable in named:
        if not label or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable if equals else label):
            # It may be a key itself, typed in the wrong place: it is not repeated.
            raise UsageError(
                "--api-key-env takes the name of an environment variable, never a key: give VARIABLE, or"
                " LABEL=VARIABLE."
            )
    if bare and len(texts) > 1:
        raise UsageError("--api-key-env: several keys need a label each, as in LABEL=VARIABLE.")
    return bare[0] if bare else {label: variable for label, _, variable in named}


def keys_by_label(keys: Mapping[str, str] | str | None, specs: Mapping[str, str]) -> Mapping[str, str]:
    """Label → variable for the models of a call, so that a key can only go where it was meant to.

    A bare variable is for `api:` models, which must then be on one host; where there are none it replaces
    OPENAI_API_KEY. Raises `UsageError` where it could reach a wrong host, or a label is unknown.
    """
    if keys is None:
        return {}
    if not isinstance(keys, str):
        if unknown := sorted(set(keys) - set(specs)):
            shown = ", ".join(hide_urls(label) for label in specs)
            raise UsageError(f"--api-key-env names {unknown[0]!r}; the models are {shown}.")
        return keys
    api = [label for label, spec in specs.items() if spec.startswith("api:")]
    hosts = {model_and_host(specs[label])[1].name for label in api}
    if len(hosts) > 1:
        shown = "VARIABLE" if _may_be_a_key(keys) else keys
        raise UsageError(
            f"--api-key-env {shown}: the models are on different hosts ({', '.join(sorted(hosts))}); say"
            f" which gets it: --api-key-env LABEL={shown}."
        )
    return dict.fromkeys(api or [label for label, spec in specs.items() if spec.startswith("openai:")], keys)

"""Which server a spec names, which key goes there, what of both may be shown (DESIGN §3, Keys and hosts)."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from biaskit.errors import ModelError, UsageError
from biaskit.provenance import digest

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
MOST_FOREIGN = 500
"""Characters of a server's message that are shown or stored."""


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

    @property
    def loopback(self) -> bool:
        """Whether it is this machine."""
        return is_loopback(self.name)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model behind one or several base URLs (replicas), and the key for them."""

    model: str
    hosts: tuple[Host, ...]
    name: str  # `--endpoint-name`, or the first base URL
    key: str | None = field(default=None, repr=False)
    key_variable: str | None = None

    @property
    def fingerprint(self) -> str:
        """What stands for the model in a key: its name and the endpoint's, never a port that changes."""
        return digest({"api": self.model, "endpoint": self.name})

    def clean(self, text: object) -> str:
        """Foreign text as it may be shown and stored: no key, no control characters, 500 characters."""
        return clean(text, self.secrets)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must not appear anywhere."""
        logins = [login for host in self.hosts if host.login for login in host.login[1:]]
        queries = [value for host in self.hosts for _, value in host.query]
        known = [self.key, os.environ.get(OPENAI_KEY), *logins, *queries]
        return tuple(sorted({value for value in known if value and len(value) > 3}, key=len, reverse=True))


def open_endpoint(spec: str, *, label: str, keys: Mapping[str, str], endpoint_name: str | None) -> Endpoint:
    """The endpoint of `openai:NAME` or `api:NAME@URL[,URL2]`, its key read from the environment.

    `keys`: label → variable. Raises `UsageError` for a spec that is
    none, `ModelError` where a key is missing or would travel in the clear.
    """
    model, urls = _taken_apart(spec)
    hosts = tuple(_host(url, spec) for url in urls)
    kind = spec.partition(":")[0]
    variable = keys.get(label)
    if kind == "openai" and variable is None:
        variable = OPENAI_KEY
    key = _read_key(variable, label, hosts)
    return Endpoint(model.strip(), hosts, endpoint_name or hosts[0].shown, key, variable)


def _taken_apart(spec: str) -> tuple[str, list[str]]:
    """Model name and base URLs of a spec; an @ or a comma inside a URL's login is no separator."""
    kind, _, rest = spec.partition(":")
    if kind == "openai":
        model, urls = rest.strip(), [OPENAI_URL]
    else:
        found = re.fullmatch(r"(.*?)@([a-zA-Z][a-zA-Z+.-]*://.*|[^@]*)", rest, flags=re.DOTALL)
        model = found[1].strip() if found else ""
        urls = re.split(r",(?=\s*[a-zA-Z]+://)", found[2]) if found else []
    if not model or not any(url.strip() for url in urls):
        raise UsageError(
            f"{hide_urls(spec)!r} is no API model: write openai:NAME, or api:NAME@http://HOST:PORT/v1."
        )
    return model, [url.strip() for url in urls]


def _host(url: str, spec: str) -> Host:
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{hide_urls(spec)!r}: the address cannot be read ({error}).") from None
    if parts.scheme not in ("http", "https") or not name:
        raise UsageError(
            f"{hide_urls(spec)!r}: a base URL begins with http:// or https:// and a host, such as"
            " http://127.0.0.1:8000/v1."
        )
    bare = f"[{name}]" if ":" in name else name
    place = bare if port is None else f"{bare}:{port}"
    shown = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
    login = None
    if parts.username is not None or parts.password is not None:
        login = (unquote(parts.username or ""), unquote(parts.password or ""))
    return Host(shown, tuple(parse_qsl(parts.query, keep_blank_values=True)), login)


def _read_key(variable: str | None, label: str, hosts: tuple[Host, ...]) -> str | None:
    open_hosts = [host for host in hosts if host.shown.startswith("http:") and not host.loopback]
    secret = any(host.login or host.query for host in open_hosts)
    if open_hosts and (variable is not None or secret):
        raise ModelError(
            f"{label}: a key is not sent to {open_hosts[0].shown} over plain http. Use https, or a tunnel to"
            " this machine (http://127.0.0.1:PORT/v1)."
        )
    if variable is None:
        return None
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ModelError(
            f"{label}: the environment has no {variable}. Set it to your key: export {variable}=..."
        )
    if not value.isprintable() or not value.isascii():
        raise ModelError(f"{label}: {variable} holds characters that no key has. Set it again.")
    return value


def is_loopback(name: str) -> bool:
    """Whether a host name is this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


_URL = re.compile(r"(https?://)([^\s@/,'\"?#]*@)?([^\s,'\"?#]*)(\?[^\s,'\"]*)?", re.IGNORECASE)


def hide_urls(text: str) -> str:
    """A text without user, password and query of the URLs in it: as it may be stored and shown."""
    # A password may itself hold an @: everything up to the last one before the path is login.
    text = re.sub(r"(https?://)[^\s/,'\"?#]*@", r"\1", text, flags=re.IGNORECASE)
    return _URL.sub(lambda found: found[1] + found[3], text)


def clean(text: object, secrets: tuple[str, ...] = ()) -> str:
    """Foreign text: known secrets replaced, control characters removed, 500 characters at most."""
    shown = str(text)
    for secret in secrets:
        shown = shown.replace(secret, "[key]")
    shown = "".join(c if c.isprintable() else " " for c in shown)
    shown = re.sub(r" {2,}", " ", shown).strip()
    return shown if len(shown) <= MOST_FOREIGN else f"{shown[: MOST_FOREIGN - 1]}…"


def keys_of(texts: tuple[str, ...]) -> Mapping[str, str] | str | None:
    """`--api-key-env`, repeated: one bare variable, or LABEL=VARIABLE for each model."""
    if not texts:
        return None
    named = [text.partition("=") for text in texts]
    bare = [label for label, equals, _ in named if not equals]
    for text in (variable if equals else label for label, equals, variable in named):
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
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
    hosts = {_host(url, specs[label]).name for label in api for url in _taken_apart(specs[label])[1]}
    if len(hosts) > 1:
        raise UsageError(
            f"--api-key-env {keys}: the models are on different hosts ({', '.join(sorted(hosts))}); say"
            f" which gets it: --api-key-env LABEL={keys}."
        )
    return dict.fromkeys(api or [label for label, spec in specs.items() if spec.startswith("openai:")], keys)

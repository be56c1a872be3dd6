"""The server behind a spec, its key, and what of both may be shown (howto/api#keys-and-hosts)."""

from __future__ import annotations

import base64
import ipaddress
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, quote, unquote, urlsplit, urlunsplit

from biaskit.common.provenance import digest
from biaskit.errors import ModelError, UsageError

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
MOST_FOREIGN = 500  # characters of a server's message that are shown or stored
MOST_READ = 20_000  # characters of it that are read, white space included
_SECRET = re.compile(r"KEY|TOKEN(?!IZER)|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Host:
    """One base URL, split into the part that is shown and the parts that are only sent."""

    shown: str  # scheme, host, port and path
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Host name in lower case, by which prices and keys are found."""
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
    told: Mapping[str, object] = field(default_factory=dict)  # what else decides how a model answers

    @property
    def fingerprint(self) -> str:
        """Digest for keys of the model's and the endpoint's name; with `--endpoint-name` no port is in it."""
        return digest({"api": self.model, "endpoint": self.name, **self.told})

    def clean(self, text: object) -> str:
        """Clean foreign text to be shown and stored: no key, no control characters, 500 characters."""
        return clean(text, self.secrets)

    def silence(self, record: logging.LogRecord) -> bool:
        """Filter other libraries' logs: redact the secrets of a request."""
        if isinstance(record.args, tuple):
            record.args = tuple(hide_urls(str(a)) if "://" in str(a) else a for a in record.args)
        record.msg, record.args = redacted(record.getMessage(), self.secrets), ()
        return True

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never appear, in every spelling that a server may repeat; the longest first."""
        login, queries = self.host.login, [value for _, value in self.host.query]
        logins = [*login, basic(login)] if login else []
        values = [self.key, os.environ.get(OPENAI_KEY, "").strip(), *logins, *queries]
        spelled = {*filter(None, values)}
        spelled |= {quote(value, safe="") for value in spelled}
        return tuple(sorted((text for text in spelled if len(text) > 3), key=len, reverse=True))


def open_endpoint(
    spec: str, *, label: str, keys: Mapping[str, str], endpoint_name: str | None, with_key: bool = True
) -> Endpoint:
    """Return the endpoint of `openai:NAME` or `api:NAME@URL`, its key read from the environment.

    `keys`: label → variable; `with_key=False` reads none. Raises `UsageError` for an invalid spec,
    `ModelError` if a key is missing or would be sent in clear text.
    """
    model, host = model_and_host(spec)
    variable = keys.get(label, OPENAI_KEY if spec.startswith("openai:") else None)
    endpoint = Endpoint(model, host, endpoint_name or host.shown, label, spec)
    if not with_key:
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
            f"{label}: the environment has no variable of the name given by --api-key-env. It takes"
            " the name of a variable, never a key."
        )
    if not value:
        raise ModelError(
            f"{label}: the environment has no {variable}. Set it to your key: export {variable}=..."
        )
    if not value.isprintable() or not value.isascii():
        raise ModelError(f"{label}: {variable} has characters that no key has. Set it again.")
    return replace(endpoint, key=value)


def model_and_host(spec: str) -> tuple[str, Host]:
    """Return model name and host of a spec; no key is read. Raises `UsageError` for an invalid spec."""
    kind, _, name = spec.partition(":")
    if kind == "openai":
        model, url = name.strip(), OPENAI_URL
    else:  # an @ inside a URL's login is no separator
        parts = re.fullmatch(r"(.*?)@([a-zA-Z][a-zA-Z+.-]*://.*|[^@]*)", name, flags=re.DOTALL)
        model, url = (parts[1].strip(), parts[2].strip()) if parts else ("", "")
    if not model or not url:
        raise UsageError(
            f"{hide_urls(spec)!r} is not an API model: write openai:NAME, or api:NAME@http://HOST:PORT/v1."
        )
    if re.search(r",\s*[a-zA-Z]+://", url):
        raise UsageError(
            f"{hide_urls(spec)!r} names several addresses: put the servers behind one (howto/api#several)."
        )
    return model, _host(url, spec)


def _host(url: str, spec: str) -> Host:
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
        # A password that holds a / ends the host too early: then an @ follows later.
        is_clear = parts.username is None or "@" not in url.rpartition(parts.netloc)[2]
    except ValueError:  # its message may hold half a password: "Port could not be cast ... as 'pa'"
        is_clear = False
    if not is_clear:
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
    has_login = parts.username is not None or parts.password is not None
    login = (unquote(parts.username or ""), unquote(parts.password or "")) if has_login else None
    return Host(shown, tuple(parse_qsl(parts.query, keep_blank_values=True)), login)


def _may_be_a_key(variable: str) -> bool:
    """Return whether a variable's name could be a key itself (hf_..., gsk_...), which is never shown."""
    return re.fullmatch(r"[A-Z_][A-Z0-9_]{0,39}", variable) is None


def basic(login: tuple[str, str]) -> str:
    """Encode user and password for the header of HTTP's basic authentication."""
    return base64.b64encode(":".join(login).encode()).decode("ascii")


def is_loopback(name: str) -> bool:
    """Return whether a host name is this machine."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


_URL = re.compile(r"([a-z][a-z0-9+.-]*://)(.*?)(?=,\s*[a-z][a-z0-9+.-]*://|$)", re.IGNORECASE | re.DOTALL)


def hide_urls(text: str) -> str:
    """Remove user, password and query from the URLs of a spec or a word of a command, to show it."""
    if "://" not in text:  # an address without a scheme is refused by a message that shows it
        return re.sub(r"^((?:[^=@]*=)?api:[^@]*@).*@", r"\1", text, flags=re.DOTALL)
    return _URL.sub(lambda url: url[1] + _without_login(url[2]), text)


def _without_login(address: str) -> str:
    """Remove login, query and fragment from the part of a URL after `://`."""
    place = re.split("[/?#]", address, maxsplit=1)[0]
    if "@" in address and re.search("[:@]", place):
        # A password may itself hold a / ? # or @: everything up to the last @ is taken for login.
        return _without_login(address[address.rindex("@") + 1 :])
    return re.split("[?#]", address, maxsplit=1)[0]


def clean(text: object, secrets: tuple[str, ...] = ()) -> str:
    """Clean foreign text: replace known secrets, remove control characters, cut at 500 characters."""
    shown = redacted(str(text), secrets)[:MOST_READ]  # in this order: a cut could leave half a key
    shown = "".join(c if c.isprintable() else " " for c in shown)
    shown = re.sub(r" {2,}", " ", shown).strip()
    return shown if len(shown) <= MOST_FOREIGN else f"{shown[: MOST_FOREIGN - 1]}…"


def reason_of(error: BaseException) -> str:
    """Return the message of a foreign error on one line, without any secret of the environment."""
    secrets = [value for name, value in os.environ.items() if _SECRET.search(name) and len(value) > 3]
    return clean(error, tuple(sorted(secrets, key=len, reverse=True))) or type(error).__name__


def redacted(text: str, secrets: tuple[str, ...]) -> str:
    """Replace every secret in a text; the longest come first, since one may contain another."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text


def keys_by_label(texts: Sequence[str], specs: Mapping[str, str]) -> Mapping[str, str]:
    """Parse the values of `--api-key-env`, VARIABLE or LABEL=VARIABLE: label → variable of a call's models.

    A bare variable is for `api:` models, which must then be on one host; without any it replaces
    OPENAI_API_KEY. Raises `UsageError` if a key could reach a wrong host, or a label is unknown.
    """
    keys: dict[str, str] = {}
    bare: list[str] = []
    for text in texts:
        label, equals, variable = text.partition("=")
        if not label or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable if equals else label):
            # It may be a key itself, typed in the wrong place: never repeat it.
            raise UsageError(
                "--api-key-env takes the name of an environment variable, never a key: give VARIABLE, or"
                " LABEL=VARIABLE."
            )
        if equals:
            keys[label] = variable
        else:
            bare.append(text)
    if not bare:
        if unknown := sorted(set(keys) - set(specs)):
            shown = ", ".join(map(hide_urls, specs))
            raise UsageError(f"--api-key-env names {unknown[0]!r}; the models are {shown}.")
        return keys
    if len(texts) > 1:
        raise UsageError("--api-key-env: several keys need a label each, as in LABEL=VARIABLE.")
    [variable] = bare
    api = [label for label, spec in specs.items() if spec.startswith("api:")]
    hosts = {model_and_host(specs[label])[1].name for label in api}
    if len(hosts) > 1:
        shown = "VARIABLE" if _may_be_a_key(variable) else variable
        raise UsageError(
            f"--api-key-env {shown}: the models are on different hosts ({', '.join(sorted(hosts))}); say"
            f" which gets it: --api-key-env LABEL={shown}."
        )
    openai = [label for label, spec in specs.items() if spec.startswith("openai:")]
    return dict.fromkeys(api or openai, variable)

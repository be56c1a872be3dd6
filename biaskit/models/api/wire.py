"""One request and its answer: the openai client, its limits, and every way an answer can be none."""

from __future__ import annotations

import asyncio
import email.utils
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import httpx2

from biaskit.models.api.apart import Kind, turn_at
from biaskit.models.api.endpoint import Endpoint, Host, basic, is_loopback
from biaskit.models.api.trouble import BadAnswer, Denied, RateLimited, Refused, Unavailable

if TYPE_CHECKING:
    import ssl

    from openai import AsyncOpenAI

CONNECT_S = 5.0
READ_S = 30.0
PER_TOKEN_S = 1.0
"""A request's own time limit: READ_S and PER_TOKEN_S for every new token it may make."""
MOST_BYTES = 64 * 2**20  # no answer of a language model is longer; an endless one would fill the memory
MOST_TOKENS = 10**7  # no request has more; a bill that says so is none
HEADERS = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "connection": "keep-alive",
    "user-agent": "biaskit",
}
"""Headers that leave this machine, beside the host, the body's length and kind, and the key."""
LOGGERS = (
    *("openai._base_client", "httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2"),
    *("httpcore2.proxy", "httpcore2.socks"),
)
"""They say what is asked and answered, down to addresses with queries and headers of answers."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request before it is sent."""

    path: str  # below the base URL; with a leading slash, of the server itself
    body: Mapping[str, Any] | None
    prompt_tokens_most: int = 0
    new_tokens_most: int = 0  # of all its choices
    choices: int = 1  # which a server makes side by side
    draws_anew: bool = False  # what is drawn is not the answer, and may be why that cannot be used
    kind: Kind = ""  # some servers mix up two kinds that are out at once

    def after(self, n_bad: int) -> Call:
        """The request to put after so many answers that could not be used.

        Some servers list nothing where the drawn token ends the text, and would draw it again and again
        with the same seed, in every later start too; without one they draw another.
        """
        if not n_bad or not self.draws_anew or self.body is None:
            return self
        return replace(self, body={name: value for name, value in self.body.items() if name != "seed"})

    @property
    def seconds(self) -> float:
        """Its time limit."""
        return READ_S + PER_TOKEN_S * self.new_tokens_most / self.choices

    @property
    def most_bytes(self) -> int:
        """More than an honest answer has: a hundred endless ones at once must not fill the memory."""
        if self.body is None:
            return MOST_BYTES
        return min(MOST_BYTES, 12 * 2**20 + 4096 * (self.prompt_tokens_most + self.new_tokens_most))


def inside(data: Any, *steps: str | int) -> Any:
    """What stands in nested JSON below these names and places; None where one of them is missing."""
    for step in steps:
        if isinstance(step, str) and isinstance(data, Mapping):
            data = data.get(step)
        elif isinstance(step, int) and isinstance(data, list) and step < len(data):
            data = data[step]
        else:
            return None
    return data


@dataclass(frozen=True, slots=True)
class Reply:
    """A JSON object that a server answered with status 200."""

    data: Mapping[str, Any]

    def tokens(self, name: str) -> int | None:
        """A count of the usage block; a missing, negative or impossible one is None."""
        value = inside(self.data, "usage", name)
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if 0 <= value <= MOST_TOKENS else None

    @property
    def used(self) -> tuple[int, int] | None:
        """Prompt and new tokens as billed; None where the server does not say."""
        prompt, new = self.tokens("prompt_tokens"), self.tokens("completion_tokens")
        # A bill of nothing for a prompt that was read is no bill.
        return None if not prompt or new is None else (prompt, new)


class Lane:
    """One base URL with its connections; must live and die in one event loop."""

    def __init__(self, endpoint: Endpoint, host: Host) -> None:
        self.endpoint = endpoint
        self.host = host
        self.in_flight = 0
        self.rests_until = 0.0  # monotonic: a replica that just failed is asked later
        self.failures = 0  # in a row
        self._certificates = httpx2.create_ssl_context()
        for name in LOGGERS:
            logging.getLogger(name).addFilter(endpoint.silence)
        self._free: list[AsyncOpenAI] = []  # the last one used is the first to be used again
        self._clients: list[AsyncOpenAI] = []

    async def ask(self, call: Call, seconds: float | None = None) -> Reply:
        """Send one request once. Raises a `Trouble`, never anything of the client's."""
        limit = seconds or call.seconds
        self.in_flight += 1
        try:
            # The read limit is for each piece; a body that trickles for ever meets this one.
            async with turn_at(self.host.shown, call.kind), asyncio.timeout(limit + CONNECT_S):
                status, headers, content = await self._send(call, limit)
        except TimeoutError:
            raise Unavailable(f"no answer within {limit:g} s", billed=True, overload=True) from None
        finally:
            self.in_flight -= 1
        return read_reply(self.endpoint, status, headers, content)

    async def _send(self, call: Call, limit: float) -> tuple[int, Mapping[str, str], bytes]:
        import openai

        options: Any = {"timeout": httpx2.Timeout(limit, connect=CONNECT_S, pool=None)}
        url, kind = self._url(call.path), httpx2.Response
        _MOST_ALLOWED.set(call.most_bytes)
        client = self._take()
        try:
            if call.body is None:
                response = await client.get(url, cast_to=kind, options=options)
            else:
                response = await client.post(url, cast_to=kind, body=call.body, options=options)
        except openai.APIStatusError as error:
            return error.status_code, error.response.headers, error.response.content
        except openai.OpenAIError as error:
            raise self._lost(error.__cause__ or error, limit) from None
        except Exception as error:  # a transport has dozens of its own: ValueError, ...
            raise self._lost(error, limit) from None
        finally:
            self._free.append(client)
        return response.status_code, response.headers, response.content

    def _take(self) -> AsyncOpenAI:
        """A client that no request is using.

        Each has one connection: a pool looks at all of its connections before and after every request, and
        asks the system about every idle one (measured at 100: a third of the client's work).
        """
        if self._free:
            return self._free.pop()
        self._clients.append(_client(self.endpoint, self.host, self._certificates))
        return self._clients[-1]

    def _url(self, path: str) -> str:
        if not path.startswith("/"):
            return f"/{path}"
        parts = urlsplit(self.host.shown)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.removesuffix("/v1") + path, "", ""))

    def _lost(self, error: BaseException, limit: float) -> Unavailable:
        """What an exception of the transport says of a request: sent or not, too slow or broken off."""
        if isinstance(error, httpx2.TimeoutException):
            connecting = isinstance(error, httpx2.ConnectTimeout)
            what = f"no connection within {CONNECT_S:g} s" if connecting else f"no answer within {limit:g} s"
            return Unavailable(what, billed=not connecting, overload=True, reached=not connecting)
        unsent = isinstance(error, httpx2.ConnectError)
        said = self.endpoint.clean(error) or "the connection broke off"
        return Unavailable(said, billed=not unsent, reached=not unsent)

    async def close(self) -> None:
        """Give the connections back."""
        for client in self._clients:
            await client.close()
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(self.endpoint.silence)


def _client(endpoint: Endpoint, host: Host, certificates: ssl.SSLContext) -> AsyncOpenAI:
    """A client that takes nothing from the environment but proxies and certificates."""
    import openai

    async def dress(request: httpx2.Request) -> None:
        # Made anew: the client adds its platform, and whatever the environment names, even another host.
        request.headers = httpx2.Headers({"host": request.url.netloc.decode("ascii"), **HEADERS})
        if request.content:
            request.headers["content-length"] = str(len(request.content))
            request.headers["content-type"] = "application/json"
        if endpoint.key:
            request.headers["authorization"] = f"Bearer {endpoint.key}"
        elif host.login:
            request.headers["authorization"] = f"Basic {basic(host.login)}"

    async def guard(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() not in ("identity", ""):
            raise httpx2.DecodingError("the answer is compressed though that was not asked for")
        response.stream = _Capped(response.stream, _MOST_ALLOWED.get())

    # Never aiohttp's, though the package uses that where it is installed: after a malformed answer its
    # connections hung, and a query went out spelt otherwise.
    http = openai.DefaultAsyncHttpxClient(
        verify=certificates,
        trust_env=not is_loopback(host.name),  # no proxy reaches this machine, and it would read the key
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        event_hooks={"request": [dress], "response": [guard]},
    )
    # An empty key is a key: with None the client would take OPENAI_API_KEY to any base URL.
    client = openai.AsyncOpenAI(
        api_key="",
        admin_api_key="",
        base_url=host.shown,
        default_query=dict(host.query),
        max_retries=0,
        http_client=http,
        _enforce_credentials=False,
    )
    # It asks `uname` otherwise, a process that is given the whole environment, for headers that are not sent.
    client._platform = "Unknown"
    return client


_MOST_ALLOWED: ContextVar[int] = ContextVar("most_bytes", default=MOST_BYTES)
"""Of the request that this task sends."""


class _Capped(httpx2.AsyncByteStream):
    """A body that ends with an error once it is longer than any answer."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > self._most:
                raise httpx2.ReadError(f"the answer is longer than {self._most >> 20} MB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def read_reply(endpoint: Endpoint, status: int, headers: Mapping[str, str], content: bytes) -> Reply:
    """What a server sent, as an answer. Raises a `Trouble` for everything that is none."""
    data = _object(content)
    if status == 200 and data is not None and not data.get("error"):
        # Who answered is stored with every row: it is foreign text like a message.
        names = {name: data.get(name) for name in ("model", "system_fingerprint")}
        known = {name: endpoint.clean(said) for name, said in names.items() if isinstance(said, str)}
        return Reply({**data, **known})
    message, kind, parameter = _error_of(endpoint, data, content)
    said = f"{status}: {message}" if message else f"status {status}"
    if status == 200 and data is not None:
        raise BadAnswer(f"an error in place of an answer: {message}")
    if status == 200:
        # Half an answer is another one each time, and reasons are counted; a page says whose it is.
        page = "no JSON object" if message.startswith(("[", "{")) else f"not JSON: {message[:80]}"
        raise BadAnswer(page if message else "an empty answer")
    if 300 <= status < 400:
        target = endpoint.clean(headers.get("location", "nowhere"))
        raise Refused(f"the server redirects to {target}, which is not followed", status=status)
    if status == 403 and "logprobs" in message:
        raise Refused(said, parameter="logprobs", status=status)  # of the model, not of the key
    if status in (401, 402, 403) or kind == "insufficient_quota":
        raise Denied(said)
    if status == 429:
        raise RateLimited(said, retry_after(headers))
    if status == 500 and "validation erro" in message:  # LiteLLM blackens what follows an "error:"
        raise Refused(said, parameter=parameter, status=status)  # llama-cpp-python's way of saying 422
    if status >= 500 or status in (408, 409, 425):
        # A gateway may lose the answer of a request that was carried out.
        raise Unavailable(said, billed=status in (408, 502, 504))
    raise Refused(said, parameter=parameter, status=status)


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _error_of(
    endpoint: Endpoint, data: Mapping[str, Any] | None, content: bytes
) -> tuple[str, str | None, str | None]:
    """Message, code and refused parameter of an error, in any of the shapes that servers write."""
    if data is None:
        return endpoint.clean(content.decode("utf-8", "replace")), None, None
    error = data.get("error", data)
    if not isinstance(error, Mapping):
        return endpoint.clean(error), None, None
    message = error.get("message") or error.get("detail") or error.get("type") or ""
    code, parameter = error.get("code") or error.get("type"), error.get("param")
    return (
        endpoint.clean(message if isinstance(message, str) else json.dumps(message)),
        code if isinstance(code, str) else None,
        parameter if isinstance(parameter, str) else None,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, as a number or a date; None for the past and for nonsense."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError, OSError):
            return None
    return seconds if 0 < seconds < float("inf") else None

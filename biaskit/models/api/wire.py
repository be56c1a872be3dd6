"""One request and its answer: the openai client, a size cap, and errors in place of an answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import httpx2

from biaskit.common.inputs import parse_json
from biaskit.models.api.endpoint import Endpoint, basic, is_loopback
from biaskit.models.api.trouble import BadAnswer, Blocked, Denied, RateLimited, Refused, Unavailable

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Json = Mapping[str, Any]
AS_IDS = "return_tokens_as_token_ids"  # vLLM's switch: lists name tokens as token_id:NN
COMPLETIONS, CHATS = "completions", "chat/completions"  # paths below the base URL
CONNECT_S = 5.0
READ_S = 30.0
PER_TOKEN_S = 1.0  # time limit of a request: READ_S, plus PER_TOKEN_S for every new token it may make
MOST_BYTES = 32 * 2**20
"""No answer of a language model is longer; an endless one would fill the memory."""
MOST_TOKENS = 10**7  # no request has more; a bill that says so is none
HEADERS = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "connection": "keep-alive",
    "user-agent": "biaskit",
}
"""Headers that leave this machine, beside the host, the body's length and kind, and the key."""
_BLOCK = re.compile(
    r"(?i)(\w+[_.])?(filter(ed)?|safety|prohibited_content|content_policy_violation|blocklist|recitation|spii)"
    r"|(content_)?moderation(_blocked)?|content_?filter\w*|sensitive(_\w+)?|(error_)?toxic\w*|flagged|blocked"
    r"|guardrail_intervened|model_armor|ResponsibleAIPolicyViolation|data_?inspection_?failed|1301"
)
"""Whole finish reasons and codes of errors that name a content filter; no two servers agree."""
_SAYS_BLOCK = re.compile(
    "(?i)content management policy|blocked by (the |a |our )?content filter|content exists risk"
    r"|violat(es|ed|ing) (our )?(usage|content|moderation|guardrail)( safety)? (guidelines|polic[iy])"
    r"|SAFETY_CHECK_TYPE|input was flagged|prompt was flagged|prompt injection"
    "|requires moderation|rejected (by|as a result of) (our|the) safety system"
)
"""The same in the words of an error whose code says nothing: whole phrases, since errors echo prompts."""
LOGGERS = (
    *("openai._base_client", "httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2"),
    *("httpcore2.proxy", "httpcore2.socks"),
)
"""Loggers that write out requests and answers, with the queries of addresses and headers of answers."""


def list_fields(path: str, k: int) -> dict[str, float]:
    """Return the fields of a request that ask for the `k` most probable tokens."""
    return {"logprobs": True, "top_logprobs": k} if path == CHATS else {"logprobs": k}


@dataclass(frozen=True, slots=True)
class Call:
    """One request before it is sent."""

    path: str  # below the base URL; with a leading slash, of the server itself
    body: Json | None
    prompt_tokens_most: int = 0
    new_tokens_most: int = 0  # of all its choices
    choices: int = 1  # which a server makes side by side
    anew: Json | None = None  # settings of a repetition where another sample may be usable
    name: str = ""  # key of the row that comes of it, as in a batch file

    def drawn_anew(self) -> Call:
        """Return the request to send after an unusable answer.

        Some servers list no tokens if the drawn one ends the text. With the same seed they would draw it
        every time; without, and at a higher temperature where that leaves the list as it is, they seldom do.
        """
        if self.anew is None or self.body is None:
            return self
        seedless = {name: value for name, value in self.body.items() if name != "seed"}
        return replace(self, body={**seedless, **self.anew})

    @property
    def seconds(self) -> float:
        """Time limit of the request."""
        return READ_S + PER_TOKEN_S * self.new_tokens_most / self.choices


def inside(data: Any, *steps: str | int) -> Any:
    """Return the value in nested JSON below these names and places; None if one of them is missing."""
    for step in steps:
        if isinstance(step, str) and isinstance(data, Mapping):
            data = data.get(step)
        elif isinstance(step, int) and isinstance(data, list) and step < len(data):
            data = data[step]
        else:
            return None
    return data


def names_block(name: object) -> bool:
    """Return whether a finish reason or the code of an error names a content filter."""
    return isinstance(name, str) and _BLOCK.fullmatch(name.partition(":")[0].strip()) is not None


def answer_json(content: str | bytes) -> Any:
    """Parse JSON, an object with two numbers of one name as a list of entries. Raises only `ValueError`."""

    def made(pairs: list[tuple[str, Any]]) -> Any:
        named = dict(pairs)
        is_list = all(x is None or (type(x) in (int, float) and not x > 0) for x in named.values())
        if len(named) == len(pairs) or not is_list:
            return named
        return [{"token": name, "logprob": value} for name, value in pairs]

    # Servers in Python write NaN and -Infinity, which are no JSON, in lists of tokens.
    return parse_json(content, object_pairs_hook=made, parse_constant=float)


@dataclass(frozen=True, slots=True)
class Reply:
    """A JSON object that a server answered with status 200."""

    data: Json

    def tokens(self, name: str = "prompt_tokens") -> int | None:
        """Return a count of the usage block; None if it is missing, negative or impossible."""
        value = inside(self.data, "usage", name)
        return value if type(value) is int and 0 <= value <= MOST_TOKENS else None

    @property
    def used(self) -> tuple[int, int] | None:
        """Prompt and new tokens as billed; None if the server does not say."""
        prompt, new = self.tokens(), self.tokens("completion_tokens")
        # A bill of nothing for a prompt that was read is no bill.
        return None if not prompt or new is None else (prompt, new)


class Client:
    """The openai client of one endpoint; must live and die in one event loop."""

    def __init__(self, endpoint: Endpoint, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """Open a client; `transport` replaces the network in a test."""
        self.endpoint = endpoint
        self._openai = _client(endpoint, transport)
        for name in LOGGERS:
            logging.getLogger(name).addFilter(endpoint.silence)

    async def send(self, call: Call, seconds: float | None = None) -> Reply:
        """Send one request once. Raises a `Trouble`, never an error of the client."""
        import openai

        limit = seconds or call.seconds
        options: Any = {"timeout": httpx2.Timeout(limit, connect=CONNECT_S, pool=None)}
        url, kind, client = self._url(call.path), httpx2.Response, self._openai
        try:
            # The read limit is for each piece; a body that trickles for ever meets this one.
            async with asyncio.timeout(limit + CONNECT_S):
                if call.body is None:
                    response = await client.get(url, cast_to=kind, options=options)
                else:
                    response = await client.post(url, cast_to=kind, body=call.body, options=options)
        except TimeoutError:
            raise Unavailable(f"no answer within {limit:g} s", billed=True, overload=True) from None
        except openai.APIStatusError as error:
            response = error.response
        except openai.OpenAIError as error:
            raise self._lost(error.__cause__ or error, limit) from None
        except Exception as error:  # a transport raises dozens of kinds: ValueError, ...
            raise self._lost(error, limit) from None
        wait = client._parse_retry_after_header(response.headers)
        where = response.headers.get("location", "nowhere")
        return read_reply(self.endpoint, response.status_code, response.content, wait=wait, where=where)

    def _url(self, path: str) -> str:
        if not path.startswith("/"):
            return f"/{path}"
        parts = urlsplit(self.endpoint.host.shown)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.removesuffix("/v1") + path, "", ""))

    def _lost(self, error: BaseException, limit: float) -> Unavailable:
        """Say what an exception of the transport means: the request was unsent, too slow or broken off."""
        if isinstance(error, httpx2.TimeoutException):
            connecting = isinstance(error, httpx2.ConnectTimeout)
            what = f"no connection within {CONNECT_S:g} s" if connecting else f"no answer within {limit:g} s"
            return Unavailable(what, billed=not connecting, overload=True, reached=not connecting)
        unsent = isinstance(error, httpx2.ConnectError)
        reason = self.endpoint.clean(error) or "the connection broke off"
        return Unavailable(reason, billed=not unsent, reached=not unsent)

    async def close(self) -> None:
        """Close the connections."""
        await self._openai.close()
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(self.endpoint.silence)


def _client(endpoint: Endpoint, transport: httpx2.AsyncBaseTransport | None) -> AsyncOpenAI:
    """Make a client that takes nothing from the environment but proxies and certificates."""
    import openai

    async def dress(request: httpx2.Request) -> None:
        # Made anew: the client adds its platform, and whatever the environment names, even another host.
        request.headers = httpx2.Headers({"host": request.url.netloc.decode("ascii"), **HEADERS})
        if request.content:
            request.headers["content-length"] = str(len(request.content))
            request.headers["content-type"] = "application/json"
        if endpoint.key:
            request.headers["authorization"] = f"Bearer {endpoint.key}"
        elif endpoint.host.login:
            request.headers["authorization"] = f"Basic {basic(endpoint.host.login)}"

    async def guard(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() not in ("identity", ""):
            raise httpx2.DecodingError("the answer is compressed, which was not requested")
        response.stream = _Capped(response.stream)

    # Never aiohttp's, though the package uses that where it is installed: after a malformed answer its
    # connections hung, and a query went out spelt otherwise.
    http = openai.DefaultAsyncHttpxClient(
        transport=transport,
        # No proxy reaches this machine, and it would read the key.
        trust_env=not is_loopback(endpoint.host.name),
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        event_hooks={"request": [dress], "response": [guard]},
    )
    # An empty key is a key: with None the client would take OPENAI_API_KEY to any base URL.
    client = openai.AsyncOpenAI(
        api_key="",
        admin_api_key="",
        base_url=endpoint.host.shown,
        default_query=dict(endpoint.host.query),
        max_retries=0,
        http_client=http,
        _enforce_credentials=False,
    )
    # Else it runs `uname`, which gets the whole environment, for headers that are never sent.
    client._platform = "Unknown"
    return client


class _Capped(httpx2.AsyncByteStream):
    """A body that ends with an error once it is longer than any answer."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MOST_BYTES:
                raise httpx2.ReadError(f"the answer is longer than {MOST_BYTES >> 20} MB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def read_reply(
    endpoint: Endpoint, status: int, content: bytes, *, wait: float | None = None, where: str = ""
) -> Reply:
    """Read a server's response as an answer. Raises a `Trouble` for anything else.

    `wait`: seconds that the server asks to wait; `where`: address that it redirects to.
    """
    data = None
    with contextlib.suppress(ValueError):
        parsed = answer_json(content)
        data = parsed if isinstance(parsed, dict) else None
    if status == 200 and data is not None and not data.get("error"):
        # The server's name is stored with every row: it is foreign text like a message.
        names = {name: data.get(name) for name in ("model", "provider", "system_fingerprint")}
        cleaned = {name: endpoint.clean(text) for name, text in names.items() if isinstance(text, str)}
        return Reply({**data, **cleaned})
    told = _of_provider(data)
    message, kind, parameter = _error_of(endpoint, told, content)
    reason = f"{status}: {message}" if message else f"status {status}"
    if told is not None and _is_block(status, told.get("error", told), message):
        raise Blocked(f"blocked by the server's content filter ({reason})", status=status)
    if status == 200 and data is not None:
        raise BadAnswer(f"an error in place of an answer: {message}")
    if status == 200:
        # Reasons are counted, so half an answer is not quoted: it differs each time. A page says whose it is.
        page = "no JSON object" if message.startswith(("[", "{")) else f"not JSON: {message[:80]}"
        raise BadAnswer(page if message else "an empty answer")
    if 300 <= status < 400:
        raise Refused(
            f"the server redirects to {endpoint.clean(where)}, which is not followed", status=status
        )
    if status == 403 and "logprobs" in message:
        raise Refused(reason, parameter="logprobs", status=status)  # of the model, not of the key
    if status in (401, 402, 403) or kind == "insufficient_quota":
        raise Denied(reason)
    if status == 429:
        raise RateLimited(reason, wait if wait is not None and 0 < wait < float("inf") else None)
    if status == 500 and "validation erro" in message:  # LiteLLM blackens what follows an "error:"
        raise Refused(reason, parameter=parameter, status=status)  # llama-cpp-python's way of saying 422
    if status >= 500 or status in (408, 409, 425):
        # A gateway may lose the answer of a request that was carried out.
        raise Unavailable(reason, billed=status in (408, 502, 504))
    raise Refused(reason, parameter=parameter, status=status)


def _of_provider(data: Json | None) -> Json | None:
    """Return the error that an aggregator wraps in its own, which says "Provider returned error"."""
    raw = inside(data, "error", "metadata", "raw")
    with contextlib.suppress(ValueError, TypeError):
        raw = answer_json(raw)
    raw = {"message": raw} if raw and isinstance(raw, str) else raw
    return raw if isinstance(raw, Mapping) else data


def _is_block(status: int, error: object, message: str) -> bool:
    """Return whether an error says that a content filter took the prompt or the answer."""
    paths = (("code",), ("type",), ("innererror", "code"), ("provider_specific_fields", "innererror", "code"))
    codes = [inside(error, *path) for path in paths]
    flagged = inside(error, "metadata", "flagged_input") is not None  # OpenRouter
    named = flagged or any(map(names_block, codes)) or _SAYS_BLOCK.search(message) is not None
    return status in (200, 400, 403, 422, 451) and named


def _error_of(endpoint: Endpoint, data: Json | None, content: bytes) -> tuple[str, str | None, str | None]:
    """Return message, code and refused parameter of an error, in any shape that servers write."""
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

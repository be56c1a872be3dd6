# ruff: noqa: E501
"""The test server, with answers that are not HTTP: lengths, chunks, status lines and headers gone wrong.

    with RawServer(MODEL, malformed=lambda number: malformation(seed=number)) as server: ...

`malformation(seed)` is one of `KINDS`, with numbers of its own: what is drawn is a matter of the seed alone.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fakes.api_server import ApiServer, Received, _Connection

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
Random = random.Random


@dataclass(frozen=True)
class Malformation:
    """Bytes in place of an answer, and what comes after them."""

    kind: str
    told: bytes
    then: str = "close"  # close (FIN), reset (RST), hang, or keep (the connection, for the next request)
    again: bytes = b""  # sent for ever, `pause` seconds apart
    pause: float = 0.0

    @property
    def in_time(self) -> bool:
        """Whether the transport can know at once that this is no answer."""
        return self.then != "hang" and not self.again


Made = bytes | Malformation


def _told(*headers: bytes, body: bytes) -> bytes:
    return OK + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


def _length(text: Callable[[Random, int], bytes], then: str = "close") -> Callable[[Random, bytes], Made]:
    """A Content-Length that is no length, before an honest body."""

    def make(draw: Random, body: bytes) -> Made:
        told = _told(b"content-length: " + text(draw, len(body)), body=body)
        return Malformation("", told, then)

    return make


def _doubled(draw: Random, body: bytes) -> Made:
    other = str(len(body) + draw.choice([-1, 1, 7])).encode()
    lengths = [str(len(body)).encode(), other]
    draw.shuffle(lengths)
    return _told(*(b"content-length: " + length for length in lengths), body=body)


def _both(draw: Random, body: bytes) -> Made:
    return _told(b"content-length: 5", b"transfer-encoding: chunked", body=b"zz\r\n" + body)


def _chunked(size: Callable[[Random, int], bytes], then: str = "close") -> Callable[[Random, bytes], Made]:
    def make(draw: Random, body: bytes) -> Made:
        pieces = size(draw, len(body)) + b"\r\n" + body + b"\r\n0\r\n\r\n"
        return Malformation("", _told(b"transfer-encoding: chunked", body=pieces), then)

    return make


def _status_line(draw: Random, body: bytes) -> Made:
    whole = b"HTTP/1.1 200 OK"
    line = draw.choice(
        [
            *(whole[: draw.randrange(1, 12)], b"HTTP/9.9 200 OK", b"HTTP/1.1 2x0 OK", b"HTTP/1.1 99999 OK"),
            *(b"HTTP/1.1", b"HTTP/1.1 -200 OK", b"200 OK", b"HTTP/1.1 200 OK\x00\x01", b"\xff\xfe\xfd", b""),
        ]
    )
    return Malformation("", line + b"\r\ncontent-length: 2\r\n\r\n{}")


def _cut(draw: Random, body: bytes) -> Made:
    whole = _told(b"content-length: %d" % len(body), body=body)
    return Malformation("", whole[: draw.randrange(1, len(whole) - 1)], draw.choice(["close", "reset"]))


def _long_header(draw: Random, body: bytes) -> Made:
    # Some transports read up to 100 KB of headers: then the body is none, so that no answer is right.
    size = draw.choice([9_000, 70_000, 2_000_000])
    return _told(b"x-noise: " + b"n" * size, b"content-length: 3", body=b"no.")


def _many_headers(draw: Random, body: bytes) -> Made:
    lines = [b"x-%d: %d" % (i, i) for i in range(draw.choice([500, 5_000, 50_000]))]
    return _told(*lines, b"content-length: 3", body=b"no.")


def _header_bytes(draw: Random, body: bytes) -> Made:
    line = draw.choice(
        [
            *(b"x-name: \xff\xfe\xc3\x28", b"na\xffme: x", b"no colon here", b": no name", b"x : space"),
            *(b" folded: at the start", b"x-nul: a\x00b", b"x-bare: a\rb", b"\x00: x", b"x-escape: \x1b[2J"),
        ]
    )
    return _told(line, b"content-length: 3", body=b"no.")


def _gzip_bomb(draw: Random, body: bytes) -> Made:
    bomb = gzip.compress(b" " * 50_000_000, 9)
    name = draw.choice([b"gzip", b"deflate", b"gzip, gzip", b"br", b"x-nonsense", b"GZip "])
    if b"deflate" in name:
        bomb = zlib.compress(b" " * 50_000_000, 9)
    return _told(b"content-encoding: " + name, b"content-length: %d" % len(bomb), body=bomb)


def _no_body(draw: Random, body: bytes) -> Made:
    status = draw.choice([b"204 No Content", b"304 Not Modified", b"206 Partial Content", b"226 IM Used"])
    return Malformation("", b"HTTP/1.1 " + status + b"\r\ncontent-length: 3\r\n\r\nno.")


def _redirect(draw: Random, body: bytes) -> Made:
    status = draw.choice([301, 302, 303, 307, 308, 300, 399])
    place = draw.choice(
        [
            *(b"http://127.0.0.1:1/v1", b"http://[", b"//", b"\xff\xfe", b"x" * 5000, b"file:///etc/passwd"),
            *(b"http://127.0.0.1:99999999/", b"javascript:alert(1)", b""),
        ]
    )
    return Malformation(
        "", b"HTTP/1.1 %d Moved\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % (status, place)
    )


def _switching(draw: Random, body: bytes) -> Made:
    status = draw.choice([b"101 Switching Protocols", b"100 Continue", b"103 Early Hints"])
    return Malformation("", b"HTTP/1.1 " + status + b"\r\nupgrade: h2c\r\n\r\n")


def _other_protocol(draw: Random, body: bytes) -> Made:
    return Malformation(
        "",
        draw.choice(
            [
                *(b"SSH-2.0-OpenSSH_9.6\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"{}\n"),
                *(b"220 mail ESMTP\r\n", b"\x00" * 4096, draw.randbytes(3000), b"RTSP/1.0 200 OK\r\n\r\n"),
            ]
        ),
    )


def _odd_json(draw: Random, body: bytes) -> Made:
    odd = draw.choice(
        [
            *(
                b"[" * 300_000,
                b'{"a":' * 100_000,
                b'{"usage": 1' + b"0" * 100_000 + b"}",
                b"\xff\xfe{}",
                b"1",
            ),
            *(b'{"choices": ' + b"9" * 5_000 + b"}", b"NaN", b'{"choices": "\\ud800"}', b"\xef\xbb\xbf{}"),
            *(b'"' + b"x" * 3_000_000 + b'"', b'{"error": {"message": ' + b"[" * 50 + b"]" * 50 + b"}}"),
            *(b"\xef\xbb\xbf\xef\xbb\xbf", b'{"model": {"a": 1}, "choices": 7}', b"{} {}", b"{}\x00" * 3),
        ]
    )
    status = draw.choice([200, 200, 500, 418])
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n" % (status, len(odd)) + odd


def _endless(told: bytes, again: bytes, pause: float = 0.0) -> Callable[[Random, bytes], Made]:
    return lambda draw, body: Malformation("", told, "hang", again, pause)


KINDS: dict[str, Callable[[Random, bytes], Made]] = {
    "length-negative": _length(lambda draw, n: b"-%d" % draw.choice([1, n, 10**9])),
    "length-words": _length(lambda draw, n: draw.choice([b"many", b"", b"1e3", b"0x10", b"%d bytes" % n])),
    "length-list": _length(lambda draw, n: b"%d, %d" % (n, n + 1)),
    "length-signs": _length(lambda draw, n: draw.choice([b"+", b"--"]) + b"%d" % n),
    "length-digits": _length(lambda draw, n: b"\xd9\xa3\xd9\xa3"),  # of another script
    "length-5000-digits": _length(lambda draw, n: b"9" * 5_000, "hang"),
    "length-too-long": _length(lambda draw, n: b"%d" % (n + draw.choice([1, 1000, 10**15]))),
    "length-doubled": _doubled,
    "length-and-chunked": _both,
    "chunk-size-words": _chunked(lambda draw, n: draw.choice([b"zz", b"", b"-1", b"0x10", b"1_0", b"+5"])),
    "chunk-size-wrong": _chunked(lambda draw, n: b"%x" % max(1, n + draw.choice([-9, -1, 1, 9]))),
    "chunk-size-huge": _chunked(lambda draw, n: b"f" * draw.choice([15, 17, 25, 200])),
    "chunk-size-endless": _endless(_told(b"transfer-encoding: chunked", body=b""), b"0" * 65536),
    "status-line": _status_line,
    "cut-anywhere": _cut,
    "header-long": _long_header,
    "headers-many": _many_headers,
    "header-bytes": _header_bytes,
    "headers-endless": _endless(OK, b"x-noise: noise\r\n" * 1000),
    "headers-trickle": _endless(OK, b"x: y\r\n", 0.01),
    "hints-endless": _endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
    "body-endless": _endless(OK + b"\r\n", b" " * 65536),
    "body-trickle": _endless(OK + b"\r\n{", b" ", 0.01),
    "chunks-endless": _endless(_told(b"transfer-encoding: chunked", body=b""), b"4000\r\n%s\r\n" % (b" " * 0x4000)),
    "trailers-endless": _endless(_told(b"transfer-encoding: chunked", body=b"0\r\n"), b"x: y\r\n" * 1000),
    "silence": lambda draw, body: Malformation("", draw.choice([b"", b"HTTP/1.1 200", OK, OK + b"\r\n{"]), "hang"),
    "reset": lambda draw, body: Malformation("", draw.choice([b"", b"HTTP", OK, OK + b"\r\n{"]), "reset"),
    "closed": lambda draw, body: Malformation("", draw.choice([b"", b"\r\n", b"\r\n" * 5000])),
    "compressed": _gzip_bomb,
    "no-body": _no_body,
    "redirect": _redirect,
    "switching": _switching,
    "other-protocol": _other_protocol,
    "odd-json": _odd_json,
    "two-answers": lambda draw, body: 2 * _told(b"content-length: 3", body=b"no."),
    "transfer-coding": lambda draw, body: _told(b"transfer-encoding: " + draw.choice([b"gzip", b"x"]), body=b"no."),
}  # fmt: skip


def malformation(seed: int, kind: str | None = None, body: bytes = b'{"choices": []}') -> Malformation:
    """One answer that is none."""
    draw = Random(seed)
    kind = kind or draw.choice(sorted(KINDS))
    made = KINDS[kind](draw, body)
    if isinstance(made, bytes):
        return Malformation(kind, made, draw.choice(["close", "reset", "keep"]))
    return Malformation(kind, made.told, made.then, made.again, made.pause)


class RawServer(ApiServer):
    """The test server, where `malformed(number, generates)` gives bytes in place of an answer, or None."""

    def __init__(
        self, *given: Any, malformed: Callable[[int, bool], Malformation | None], **more: Any
    ) -> None:
        super().__init__(*given, **more)
        self._malformed = malformed

    async def _answer(self, connection: _Connection, received: Received) -> None:
        made = self._malformed(received.number, received.generates)
        if made is None:
            await super()._answer(connection, received)
            return
        received.outcome = made.kind
        connection.write(made.told)
        while made.again and not connection.gone.is_set():
            connection.write(made.again)
            await connection.writable.wait()
            await asyncio.sleep(made.pause)
        if made.then == "hang":
            await connection.gone.wait()
        elif made.then == "reset":
            await asyncio.sleep(0.002)
            connection.abort()
        elif made.then == "close":
            connection.close()

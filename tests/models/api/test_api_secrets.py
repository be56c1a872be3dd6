"""No key is written or shown anywhere, and none reaches a host it was not meant for.

See howto/api#keys-and-hosts, issue 5.

Commands run in this process with the logging of every library at DEBUG; what they print, log, raise and
write is searched for every spelling of every secret. What only a process of its own can show stands last.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import signal
import socket
import ssl
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fakes.api_server import LIES, ApiServer, Behaviour, Fault, Faults, Lie, Received
from fakes.personas_runs import write_vectors
from fakes.run_files import environment
from needs import missing

import biaskit
import biaskit.cli
from biaskit.models.api import wire
from biaskit.models.api.scorer import ApiScorer

KEY = "sk-proj-Zq7PpLw93xTT/runk+9"
OTHER = "sk-admin-5tYhGb72/Kq+0"
PASSWORD = "pa55:w@rd/x"
TOKEN = "t0k3n/of+query"
SECRETS = (KEY, OTHER, PASSWORD, TOKEN)
CELLS = ("--jobs", "nurse,plumber", "--bias-type", "implicit", "--templates", "1-2", "--estimator", "top-k")
ONE_TEXT = ("--occupations", "nurse", "--per-gender", "1", "--max-samples", "1", "--max-new-tokens", "6")
CHEAP = ("--set", "clusters=false", "--set", "permutations=19", "--set", "srb_seeds=1")


# --- what is searched, and for what -------------------------------------------------------------------------


def spellings(secret: str) -> set[str]:
    """A secret as it may be repeated: plain, in a URL, in JSON, in base64 alone or as a login."""
    logins = [f"{secret}", f"user:{secret}", f"{secret}:"]
    return {
        *(secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1]),
        *(secret.replace("/", "\\/"), repr(secret)[1:-1]),
        *(base64.b64encode(login.encode()).decode().rstrip("=") for login in logins),
    }


def found_in(text: str, secrets: tuple[str, ...] = SECRETS) -> list[str]:
    """Which secrets a text holds, in whatever spelling."""
    return [secret for secret in secrets for one in spellings(secret) if one in text]


@dataclass(frozen=True)
class Said:
    """What a command left behind: everything it printed, logged, raised and wrote."""

    code: int | None  # None: it crashed
    out: str
    err: str
    logged: str
    raised: str
    files: Mapping[str, str]

    def leaks(self, secrets: tuple[str, ...] = SECRETS) -> list[tuple[str, str]]:
        places = {"stdout": self.out, "stderr": self.err, "log": self.logged, "exception": self.raised}
        places |= {f"file {name}": f"{name}\n{text}" for name, text in self.files.items()}
        return [(place, secret) for place, text in places.items() for secret in found_in(text, secrets)]


Cli = Callable[..., Said]


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """An exception with all that it hides."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]


@pytest.fixture(autouse=True)
def folder(
    quick_folder: Path, no_environment: None, no_patience: None, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A folder of its own, a clean environment with a key in it, and no patience."""
    monkeypatch.setenv("MINE", KEY)
    return quick_folder


@pytest.fixture
def cli(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Iterator[Cli]:
    """The console script in this process, with `--verbose` and every library's log at DEBUG."""
    handler = signal.getsignal(signal.SIGTERM)
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2", "asyncio", "aiohttp"):
        caplog.set_level(logging.DEBUG, name)

    def call(*arguments: Any, verbose: bool = True) -> Said:
        command = ["biaskit", *map(str, arguments), "--out", "run", *(["--verbose"] if verbose else [])]
        monkeypatch.setattr(sys, "argv", command)
        capsys.readouterr()
        caplog.clear()
        code: int | None = None
        raised = ""
        try:
            biaskit.cli.main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        except Exception as error:
            whole = traceback.TracebackException.from_exception(error, capture_locals=True)
            raised = "".join(whole.format())
            raised += "\n".join(f"{one!r} {one} {one.args!r} {vars(one)!r}" for one in chain_of(error))
        streams = capsys.readouterr()
        files = {
            str(path.relative_to(folder)): path.read_bytes().decode("utf-8", "replace")
            for path in folder.rglob("*")
            if path.is_file()
        }
        logged = "\n".join(f"{record.name} {record.getMessage()}" for record in caplog.records)
        return Said(code, streams.out, streams.err, logged, raised, files)

    yield call
    signal.signal(signal.SIGTERM, handler)


class QueryServer(ApiServer):
    """The test server behind a base URL with a query, which it keeps apart."""

    queries: list[str]

    def _note(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Received:
        path, _, query = path.partition("?")
        self.__dict__.setdefault("queries", []).append(query)
        return super()._note(method, path, headers, content)


def api(server: ApiServer) -> str:
    return f"toy=api:toy@{server.url}"


def keyed(server: ApiServer, *arguments: str) -> tuple[str, ...]:
    return ("probe", api(server), *CELLS, "--api-key-env", "MINE", *arguments)


def n_rows(said: Said, name: str = "run/probe.jsonl") -> int:
    return said.files.get(name, "").count("\n")


def authorizations(server: ApiServer) -> set[str | None]:
    return {received.headers.get("authorization") for received in server.requests}


# --- a key and its server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind_name", ["probe", "personas"])
def test_a_key_goes_to_its_server_and_nowhere_else(cli: Cli, folder: Path, kind_name: str) -> None:
    with ApiServer(behaviour=Behaviour(requires_key=KEY)) as server:
        vectors = f"vectors={write_vectors(folder.parent / 'vectors.txt')}"
        asked = CELLS if kind_name == "probe" else (*ONE_TEXT, *CHEAP, "--set", vectors)
        said = cli(kind_name, api(server), *asked, "--api-key-env", "MINE")
    assert said.code == 0, said.err
    assert [] == said.leaks()
    assert {f"Bearer {KEY}"} == authorizations(server)
    # The search works: what is not secret is found in all the places.
    assert ["toy=api"] == found_in(said.files["run/manifest.json"], ("toy=api",))
    assert "HTTP Request: POST" in said.logged
    assert "send_request_headers.started" in said.logged
    assert "run/usage.json" in said.files
    assert "run/tables/tests.csv" in said.files
    assert "--api-key-env MINE" in said.files["run/manifest.json"]


def test_an_answer_that_repeats_the_key_ends_the_run_without_it(cli: Cli) -> None:
    with ApiServer(behaviour=Behaviour(requires_key="another")) as server:
        said = cli(*keyed(server))
    assert said.code == 1
    assert [] == said.leaks()
    assert "401: Incorrect API key provided: [key]." in said.err
    assert server.calls == 0 or {401} == set(server.answered)
    assert len(server.requests) == 1, "a refused key is not sent again"


def test_a_key_that_expires_in_mid_run_keeps_the_rows(cli: Cli) -> None:
    with ApiServer() as server:
        assert cli(*keyed(server, "--max-cost", "1"), "--price", "1,1", "--jobs", "nurse").code == 0
        server.faults = Faults(expired_from=server.number + 3)
        said = cli(*keyed(server, "--jobs", "nurse,1-4"))
    assert said.code == 3
    assert [] == said.leaks()
    assert "401: Incorrect API key provided: [key]." in said.err
    assert 2 < n_rows(said) < 10
    assert "run/tables/probe_prompts.csv" in said.files


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["stall", "reset", "500-rude", "200-html"])
def test_what_goes_wrong_on_the_way_shows_no_key(
    cli: Cli, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "READ_S", 0.1)
    monkeypatch.setattr(wire, "PER_TOKEN_S", 0.0)
    with ApiServer() as server:
        assert cli(*keyed(server, "--jobs", "nurse")).code == 0
        server.faults = Faults(1.0, [kind])
        said = cli(*keyed(server))
        server.faults = None
        again = cli(*keyed(server))
    assert said.code == 3
    assert [] == said.leaks()
    assert (2, 4) == (n_rows(said), n_rows(again))
    for line in said.err.splitlines():
        assert len(line) < 700
        assert line.isprintable()
    if kind == "500-rude":  # the key at both ends of 6,000 characters with control characters
        assert "500: [key] [2J the model crashed traceback" in said.err
    assert again.code == 0


def test_a_model_name_that_repeats_the_key_is_not_stored(cli: Cli) -> None:
    behaviour = Behaviour(answers_as=f"toy {KEY}", system_fingerprint=f"fp {KEY}", served_models=["toy", KEY])
    with ApiServer(behaviour=behaviour) as server:
        said = cli(*keyed(server))
    assert said.code == 0, said.err
    assert [] == said.leaks()
    assert '"answered_by":"toy [key] | fp [key]"' in said.files["run/probe.jsonl"]


def test_a_part_of_an_answer_that_repeats_the_key_is_not_shown(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands in the reason why a cell failed: on the terminal, and among the notes of the tables."""

    def lie(payload: dict[str, Any], telling: Any) -> dict[str, Any]:
        return {**payload, "choices": [{**one, "finish_reason": KEY} for one in payload["choices"]]}

    monkeypatch.setitem(LIES, "key", lie)
    with ApiServer() as server:
        assert cli(*keyed(server, "--jobs", "nurse")).code == 0
        server.script(lambda number, path, body: Lie("key") if body else None)
        said = cli(*keyed(server))
    assert said.code == 3
    assert "the finish reason '[key]'" in said.err
    assert [] == said.leaks()


def broken(*arguments: Any, **more: Any) -> Any:
    secret = "an internal error"
    raise ZeroDivisionError(secret)


@pytest.mark.parametrize("where", ["reading", "sending"])
def test_a_crash_with_its_whole_traceback_shows_no_key(
    cli: Cli, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ApiServer() as server:
        assert cli(*keyed(server, "--jobs", "nurse")).code == 0
        if where == "reading":
            monkeypatch.setattr(ApiScorer, "_scored", broken)
        else:
            monkeypatch.setattr(wire.Client, "_url", broken)
        said = cli(*keyed(server))
    assert [] == said.leaks()
    if where == "sending":  # whatever a transport raises is a failed answer
        assert said.code == 3
    else:
        assert said.code is None
        assert "ZeroDivisionError: an internal error" in said.raised
        assert "in _listed" in said.raised  # the frames of the loop's thread, with their variables
    assert n_rows(said) == 2


# --- hosts ------------------------------------------------------------------------------------------------


def test_a_redirect_is_not_followed(cli: Cli) -> None:
    with ApiServer() as server, ApiServer() as elsewhere:
        target = f"{elsewhere.url}/completions?key={quote(KEY, safe='')}"
        server.faults = Faults(1.0, ["redirect"], location=target)
        said = cli(*keyed(server))
        assert elsewhere.requests == []
        assert said.code == 1
        assert [] == said.leaks()
        assert "redirects to http://127.0.0.1" in said.err
        assert "which is not followed" in said.err
        server.faults = Faults(1.0, ["redirect"], location=target, everywhere=True)
        assert cli(*keyed(server)).code == 1
        assert elsewhere.requests == []


def test_login_and_query_of_a_base_url_reach_the_server_alone(cli: Cli) -> None:
    with QueryServer() as server:
        place = server.url.removeprefix("http://")
        url = f"http://user:{quote(PASSWORD, safe='')}@{place}?token={quote(TOKEN, safe='')}&v=2024"
        said = cli("probe", f"api:toy@{url}", *CELLS)
        server.script(lambda number, path, body: Fault("500-rude") if body else None)
        refused = cli("probe", f"api:toy@{url}", *CELLS, "--jobs", "pilot")
    assert said.code == 0, said.err
    login = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
    assert {f"Basic {login}"} == authorizations(server)
    assert {f"token={quote(TOKEN, safe='')}&v=2024"} == set(server.queries)
    assert [] == said.leaks()
    assert [] == refused.leaks()
    assert refused.code == 3
    for text in (
        said.out,
        said.err,
        said.files["run/manifest.json"],
        said.files["run/tables/probe_prompts.csv"],
    ):
        assert f"api:toy@{server.url}" in text
        assert "user:" not in text
        assert "token=" not in text


def test_an_address_that_cannot_be_read_shows_no_password(cli: Cli) -> None:
    said = cli("probe", f"api:toy@https://user:{PASSWORD}@a.example/v1", *CELLS)
    assert said.code == 2
    assert "a.example/v1" in said.err
    assert [] == said.leaks(("pa55", "w@rd"))


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Nothing may be looked up or connected to; what was tried."""
    tried: list[object] = []

    def refuse(*arguments: Any, **more: Any) -> Any:
        tried.append(arguments)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tried


A, B = "https://a.example/v1", "https://b.example/v1"
REFUSED = {
    "plain http": (1, "over plain http", "api:m@http://a.example/v1", "--api-key-env", "MINE"),
    "two addresses": (2, "several addresses", f"x=api:m@{A},{B}", "--api-key-env", "x=MINE"),
    "a login in plain http": (1, "plain http", f"api:m@http://user:{quote(PASSWORD, safe='')}@a.example/v1"),
    "two hosts": (2, "different hosts", f"x=api:m@{A}", f"y=api:m@{B}", "--api-key-env", "MINE"),
    "an unknown label": (2, "names 'y'", f"x=api:m@{A}", "--api-key-env", "y=MINE"),
    "a key": (2, "never a key", f"api:m@{A}", "--api-key-env", KEY),
    "a key with a label": (2, "never a key", f"x=api:m@{A}", "--api-key-env", f"x={KEY}"),
    "a key like a name": (1, "never a key", f"api:m@{A}", "--api-key-env", "hf_AbCdEfGh1234"),
    "no such variable": (1, "no UNSET_VARIABLE", f"api:m@{A}", "--api-key-env", "UNSET_VARIABLE"),
    "no key for openai": (1, "no OPENAI_API_KEY", "openai:gpt-4o-mini"),
    "a cap without a price": (2, "Give --price IN,OUT", f"api:m@{A}", "--max-cost", "1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_sent_or_written(
    cli: Cli, no_network: list[object], folder: Path, case: str
) -> None:
    code, why, *arguments = REFUSED[case]
    said = cli("probe", *arguments, *CELLS)
    assert code == said.code
    assert why in said.err
    assert [] == no_network
    assert [] == list(folder.iterdir())
    assert [] == said.leaks((*SECRETS, "hf_AbCdEfGh1234"))


def without(said: Said, name: str) -> Said:
    """The same without a file that holds secrets because its owner wrote them there."""
    return replace(said, files={file: text for file, text in said.files.items() if file != name})


def test_a_study_file_that_names_a_host_needs_a_yes(cli: Cli, folder: Path) -> None:
    shipped = (Path(biaskit.__file__).parents[1] / "configs" / "occugender.toml").read_text("utf-8")
    with QueryServer() as server:
        url = server.url.replace("//", f"//user:{quote(PASSWORD, safe='')}@") + f"?k={quote(TOKEN, safe='')}"
        (folder / "own.toml").write_text(f'{shipped}\n[models]\nmine = "api:toy@{url}"\n', "utf-8")
        said = cli("probe", "--study", "./own.toml", *CELLS, "--api-key-env", "MINE")
        assert said.code == 2
        assert f"mine = api:toy@{server.url}." in said.err
        assert "--yes" in said.err
        assert server.requests == []
        assert [] == without(said, "own.toml").leaks()
        said = cli("probe", "--study", "./own.toml", *CELLS, "--yes")
        assert said.code == 0, said.err
        assert server.requests
        assert [] == without(said, "own.toml").leaks()


# --- what the environment holds ---------------------------------------------------------------------------

ENVIRONMENT = {
    "OPENAI_API_KEY": OTHER,
    "OPENAI_ADMIN_KEY": OTHER,
    "OPENAI_ORG_ID": "org-of-mine",
    "OPENAI_PROJECT_ID": "project-of-mine",
    "OPENAI_WEBHOOK_SECRET": OTHER,
    "OPENAI_CUSTOM_HEADERS": (
        f"Authorization: Bearer {OTHER}\nX-Mine: {OTHER}\nHost: elsewhere.example\nUser-Agent: me\n"
        "Content-Type: text/plain\nCookie: a=b"
    ),
    "OPENAI_LOG": "debug",
}


@pytest.mark.parametrize("keyed_too", [False, True])
def test_no_variable_of_the_client_reaches_a_server_or_moves_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, keyed_too: bool
) -> None:
    with ApiServer() as server, ApiServer() as elsewhere:
        for name, value in {**ENVIRONMENT, "OPENAI_BASE_URL": elsewhere.url}.items():
            monkeypatch.setenv(name, value)
        said = cli("probe", api(server), *CELLS, *(("--api-key-env", "MINE") if keyed_too else ()))
        assert said.code == 0, said.err
        assert elsewhere.requests == []
        assert [] == said.leaks()
        own = {"host", "accept", "accept-encoding", "connection", "user-agent", "content-length"}
        own |= {"content-type"} | ({"authorization"} if keyed_too else set())
        for received in server.requests:
            assert own >= set(received.headers)
            assert "elsewhere" not in received.headers["host"]
            assert [] == found_in(json.dumps(received.headers), (OTHER,))
            assert "of-mine" not in json.dumps(received.headers)
        assert {f"Bearer {KEY}"} if keyed_too else {None} == authorizations(server)


def test_a_proxy_never_sees_what_is_for_this_machine(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not reach it, and plain http would show it the key."""
    with ApiServer() as server, Proxy() as proxy:
        for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert cli(*keyed(server)).code == 0
    assert [] == proxy.asked


# --- openai: through a proxy, with certificates of our own --------------------------------------------------


@dataclass
class Proxy:
    """A proxy that notes what it is asked, and takes every tunnel to a server of ours, in TLS."""

    certificate: Path | None = None
    target: int = 0
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Proxy:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(timeout=10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(1)
            self.asked.append(head.decode("latin-1"))
            if self.certificate is None:
                client.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
                return
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            with (
                context.wrap_socket(client, server_side=True) as tunnel,
                socket.create_connection(("127.0.0.1", self.target)) as server,
            ):
                back = threading.Thread(target=pump, args=(server, tunnel), daemon=True)
                back.start()
                pump(tunnel, server)
                back.join(timeout=10)


def pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on everything until one side ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for api.openai.com that nobody else trusts, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    command = [
        *["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ]
    command += ["-days", "2", "-subj", "/CN=api.openai.com", "-addext", "subjectAltName=DNS:api.openai.com"]
    try:
        made = subprocess.run(
            [*command, "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, capture_output=True, check=False
        )
    except FileNotFoundError:
        missing("no openssl: install it (apt install openssl)")
    assert made.returncode == 0, made.stderr
    both = folder / "both.pem"
    both.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return both


def test_openai_sends_its_key_to_openai_alone(
    cli: Cli, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside an `api:` model with a key of its own, whatever the environment says; both have rows."""
    gpt = Behaviour(model_name="gpt-toy", requires_key=OTHER)
    with (
        ApiServer(behaviour=gpt) as openai,
        ApiServer(behaviour=Behaviour(requires_key=KEY)) as server,
        Proxy(certificate, openai.port) as proxy,
    ):
        for name, value in {**ENVIRONMENT, "OPENAI_BASE_URL": server.url}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_name("cert.pem")))
        said = cli("probe", "gpt=openai:gpt-toy", api(server), *CELLS, "--api-key-env", "MINE", "--yes")
        assert said.code == 0, said.err
        assert n_rows(said) == 8
        assert [] == said.leaks()
        assert {f"Bearer {OTHER}"} == authorizations(openai)
        assert {f"Bearer {KEY}"} == authorizations(server)
        assert {"api.openai.com"} == {received.headers["host"] for received in openai.requests}
        sent = {"host", "accept", "accept-encoding", "connection", "user-agent", "authorization"}
        sent |= {"content-length", "content-type"}
        assert sent == {name for received in openai.requests for name in received.headers}
    # The proxy sees where, and nothing else.
    assert {"CONNECT api.openai.com:443 HTTP/1.1"} == {asked.split("\r\n")[0] for asked in proxy.asked}
    assert [] == found_in("".join(proxy.asked))


# --- a process of its own ---------------------------------------------------------------------------------

WATCHED = """
import sys
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "os.exec")
def watch(event, given):
    if event in STARTS:
        # With an environment of its own (given[3]) a process inherits none, and stderr is searched for keys:
        # trio, where it is installed, asks ldconfig for a library.
        own = event == "subprocess.Popen" and given[3] is not None
        print("LISTED" if own else "STARTED", event, given, file=sys.stderr)
sys.addaudithook(watch)
import biaskit.cli
sys.argv = ["biaskit", *sys.argv[1:]]
"""


def in_a_process(server: ApiServer, program: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own that says when it starts another."""
    return subprocess.run(
        [
            *(sys.executable, "-c", f"{WATCHED}{program}\nbiaskit.cli.main()"),
            *(*keyed(server), "--verbose", "--out", "run"),
        ],
        env=environment(**ENVIRONMENT),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.process
def test_a_process_shows_no_key_and_starts_no_other(folder: Path) -> None:
    """OPENAI_LOG=debug is set: the client then logs to stderr by itself."""
    with ApiServer(behaviour=Behaviour(requires_key=KEY)) as server:
        done = in_a_process(server)
        control = in_a_process(server, 'import subprocess; subprocess.run(["true"])')
    assert done.returncode == 0, done.stderr
    assert "STARTED" not in done.stderr
    assert "STARTED subprocess.Popen" in control.stderr, "the watch works"
    files = {path.name: path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}
    assert [] == Said(0, done.stdout, done.stderr, "", "", files).leaks()
    assert "HTTP Request: POST" in done.stderr
    assert "probe.jsonl" in files

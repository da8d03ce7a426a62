"""The blocking client, against a small server that answers as it is told to."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from csp import errors, http_client
from csp.errors import BadInput, Broken, CspError, NotFound, Unreachable
from csp.http_client import (
    LONG_POLL_S,
    GatewayClient,
    field,
    follow,
    newest,
    note_path,
    objects,
    oldest,
    segment,
)
from tests.cli.recording import Recorded, run


class Server(ThreadingHTTPServer):
    """Answers by `script`: path to status and body; keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: dict[str, tuple[int, bytes]] = {}
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.history: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, dict(self.headers), body))
        status, raw = self.server.script.get(self.path.partition("?")[0], (404, b"{}"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_each_method_carries_the_token(server: Server) -> None:
    server.script = {"/x": (200, b'{"ok": 1}')}
    gateway = GatewayClient(server.url, "t0ken")
    answers = [
        gateway.get("/x", after=3, q="a b&c", limit=None),
        gateway.post("/x", {"é": 1}),
        gateway.delete("/x"),
    ]

    assert answers == [{"ok": 1}] * 3
    assert [asked[:2] for asked in server.asked] == [
        ("GET", "/x?after=3&q=a+b%26c"),
        ("POST", "/x"),
        ("DELETE", "/x"),
    ]
    assert {asked[2]["X-Auth-Token"] for asked in server.asked} == {"t0ken"}
    assert json.loads(server.asked[1][3]) == {"é": 1}


def test_an_address_may_have_a_path_in_front(server: Server) -> None:
    server.script = {"/csp/x": (200, b"[]")}

    assert GatewayClient(f"{server.url}/csp/", "t").get("/x") == []


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadInput),
        (401, errors.Unauthenticated),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Refused),
        (413, errors.TooLarge),
        (429, errors.TooMany),
        (500, errors.Broken),
        (503, errors.Unreachable),
        (507, errors.StorageFull),
    ],
)
def test_an_error_keeps_its_words(server: Server, status: int, kind: type[CspError]) -> None:
    server.script = {"/x": (status, b'{"error": "what was wrong", "hint": "what to do"}')}
    with pytest.raises(CspError) as caught:
        GatewayClient(server.url, "t").get("/x")

    assert type(caught.value) is kind
    assert (caught.value.message, caught.value.hint) == ("what was wrong", "what to do")


class Forgetful(Server):
    """Hears a call, then hangs up without an answer, as often as it is told."""

    hang_ups = 2

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.hang_ups:
            self.hang_ups -= 1
            self.asked.append(("", "", {}, request.recv(65536).partition(b"\r\n\r\n")[2]))
            return
        super().finish_request(request, client_address)


def test_a_call_whose_answer_is_lost_is_repeated_with_the_same_id() -> None:
    with Forgetful() as server:
        server.script = {"/mode": (200, b'{"ok": 1}')}
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        answer = GatewayClient(server.url, "t").post_once("/mode", {"mode": "debate"})
        server.shutdown()
        thread.join()
    bodies = [json.loads(asked[3]) for asked in server.asked]

    assert answer == {"ok": 1}
    assert len(bodies) == 3 and bodies[0] == bodies[1] == bodies[2]
    assert bodies[0]["mode"] == "debate" and len(bodies[0]["id"]) == 16


def test_a_call_that_reached_nobody_is_not_repeated() -> None:
    with Server() as server:
        url = server.url
    with pytest.raises(errors.Unreachable, match="no gateway answers"):
        GatewayClient(url, "t").post_once("/mode")


def test_a_refused_call_is_not_repeated(server: Server) -> None:
    server.script = {"/mode": (409, b'{"error": "no"}')}
    with pytest.raises(errors.Refused):
        GatewayClient(server.url, "t").post_once("/mode")

    assert len(server.asked) == 1


@pytest.mark.parametrize("raw", [b"<html>", b"\xff", b"[" * 100_000])
def test_an_answer_that_is_no_json_is_said_to_be_none(server: Server, raw: bytes) -> None:
    server.script = {"/x": (200, raw)}
    with pytest.raises(Broken, match="returned non-JSON"):
        GatewayClient(server.url, "t").get("/x")


def test_an_error_without_words_names_its_status(server: Server) -> None:
    server.script = {"/x": (500, b"[]")}
    with pytest.raises(Broken, match="answered 500"):
        GatewayClient(server.url, "t").get("/x")


def test_nobody_there_says_what_to_do() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        GatewayClient(f"http://127.0.0.1:{port}", "t").get("/x")

    assert caught.value.message == f"no gateway answers at http://127.0.0.1:{port}"
    assert caught.value.hint == "start one with: csp up"


@pytest.mark.parametrize("said", [b"", b"hello\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_an_answer_that_breaks_off_is_unreachable(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_badly() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(said)

        thread = threading.Thread(target=answer_badly)
        thread.start()
        with pytest.raises(Unreachable, match="closed the connection mid-response"):
            GatewayClient(f"http://127.0.0.1:{listener.getsockname()[1]}", "t").get("/x")
        thread.join()


def test_a_silent_peer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.http_client.TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with pytest.raises(Unreachable, match=r"did not respond within 0\.05 s"):
            GatewayClient(f"http://127.0.0.1:{listener.getsockname()[1]}", "t").get("/x")


@pytest.mark.parametrize("host", ["nosuch.invalid", "a..b", "x" * 70])
def test_a_name_that_does_not_exist_is_unreachable(host: str) -> None:
    with pytest.raises(Unreachable, match="cannot reach"):
        GatewayClient(f"http://{host}:1", "t").get("/x")


def test_a_token_that_no_header_can_carry_is_a_misuse() -> None:
    with pytest.raises(BadInput, match="ASCII"):
        GatewayClient("http://127.0.0.1:1", "tökén")


def test_a_segment_cannot_leave_its_place() -> None:
    assert segment("../a b/?#") == "..%2Fa%20b%2F%3F%23"


def test_a_value_of_another_shape_is_broken() -> None:
    assert field({"n": 1}, "n", float) == 1.0
    for value, key, kind in (({}, "id", str), ({"id": 3}, "id", str), ([], "id", str)):
        with pytest.raises(Broken):
            field(value, key, kind)
    with pytest.raises(Broken):
        objects([1])


class PagedGateway(GatewayClient):
    """History as the gateway pages it, without a socket."""

    def __init__(self, count: int) -> None:
        self.items = [{"seq": 2 * n} for n in range(1, count + 1)]

    def get(self, path: str, **query: Any) -> Any:
        before, after, limit = query.get("before"), query.get("after"), query["limit"]
        found = [item for item in self.items if before is None or item["seq"] < before]
        if after is None:
            return {"items": found[-limit:], "next": None}
        return {"items": [item for item in found if item["seq"] > after][:limit], "next": None}


@pytest.mark.parametrize("count", [0, 1, 7, 20])
def test_paging_loses_nothing_in_either_direction(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr("csp.http_client.PAGE", 3)
    gateway = PagedGateway(count)

    assert list(oldest(gateway)) == gateway.items
    assert newest(gateway, 10) == gateway.items[-10:]
    assert newest(gateway, 2, before=5) == [item for item in gateway.items if item["seq"] < 5][-2:]


def test_following_goes_on_behind_a_gateway_that_was_away() -> None:
    gateway = PagedGateway(3)
    answers: Iterator[GatewayClient | Exception] = iter(
        [gateway, Unreachable("away"), Unreachable("still away"), gateway]
    )
    told: list[str] = []

    def connect() -> GatewayClient:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def tell(error: Unreachable | None) -> None:
        told.append(error.message if error else "back")

    found = follow(connect, 2, tell)
    first = [next(found), next(found)]
    gateway.items.append({"seq": 8})
    gateway.get = _failing_once(gateway)  # type: ignore[method-assign]  # the gateway dies under the next question
    then = next(found)

    assert [item["seq"] for item in (*first, then)] == [4, 6, 8]
    assert told == ["back", "died", "away", "still away", "back"]


def test_the_first_answer_of_a_gateway_that_is_back_does_not_wait_for_news() -> None:
    """What says that it is away stands until this answer; a long poll would leave it there for as long."""
    gateway = PagedGateway(2)
    whole, waits = gateway.get, list[object]()

    def get(path: str, **query: Any) -> Any:
        waits.append(query["wait"])
        if len(waits) == 2:
            raise Unreachable("died")
        if len(waits) == 4:
            gateway.items.append({"seq": 6})
        return whole(path, **query)

    gateway.get = get  # type: ignore[method-assign]  # it notes how long it may take
    found = follow(lambda: gateway, 2, lambda error: None)

    assert [next(found)["seq"], next(found)["seq"]] == [4, 6]
    assert waits == [LONG_POLL_S, LONG_POLL_S, None, LONG_POLL_S]


def _failing_once(gateway: PagedGateway) -> Any:
    whole = gateway.get

    def get(path: str, **query: Any) -> Any:
        gateway.get = whole  # type: ignore[method-assign]  # back to normal
        raise Unreachable("died")

    return get


# --- without a server ----------------------------------------------------------------------------


class Asked:
    """What is asked of a gateway, and how long is waited; every answer is the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, outcome: bytes | Exception = b"{}") -> None:
        self.all: list[tuple[str, str, bytes | None, float]] = []
        self._outcome = outcome
        monkeypatch.setattr(http_client, "exchange", self.exchange)

    def exchange(self, url: object, method: str, path: str, *given: Any) -> tuple[int, bytes]:
        _, body, timeout_s, *_ = given
        self.all.append((method, path, body, timeout_s))
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return 200, self._outcome


def test_a_question_that_waits_is_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gateway = Asked(monkeypatch), GatewayClient("http://room:1", "t")
    gateway.get("/agents")
    gateway.get("/history", after=3, before=None, wait=20.0)
    gateway.get("/history", wait=None)
    gateway.post("/stop")
    gateway.post("/stop", {"all": True})
    gateway.delete("/agents/claude")

    assert asked.all == [
        ("GET", "/agents", None, 30.0),
        ("GET", "/history?after=3&wait=20.0", None, 50.0),
        ("GET", "/history", None, 30.0),
        ("POST", "/stop", b"{}", 30.0),
        ("POST", "/stop", b'{"all": true}', 30.0),
        ("DELETE", "/agents/claude", None, 30.0),
    ]


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (ConnectionRefusedError(), "no gateway answers at http://room:1"),
        (TimeoutError(), "did not respond within 30 s"),
        (ConnectionResetError(), "closed the connection mid-response"),
        (OSError("CERTIFICATE_VERIFY_FAILED"), "is not trusted"),
        (OSError(5, "Input Output"), "cannot reach http://room:1: input output"),
        (UnicodeError("label too long"), "cannot reach http://room:1: label too long"),
    ],
)
def test_why_nobody_answers_is_said(monkeypatch: pytest.MonkeyPatch, error: Exception, problem: str) -> None:
    Asked(monkeypatch, error)
    with pytest.raises(Unreachable, match=problem):
        GatewayClient("http://room:1", "t").get("/agents")


def test_the_newest_are_asked_for_in_as_many_pages_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    seqs, asked = list(range(1, 1101)), list[Any]()

    def page(
        gateway: GatewayClient, *, limit: int, before: int | None = None, **query: Any
    ) -> list[dict[str, Any]]:
        asked.append((limit, before, query))
        return [{"seq": seq} for seq in seqs if before is None or seq < before][-limit:]

    monkeypatch.setattr(http_client, "page", page)
    gateway = GatewayClient("http://room:1", "t")
    found = [item["seq"] for item in newest(gateway, 700, agent="codex")]
    everything = newest(gateway, 5000)

    assert found == seqs[-700:]
    assert asked[:2] == [(500, None, {"agent": "codex"}), (200, 601, {"agent": "codex"})]
    assert len(everything) == 1100


@pytest.mark.parametrize("note", ["n-", "n-x", "5", "export", "n-1/2", "n-²"])
def test_what_is_no_note_leads_to_no_other_route(note: str) -> None:
    with pytest.raises(NotFound):
        note_path(note)
    assert note_path("n-7") == "/board/n-7"


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("mode", "set", "debate", "tabs", "--replace"), "/mode"),
        (("mode", "next"), "/turn/next"),
        (("mode", "end"), "/mode"),
        (("stop",), "/stop"),
        (("pause", "ann"), "/agents/ann/pause"),
        (("review", "start", "fix", "--builder", "a", "--reviewer", "b"), "/runs"),
        (("collaborate", "a tale", "--models", "gpt"), "/collaborations"),
        (("board", "add", "tabs"), "/board"),
        (("send", "ann", "hello"), "/message"),
        (("resend", "m-1"), "/messages/m-1/resend"),
        (("cancel", "m-1"), "/messages/m-1/cancel"),
    ],
)
def test_verbs_that_must_not_act_twice_are_asked_for_once(words: tuple[str, ...], path: str) -> None:
    gateway = Recorded({path: errors.Refused("no")})
    with pytest.raises(errors.Refused):
        run(gateway, *words)

    assert gateway.once == [path]

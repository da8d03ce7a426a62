"""Starting and ending a gateway: rooms, ports, an orderly stop."""

import asyncio
import contextlib
import errno
import gc
import json
import logging
import os
import resource
import signal
import socket
import time
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from csp.config import GatewayOptions, Settings, load_settings
from csp.errors import Broken
from csp.gateway import server
from csp.gateway.gateway import Gateway
from csp.room_registry import RunningRoom, running_rooms, write_room
from tests.gateway.processes import Process, refused, wait_for_room
from tests.rooms import Room, ThreadRoom
from tests.waiting import wait_until_sync

IN_FLIGHT = 50
DEFAULT_PORT = 8765
#: How long a poll may wait at most; a stop that waited for one would take as long.
POLL_S = 60


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One gateway for all tests that leave it running."""
    with Process(tmp_path_factory.mktemp("server") / "first") as running:
        yield running


# --- rooms and ports -----------------------------------------------------------------------------


def test_a_second_gateway_of_a_room_is_refused_in_one_line(room: Process, tmp_path: Path) -> None:
    options = ["--port", "0", "--history", str(room.history_dir)]

    code, lines = refused(tmp_path / "second", *options)

    assert code == 1
    assert lines == [
        f"csp: room 'default' is already served by process {room.pid} "
        "(stop that gateway, or choose another room with --room)"
    ]
    assert room.gateway.get("/health")["status"] == "ok"


def test_a_room_of_the_same_name_elsewhere_is_refused_in_one_line(room: Process, tmp_path: Path) -> None:
    env = {"XDG_RUNTIME_DIR": room.env["XDG_RUNTIME_DIR"]}

    code, lines = refused(tmp_path / "second", "--port", "0", env=env)

    assert (code, len(_words(lines))) == (1, 1)
    assert "already running" in _words(lines)[0]
    assert room.announced() is not None


def _words(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("csp: ")]


def test_an_agents_token_cannot_become_the_rooms(room: Process, tmp_path: Path) -> None:
    token = room.gateway.post("/register", {"agentId": "claude"})["token"]

    code, lines = refused(tmp_path / "second", "--port", "0", env={"CSP_AUTH_TOKEN": token})

    assert (code, len(lines)) == (2, 1)
    assert "CSP_AUTH_TOKEN" in lines[0]
    assert token not in lines[0]


def test_two_rooms_live_side_by_side(room: Process, tmp_path: Path) -> None:
    options = ["--room", "other", "--history", str(room.history_dir)]
    before = len(room.gateway.get("/history")["items"])
    with Process(tmp_path / "second", *options, name="other") as other:
        for one, text in ((room, "one"), (other, "two")):
            one.gateway.post("/message", {"to": "all", "content": text})

        assert [item["text"] for item in room.gateway.get("/history")["items"]][before:] == ["one"]
        assert [item["text"] for item in other.gateway.get("/history")["items"]] == ["two"]


def test_the_default_port_gives_way_to_the_next_free_one(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.has_port = False
    with socket.socket() as taken:
        is_ours = False
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", DEFAULT_PORT))
            taken.listen()
            is_ours = True
        try:
            process.launch()
            port = int(wait_for_room(process.state_dir).url.rpartition(":")[2])
        finally:
            process.stop()

    # Somebody else who had it may have left it in the meantime.
    assert DEFAULT_PORT + is_ours <= port < DEFAULT_PORT + 100


# --- an orderly stop -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--supervise",)])
async def test_a_stop_answers_or_leaves_no_promise(tmp_path: Path, options: tuple[str, ...]) -> None:
    room = Process(tmp_path, *options)
    await asyncio.to_thread(room.start)
    try:
        headers = {"X-Auth-Token": room.token}
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(room.url, headers=headers, connector=connector) as session:
            calls = [asyncio.ensure_future(_send(session, f"in-flight:{n}")) for n in range(IN_FLIGHT)]
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            room.process.terminate()
            answers = await asyncio.gather(*calls)
        code = await asyncio.to_thread(room.wait_for_end)
        kept = [event.id for event in room.journal()]

        acknowledged = [message for message, status in answers if status == 200]
        assert code == 0
        assert set(acknowledged) <= set(kept)
        assert len(done) > 0 and len(kept) == len(set(kept))
        assert {status for _, status in answers} <= {200, None}
        assert room.announced() is None
    finally:
        await asyncio.to_thread(room.stop)


async def _send(session: aiohttp.ClientSession, message: str) -> tuple[str, int | None]:
    """Return the id with the status of the answer, None if there was none."""
    body = json.dumps({"to": "all", "content": "hello", "id": message}).encode()
    try:
        async with session.post("/message", data=body) as response:
            return message, response.status
    except aiohttp.ClientError:
        return message, None


def test_a_stop_does_not_wait_for_long_polls(tmp_path: Path) -> None:
    room = ThreadRoom(tmp_path)
    room.start()
    room.gateway.post("/register", {"agentId": "claude"})
    polls = [_open_poll(room) for _ in range(5)]
    began = monotonic()

    room.stop()

    assert monotonic() - began < POLL_S
    for poll in polls:
        poll.close()


def _open_poll(room: Room) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", room.port))
    lines = [
        f"GET /inbox/claude?wait={POLL_S} HTTP/1.1",
        f"Host: localhost:{room.port}",
        f"X-Auth-Token: {room.token}",
    ]
    opened.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return opened


async def test_a_stop_says_goodbye_to_websockets(tmp_path: Path) -> None:
    room = ThreadRoom(tmp_path)
    await asyncio.to_thread(room.start)
    async with aiohttp.ClientSession(room.url, headers={"X-Auth-Token": room.token}) as session:
        async with session.ws_connect("/ws") as watching:
            stopping = asyncio.create_task(asyncio.to_thread(room.stop))
            message = await watching.receive(timeout=60)
    await stopping

    assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 1001)


@pytest.mark.parametrize("turns", range(5))
def test_a_connection_that_arrives_with_the_stop_is_closed(tmp_path: Path, turns: int) -> None:
    """Left to the collector, it would be a warning of whichever test runs then."""
    room = ThreadRoom(tmp_path / "room")
    room.start()
    peers: list[socket.socket] = []

    async def arrive_and_stop() -> None:
        peers.append(socket.create_connection(("127.0.0.1", room.port)))
        for _ in range(turns):
            await asyncio.sleep(0)
        room._stop.set()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run_coroutine_threadsafe(arrive_and_stop(), room._loop).result()
        room.stop()
        gc.collect()

    # One that was never accepted is reset.
    with peers[0] as peer, contextlib.suppress(ConnectionResetError):
        assert peer.recv(1) == b""
    assert [str(warning.message) for warning in caught] == []


def test_a_room_that_was_stopped_starts_where_it_was(room: Process) -> None:
    sent = room.gateway.post("/message", {"to": "all", "content": "hello"})

    room.restart()

    assert room.gateway.get("/health")["seq"] == sent["seq"]
    assert list(room.folder.glob("snapshot-*.json")) != []


# --- what a room does by itself ------------------------------------------------------------------


async def test_everything_that_a_room_does_by_itself_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def note(work: Coroutine[Any, Any, None]) -> None:
        begun.append(str(getattr(work, "__qualname__", "")))
        work.close()

    gateway = Gateway(Settings(), tmp_path / "room", time.time)
    alarms: list[bool] = []
    monkeypatch.setattr(gateway, "spawn", note)
    monkeypatch.setattr(gateway, "set_alarm", lambda: alarms.append(True))
    server.start_background(gateway)
    await gateway.close()

    assert begun == [
        "Gateway.answer_queries",
        "Gateway.watch_presence",
        "RunWorker.work",
        "BoardSummaries.work",
        "RemoteBoards.work",
        "index_when_quiet",
        "index_notes",
        "scrub_journal",
    ]
    assert alarms == [True]


def test_a_room_notes_silence_by_itself(tmp_path: Path) -> None:
    with ThreadRoom(tmp_path, env={"CSP_OFFLINE_AFTER_S": "0.1"}) as room:
        room.gateway.post("/register", {"agentId": "claude"})

        wait_until_sync(lambda: not room.gateway.get("/agents")[0]["online"], what="claude to be offline")


def test_a_room_goes_on_with_its_turns_after_a_restart(tmp_path: Path) -> None:
    """A turn has hours before the restart, next to no time after it."""
    env = {"CSP_TURN_TIMEOUT_MS": "9000000"}
    with ThreadRoom(tmp_path, env=env) as room:
        for name in ("claude", "codex"):
            room.gateway.post("/register", {"agentId": name})
        room.gateway.post("/mode", {"mode": "autopilot", "topic": "tabs"})
        assert room.gateway.get("/mode")["currentTurn"] == "claude"
        room.stop()
        room._env = {"CSP_TURN_TIMEOUT_MS": "50", "CSP_TURN_WARN_MS": "25"}
        room.start()

        wait_until_sync(lambda: room.gateway.get("/mode")["currentTurn"] != "claude", what="the next turn")


def test_a_run_works_where_the_gateway_was_started(tmp_path: Path) -> None:
    with ThreadRoom(tmp_path) as room:
        body = {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "run_id": "run-1"}
        room.gateway.post("/runs", body)

        found = wait_until_sync(lambda: room.gateway.get("/runs/run-1").get("context"), what="its place")
        assert found["dir"] == str(room.dir)


# --- ports, addresses, limits --------------------------------------------------------------------


def chosen_port(tmp_path: Path, port: int) -> Settings:
    return load_settings({"port": str(port)}, env={"HOME": str(tmp_path)}, cwd=tmp_path)


def test_a_chosen_port_gives_way_to_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Broken, match=f"cannot listen on 127.0.0.1 port {port}: address already in use"):
            server.bind(chosen_port(tmp_path, port))

    assert sum(pauses) == pytest.approx(2.0)


def test_a_chosen_port_is_waited_for_until_the_dead_have_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    monkeypatch.setattr(time, "sleep", lambda _: taken.close())

    with closing(server.bind(chosen_port(tmp_path, port))) as listener:
        assert listener.getsockname()[1] == port


def test_a_port_that_is_forbidden_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(host: str, port: int) -> socket.socket:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(server, "_listen", refuse)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it was waited for"))
    with pytest.raises(Broken, match="permission denied"):
        server.bind(chosen_port(tmp_path, 80))


def test_the_next_of_many_ports_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def listen(host: str, port: int) -> str:
        tried.append(port)
        if port < 8765 + 99:
            raise OSError(98, "Address already in use")
        return f"{host}:{port}"

    monkeypatch.setattr(server, "_listen", listen)

    assert server.bind(Settings()) == "127.0.0.1:8864"  # type: ignore[comparison-overlap]  # what listen returns
    assert tried == list(range(8765, 8865))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("0.0.0.0", "http://127.0.0.1:1"),
        ("", "http://127.0.0.1:1"),
        ("::", "http://[::1]:1"),
        ("::1", "http://[::1]:1"),
        ("example.org", "http://example.org:1"),
    ],
)
def test_a_room_is_announced_by_an_address_that_can_be_called(host: str, url: str) -> None:
    assert server.url_of(host, 1, is_tls=False) == url
    assert server.url_of(host, 1, is_tls=True) == url.replace("http:", "https:")


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (1024, 4096, 4096),
        (1024, 1_000_000, 65536),
        (1024, resource.RLIM_INFINITY, 65536),
        (65536, 100_000, None),
        (100_000, 200_000, None),
    ],
)
def test_a_gateway_may_open_many_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: int | None
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: raised.append(limits))
    server.raise_file_limit()

    assert raised == ([] if wanted is None else [(wanted, hard)])


@pytest.mark.parametrize(
    ("error", "is_kept"),
    [
        (BadHttpMessage("the words of a caller"), False),
        (web.RequestPayloadError("the words of a caller"), False),
        (RuntimeError("ours"), True),
        (None, True),
    ],
)
def test_malformed_requests_are_kept_out_of_the_log(error: Exception | None, is_kept: bool) -> None:
    info = (type(error), error, None) if error else None
    record = logging.LogRecord("aiohttp.server", logging.ERROR, "", 1, "", None, info)

    assert server.is_our_failure(record) is is_kept


# --- the process ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_supervised", [False, True])
def test_a_run_prepares_its_process_and_lets_go_of_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_supervised: bool
) -> None:
    served: list[tuple[socket.socket, int | None]] = []
    raised: list[bool] = []

    def serve(
        options: object, listener: socket.socket, tls: object, ready: object, parent: int | None, lan: object
    ) -> int:
        assert lan is None
        assert listener.getsockname()[1] > 0
        served.append((listener, parent))
        return 7

    def supervise(serve_child: Callable[[Callable[[], None]], int]) -> int:
        return 10 + serve_child(lambda: None)

    monkeypatch.setattr(server, "raise_file_limit", lambda: raised.append(True))
    monkeypatch.setattr(server, "_serve_forever", serve)
    monkeypatch.setattr(server, "supervise", supervise)
    settings = Settings(port=0, sources={"port": "--port"})
    try:
        code = server.run(GatewayOptions(settings=settings, supervise=is_supervised, dir=tmp_path))
    finally:
        logging.getLogger("aiohttp.server").removeFilter(server.is_our_failure)

    listener, parent = served[0]
    assert code == (17 if is_supervised else 7)
    assert parent == (os.getppid() if is_supervised else None)
    assert raised == [True]
    assert listener.fileno() == -1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_signal_of_an_end_stops_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    stopped: list[bool] = []

    async def serve(options: object, listener: object, stop: asyncio.Event, **others: object) -> None:
        os.kill(os.getpid(), number)
        async with asyncio.timeout(60):
            await stop.wait()
        stopped.append(True)

    monkeypatch.setattr(server, "serve", serve)
    # Without a handler of the room's own, the signal must not end the tests.
    before = signal.signal(number, lambda *_: None)
    try:
        with socket.socket() as listener:
            options = GatewayOptions(settings=Settings(), dir=tmp_path)
            assert server._serve_forever(options, listener, None, lambda: None, None, None) == 0
    finally:
        signal.signal(number, before)

    assert stopped == [True]


async def test_a_caller_that_never_goes_does_not_keep_a_room_from_ending(tmp_path: Path) -> None:
    class Runner:
        async def cleanup(self) -> None:
            raise TimeoutError

    gateway = Gateway(Settings(), tmp_path / "history" / "default", time.time)
    announced = RunningRoom(
        room="default",
        url="http://127.0.0.1:1",
        token=gateway.tokens.room_token,
        pid=os.getpid(),
        dir=tmp_path,
        history=gateway.folder,
        started=gateway.started,
    )
    file = write_room(tmp_path / "state", announced)
    await server.shut_down(gateway, Runner(), file)  # type: ignore[arg-type]  # nothing else is asked of it

    assert gateway.broadcast.is_closed
    assert running_rooms(tmp_path / "state") == []
    # The lock of the journal is free again.
    await Gateway(Settings(), tmp_path / "history" / "default", time.time).close()

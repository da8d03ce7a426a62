"""What the parts of the bench count, without a gateway or a sidecar; tests/bench measures real ones."""

import asyncio
import json
import math
import os
import random
import selectors
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal

import pytest

from csp.errors import Broken, NotFound
from csp.journal import JsonlJournal
from csp.protocol.enums import HUMAN
from csp.room.commands import SetMode
from tests.bench.machine import emulator, gateway, journals, load, modes, process, scene, sidecar
from tests.bench.machine.figures import Figures, short, table
from tests.bench.machine.modes import _Engine
from tests.bench.machine.peers import Client, Listener, Sender, Watcher, connect, register, serve
from tests.bench.machine.plans import (
    MARK,
    NUMBER,
    Found,
    Plan,
    client_frame,
    numbered,
    post_request,
    watch_request,
)
from tests.bench.machine.relay import Alone, command
from tests.bench.machine.stand_in import StandIn
from tests.bench.machine.usage import cpu_s, load_average, memory_mb
from tests.stream_server import StreamServer

#: A number that no process has.
NOBODY: Final = 2**22 + 1


# --- figures -----------------------------------------------------------------------------------------


def test_a_figure_has_the_median_and_the_spread_of_its_rounds() -> None:
    figures = Figures()
    for value in (3.0, 1.0, 200.0):
        figures.add("POST", "req/s", value)
    figures.add("start", "ms", 12.34)
    first, _ = figures.all()

    assert first.as_json() == {
        "name": "POST",
        "unit": "req/s",
        "median": 3.0,
        "min": 1.0,
        "max": 200.0,
        "rounds": 3,
    }
    assert table(figures.all()) == [
        "what   median  unit   spread",
        "POST     3.00  req/s  1.00 .. 200",
        "start    12.3  ms     12.3 .. 12.3",
    ]
    assert figures.load().startswith("load average ") and load_average() >= 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.126, "0.13"), (9.99, "9.99"), (10.0, "10.0"), (99.94, "99.9"), (100.0, "100"), (1234.5, "1,234")],
)
def test_three_digits_are_shown(value: float, shown: str) -> None:
    assert (short(value), short(-value), short(math.nan)) == (shown, f"-{shown}", "-")


def test_only_what_runs_uses_anything() -> None:
    assert (memory_mb(os.getpid()) or 0) > 1 and (cpu_s(os.getpid()) or 0) > 0
    assert (memory_mb(NOBODY), cpu_s(NOBODY)) == (None, None)


# --- plans -------------------------------------------------------------------------------------------


def test_what_was_found_is_counted_by_message() -> None:
    found = Found(sent=200, seconds=4.0, cpu_s=0.5, latencies=[0.003, 0.001, 0.002])

    assert (found.rate, found.cpu_us) == (50.0, 2500.0)
    assert [found.latency_ms(share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 2.0, 2.0, 3.0]
    assert math.isnan(Found(sent=1, seconds=1.0).cpu_us)


@pytest.mark.parametrize("size", [0, 125, 126, 70_000 - 65_536 + 126])
def test_a_frame_says_how_long_it_is(size: int) -> None:
    frame = client_frame(b"x" * size)
    masked = frame[1] & 0x80
    length = frame[1] & 0x7F if size < 126 else int.from_bytes(frame[2:4], "big")

    assert (frame[0], bool(masked), length, frame[-size - 4 :]) == (0x81, True, size, bytes(4) + b"x" * size)


def test_a_request_has_its_body_and_its_number() -> None:
    head, _, body = post_request("/message", "t", {"content": NUMBER.decode()}).partition(b"\r\n\r\n")

    assert head.startswith(b"POST /message HTTP/1.1\r\n") and f"Length: {len(body)}".encode() in head
    assert numbered(body, 12) == b'{"content": "@0000012@"}'
    assert b"Upgrade: websocket" in watch_request("/ws", "t")


# --- peers -------------------------------------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


Pair = tuple[socket.socket, socket.socket]


def test_events_are_counted_though_their_marks_are_cut(pair: Pair) -> None:
    watcher = Watcher(pair[0], b"rest" + MARK + MARK[:2])
    for piece in (MARK[2:] + b"x", MARK[:1], MARK[1:] * 1 + MARK):
        pair[1].sendall(piece)
        watcher.read()
    assert watcher.events == 4
    pair[1].close()
    with pytest.raises(Broken, match="disconnected"):
        watcher.read()


def test_numbers_are_heard_once_though_they_are_cut(pair: Pair) -> None:
    heard: list[int] = []
    listener = Listener(pair[0], b"x@00", lambda number, now: heard.append(number))
    for piece in (b"00001@ and @0000002@", b"@000", b"0003@"):
        pair[1].sendall(piece)
        listener.read()
    pair[1].close()
    with pytest.raises(Broken, match="disconnected"):
        listener.read()

    assert heard == [1, 2, 3]


def test_a_sender_is_busy_until_it_is_answered(pair: Pair) -> None:
    answered: list[int] = []
    sender = Sender(pair[0], b"say " + NUMBER, lambda sender: answered.append(sender.answered))
    at = sender.send_numbered(7)
    assert (pair[1].recv(100), sender.is_busy, sender.sent_at) == (b"say @0000007@", True, at)
    sender.take(b"HTTP/1.1 200 OK\r\n\r\n")
    assert sender.is_busy
    sender.take(b"{}")

    assert (sender.is_busy, answered, len(sender.latencies)) == (False, [1], 1)
    for refusal in (b"", b"HTTP/1.1 409 Conflict\r\n\r\n{}"):
        with pytest.raises(Broken, match="a message was refused"):
            sender.take(refusal)


class Echo:
    """A server that says to each watcher what anybody posts, with the mark of an event."""

    def __init__(self) -> None:
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._watchers: list[asyncio.StreamWriter] = []
        self._is_up = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._run(),))

    async def _run(self) -> None:
        async with StreamServer(self._serve) as server:
            self.port = server.port
            self._is_up.set()
            await self._stop.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if b"Upgrade" in head:
                writer.write(b"HTTP/1.1 101 Switching\r\n\r\n")
                self._watchers.append(writer)
                if b"after=0" in head:
                    writer.write(MARK)
                if b"deaf" in head:
                    self._watchers.remove(writer)
                await self._hear_frames(reader)
            elif head.startswith(b"GET /refused"):
                writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n{}")
            elif head.startswith(b"GET"):
                writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a": ')
                writer.write(b"5} ")
            else:
                self._tell(await reader.readexactly(int(head.partition(b"Length: ")[2])))
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n{}")

    async def _hear_frames(self, reader: asyncio.StreamReader) -> None:
        while True:
            frame = await reader.readexactly(6 + 9)
            self._tell(b"", frame[6:])

    def _tell(self, body: bytes, number: bytes = b"") -> None:
        for watcher in self._watchers:
            watcher.write(MARK + b"x" + number + body)

    def __enter__(self) -> "Echo":
        self._thread.start()
        assert self._is_up.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with Echo() as found:
        yield found


@pytest.fixture
def server(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> Iterator[Echo]:
    """Serve; what a generator leaves open until its process ends is closed here."""
    opened: list[socket.socket] = []
    create = socket.create_connection

    def note(*words: Any, **options: Any) -> socket.socket:
        opened.append(create(*words, **options))
        return opened[-1]

    monkeypatch.setattr(socket, "create_connection", note)
    yield echo
    for one in opened:
        one.close()


POST: Final = post_request("/message", "t", {"content": NUMBER.decode()})
WATCH: Final = b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"


def plan(server: Echo, kind: Literal["closed", "paced", "lone", "burst", "watch"], **fields: Any) -> Plan:
    own: dict[str, Any] = {"port": server.port, "pid": os.getpid(), "seconds": 0.02, "post": POST}
    return Plan(kind=kind, **own | {"watch": WATCH} | fields)


def test_a_connection_is_greeted_and_asked(server: Echo) -> None:
    client = Client(server.port, "t")
    assert json.loads(client.get("/x")) == {"a": 5}
    with pytest.raises(Broken, match="expected an answer from /refused"):
        client.get("/refused")
    client.close()
    with pytest.raises(Broken, match="expected a WebSocket"):
        connect(server.port, POST, b"\r\n\r\n")
    peer, rest = connect(server.port, WATCH.replace(b"/ws", b"/ws?after=0"), b"\r\n\r\n")
    while not rest:
        rest = peer.recv(100)
    peer.close()

    assert rest == MARK


def test_a_closed_run_keeps_each_connection_busy_up_to_its_size(server: Echo) -> None:
    found = load.closed(plan(server, "closed", connections=3, watchers=2, seconds=60, size=5))

    assert (found.sent, len(found.latencies), found.least >= 15) == (15, 15, True)
    assert 0 < found.seconds < 60 and found.cpu_s is not None and found.cpu_s >= 0


def test_a_lone_message_waits_for_the_one_before(server: Echo) -> None:
    found = load.lone(plan(server, "lone", watchers=2))

    assert found.sent == len(found.latencies) == found.least > 0


def test_a_paced_run_sends_at_its_rate_and_hears_every_number(server: Echo) -> None:
    found = load.paced(plan(server, "paced", rate=500.0, connections=4, watchers=1))

    assert (found.sent, len(found.latencies), found.least >= 10) == (10, 10, True)
    assert min(found.latencies) > 0 and found.seconds >= 9 / 500


def test_a_burst_is_one_write_that_all_watchers_get(server: Echo) -> None:
    found = load.burst(plan(server, "burst", post=NUMBER, size=7, watchers=2, greet=WATCH))

    assert (found.sent % 7, found.sent > 0, found.least >= found.sent) == (0, True, True)


def test_a_watch_hears_the_past_beside_one_who_never_reads(server: Echo) -> None:
    past = WATCH.replace(b"/ws", b"/ws?after=0")
    found = load.watch(plan(server, "watch", watch_all=past, size=1, watchers=0))

    assert (found.sent, found.least) == (1, 1)


def test_events_that_do_not_come_end_the_run(server: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "_ARRIVE_S", -1.0)
    crowd = load.Crowd(plan(server, "watch", watchers=1), selectors.DefaultSelector())
    with pytest.raises(Broken, match="a watcher got 0 of 9 events"):
        crowd.wait_for(9)


def test_a_clock_that_is_stopped_leaves_the_rest_out(server: Echo) -> None:
    meter = load.Meter(plan(server, "watch", seconds=60))
    meter.began -= 5
    meter.stop_clock()
    meter.began -= 50
    crowd = load.Crowd(plan(server, "watch"), selectors.DefaultSelector())

    assert meter.is_on and crowd.least == 0
    assert 5 <= meter.found(crowd, 1, []).seconds < 50


def test_serving_tells_whether_anybody_had_something(pair: Pair) -> None:
    selector = selectors.DefaultSelector()
    register(selector, Watcher(pair[0], b""))
    assert not serve(selector, 0.0)
    pair[1].sendall(b"x")

    assert serve(selector, 60.0)


# --- servers -----------------------------------------------------------------------------------------


class Child:
    """A process that ends when it is asked to, or not."""

    def __init__(self, *, is_stubborn: bool = False, code: int = 0, said: bytes = b"") -> None:
        self.did: list[str] = []
        self.returncode = code
        self._is_stubborn, self._said = is_stubborn, said

    def send_signal(self, number: int) -> None:
        self.did.append(signal.Signals(number).name)

    def wait(self, timeout: float | None = None) -> int:
        self.did.append("wait")
        if self._is_stubborn and timeout is not None:
            raise subprocess.TimeoutExpired("x", timeout)
        return 0

    def kill(self) -> None:
        self.did.append("kill")

    def poll(self) -> int | None:
        return self.returncode or None

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        return (b"", self._said) if self.returncode else (b'{"sent": 3, "seconds": 1.5}', b"")


@pytest.mark.parametrize(
    ("is_stubborn", "did"),
    [(False, ["SIGTERM", "wait"]), (True, ["SIGTERM", "wait", "kill", "wait"])],
)
def test_a_server_is_ended_in_order_or_by_force(is_stubborn: bool, did: list[str]) -> None:
    child: Any = Child(is_stubborn=is_stubborn)
    with process.Server(child, 1):
        pass

    assert child.did == did


def test_a_load_that_fails_says_why() -> None:
    done: Any = Child()
    assert process.finish_load(done).sent == 3
    for said, why in ((b"one\ntwo\n", "two"), (b"", "it said nothing")):
        failed: Any = Child(code=1, said=said)
        with pytest.raises(Broken, match=f"the load generator failed: {why}"):
            process.finish_load(failed)


def test_a_gateway_is_found_by_its_announcement(tmp_path: Path) -> None:
    announcement = tmp_path / "csp" / "bench.json"
    announcement.parent.mkdir()
    announcement.write_text('{"url": "http://127.0.0.1:4321"}')
    child: Any = Child()
    assert process._announced_port(child, announcement) == 4321
    (tmp_path / "server.log").write_text("starting\ncsp: no room\n")
    ended: Any = Child(code=1)
    with pytest.raises(Broken, match="the gateway did not start: csp: no room"):
        process._announced_port(ended, announcement)


def test_a_gateway_that_reads_its_journal_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(["running", "running", "done"])
    asked: list[str] = []

    def ask(server: process.Server, path: str) -> Any:
        asked.append(path)
        return {"journal": {"scrub": next(said)}}

    monkeypatch.setattr(process.Server, "ask", ask)
    child: Any = Child()
    process.Server(child, 1).settle()

    assert asked == ["/health"] * 3


def test_the_gateway_is_measured_in_every_durability_and_length(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    plans: list[Plan] = []
    child: Any = SimpleNamespace(pid=5)

    @contextmanager
    def start(folder: Path, durability: str = "fsync") -> Iterator[process.Server]:
        started.append(durability)
        assert folder.is_dir()
        yield process.Server(child, 9, 0.25)

    def run(wanted: Plan) -> Found:
        plans.append(wanted)
        return Found(sent=10, seconds=2.0, cpu_s=1.01, latencies=[0.004])

    made: list[int] = []
    monkeypatch.setattr(gateway, "start_gateway", start)
    monkeypatch.setattr(gateway, "run_load", run)
    monkeypatch.setattr(process.Server, "settle", lambda server: None)
    monkeypatch.setattr(gateway, "make_journal", lambda folder, lines: made.append(lines))
    monkeypatch.setattr(gateway, "search_ms", lambda server, needle: 7.0)
    monkeypatch.setattr(gateway, "memory_mb", lambda pid: 50.0)
    steps: list[str] = []
    figures = gateway.measure(gateway.Effort(seconds=0.5, lines=1000, rounds=1), steps.append)
    found = {figure.name: figure.middle for figure in figures.all()}

    assert started == ["none", "flush", "fsync", "fsync", "fsync"] and made == [10, 1000]
    assert [(one.kind, one.connections, one.watchers) for one in plans[:6]] == [
        ("closed", 1, 0),
        ("closed", 16, 0),
        ("closed", 128, 0),
        ("paced", 16, 0),
        ("lone", 1, 1),
        ("burst", 1, 100),
    ]
    assert all((one.port, one.pid, one.seconds) == (9, 5, 0.5) for one in plans)
    assert (plans[3].rate, plans[5].size) == (1000.0, 200)
    assert found["POST, fsync, 1 connection"] == found["POST, none, 16 connections"] == 5.0
    assert found["POST to WebSocket, flush, lone, p99"] == 4.0
    assert found["burst to 100 watchers, fsync, CPU per delivery"] == pytest.approx(1000.0)
    assert (found["start, 10 lines"], found["memory, 1,000 lines"]) == (250.0, 50.0)
    assert [name for name in found if name.startswith("search")] == [
        f"search, 1,000 lines, {name}" for name in gateway.NEEDLES
    ]
    assert steps[0] == "round 1 of 1: messages, durability none"


# --- modes, journals ---------------------------------------------------------------------------------


def test_a_debate_in_memory_has_a_turn_for_each_agent_in_each_round() -> None:
    engine = _Engine(3)
    before = engine.events

    assert engine.run(SetMode(sender=HUMAN, mode="debate", topic="tabs", rounds=2)) == 6
    assert engine.events > before and len(engine.asks) == 6


def test_modes_are_measured_for_each_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "CROWDS", (2,))
    monkeypatch.setattr(modes, "TURNS", 30)
    monkeypatch.setattr(modes, "_measure_gateway", lambda crowd, effort, figures: None)
    monkeypatch.setattr(modes, "relay_turn", lambda turns: (float(turns), 2.0))
    figures = modes.measure(modes.Effort(debate=1, rounds=2, relay=7), lambda step: None)
    found = {figure.name: figure for figure in figures.all()}

    assert list(found) == [
        "engine, debate of 2",
        "engine, debate of 2, events",
        "prompt of turns 11 to 20",
        "prompt of the last 3 turns of 30",
        modes.RELAY,
        "commits to disk from a reply to the next ask",
    ]
    assert (found[modes.RELAY].values, len(found["engine, debate of 2"].values)) == ([7.0, 7.0], 2)
    # What an agent is asked does not grow with the length of the talk.
    early, late = (found[name].middle for name in list(found)[2:4])
    assert 0.5 < late / early < 2


def test_a_journal_has_as_many_lines_as_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "_SENTENCES", 256)
    journals.make_journal(tmp_path, 700)
    journal = JsonlJournal.open(tmp_path / process.ROOM)
    journal.close()
    lines = (tmp_path / process.ROOM / "journal.jsonl").read_text().splitlines()

    assert (journal.last_seq, len(lines)) == (700, 700)
    assert [json.loads(line)["type"] for line in lines[:3]].count("joined") == 2
    for word, times in ((journals.CJK, 1), (journals.EMOJI, 1), (journals.RARE, 0), (journals.MISSING, 0)):
        assert sum(word in line for line in lines) == times, word
    assert 250 < sum(journals.COMMON in line for line in lines) < 450
    assert list((tmp_path / process.ROOM).glob("snapshot-*"))


def test_words_to_look_for_stand_at_their_places() -> None:
    found = {seq: journals._spiced("x", seq) for seq in (333, 666, 777, 1333, 1777, 50_777)}

    assert [text.removeprefix("x ") for text in found.values()] == [
        *(journals.CJK, journals.EMOJI, journals.RARE, journals.CJK, "x", journals.RARE)
    ]
    assert 3 <= len(journals._sentence(random.Random(1)).split()) <= 200


# --- sidecars ----------------------------------------------------------------------------------------


def test_samples_are_as_long_as_was_asked_and_all_of_it_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = emulator.samples(40_000)
    fed: list[bytes] = []
    times = iter([1.0, 1.5])
    monkeypatch.setattr("tests.bench.machine.emulator.time.process_time", lambda: next(times))

    assert {name: len(data) for name, data in found.items()} == dict.fromkeys(
        ("text", "SGR", "redraw"), 40_000
    )
    assert emulator.speed(fed.append, found["text"]) == pytest.approx(0.08)
    assert b"".join(fed) == found["text"] and max(map(len, fed)) == emulator.PIECE


def test_values_of_a_round_have_their_ratios_to_one() -> None:
    figures = Figures()
    run = sidecar._Run(sidecar.QUICK, SimpleNamespace(), figures, lambda step: None)  # type: ignore[arg-type]
    run._add_all("flood", "MB/s", "direct", {"direct": 4.0, "relay": 2.0})

    assert {figure.name: (figure.unit, figure.middle) for figure in figures.all()} == {
        "flood, direct": ("MB/s", 4.0),
        "flood, relay": ("MB/s", 2.0),
        "flood, relay / direct": ("x", 0.5),
    }
    taken = sidecar.Delivery(confirmed_s=3.0, floor_s=1.0, reply_s=0.0, signal_s=0.0)
    assert taken.over_s == 2.0


def test_ways_take_turns_in_being_first() -> None:
    found: Any = {"a": 1, "b": 2}

    assert [list(dict(sidecar._in_turn(found, turn))) for turn in (0, 1)] == [["a", "b"], ["b", "a"]]


def test_what_the_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def lacks(run: object) -> None:
        raise NotFound("tmux was not found", "install it")

    monkeypatch.setattr(sidecar, "Scene", lambda folder: nullcontext())
    monkeypatch.setattr(sidecar._Run, "panes", lacks)
    for part in ("screens", "starts", "deliveries"):
        monkeypatch.setattr(sidecar._Run, part, lambda run, part=part: done.append(part))
    _, missing = sidecar.measure(sidecar.QUICK, lambda step: None)

    assert (done, missing) == (["screens", "starts", "deliveries"], ["tmux was not found; install it"])


def test_only_a_way_with_a_relay_starts_one(tmp_path: Path) -> None:
    assert command("direct", tmp_path, ["x"]) == Alone("direct", tmp_path).command(["x"]) == ["x"]
    relay, screen = (" ".join(command(kind, tmp_path, ["x"])) for kind in ("relay", "screen"))

    assert "become_relay" in relay and "exec cat <&3" in relay
    assert "keep_screen" in screen and str(tmp_path) in screen


@pytest.mark.parametrize("size", [5, 126, 300, 70_000])
def test_a_frame_is_cut_once_it_is_whole(size: int) -> None:
    head = {5: b"\x05", 70_000: b"\x7f" + size.to_bytes(8, "big")}.get(size)
    whole = b"\x81" + (head or b"\x7e" + size.to_bytes(2, "big")) + b"x" * size

    assert scene._cut_frame(whole[:1]) is None and scene._cut_frame(whole[:-1]) is None
    assert scene._cut_frame(whole + b"more") == (0x81, b"x" * size, b"more")


def test_events_are_told_apart() -> None:
    state = {"type": "state", "sender": "ada", "state": "busy"}
    assert scene.state_of("ada")(state) and scene.state_of("ada", "idle", "busy")(state)
    assert not scene.state_of("bob")(state) and not scene.state_of("ada", "idle")(state)
    assert not scene.state_of("ada")(state | {"state": None}) and not scene.state_of("ada")({})
    assert scene.left("ada")({"type": "left", "sender": "ada"}) and not scene.left("ada")(state)
    came = {"type": "delivery", "message": "m", "state": "confirmed"}
    assert scene.delivered("m", "confirmed")(came) and not scene.delivered("m", "typed")(came)
    assert not scene.delivered("n", "confirmed")(came)
    reply = {"type": "agent_response", "replyTo": "m"}

    assert scene.answered("m")(reply) and not scene.answered("n")(reply)


def test_a_stand_in_takes_whole_pastes_and_enters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.json").write_text('{"hooks": {}}')
    found = StandIn(str(tmp_path / "settings.json"), "s-1", str(tmp_path / "log"))
    monkeypatch.setattr(StandIn, "_draw", lambda stand_in: None)

    assert found._take(b"\x1b[200~one\rt") == b"\x1b[200~one\rt"
    assert found._take(b"\x1b[200~one\rtwo\x1b[201~\x1b[Ix") == b""
    assert found._draft == "one\ntwo"
    assert found._take(b"\r\r") == b""
    steps = [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]
    lines = [json.loads(line) for line in (tmp_path / "log.s-1.jsonl").read_text().splitlines()]
    assert steps == ["entered", "proven", "answered", "signalled"]
    assert [line["type"] for line in lines] == ["user", "assistant"]
    assert (lines[0]["message"]["content"], lines[1]["parentUuid"]) == ("one\ntwo", lines[0]["uuid"])
    assert lines[1]["message"]["content"][0]["text"] == "ok, 7 characters"

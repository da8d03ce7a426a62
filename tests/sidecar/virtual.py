"""A brain with a scripted TUI in this process, on a clock that jumps: a minute passes in milliseconds.

What is real: the brain with all its parts, the frames, the emulator, the TUI. What is not: the relay's
process, the room, the time. A test that waits for our own clock alone belongs here.
"""

import asyncio
import contextlib
import functools
import inspect
import json
import selectors
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar
from unittest import mock

import msgspec

from csp.client import Live
from csp.clis.profile import Profile, load_profile, load_profile_file
from csp.errors import CspError
from csp.protocol.enums import ControlVerb, DeliverKind, DeliveryState, ReportedState
from csp.protocol.events import AnyEvent
from csp.protocol.requests import AgentNotice
from csp.protocol.responses import Deliver
from csp.sidecar.brain import brain
from csp.sidecar.inject import roster_notice
from csp.sidecar.relay import relay_frames
from csp.sidecar.relay.input_queue import LineInterceptor
from csp.sidecar.relay.relay_socket import BrainBacklog
from csp.sidecar.run_record import SidecarRecord
from tests.tui.drawing import Drawing
from tests.tui.knobs import parse
from tests.tui.program import Program
from tests.tui.wiring import Wiring

P = ParamSpec("P")
T = TypeVar("T")

WITHIN_S: Final = 60.0
_TICK_S: Final = 1e-6
_REAL_S: Final = 30.0
_ROWS_COLS: Final = (40, 120)


# --- the clock -----------------------------------------------------------------------------------


class Clock:
    """Goes on by a little whenever it is read, and by as much as is waited for."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._began = time.time()

    def monotonic(self) -> float:
        self.now += _TICK_S
        return self.now

    def time(self) -> float:
        return self._began + self.monotonic() - 1000.0


class _Selector(selectors.DefaultSelector):
    """Never sleeps: if nothing is ready, the time of the next timer has come."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            ready = super().select(_REAL_S)
            assert ready, "nothing will ever happen again"
            return ready
        self._clock.now += timeout
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        super().__init__(_Selector(clock))

    def time(self) -> float:
        return self._clock.now


async def _at_once(function: Callable[..., T], *args: Any) -> T:
    """Stand in for asyncio.to_thread: the clock would run away from a thread."""
    return function(*args)


def on_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test whose clock jumps to the next moment at which anything happens."""
    assert inspect.iscoroutinefunction(test)

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        clock = Clock()
        with (
            mock.patch.object(time, "monotonic", clock.monotonic),
            mock.patch.object(time, "time", clock.time),
            mock.patch.object(asyncio, "to_thread", _at_once),
            asyncio.Runner(loop_factory=lambda: _Loop(clock)) as runner,
        ):
            runner.run(test(*args, **kwargs))

    return run


async def until(
    condition: Callable[[], T], within_s: float = WITHIN_S, what: Callable[[], object] | str = ""
) -> T:
    """Return the condition's first true value, in the clock's own time."""
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        said = what if isinstance(what, str) else what()
        assert time.monotonic() < deadline, f"not true within {within_s:g} s: {said or condition}"
        await asyncio.sleep(0.01)
    return value


# --- the room ------------------------------------------------------------------------------------


class FakeRoom:
    """What a brain told its room; what it is to be told next. `refusals` are raised once each, in order."""

    def __init__(self) -> None:
        self.seq = 0
        self.reports: list[tuple[str, str, str]] = []
        self.outputs: list[dict[str, Any]] = []
        self.states: list[tuple[Any, ...]] = []
        #: The kind of screen that came with each of the states.
        self.asks: list[str] = []
        self.notices: list[tuple[str, str]] = []
        self.controls: dict[str, tuple[str, str]] = {}
        self.works: list[str] = []
        self.shown: list[Any] = []
        self.said: list[tuple[str, str]] = []
        self.left: list[bool] = []
        self.agents: list[dict[str, Any]] = []
        self.refusals: dict[str, list[CspError]] = {}
        self.is_connected = True
        self.items: asyncio.Queue[Deliver | AnyEvent | Live] = asyncio.Queue()
        #: Deliveries that have not ended; another brain is sent them again.
        self.pending: dict[str, Deliver] = {}

    def send_again(self) -> None:
        """Give a brain that has just connected what waits for it."""
        self.items = asyncio.Queue()
        for item in self.pending.values():
            self.items.put_nowait(item)

    def note_report(self, message: str, state: ReportedState) -> None:
        if state in (ReportedState.HELD, ReportedState.TYPED):
            found = self.pending[message]
            self.pending[message] = msgspec.structs.replace(found, state=DeliveryState(state))
        else:
            self.pending.pop(message, None)

    def state_of(self, message: str) -> str:
        return next((state for id_, state, _ in reversed(self.reports) if id_ == message), "queued")

    def reason_of(self, message: str) -> str:
        return next((why for id_, _, why in reversed(self.reports) if id_ == message), "")

    def states_of(self, message: str) -> list[str]:
        return [state for id_, state, _ in self.reports if id_ == message]

    def refuse(self, what: str) -> None:
        if waiting := self.refusals.get(what):
            raise waiting.pop(0)


class FakeClient:
    """Has the methods of csp.client.Client that a brain calls."""

    def __init__(self, room: FakeRoom) -> None:
        self._room = room

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    @property
    def status(self) -> FakeRoom:
        return self._room

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Deliver | AnyEvent | Live:
        return await self._room.items.get()

    async def report(self, id: str, state: ReportedState, reason: str = "") -> None:
        await asyncio.sleep(0.001)
        self._room.refuse("report")
        self._room.reports.append((id, state.value, str(reason)))
        self._room.note_report(id, state)

    async def control_done(self, id: str, state: ReportedState, reason: str = "") -> None:
        self._room.refuse("control_done")
        self._room.controls[id] = state.value, reason
        self._room.pending.pop(id, None)

    async def state(
        self,
        state: Any,
        detail: str = "",
        until: float | None = None,
        dialog: Any = None,
        notice: AgentNotice | None = None,
        *,
        asks: str = "",
        work: str = "",
    ) -> None:
        self._room.refuse("state")
        if notice is not None:
            self._room.notices.append((notice.kind.value, notice.detail))
        self._room.states.append((state.value, detail, until, dialog))
        self._room.asks.append(asks)

    async def output(self, text: str, **fields: Any) -> None:
        self._room.refuse("output")
        self._room.outputs.append({"text": text, **fields})

    async def working(self, note: str = "") -> bool:
        self._room.refuse("working")
        self._room.works.append(note)
        return True

    async def show(self, screen: Any = None) -> bool:
        self._room.shown.append(screen)
        return True

    async def send(self, to: str, text: str) -> None:
        self._room.said.append((to, text))

    async def close(self, *, leave: bool = False) -> None:
        self._room.left.append(leave)


# --- the TUI -------------------------------------------------------------------------------------


class _Drawing(Drawing):
    def __init__(self, show: Callable[[bytes], None]) -> None:
        super().__init__(-1)
        self._show = show

    def write(self, text: str) -> None:
        if text:
            self._show(text.encode())


class _Wiring(Wiring):
    """Keeps the log at hand; writes the open transcript, if there is one to be written."""

    def __init__(self, knobs: Any, record: str) -> None:
        super().__init__(knobs)
        self.events: list[dict[str, Any]] = []
        self._record_path = record

    def log(self, event: str, **fields: object) -> None:
        self.events.append({"event": event, **fields})
        lines: dict[str, dict[str, object]] = {
            "started": {"type": "start"},
            "submitted": {"type": "prompt", "text": fields.get("text")},
            "replied": {"type": "text", "text": fields.get("text")},
            "interrupted": {"type": "end", "how": "interrupted"},
        }
        line = lines.get(event)
        if self._record_path and line:
            with open(self._record_path, "a") as file:
                file.write(json.dumps({"ts": time.time(), **line}) + "\n")
                if event == "replied":
                    file.write(json.dumps({"type": "end"}) + "\n")


class _Tui(Program):
    def __init__(self, knobs: Any, show: Callable[[bytes], None], record: str) -> None:
        self.wiring = _Wiring(knobs, record)
        super().__init__(knobs, _Drawing(show), self.wiring)
        self._pressed = bytearray()
        self._news = asyncio.Event()

    def type(self, data: bytes) -> None:
        self._pressed += data
        self._news.set()

    async def play(self) -> int:
        self._load()
        if self._knobs.start_ms:
            await asyncio.sleep(self._knobs.start_ms / 1000)
            if not self._knobs.loading:
                self._pressed.clear()
        self._start()
        while self._exit is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._wait_s() + 0.001):
                    await self._news.wait()
            # A program takes a moment to read what was written.
            await asyncio.sleep(0.001)
            self._news.clear()
            data = bytes(self._pressed)
            self._pressed.clear()
            self.take(data)
        return self._exit


# --- all of it -----------------------------------------------------------------------------------


class Desk:
    """One brain between a TUI and a room. `agent` is its name there."""

    agent: Final = "tui"

    def __init__(
        self,
        folder: Path,
        *knobs: str,
        profile: str | Path = "generic",
        has_tui: bool = True,
        keeps_record: bool = False,
        **fields: Any,
    ) -> None:
        """With `keeps_record` the TUI writes an open transcript, which proves and gives the answers."""
        self.folder = folder
        if keeps_record:
            profile = changed_profile(folder, ('proof = "none"', 'proof = "transcript"'), _PLAIN)
            (folder / "spool").mkdir()
            fields = {"spool": str(folder / "spool"), "transcript": str(folder / "t.jsonl")} | fields
        self.room = FakeRoom()
        self.profile: Profile = (
            load_profile_file(profile) if isinstance(profile, Path) else load_profile(profile)
        )
        state_dir = folder / "state" / "room.agents" / self.agent
        state_dir.mkdir(parents=True)
        known: dict[str, Any] = {
            "name": self.agent, "agent": self.agent, "token": "t", "url": "http://127.0.0.1:9",
            "room": "room", "role": "agent", "pid": 1, "profile": self.profile.source, "argv": ["/bin/tui"],
            "env": {}, "cwd": str(folder), "folder": str(state_dir), "started": time.time() - 2,
        }  # fmt: skip
        self.run = SidecarRecord(**(known | fields))
        self.backlog = BrainBacklog()
        self.words = LineInterceptor()
        self.note = b""
        self.starts = 0
        self.holds: list[float] = []
        self.released = 0
        self.typed: list[bytes] = []
        #: What a program without a TUI answers to keys.
        self.echo: Callable[[bytes], bytes] | None = None
        self.signals: list[int] = []
        self.restarts: list[list[str]] = []
        self.redraws = 0
        self.sizes = _ROWS_COLS
        self._keys_told = 0
        self._held: bytearray | None = None
        self._line: _RelayLine | None = None
        self._brain: asyncio.Task[None] | None = None
        self._knobs = parse([*knobs])
        self._has_tui = has_tui
        self._playing: asyncio.Task[int] | None = None
        self._tui: _Tui | None = None

    async def __aenter__(self) -> Self:
        if self._has_tui:
            self.start_tui()
        await self.start_brain()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, _: TracebackType | None
    ) -> None:
        if exc is not None:
            exc.add_note(f"reports: {self.room.reports}; outputs: {self.room.outputs}; TUI: {self.events()}")
        await self.kill_brain()
        if self._playing is not None:
            self._playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._playing

    # --- the program -----------------------------------------------------------------------------

    def start_tui(self) -> None:
        self._tui = _Tui(self._knobs, self.write, self.run.transcript)
        self._playing = asyncio.ensure_future(self._tui.play())
        self._playing.add_done_callback(self._note_end)

    def _note_end(self, played: "asyncio.Task[int]") -> None:
        if not played.cancelled():
            self.tell(relay_frames.ENDED, b'{"code": %d}' % played.result())

    def write(self, data: bytes) -> None:
        """Have the program write this."""
        self.backlog.add_output(data)
        self.flush()

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """Return what the TUI says has truly happened."""
        known = self._tui.wiring.events if self._tui else []
        return [event for event in known if kind in ("", event["event"])]

    def prompts(self) -> list[str]:
        return [event["text"] for event in self.events("submitted")]

    def press(self, keys: bytes) -> None:
        """Press keys at the pane, as a person."""
        passed, word = self.words.feed(keys)
        if self._held is not None:
            self._held += passed
        else:
            self._type(passed)
        self._keys_told += len(keys)
        self.backlog.add(relay_frames.KEYS, keys)
        if word:
            self.backlog.add(relay_frames.WORD, word)
        self.flush()

    def _type(self, data: bytes) -> None:
        self.typed.append(data)
        if self._tui:
            self._tui.type(data)
        elif self.echo:
            asyncio.get_running_loop().call_later(0.01, self.write, self.echo(data))

    # --- the relay -------------------------------------------------------------------------------

    async def start_brain(self) -> None:
        """Start a brain, as the relay does: with a greeting, the note of the one before, the last output."""
        ours, its = socket.socketpair()
        self.room.send_again()
        self.starts += 1
        self._keys_told = 0
        self.backlog.start_over()
        rows, cols = self.sizes
        greeting = f'{{"pid": 7, "rows": {rows}, "cols": {cols}, "starts": {self.starts}}}'
        self.backlog.greet(relay_frames.START, greeting.encode())
        if self.note:
            self.backlog.greet(relay_frames.NOTE, self.note)
        its.setblocking(False)
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        _, self._line = await loop.create_connection(lambda: _RelayLine(self), sock=ours)
        self._brain = asyncio.ensure_future(self._think(its))
        self.flush()

    async def _think(self, link: socket.socket) -> None:
        with (
            mock.patch.object(brain, "Client", return_value=FakeClient(self.room)),
            mock.patch.object(roster_notice, "GatewayClient", return_value=_Agents(self.room)),
        ):
            await brain.run_brain(self.run, self.profile, link)

    async def kill_brain(self) -> None:
        """Have the brain die without another word."""
        line, self._line = self._line, None
        if line is not None and line.transport is not None:
            line.transport.abort()
        if self._brain is not None:
            with contextlib.suppress(asyncio.CancelledError):
                if not self._brain.done():
                    self._brain.cancel()
                    await self._brain
            self._brain = None
        await asyncio.sleep(0)

    async def replace_brain(self) -> None:
        await self.kill_brain()
        await self.start_brain()

    async def wait_brain(self) -> None:
        """Wait for the brain's own end; raise what it died of."""
        assert self._brain is not None
        await self._brain

    def hang_up(self) -> None:
        """Close the line, as the end of the relay does."""
        assert self._line is not None and self._line.transport is not None
        self._line.transport.close()

    def tell(self, kind: bytes, payload: bytes = b"") -> None:
        self.backlog.add(kind, payload)
        self.flush()

    def flush(self) -> None:
        if self._line is not None and self._line.transport is not None:
            while data := self.backlog.next_frames():
                self._line.transport.write(data)

    def obey(self, kind: bytes, payload: bytes) -> None:  # noqa: C901  # one case for each frame
        """Do what the brain wants, as csp.sidecar.relay.relay_loop does."""
        if kind == relay_frames.INPUT:
            self._insert(payload[:4], payload[4:])
        elif kind == relay_frames.INPUT_UNLESS:
            if int.from_bytes(payload[4:12], "big") == self._keys_told:
                self._insert(payload[:4], payload[12:])
            else:
                self.tell(relay_frames.REFUSED, payload[:4])
        elif kind == relay_frames.HOLD:
            self.holds.append(struct.unpack("!d", payload)[0])
            self._held = bytearray() if self._held is None else self._held
        elif kind == relay_frames.RELEASE:
            self.released += 1
            held, self._held = self._held, None
            if held:
                self._type(bytes(held))
        elif kind == relay_frames.OURS:
            self.words.ours = tuple(payload.split())
        elif kind == relay_frames.NOTE:
            self.note = payload
        elif kind == relay_frames.NUDGE:
            self.redraws += 1
        elif kind == relay_frames.SIGNAL:
            self.signals.append(int.from_bytes(payload, "big", signed=True))
        elif kind == relay_frames.AGAIN:
            self.restarts.append(json.loads(payload)["argv"])

    def _insert(self, tag: bytes, data: bytes) -> None:
        self._type(data)
        self.tell(relay_frames.DONE, tag)

    # --- the room --------------------------------------------------------------------------------

    def send(self, text: str = "hello", *, sender: str = "human", **fields: Any) -> str:
        """Deliver a message to the brain; return its id."""
        self.room.seq += 1
        known: dict[str, Any] = {
            "id": f"m{self.room.seq}", "seq": self.room.seq, "kind": DeliverKind.MESSAGE, "sender": sender,
            "text": text, "urgent": False,
        }  # fmt: skip
        item = Deliver(**(known | fields))
        self.room.pending[item.id] = item
        self.room.items.put_nowait(item)
        return item.id

    def watch(self, *, is_watched: bool = True) -> None:
        """Say whether anybody looks at the screen."""
        word = b'{"watch":true}' if is_watched else b'{"watch":false}'
        self.room.items.put_nowait(Live(data=msgspec.Raw(word), watch=is_watched))

    def ask(self, text: str, turn: str) -> str:
        """Deliver a turn."""
        return self.send(text, sender="system", kind=DeliverKind.TURN, turn=turn)

    def control(self, verb: ControlVerb, **fields: Any) -> str:
        """Deliver a control."""
        return self.send("", kind=DeliverKind.CONTROL, control=verb, **fields)

    async def wait_for(self, message: str, *states: str, within_s: float = WITHIN_S) -> str:
        """Wait until a message is in one of these states; return the reason."""
        await until(
            lambda: self.room.state_of(message) in states,
            within_s,
            lambda: (message, states, self.room.reports),
        )
        return self.room.reason_of(message)

    async def wait_control(self, control: str) -> tuple[str, str]:
        return await until(lambda: self.room.controls.get(control), what=f"the end of {control}") or ("", "")

    async def reply_to(self, message: str, within_s: float = WITHIN_S) -> dict[str, Any]:
        """Wait for the answer to a message."""
        return await until(
            lambda: next((one for one in self.replies() if one["reply_to"] == message), {}),
            within_s,
            lambda: (message, self.room.reports, self.room.outputs),
        )

    def replies(self) -> list[dict[str, Any]]:
        return [one for one in self.room.outputs if not one.get("activity")]

    async def wait_prompts(self, count: int, within_s: float = WITHIN_S) -> list[str]:
        await until(lambda: len(self.prompts()) >= count, within_s, lambda: self.events())
        return self.prompts()

    async def wait_held(self, message: str, reason: str) -> None:
        await until(
            lambda: (
                (self.room.state_of(message), self.room.reason_of(message)) == (DeliveryState.HELD, reason)
            ),
            what=lambda: self.room.reports,
        )

    async def wait_state(self, state: str) -> tuple[Any, ...]:
        """Wait until the room is told of a state; return all that it was told with it."""
        await until(
            lambda: self.room.states and self.room.states[-1][0] == state, what=lambda: self.room.states
        )
        return self.room.states[-1]


class _Agents:
    def __init__(self, room: FakeRoom) -> None:
        self._room = room

    def get(self, path: str) -> Any:
        assert path == "/agents"
        self._room.refuse("agents")
        return self._room.agents


class _RelayLine(asyncio.Protocol):
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._decoder = relay_frames.Decoder()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._desk._line = self
        self._desk.flush()

    def data_received(self, data: bytes) -> None:
        for kind, payload in self._decoder.feed(data):
            self._desk.obey(kind, payload)


_PLAIN: Final = ('[capture]\nkind = "screen"', '[capture]\nkind = "plain"')


def changed_profile(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the generic profile with other words in it."""
    text = Path("csp/clis/generic/profile.toml").read_text("utf-8")
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "changed.toml"
    path.write_text(text, "utf-8")
    return path


def said_by(sender: str, **fields: Any) -> dict[str, Any]:
    """Return the fields that every event has, with those of its kind."""
    common = {"seq": 9, "ts": 0.0, "id": "e9", "target": "all", "thread": "main", "text": ""}
    return {**common, "sender": sender, **fields}


def body(prompt: str) -> str:
    """Return the sender's text of a prompt, without the lines of ours around it."""
    return prompt.partition("\n")[2].rpartition("\n")[0]


@contextlib.asynccontextmanager
async def desk(folder: Path, *knobs: str, **fields: Any) -> AsyncIterator[Desk]:
    """Yield a desk whose TUI has drawn its composer."""
    async with Desk(folder, *knobs, **fields) as made:
        await until(lambda: made.room.states, what="the first word of the brain")
        yield made

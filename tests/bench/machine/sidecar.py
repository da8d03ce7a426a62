"""Measure a sidecar by itself: flood, key echo, screen, start, memory, a delivery to a stand-in."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from csp.clis.profile import load_profile
from csp.errors import Broken, NotFound
from tests.bench.machine import emulator, stand_in
from tests.bench.machine.figures import Figures
from tests.bench.machine.relay import Alone, Tmux, Way, bare_memory_mb, bare_start_s, echo, flood
from tests.bench.machine.scene import Scene, Seat, answered, delivered, family_memory_mb, left, state_of

#: How long a sidecar has nothing to do before its memory is taken.
IDLE_S: Final = 1.0
#: A stand-in must look at rest for as long as a profile wants before the next message.
REST_S: Final = 0.6
#: What a delivery types around a text of ours, about: the gap depends on the size.
PROMPT_BYTES: Final = 100
_SHOWN: Final = b"STARTED"
_QUICK_CLI: Final = "echo STARTED\nexec cat"
_STEPS: Final = ("entered", "proven", "answered", "signalled")

OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured."""

    rounds: int = 5
    megabytes: int = 20
    keys: int = 500
    sample_bytes: int = emulator.SAMPLE_BYTES
    #: Starts in one round, of which the median counts.
    starts: int = 3


FULL: Final = Effort()
QUICK: Final = Effort(rounds=3, megabytes=5, keys=200, sample_bytes=1_000_000, starts=1)


class Seated:
    """The way through a real `csp sidecar`, whose brain reads the screen in a room."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._name = ""

    def command(self, argv: list[str]) -> list[str]:
        self._name = self._scene.new_name()
        env = [f"{key}={value}" for key, value in self._scene.env.items() if key != "TERM"]
        unset = [] if "PYTHONPATH" in self._scene.env else ["-u", "PYTHONPATH"]
        return ["/usr/bin/env", *unset, *env, *self._scene.sidecar(self._name, argv)]

    def wait_ready(self, tmux: Tmux) -> None:
        self._scene.ear.wait(state_of(self._name), [tmux.fileno()])

    def wait_gone(self, tmux: Tmux) -> None:
        self._scene.ear.wait(left(self._name), [tmux.fileno()])


def ways(scene: Scene) -> dict[str, Way]:
    """Return the ways a program may get to its terminal, by name, the shortest first."""
    folder = scene.folder
    return {
        "direct": Alone("direct", folder),
        "relay": Alone("relay", folder),
        "relay + emulator": Alone("screen", folder),
        "sidecar": Seated(scene),
    }


# --- start, memory -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What the start of a sidecar took, in seconds from the start of its command."""

    first_byte_s: float
    connected_s: float


@contextmanager
def started(scene: Scene) -> Iterator[tuple[Seat, Started]]:
    """Start a sidecar around a CLI that is quick to start; it has Claude Code's name, so its wiring too."""
    name = scene.new_name()
    with scene.seat(name, [scene.script("claude", _QUICK_CLI)]) as seat:
        first = seat.expect(_SHOWN) - seat.began
        connected = scene.ear.wait(state_of(name), [seat.fd]) - seat.began
        yield seat, Started(first_byte_s=first, connected_s=connected)
    scene.ear.wait(left(name))


def start_once(scene: Scene) -> Started:
    """Return what one start takes."""
    with started(scene) as (_, found):
        return found


def idle_memory_mb(scene: Scene) -> tuple[float, float]:
    """Return the resident memory of a relay with that of its brain, connected, with nothing to do.

    Resident memory counts what both share with each other, or with any other Python, as each one's own, so it
    is more than they cost; proportional memory would depend on what else runs on the machine.
    """
    with started(scene) as (seat, _):
        time.sleep(IDLE_S)
        return family_memory_mb(seat.pid)


# --- delivery ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message to a stand-in; `floor_s` is the gap plus its own time from Enter to proof."""

    confirmed_s: float
    floor_s: float
    #: From the end of the answer to the reply in the room, or to the CLI's own first signal of its end.
    reply_s: float
    signal_s: float

    @property
    def over_s(self) -> float:
        return self.confirmed_s - self.floor_s


class Post:
    """A stand-in behind a real sidecar, that can be sent messages."""

    def __init__(self, scene: Scene, seat: Seat, name: str, log: Path) -> None:
        self._scene, self._seat, self._name, self._log = scene, seat, name, log
        self._gap_s = load_profile("claude").delivery.gap_s(PROMPT_BYTES)

    def deliver(self, text: str) -> Delivery:
        """Send a message; return when it has been answered."""
        ear, drained = self._scene.ear, [self._seat.fd]
        before = len(self._times())
        began = time.time()
        message = str(self._scene.gateway.post("/message", {"to": self._name, "content": text})["id"])
        confirmed = ear.wait(delivered(message, "confirmed"), drained)
        replied = ear.wait(answered(message), drained)
        self.rest(REST_S)
        entered, proven, ended, signalled = self._times()[before : before + len(_STEPS)]
        return Delivery(
            confirmed_s=confirmed - began,
            floor_s=self._gap_s + proven - entered,
            reply_s=replied - ended,
            signal_s=signalled - ended,
        )

    def rest(self, seconds: float) -> None:
        """Wait a while, reading the terminal."""
        try:
            self._scene.ear.wait(lambda _: False, [self._seat.fd], seconds)
        except Broken:
            return

    def _times(self) -> list[float]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [float(line.partition(" ")[2]) for line in lines]


@contextmanager
def post(scene: Scene) -> Iterator[Post]:
    """Have a stand-in behind a sidecar."""
    name, log = scene.new_name(), scene.folder / f"stand-in-{time.monotonic_ns()}"
    command = [scene.script("claude", stand_in.command_line())]
    with scene.seat(name, command, STAND_IN_LOG=str(log)) as seat:
        scene.ear.wait(state_of(name, "idle"), [seat.fd])
        found = Post(scene, seat, name, log)
        found.rest(REST_S)
        yield found
    scene.ear.wait(left(name))


# --- all of it -----------------------------------------------------------------------------------


class _Run:
    """One run of the bench."""

    def __init__(self, effort: Effort, scene: Scene, figures: Figures, on_step: OnStep) -> None:
        self._effort = effort
        self._scene = scene
        self._figures = figures
        self._on_step = on_step

    def _rounds(self, what: str) -> Iterator[int]:
        for turn in range(self._effort.rounds):
            self._on_step(f"{what}, round {turn + 1} of {self._effort.rounds}")
            yield turn

    def _add_all(self, what: str, unit: str, over: str, values: dict[str, float]) -> None:
        """Take in the values of a round, with the ratios of all others to one."""
        for name, value in values.items():
            self._figures.add(f"{what}, {name}", unit, value)
        for name, value in values.items():
            if name != over:
                self._figures.add(f"{what}, {name} / {over}", "x", value / values[over])

    def panes(self) -> None:
        """Measure what a pane of tmux takes, shows."""
        effort, found = self._effort, ways(self._scene)
        with Tmux(self._scene.folder) as tmux:
            for turn in self._rounds("flood"):
                run = partial(flood, tmux, folder=self._scene.folder, megabytes=effort.megabytes)
                values = {name: run(way) for name, way in _in_turn(found, turn)}
                self._add_all("flood", "MB/s", "direct", values)
            for turn in self._rounds("key echo"):
                values = {name: echo(tmux, way, effort.keys) for name, way in _in_turn(found, turn)}
                self._add_all("key echo p50", "us", "direct", values)

    def screens(self) -> None:
        """Measure the emulator beside pyte."""
        samples = emulator.samples(self._effort.sample_bytes)
        for _ in self._rounds("screen feed"):
            for name, data in samples.items():
                ours = emulator.speed(emulator.ours(), data)
                pyte = emulator.speed(emulator.pyte_alone(), data[: len(data) // emulator.RIVAL_SHARE])
                self._add_all(f"screen feed, {name}", "MB/CPU s", "pyte", {"ours": ours, "pyte": pyte})

    def starts(self) -> None:
        """Measure starts, then memory."""
        start_once(self._scene)
        for _ in self._rounds("start"):
            pairs = [(bare_start_s(), start_once(self._scene)) for _ in range(self._effort.starts)]
            values = {
                "bare Python": median(bare for bare, _ in pairs) * 1e3,
                "child's first byte": median(found.first_byte_s for _, found in pairs) * 1e3,
                "sidecar connected": median(found.connected_s for _, found in pairs) * 1e3,
            }
            self._add_all("start", "ms", "bare Python", values)
        for _ in self._rounds("memory"):
            relay, brain = idle_memory_mb(self._scene)
            if relay == relay:
                self._figures.add("resident memory, relay", "MB", relay)
                values = {"bare Python": bare_memory_mb(), "relay + brain": relay + brain}
                self._add_all("resident memory", "MB", "bare Python", values)

    def deliveries(self) -> None:
        """Measure messages to a stand-in."""
        with post(self._scene) as found:
            found.deliver("to begin with")
            for turn in self._rounds("delivery"):
                taken = found.deliver(f"message {turn} of the bench")
                self._figures.add("send to confirmed, stand-in", "ms", taken.confirmed_s * 1e3)
                self._figures.add(
                    "send to confirmed, over the stand-in's own floor", "ms", taken.over_s * 1e3
                )
                self._figures.add("reply known, stand-in", "ms", taken.reply_s * 1e3)
                self._figures.add("reply known / first signal", "x", taken.reply_s / taken.signal_s)


def _in_turn(found: dict[str, Way], turn: int) -> Sequence[tuple[str, Way]]:
    return list(found.items())[:: 1 if turn % 2 == 0 else -1]


def measure(effort: Effort, on_step: OnStep) -> tuple[Figures, list[str]]:
    """Measure everything; return the figures with what had to be left out."""
    figures = Figures()
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="csp-bench-") as name, Scene(Path(name)) as scene:
        run = _Run(effort, scene, figures, on_step)
        for part in (run.panes, run.screens, run.starts, run.deliveries):
            try:
                part()
            except NotFound as exc:
                missing.append(f"{exc.message}; {exc.hint}")
    return figures, missing

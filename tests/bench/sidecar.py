"""The sidecar beside nothing at all: panes, screens, starts, memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Final

from tests.bench.machine import emulator
from tests.bench.machine.figures import short
from tests.bench.machine.relay import Tmux, Way, bare_memory_mb, bare_start_s, echo, flood
from tests.bench.machine.scene import Scene
from tests.bench.machine.sidecar import FULL, Started, idle_memory_mb, start_once, ways
from tests.bench.results import Rounds, Taken
from tests.bench.setting import Setting

SAMPLES: Final = ("text", "SGR", "redraw")
STARTS: Final = 5


@contextmanager
def _pane(setting: Setting) -> Iterator[tuple[Tmux, Scene]]:
    with Scene(setting.fresh()) as scene, Tmux(scene.folder) as tmux:
        yield tmux, scene


def _through_all(setting: Setting, measure: Callable[[Tmux, Scene, Way], float]) -> Rounds:
    with _pane(setting) as (tmux, scene):
        variants = {name: partial(measure, tmux, scene, way) for name, way in ways(scene).items()}
        return Rounds(variants, setting.rounds, setting.on_step)


def floods(setting: Setting) -> list[Taken]:
    """Fill a pane, through nothing, a relay, a relay with an emulator, a whole sidecar."""

    def mb_s(tmux: Tmux, scene: Scene, way: Way) -> float:
        return flood(tmux, way, scene.folder, max(1, int(FULL.megabytes * setting.seconds)))

    rounds = _through_all(setting, mb_s)
    return [rounds.ratio(name, "direct", "MB/s") for name in ("relay", "sidecar", "relay + emulator")]


def echoes(setting: Setting) -> list[Taken]:
    """Press keys, through the same."""

    def p50_us(tmux: Tmux, scene: Scene, way: Way) -> float:
        return echo(tmux, way, max(20, int(FULL.keys * setting.seconds)))

    rounds = _through_all(setting, p50_us)
    return [rounds.ratio(name, "direct", "us") for name in ("sidecar", "relay")]


def screens(setting: Setting) -> list[Taken]:
    """Feed the emulator, feed pyte."""
    size = max(200_000, int(FULL.sample_bytes * setting.seconds))
    samples = emulator.samples(size)

    def speed(name: str, feed: Callable[[], emulator.Feed], share: int) -> float:
        data = samples[name]
        return emulator.speed(feed(), data[: len(data) // share])

    each = []
    for name in SAMPLES:
        variants = {
            f"CSP, {name}": partial(speed, name, emulator.ours, 1),
            f"pyte, {name}": partial(speed, name, emulator.pyte_alone, emulator.RIVAL_SHARE),
        }
        rounds = Rounds(variants, setting.rounds, setting.on_step)
        each.append(rounds.ratio(f"CSP, {name}", f"pyte, {name}", "MB/CPU s"))
    worst = min(each, key=lambda one: median(one.ratios))
    return [worst, *each]


def starts(setting: Setting) -> list[Taken]:
    """Start a sidecar by its real command, around a CLI that is quick to start; start a bare Python."""
    found: list[list[Started]] = []
    with Scene(setting.fresh()) as scene:
        start_once(scene)

        def first_byte_ms() -> float:
            found.append([start_once(scene) for _ in range(STARTS)])
            return median(one.first_byte_s for one in found[-1]) * 1e3

        def bare_ms() -> float:
            return median(bare_start_s() for _ in range(STARTS)) * 1e3

        rounds = Rounds(
            {"bare Python": bare_ms, "child's first byte": first_byte_ms}, setting.rounds, setting.on_step
        )
    connected = [median(one.connected_s for one in ones) * 1e3 for ones in found]
    bare = rounds.values("bare Python")
    ratios = [value / other for value, other in zip(connected, bare, strict=True)]
    note = f"connected {short(median(connected))} ms, bare Python {short(median(bare))} ms"
    return [rounds.ratio("child's first byte", "bare Python", "ms"), Taken(ratios, note)]


def memory(setting: Setting) -> list[Taken]:
    """Weigh a relay with its brain, connected, idle: resident memory, so shared pages count twice."""
    relays: list[float] = []
    with Scene(setting.fresh()) as scene:

        def family_mb() -> float:
            relay, brain = idle_memory_mb(scene)
            relays.append(relay)
            return relay + brain

        variants = {"bare Python": bare_memory_mb, "relay + brain": family_mb}
        rounds = Rounds(variants, setting.rounds, setting.on_step)
    bare = rounds.values("bare Python")
    ratios = [value / other for value, other in zip(relays, bare, strict=True)]
    note = f"relay {short(median(relays))} MB, bare Python {short(median(bare))} MB"
    return [rounds.ratio("relay + brain", "bare Python", "MB"), Taken(ratios, note)]

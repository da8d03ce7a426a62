"""Feed terminal emulators, to see what a byte costs them."""

import random
import time
from collections.abc import Callable
from typing import Final

from csp.sidecar.emulator import make_emulator
from tests.bench.machine.figures import Figures

ROWS: Final = 50
COLS: Final = 120
#: Bytes that a relay hands on at once.
PIECE: Final = 16 * 1024
#: A rival may be slower by two orders of magnitude, so it gets less to do.
RIVAL_SHARE: Final = 50
SAMPLE_BYTES: Final = 4_000_000

Feed = Callable[[bytes], object]


def samples(size: int = SAMPLE_BYTES) -> dict[str, bytes]:
    """Return what programs write, by kind: plain text, text full of colours, a TUI that draws itself anew."""
    chance = random.Random(11)
    words = ["parser", "the", "keeps", "order", "of", "arguments", "see", "test", "beside", "it", "ä", "日本"]

    def line() -> str:
        return " ".join(chance.choice(words) for _ in range(14))

    text = "".join(f"{line()}\r\n" for _ in range(2000))
    coloured = "".join(
        "".join(f"\x1b[38;5;{chance.randrange(256)}m{word}\x1b[0m " for word in line().split()) + "\r\n"
        for _ in range(1000)
    )
    redraw = "".join(
        "\x1b[?2026h\x1b[H"
        + "".join(f"\x1b[{row};1H\x1b[2K\x1b[2m│\x1b[22m {line()}" for row in range(1, ROWS))
        + f"\x1b[{ROWS};3H\x1b[7m \x1b[27m\x1b[?2026l"
        for _ in range(30)
    )
    return {
        name: (sample.encode() * (1 + size // len(sample.encode())))[:size]
        for name, sample in (("text", text), ("SGR", coloured), ("redraw", redraw))
    }


def measure_emulator(
    figures: Figures, rounds: int, progress: Callable[[str], None], size: int = SAMPLE_BYTES
) -> None:
    """Take MB per CPU second of ours with each sample."""
    for number in range(rounds):
        for name, data in samples(size).items():
            progress(f"emulator, {name}, round {number + 1} of {rounds}")
            figures.add(f"screen feed, {name}", "MB/CPU s", speed(ours(), data))


def ours() -> Feed:
    return make_emulator(ROWS, COLS).feed


def pyte_alone() -> Feed:
    """Return the feed of pyte as it comes, the yardstick of the limits."""
    import pyte

    return pyte.ByteStream(pyte.Screen(COLS, ROWS)).feed


def speed(feed: Feed, data: bytes) -> float:
    """Return the MB that one second of CPU time takes in."""
    pieces = [data[place : place + PIECE] for place in range(0, len(data), PIECE)]
    start = time.process_time()
    for piece in pieces:
        feed(piece)
    return len(data) / (time.process_time() - start) / 1e6


def ratio(sample: str, size: int = SAMPLE_BYTES) -> float:
    """Return how many times faster ours takes in a sample than pyte."""
    data = samples(size)[sample]
    return speed(ours(), data) / speed(pyte_alone(), data[: len(data) // RIVAL_SHARE])

"""A flood neither makes the relay grow nor delays the person."""

import os
import time
from pathlib import Path
from typing import Final

import pytest

from tests.sidecar.panes import IDLE_BRAIN, TIMEOUT_S, Pane, launcher, python
from tests.sidecar.test_relay import RAW
from tests.waiting import wait_until_sync

FLOOD_BYTES: Final = 200 * 1000 * 1000
#: The allocator's own slack settles below 2 MiB, however long the flood; what is kept of one shows at once.
SLACK_KIB: Final = 4096
#: Says how late each key was, in the middle of its flood or of nothing; ends with `q`.
FLOODING: Final = RAW + (
    "import select, time\n"
    "line = b'the quick brown fox jumps over the lazy dog ' * 90 + b'\\r\\n'\n"
    "left = int(sys.argv[1])\n"
    "os.set_blocking(1, False)\n"
    "keys = open(sys.argv[2], 'wb', 0)\n"
    "while True:\n"
    "  r, w, _ = select.select([0], [1] if left > 0 else [], [])\n"
    "  if r:\n"
    "    key = os.read(0, 100)\n"
    "    keys.write(b'%f\\n' % time.monotonic())\n"
    "    if b'q' in key: break\n"
    "  elif w: left -= os.write(1, line)\n"
)
#: Never reads what it is told; ends with the relay.
STUCK_BRAIN: Final = python("import select; p = select.poll(); p.register(3, select.POLLHUP); p.poll()")


def memory_kib(pid: int) -> int:
    (line,) = (
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1])


def written(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[3])


def flood(path: Path) -> list[str]:
    return python(FLOODING, str(FLOOD_BYTES), str(path))


def lag(pane: Pane, path: Path) -> int:
    """Press some keys; return how much of the flood is shown before one has arrived, at the median."""
    counts = []
    for number in range(1, 16):
        deadline, count = time.monotonic() + TIMEOUT_S, 0
        pane.press(b"k")
        while len(path.read_bytes().splitlines()) < number:
            count += len(pane.read(0.0))
            pane.seen.clear()
            assert time.monotonic() < deadline, "a key has not arrived"
        counts.append(count)
    return sorted(counts)[7]


def read_on(pane: Pane, count: int) -> None:
    while count > 0:
        data = pane.read(TIMEOUT_S)
        assert data, "the flood has ended"
        count -= len(data)
        pane.seen.clear()


@pytest.mark.parametrize(
    ("brain", "megabytes"), [(IDLE_BRAIN, 50), (STUCK_BRAIN, 20)], ids=["quick brain", "stuck brain"]
)
def test_a_flood_neither_grows_memory_nor_delays_keys(
    tmp_path: Path, brain: list[str], megabytes: int
) -> None:
    with Pane(launcher(flood(tmp_path / "keys"), tmp_path, brain)) as pane:
        read_on(pane, 10_000_000)
        before = memory_kib(pane.process.pid)
        relayed = lag(pane, tmp_path / "keys")
        read_on(pane, megabytes * 1_000_000)
        grown = memory_kib(pane.process.pid) - before
        pane.press(b"q")
        pane.wait()

    assert grown < SLACK_KIB
    # Far less than the flood: a key does not wait for its end.
    assert relayed < 5_000_000


def test_a_terminal_that_takes_nothing_delays_no_key_and_fills_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with Pane(launcher(python(FLOODING, str(FLOOD_BYTES), str(path)), tmp_path)) as pane:
        pane.expect(b"READY")
        pane.wait_raw()
        # Nobody reads the terminal from here on, so that it fills up.
        sizes: list[int] = []

        def is_full() -> bool:
            sizes.append(written(pane.process.pid))
            return len(sizes) > 30 and len(set(sizes[-30:])) == 1

        wait_until_sync(is_full, TIMEOUT_S)
        before = memory_kib(pane.process.pid)
        os.write(pane.fd, b"k")
        wait_until_sync(lambda: path.read_bytes().count(b"\n") == 1, timeout_s=TIMEOUT_S)
        os.write(pane.fd, b"q")
        wait_until_sync(lambda: path.read_bytes().count(b"\n") == 2, timeout_s=TIMEOUT_S)

        assert memory_kib(pane.process.pid) - before < 1024


def test_a_child_that_ends_before_a_blocked_terminal_does_not_keep_the_relay(tmp_path: Path) -> None:
    code = (
        RAW + "os.set_blocking(1, False)\ntry:\n  while True: os.write(1, b'x' * 4096)\nexcept OSError: pass"
    )
    with Pane(launcher(python(code), tmp_path)) as pane:
        pane.process.wait(TIMEOUT_S)
        assert pane.process.returncode == 0

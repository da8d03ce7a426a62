"""Records the demo room as a person would see it, then draws it for the README.

    python -m tests.picture.record            # writes demo.cast and demo.svg beside this file

The room, its tmux server and its home are its own; nothing of the user's is touched.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.picture.svg import Cast, render, write_cast

ROWS: Final = 34
COLS: Final = 126
HERE: Final = Path(__file__).parent
CSP: Final = Path(sys.executable).parent / "csp"
KEY_S: Final = 0.045

#: What the person types, and how long it is then watched.
STORY: Final = (
    ("@all tabs or spaces? one sentence, please", 9.0),
    ("@bob what do you say to this: {ada.last}", 7.0),
    ("/agents", 3.0),
)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="csp-picture-") as home:
        env = _environment(Path(home))
        csp = [str(CSP), "up", "--demo", "--detach", "--history", f"{home}/history"]
        subprocess.run(csp, env=env, cwd=home, check=True, stdout=subprocess.DEVNULL)
        try:
            cast = _record(env, home)
        finally:
            subprocess.run([str(CSP), "down"], env=env, cwd=home, check=True)
    write_cast(HERE / "demo.cast", cast)
    picture = render(cast)
    (HERE / "demo.svg").write_text(picture, "utf-8")
    print(f"demo.svg: {len(picture) // 1024} KB, {cast.chunks[-1][0]:.0f} s")
    return 0


def _environment(home: Path) -> dict[str, str]:
    for name in ("run", "tmux", "project"):
        (home / name).mkdir(mode=0o700)
    return {
        "HOME": str(home),
        "PATH": f"{CSP.parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "XDG_RUNTIME_DIR": str(home / "run"),
        "TMUX_TMPDIR": str(home / "tmux"),
    }


def _record(env: dict[str, str], home: str) -> Cast:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        os.execvpe("tmux", ["tmux", "attach", "-t", "csp"], env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
    start = time.monotonic()
    chunks = []
    keys = _keys()
    due = start + 2.5
    try:
        while True:
            for data in _read(terminal, due - time.monotonic()):
                chunks.append((time.monotonic() - start, data))
            if time.monotonic() >= due:
                key, pause = next(keys, (b"", -1.0))
                if pause < 0:
                    return Cast(rows=ROWS, cols=COLS, chunks=tuple(chunks))
                os.write(terminal, key)
                due = time.monotonic() + pause
    finally:
        os.kill(pid, signal.SIGHUP)
        os.waitpid(pid, 0)
        os.close(terminal)


def _keys() -> Iterator[tuple[bytes, float]]:
    """Yield each key with the pause behind it."""
    for line, pause in STORY:
        for char in line:
            yield char.encode(), KEY_S
        yield b"", 0.4
        yield b"\r", pause


def _read(terminal: int, timeout_s: float) -> Iterator[bytes]:
    while select.select([terminal], [], [], max(0.0, timeout_s))[0]:
        yield os.read(terminal, 65536)
        timeout_s = 0.0


if __name__ == "__main__":
    sys.exit(main())

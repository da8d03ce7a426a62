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

ROWS: Final = 38
COLS: Final = 140
HERE: Final = Path(__file__).parent
CSP: Final = Path(sys.executable).parent / "csp"
KEY_S: Final = 0.045
#: The room is named after its directory.
PROJECT: Final = "shop"

#: What the person types, what is then waited for, how often it comes, how long it is looked at.
STORY: Final = (
    ("@all tabs or spaces?", b"\xe2\x97\x8f", 3, 2.0),
    ('/mode debate "tabs or spaces" --rounds 2', b"DEBATE complete.", 1, 1.0),
)
PATIENCE_S: Final = 60.0


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="csp-picture-") as home:
        env = environment(Path(home))
        project = f"{home}/{PROJECT}"
        csp = [str(CSP), "up", "--demo", "--detach", "--layout", "left"]
        subprocess.run(csp, env=env, cwd=project, check=True, stdout=subprocess.DEVNULL)
        try:
            cast = _record(env, project)
        finally:
            subprocess.run([str(CSP), "down"], env=env, cwd=project, check=True)
    write_cast(HERE / "demo.cast", cast)
    picture = render(cast)
    (HERE / "demo.svg").write_text(picture, "utf-8")
    print(f"demo.svg: {len(picture) // 1024} KB, {cast.chunks[-1][0]:.0f} s")
    return 0


def environment(home: Path) -> dict[str, str]:
    for name in ("run", "tmux", PROJECT):
        (home / name).mkdir(mode=0o700)
    return {
        "HOME": str(home),
        "PATH": f"{CSP.parent}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "XDG_RUNTIME_DIR": str(home / "run"),
        "TMUX_TMPDIR": str(home / "tmux"),
    }


def _record(env: dict[str, str], project: str) -> Cast:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project)
        os.execvpe("tmux", ["tmux", "attach", "-t", f"=csp-{PROJECT}"], env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
    film = _Film(terminal)
    try:
        film.watch(2.0)
        for line, sign, times, look_s in STORY:
            for char in line:
                os.write(terminal, char.encode())
                film.watch(KEY_S)
            film.watch(0.4)
            os.write(terminal, b"\r")
            film.watch_for(sign, times)
            film.watch(look_s)
    finally:
        os.kill(pid, signal.SIGHUP)
        os.waitpid(pid, 0)
        os.close(terminal)
    return Cast(rows=ROWS, cols=COLS, chunks=tuple(film.chunks))


class _Film:
    """What a terminal has shown, with the moments."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._start = time.monotonic()
        self.chunks: list[tuple[float, bytes]] = []

    def watch(self, seconds: float) -> None:
        """Look on for a while."""
        due = time.monotonic() + seconds
        while (left := due - time.monotonic()) > 0:
            for data in _read(self._terminal, left):
                self.chunks.append((time.monotonic() - self._start, data))

    def watch_for(self, sign: bytes, times: int) -> None:
        """Look on until a sign has come so many times from now on."""
        first, deadline = len(self.chunks), time.monotonic() + PATIENCE_S
        while b"".join(data for _, data in self.chunks[first:]).count(sign) < times:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{sign.decode()!r} was not shown")
            self.watch(0.1)


def _read(terminal: int, timeout_s: float) -> Iterator[bytes]:
    while select.select([terminal], [], [], max(0.0, timeout_s))[0]:
        yield os.read(terminal, 65536)
        timeout_s = 0.0


if __name__ == "__main__":
    sys.exit(main())

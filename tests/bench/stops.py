"""The ways to ALLSTOP: each begins it and returns at once; the journal shows when it was done."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

from csp.fast_start.child_environment import HELPER, child_environment
from tests.bench.machine.process import ROOM, TOKEN, Server
from tests.clis.terminal import Terminal
from tests.web.browser import FLAGS, find_chromium

HOST: Final = "127.0.0.1"
_ROOT: Final = Path(__file__).resolve().parents[2]
_TIMEOUT_S: Final = 60.0
#: How often the journal is looked at; what is measured is exact to that.
_LOOK_S: Final = 0.001
_ENDED: Final = b'"change":"ended"'
_CSP: Final = (sys.executable, "-P", "-m", "csp.cli")
_F12: Final = b"\x1b[24~"


@dataclass(frozen=True, slots=True)
class Place:
    """A running gateway with its folder, for programs that find the room as a user's do."""

    server: Server
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return child_environment(
            HELPER,
            {},
            {
                "PATH": "/usr/bin:/bin",
                "HOME": str(self.folder),
                "XDG_RUNTIME_DIR": str(self.folder),
                "CSP_AUTH_TOKEN": TOKEN,
                "CSP_ROOM": ROOM,
                "CSP_HISTORY_DIR": str(self.folder),
                "PYTHONPATH": str(_ROOT),
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
            },
        )

    @property
    def journal(self) -> Path:
        return next(self.folder.glob("**/journal.jsonl"))


Press = Callable[[], None]


class Journal:
    """The end of a journal, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)

    def close(self) -> None:
        self._file.close()

    def skip(self) -> None:
        """Go to the end."""
        self._file.seek(0, 2)

    def wait_ended(self) -> float:
        """Return when the end of a session was first seen in it."""
        rest, deadline = b"", time.perf_counter() + _TIMEOUT_S
        while True:
            rest = rest[-len(_ENDED) :] + self._file.read()
            now = time.perf_counter()
            if _ENDED in rest:
                return now
            if now > deadline:
                raise RuntimeError("no session has ended")
            time.sleep(_LOOK_S)


def post(port: int) -> None:
    """Send POST /stop over a new connection; its answer is not read."""
    body = b'{"all":true}'
    head = (
        f"POST /stop HTTP/1.1\r\nHost: {HOST}\r\nX-Auth-Token: {TOKEN}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    peer = socket.create_connection((HOST, port), _TIMEOUT_S)
    peer.sendall(head.encode() + body)
    # It is closed once it was answered, which nobody waits for here.
    threading.Thread(target=_read_and_close, args=(peer,), daemon=True).start()


def _read_and_close(peer: socket.socket) -> None:
    with peer:
        peer.recv(65536)


class Shell:
    """csp stop."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._processes: list[subprocess.Popen[bytes]] = []

    def press(self) -> None:
        self._processes.append(self._start("stop"))

    def close(self) -> None:
        for process in self._processes:
            process.wait(_TIMEOUT_S)

    def start_up_s(self) -> float:
        """Return what the same command takes without a room: Python, its modules, the search for the room."""
        began = time.perf_counter()
        self._start("stop", "--room", "nowhere").wait(_TIMEOUT_S)
        return time.perf_counter() - began

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            [*_CSP, *words],
            env=self._place.env,
            cwd=self._place.folder,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
        )


@contextlib.contextmanager
def pane(place: Place) -> Iterator[Terminal]:
    """The human pane in a terminal, which shows everything that is said."""
    with Terminal([*_CSP, "chat"], place.env, place.folder, rows=24, columns=80) as terminal:
        terminal.wait_for("^(→|->)all>", _TIMEOUT_S)
        terminal.wait_gone("joining the room", _TIMEOUT_S)
        yield terminal


@contextlib.contextmanager
def page(place: Place, link: str) -> Iterator[Press]:
    """The page in Chromium; what is returned clicks its red button."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(FLAGS), chromium_sandbox=False
        )
        opened: Page = browser.new_page()
        opened.goto(f"http://{HOST}:{place.server.port}{link}")
        opened.wait_for_selector('body[data-room="open"][data-link="live"]')
        box = opened.locator("#allstop").bounding_box()
        assert box is not None
        at = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        wire = opened.context.new_cdp_session(opened)

        def click() -> None:
            """Press the button of the mouse and let it go, as the window system would report it."""
            for kind in ("mousePressed", "mouseReleased"):
                wire.send(
                    "Input.dispatchMouseEvent",
                    {"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1},
                )

        yield click
        browser.close()


@contextlib.contextmanager
def all_ways(place: Place, link: str) -> Iterator[dict[str, Press]]:
    """Open a pane and a page; return what begins an ALLSTOP, by the name of the way."""
    shell = Shell(place)
    with pane(place) as terminal, page(place, link) as click:
        yield {
            "HTTP": lambda: post(place.server.port),
            "csp stop": shell.press,
            "pane, typed": lambda: terminal.send(b"Allstop\r"),
            "pane, F12": lambda: terminal.send(_F12),
            "page": click,
        }
        shell.close()


def start_up_s(place: Place, tries: int = 9) -> float:
    """Return the median of what `csp stop` takes before it has anything to say to a room."""
    shell = Shell(place)
    return sorted(shell.start_up_s() for _ in range(tries))[tries // 2]

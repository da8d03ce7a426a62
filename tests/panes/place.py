"""A home with a project and a tmux server of its own, all of which is gone at the end."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pexpect

from csp.config import read_project_file
from csp.errors import BadInput
from csp.http_client import GatewayClient
from csp.panes.processes import Process, alive, family, matching
from csp.room_registry import RunningRoom, running_rooms
from csp.trust import Accepted, examine
from tests.forks import run
from tests.rooms import ROOT, free_port
from tests.sidecar.stage import tui
from tests.waiting import wait_until_sync


@dataclass
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Place:
    """One user with one project; `csp` runs there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        #: Its room is named after it.
        self.dir = folder / "default"
        self.history = folder / "history"
        self.state = folder / "run" / "csp"
        for path in (self.home, self.dir, folder / "run", folder / "tmux"):
            path.mkdir(mode=0o700, parents=True)
        #: Whether the csp.toml of the project is accepted before each command.
        self.is_trusting = True
        self._more: dict[str, str] = {}
        self._seen: set[Process] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.watch()
        self.tmux("kill-server", check=False)
        wait_until_sync(self._kill_all, 60.0, "the end of all processes")

    def _kill_all(self) -> bool:
        """Kill what is left; tell whether there was nothing.

        A supervisor that sees its gateway die before it is killed itself starts one more, which nobody has
        seen yet: its command line has the folder in it.
        """
        left = alive(self._seen) | matching(f"{self.folder}/")
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        return not left

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "TMUX_TMPDIR": str(self.folder / "tmux"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "CSP_HISTORY_DIR": str(self.history),
            "CSP_PORT": str(free_port()),
            **self._more,
        }

    def set(self, **variables: str) -> None:
        """Set variables for every command from now on."""
        self._more |= variables

    def unset(self, name: str) -> None:
        """Unset a variable that was set before."""
        del self._more[name]

    def accept(self) -> None:
        """Accept the csp.toml of the project as it is now, as its user would by `csp trust`."""
        data = read_project_file(self.dir / "csp.toml")
        found = examine(self.dir / "csp.toml", data) if data is not None else None
        if found is not None:
            Accepted(self.env).add(found)

    def _accept_if_trusting(self) -> None:
        if self.is_trusting:
            with contextlib.suppress(BadInput):
                self.accept()

    command: Final = (sys.executable, "-P", "-m", "csp.cli")

    # --- commands --------------------------------------------------------------------------------

    def start(self, *argv: str) -> "subprocess.Popen[str]":
        """Start csp as a process with a command line of its own."""
        self._accept_if_trusting()
        return subprocess.Popen(
            [*self.command, *argv],
            cwd=self.dir,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def csp(self, *argv: str) -> Done:
        """Run csp to its end."""
        self._accept_if_trusting()
        try:
            done = run(argv, self.dir, self.env)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"csp {argv} did not end:\n{self.shown()}") from None
        self.watch()
        return Done(done.returncode, done.stdout, done.stderr)

    def up(self, *argv: str) -> Done:
        """Open the room without attaching; it must work."""
        done = self.csp("up", "--detach", *argv)
        assert done.code == 0, f"{done.err}\n{self.shown()}"
        return done

    def terminal(self, *argv: str, rows: int = 50, cols: int = 200) -> "pexpect.spawn[str]":
        """Start csp in a terminal of its own."""
        if self.is_trusting:
            self.accept()
        return pexpect.spawn(
            self.command[0],
            [*self.command[1:], *argv],
            cwd=str(self.dir),
            env=self.env,
            dimensions=(rows, cols),
            encoding="utf-8",
            timeout=120,
        )

    # --- the project -----------------------------------------------------------------------------

    def agents(self, *names: str, more: str = "", knobs: tuple[str, ...] = ()) -> None:
        """Write a csp.toml with scripted agents of these names."""
        rows = []
        for name in names:
            command = shlex.join(tui(self.folder / f"{name}.log", *knobs))
            rows.append(
                f'[[agent]]\nname = "{name}"\nprofile = "generic"\ncommand = {json.dumps(command)}\n{more}'
            )
        (self.dir / "csp.toml").write_text("\n".join(rows))

    def program(self, name: str, text: str) -> Path:
        """Put a program on the PATH."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
        self.set(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
        return path

    # --- the room --------------------------------------------------------------------------------

    @property
    def room(self) -> RunningRoom:
        # A gateway that was killed has no room until the next one is there.
        (room,) = wait_until_sync(lambda: running_rooms(self.state), 60.0, "a running room")
        return room

    @property
    def gateway(self) -> GatewayClient:
        return GatewayClient(self.room.url, self.room.token)

    def online(self) -> dict[str, str]:
        """Return the state of each agent that is online."""
        return {item["id"]: item["state"] for item in self.gateway.get("/agents") if item["online"]}

    def attached(self) -> list[str]:
        """Return the session of each person's client; the human pane holds one of its own for the borders."""
        form = "#{?client_control_mode,,#{session_name}}"
        return self.tmux("list-clients", "-F", form, check=False).split()

    def watch(self) -> None:
        """Remember the processes of the room, so that they can be missed or ended later."""
        roots = [pid for room in running_rooms(self.state) for pid in (room.supervisor, room.pid) if pid]
        roots += [int(pid) for pid in self.tmux("list-panes", "-a", "-F", "#{pane_pid}", check=False).split()]
        self._seen |= family(roots)

    def left_over(self) -> list[str]:
        """Return the processes of the room that still live."""
        return sorted(process.command for process in alive(self._seen))

    @property
    def seen_commands(self) -> list[str]:
        return sorted(process.command for process in self._seen)

    # --- tmux ------------------------------------------------------------------------------------

    def tmux(self, *words: str, check: bool = True) -> str:
        env = {**self.env, "PATH": os.environ["PATH"]}
        done = subprocess.run(["tmux", *words], env=env, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def panes(self, session: str = "csp") -> list[dict[str, Any]]:
        """Return the panes of a session: who, which window, which size and place."""
        names = ["@csp_agent", "window_index", "pane_width", "pane_height", "pane_left", "pane_top"]
        names += ["pane_dead", "pane_id"]
        form = " ".join(f"#{{{name}}}" for name in names) + " #{?@csp_state,#{@csp_state},-}"
        rows = [
            row.split(" ", 8) for row in self.tmux("list-panes", "-s", "-t", session, "-F", form).splitlines()
        ]
        keys = ("agent", "window", "cols", "rows", "left", "top", "dead", "id", "state")
        return [
            {key: int(value) if value.isdigit() else value for key, value in zip(keys, row, strict=True)}
            for row in rows
        ]

    def pane(self, agent: str) -> dict[str, Any]:
        return next(pane for pane in self.panes() if pane["agent"] == agent)

    def screen(self, agent: str) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-t", str(self.pane(agent)["id"]))

    def border(self, agent: str) -> str:
        """Return the border of a pane as tmux draws it, styles as they are written."""
        pane = self.pane(agent)
        window = f"csp:{pane['window']}"
        form = self.tmux("show-options", "-wv", "-t", window, "pane-border-format").rstrip("\n")
        return self.tmux("display-message", "-p", "-t", str(pane["id"]), form).strip()

    def shown(self) -> str:
        """Return what all panes show, for a test that fails."""
        ids = self.tmux("list-panes", "-a", "-F", "#{pane_id}", check=False).split()
        return "\n".join(self.tmux("capture-pane", "-p", "-t", pane, check=False).strip() for pane in ids)

    def wait(self, condition: Any, what: str, timeout_s: float = 60.0) -> Any:
        try:
            return wait_until_sync(condition, timeout_s, what)
        except AssertionError as exc:
            exc.add_note(self.shown())
            raise

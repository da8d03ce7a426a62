"""A room with real sidecars in real tmux panes, for tests that play a whole scene."""

import contextlib
import itertools
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from csp.sidecar.run_record import SidecarRecord, agents_dir
from tests.rooms import ROOT, LiveRoom
from tests.waiting import wait_until_sync

T = TypeVar("T")

READY_S: Final = 180.0
_counter = itertools.count()


class Stage:
    """One room, one tmux server; everything that was started is gone at the end."""

    def __init__(self, folder: Path, *, rows: int = 40, cols: int = 120) -> None:
        self.folder = folder
        self.room = LiveRoom(folder / "room")
        self._size = (rows, cols)
        self._socket = folder / f"tmux{next(_counter)}"
        self.seats: dict[str, Seat] = {}

    def __enter__(self) -> Self:
        self.room.start()
        # A server that ends with its last session may be ending while the next session is asked for.
        self.tmux("start-server", ";", "set-option", "-g", "exit-empty", "off")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        pids = [pid for seat in self.seats.values() for pid in seat.pids()]
        self.tmux("kill-server", check=False)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._socket.unlink(missing_ok=True)
        self.room.stop()

    def tmux(self, *words: str, check: bool = True) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", "/dev/null", *words]
        return subprocess.run(command, capture_output=True, text=True, check=check).stdout

    def seat(
        self,
        name: str,
        argv: Sequence[str],
        *options: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> "Seat":
        """Start a sidecar in a pane of its own."""
        seat = Seat(self, name, list(argv), list(options), dict(env or {}), cwd or self.room.dir)
        self.seats[name] = seat
        seat.start()
        wait_until_sync(lambda: self.agent(name), READY_S, f"{name} in the room:\n{seat.screen()}")
        return seat

    # --- the room --------------------------------------------------------------------------------

    def press(self, agent: str, verb: str) -> None:
        """Answer an agent's dialog as the human; fail with the reason if the answer did not close it."""
        answer = self.room.gateway.post(f"/agents/{agent}/{verb}")
        reason = self.wait_for(answer["id"], agent, "confirmed", "failed", "expired", timeout_s=180.0)
        assert self.state(answer["id"], agent)[0] == "confirmed", f"{verb}: {reason}"

    def send(self, to: str, text: str, **fields: object) -> str:
        """Send as the human; return the message's id."""
        answer = self.room.gateway.post("/message", {"to": to, "content": text, **fields})
        return str(answer["id"])

    def state(self, message: str, agent: str) -> tuple[str, str | None]:
        """Return how far a message has come, and why."""
        view = self.room.gateway.get(f"/messages/{message}")["recipients"][agent]
        return view["state"], view.get("reason")

    def wait_for(self, message: str, agent: str, *states: str, timeout_s: float = 60.0) -> str | None:
        """Wait until a message is in one of the states; return the reason."""
        found = self.wait(
            lambda: (state := self.state(message, agent))[0] in states and state,
            timeout_s,
            f"{message} to {agent} {'|'.join(states)}",
            agent,
        )
        assert found
        return found[1]

    def replies(self, agent: str) -> list[dict[str, Any]]:
        """Return what an agent has answered, oldest first."""
        page = self.room.gateway.get("/history", types="agent_response", agent=agent, limit=1000)
        return [item for item in page["items"] if item["sender"] == agent]

    def reply_to(self, message: str, agent: str, timeout_s: float = 60.0) -> dict[str, Any]:
        """Wait for the answer of an agent to a message."""
        return self.wait(
            lambda: next((reply for reply in self.replies(agent) if reply.get("replyTo") == message), {}),
            timeout_s,
            f"the reply of {agent} to {message}",
            agent,
        )

    def wait(self, condition: Callable[[], T], timeout_s: float, what: str, agent: str) -> T:
        """Wait for a condition; if it does not come true, say how things are with an agent by then."""
        try:
            return wait_until_sync(condition, timeout_s, what)
        except AssertionError as error:
            inbox = self.room.gateway.get("/queue")["items"]
            seat = self.seats[agent]
            about = f"{self.agent(agent)}\n{inbox}\n{seat.screen()}\n{seat.log()[-4000:]}"
            raise AssertionError(f"{error}\n{about}") from None

    def agent(self, name: str) -> dict[str, Any]:
        """Return what the room shows of an agent."""
        return next((view for view in self.room.gateway.get("/agents") if view["id"] == name), {})


class Seat:
    """One sidecar in its pane."""

    def __init__(
        self, stage: Stage, name: str, argv: list[str], options: list[str], env: dict[str, str], cwd: Path
    ) -> None:
        self._stage = stage
        self.name = name
        self.argv, self.options, self.cwd = argv, options, cwd
        ours = stage.room.env
        kept = ("XDG_RUNTIME_DIR", "CSP_ROOM", "PYTHONPATH")
        self.env = {**ours, **env, **{key: ours[key] for key in kept}}

    def start(self) -> None:
        """Start the sidecar in a window of its own."""
        command = [sys.executable, "-m", "csp.cli", "sidecar", "--name", self.name]
        command += [*self.options, "--", *self.argv]
        script = self._stage.folder / f"{self.name}.sh"
        # Nothing of the caller's environment: Gemini takes CI=true for a run without a person.
        values = [f"{key}={value}" for key, value in self.env.items() if key != "TERM"]
        words = shlex.join([*values, *command])
        self.ended.unlink(missing_ok=True)
        script.write_text(
            f'cd {shlex.quote(str(self.cwd))}\nenv -i TERM="$TERM" {words}\n'
            f"echo $? > {shlex.quote(str(self.ended))}\n"
        )
        rows, cols = self._stage._size
        self._stage.tmux(
            "new-session", "-d", "-s", self.name, "-x", str(cols), "-y", str(rows), f"sh {script}"
        )
        self._stage.tmux("set-option", "-t", self.name, "remain-on-exit", "on")

    @property
    def ended(self) -> Path:
        """Holds the exit code once the sidecar has ended; tmux 3.3a often forgets that of a dead pane."""
        return self._stage.folder / f"{self.name}.exit"

    def wait_ready(self, state: str = "idle", timeout_s: float = READY_S) -> None:
        """Wait until the room shows the agent in a state."""
        self._stage.wait(
            lambda: self._stage.agent(self.name).get("state") == state,
            timeout_s,
            f"{self.name} {state}",
            self.name,
        )

    def screen(self) -> str:
        """Return what the pane shows."""
        return self._stage.tmux("capture-pane", "-p", "-t", self.name, check=False)

    def keys(self, *keys: str) -> None:
        """Press keys at the pane, by their tmux names."""
        self._stage.tmux("send-keys", "-t", self.name, *keys)

    def type(self, text: str) -> None:
        """Type text at the pane, as a person would."""
        self._stage.tmux("send-keys", "-t", self.name, "-l", "--", text)

    def resize(self, rows: int, cols: int) -> None:
        self._stage.tmux("resize-window", "-t", self.name, "-x", str(cols), "-y", str(rows))

    @property
    def folder(self) -> Path:
        state_dir = Path(self.env["XDG_RUNTIME_DIR"]) / "csp"
        return agents_dir(state_dir, self._stage.room.name) / self.name

    def log(self) -> str:
        """Return what the brain has logged."""
        path = self.folder / "brain.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def relay(self) -> int:
        run = SidecarRecord.load(self.folder)
        assert run is not None
        return run.pid

    def _children(self) -> list[tuple[int, str]]:
        listing = subprocess.run(
            ["ps", "-o", "pid=,args=", "--ppid", str(self.relay)], capture_output=True, text=True, check=False
        ).stdout
        rows = [line.split(None, 1) for line in listing.splitlines()]
        return [(int(pid), args) for pid, args in rows]

    @property
    def brain(self) -> int:
        """The process id of the brain; 0 while there is none."""
        return next((pid for pid, args in self._children() if "csp.cli.brain" in args), 0)

    @property
    def cli(self) -> int:
        """The process id of the CLI, which must run."""
        (cli, *_) = self.clis()
        return cli

    def clis(self) -> list[int]:
        """Return the process id of the CLI; none between the end of one and the start of the next."""
        return [pid for pid, args in self._children() if "csp.cli.brain" not in args]

    def pids(self) -> list[int]:
        """Return all that may have to be killed at the end."""
        run = SidecarRecord.load(self.folder)
        if run is None:
            return []
        with contextlib.suppress(subprocess.SubprocessError):
            return [run.pid, *(pid for pid, _ in self._children())]
        return [run.pid]


def tui(log: Path, *knobs: str) -> list[str]:
    """Return the command of the scripted TUI, which logs what it is given."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import runpy; "
        "runpy.run_module('tests.tui', run_name='__main__')"
    )
    return [sys.executable, "-I", "-c", code, "--log", str(log), *knobs]

"""Start API models in the background, for a room without panes."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from csp.errors import Broken, CspError
from csp.fast_start.child_environment import CONNECTOR, MADE, child_environment
from csp.http_client import GatewayClient, objects
from csp.panes.pane_borders import MARK
from csp.panes.tmux_session import room_key
from csp.panes.wait_ready import PATIENCE_S, StartOutcome
from csp.sidecar.run_record import SidecarRecord, agents_dir

_POLL_S: Final = 0.1
_TAIL_BYTES: Final = 4096


class BackgroundAgent:
    """A model that keeps running after this command; `csp down` ends it."""

    def __init__(self, state_dir: Path, room: str, gateway: GatewayClient) -> None:
        self._state_dir = state_dir
        self._room = room
        self._gateway = gateway

    def start(
        self,
        name: str,
        argv: Sequence[str],
        dir: Path,
        env: Mapping[str, str],
        show: Callable[[str], None],
        keys: tuple[str, ...] = (),
    ) -> StartOutcome:
        """Start it; return the outcome once it has joined, has ended, or time is up.

        `keys` are the variables that the SDK of its provider reads.
        """
        own = {MARK: room_key(self._state_dir, self._room), MADE: "1"}
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                argv,
                cwd=dir,
                env=child_environment(CONNECTOR, env, own, keys=keys),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                show(f"waiting for {name}…")
                if found := self._found(process.pid):
                    return found
                if process.poll() is not None:
                    said.seek(max(0, said.seek(0, 2) - _TAIL_BYTES))
                    lines = said.read().decode(errors="replace").splitlines()
                    told = [line.removeprefix("csp: ") for line in lines if line.startswith("csp: ")]
                    raise Broken(f"{name} has ended: {(told or lines or ['it said nothing'])[-1]}", "")
                time.sleep(_POLL_S)
            process.terminate()
            return StartOutcome(name, "offline", f"{name} has not joined after {PATIENCE_S:g} s")

    def _found(self, pid: int) -> StartOutcome | None:
        """Return the agent of a process, if it is in the room."""
        runs = [SidecarRecord.load(folder) for folder in agents_dir(self._state_dir, self._room).glob("*/")]
        agent = next((run.agent for run in runs if run is not None and run.pid == pid), None)
        if agent is None:
            return None
        try:
            agents = objects(self._gateway.get("/agents"))
        except CspError:
            return None
        states = {item.get("id"): str(item.get("state")) for item in agents if item.get("online")}
        is_here = states.get(agent, "starting") != "starting"
        return StartOutcome(agent, states[agent]) if is_here else None

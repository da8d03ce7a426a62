"""A room in which the demo agents take part in the modes, from their panes."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.forks import Forked, run
from tests.rooms import LiveRoom
from tests.sidecar.stage import Seat, Stage
from tests.waiting import wait_until_sync

END_S: Final = 90.0
POSTED: Final = "agent_call,agent_response,turn_signal,vote"


class ModeRoom(Stage):
    """A stage with demo agents on it; what it takes to begin a mode, to see what becomes of it."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, rows=30, cols=100)
        self.room = LiveRoom(folder / "gateway", env=env)

    def join(self, name: str, persona: str = "", *options: str, speed: str = "0") -> Seat:
        """Start a demo agent behind a sidecar, under a name of its own."""
        argv = [sys.executable, "-P", "-m", "csp.cli", "demo", persona or name]
        return self.seat(name, argv, "--profile", "demo", *options, env={"CSP_DEMO_SPEED": speed})

    def ready(self) -> None:
        """Wait until all can be asked."""
        for seat in self.seats.values():
            seat.wait_ready()

    # --- a session -------------------------------------------------------------------------------

    def begin(self, mode: str, topic: str = "", **fields: Any) -> dict[str, Any]:
        """Begin a mode over HTTP."""
        answer = self.room.gateway.post("/mode", {"mode": mode, "topic": topic, **fields})
        view: dict[str, Any] = answer["orchestration"]
        return view

    def mode(self, thread: str = "default") -> dict[str, Any]:
        view: dict[str, Any] = self.room.gateway.get("/mode", thread=thread)
        return view

    def wait_end(self, thread: str = "default", timeout_s: float = END_S) -> dict[str, Any]:
        """Wait until the session of a thread is over."""
        wait_until_sync(lambda: self.mode(thread)["status"] == "ended", timeout_s, f"the end of {thread}")
        return self.mode(thread)

    def played(self, mode: str, topic: str = "", **fields: Any) -> dict[str, Any]:
        """Let a session run from its beginning to its end."""
        self.begin(mode, topic, **fields)
        return self.wait_end()

    def items(self, view: Mapping[str, Any], types: str = "agent_response") -> list[dict[str, Any]]:
        """Return what was posted in a session, oldest first."""
        page = self.room.gateway.get("/history", session=view["sessionId"], types=types, limit=1000)
        items: list[dict[str, Any]] = page["items"]
        return items

    def speakers(self, view: Mapping[str, Any]) -> list[str]:
        return [item["sender"] for item in self.items(view)]

    def notices(self, view: Mapping[str, Any]) -> list[str]:
        return [item["text"] for item in self.items(view, "system")]

    # --- what agents and people see --------------------------------------------------------------

    def prompts(self, name: str, view: Mapping[str, Any] | None = None) -> list[str]:
        """Return what an agent was asked in its pane, in one session if one is given."""
        path = self.seats[name].folder / "transcript.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        entries = [json.loads(line) for line in lines]
        texts = [entry["text"] for entry in entries if entry["type"] == "prompt"]
        if view is None:
            return texts
        turns = {item["turn"] for item in self.items(view, "turn_signal")}
        return [text for text in texts if text.partition("#")[2].partition("]")[0] in turns]

    def csp(self, *argv: str, typed: str | None = None) -> str:
        """Run a command of csp, with these lines typed; return what it prints."""
        done = run(argv, self.room.dir, self.room.env, typed or "")
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def chat(self, *lines: str) -> str:
        """Type lines into csp chat; return what it shows."""
        return self.csp("chat", typed="".join(f"{line}\n" for line in lines))

    def chat_until(self, line: str, text: str) -> str:
        """Type a line into csp chat, which stays open until it shows `text`; return what it shows."""
        shown = self.folder / "chat.txt"
        with (
            shown.open("wb") as out,
            Forked(["chat"], self.room.dir, self.room.env, output=out.fileno()) as chat,
        ):
            assert chat.stdin is not None
            chat.stdin.write(f"{line}\n")
            chat.stdin.flush()
            wait_until_sync(lambda: text in shown.read_text("utf-8"), 30, f"{text!r} in the human pane")
            chat.stdin.close()
            chat.wait(60)
        return shown.read_text("utf-8")

    def quiet(self) -> None:
        """Bring the room back to freeform, with nothing on its way."""
        self.room.gateway.post("/stop", {"all": True})
        self.ready()

"""A run played over a real gateway: two agents by HTTP, a person, files."""

import json
import os
from pathlib import Path
from typing import Any

from csp.http_client import GatewayClient
from csp.protocol.codec import parse
from csp.protocol.review_messages import FinalDecision, Plan, RunMessageBody, read_body
from tests.review.repository import RIGHT, TEST, WRONG, make_repository
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

PLAN = "PLAN: mend it\n1. write maths.py\n2. run the check"


#: Who has joined which room, for several runs in one.
TOKENS: dict[str, dict[str, str]] = {}


class Run:
    """One run of claude with codex in a live room."""

    def __init__(self, room: LiveRoom, **terms: Any) -> None:
        self.room = room
        self.dir = room.dir if (room.dir / ".git").exists() else make_repository(room.dir)
        self.tokens = TOKENS.setdefault(room.url, {})
        for name in ("claude", "codex"):
            if name not in self.tokens:
                self.tokens[name] = room.gateway.post("/register", {"agentId": name})["token"]
        body = {"goal": "make the check pass", "builder": "claude", "reviewer": "codex", "test": TEST}
        answer = room.gateway.post("/runs", body | {"dir": str(self.dir)} | terms)
        self.id = str(answer["run"]["id"])

    @classmethod
    def of(cls, room: LiveRoom, run_id: str) -> "Run":
        """Return a run that was begun otherwise."""
        run = cls.__new__(cls)
        run.room, run.dir, run.tokens, run.id = room, room.dir, TOKENS[room.url], run_id
        return run

    def by(self, agent: str) -> GatewayClient:
        return GatewayClient(self.room.url, self.tokens[agent])

    @property
    def detail(self) -> dict[str, Any]:
        found: dict[str, Any] = self.room.gateway.get(f"/runs/{self.id}")
        return found

    @property
    def phase(self) -> str:
        return str(self.detail["run"]["phase"])

    @property
    def folder(self) -> Path:
        return self.room.folder / "runs" / self.id

    @property
    def worktree(self) -> Path:
        return Path(self.detail["context"]["worktree"])

    def until(self, *phases: str) -> str:
        return wait_until_sync(lambda: self.phase if self.phase in phases else "", what=f"phase {phases}")

    def answer(self, agent: str, text: str) -> dict[str, Any]:
        """Answer the open turn of an agent."""
        turn = wait_until_sync(lambda: self.turns.get(agent), what=f"turn of {agent}")
        said: dict[str, Any] = self.by(agent).post("/agent-output", {"content": text, "turn": turn})
        return said

    @property
    def turns(self) -> dict[str, str]:
        found: dict[str, str] = self.room.gateway.get("/mode")["turns"]
        return found

    def act(self, action: str, **body: Any) -> dict[str, Any]:
        done: dict[str, Any] = self.room.gateway.post(f"/runs/{self.id}/{action}", body)
        return done

    def message(self, sender: str, message_type: str, **body: Any) -> dict[str, Any]:
        return {
            "schema_version": "0.1",
            "timestamp": "2026-01-01T00:00:00Z",
            "sender": sender,
            "run_id": self.id,
            "message_type": message_type,
            "body": body,
        }

    def drop(self, role: str, name: str, content: object) -> None:
        """Put a file into a mailbox as the seed wants it: whole, at once."""
        folder = self.room.folder / "mailbox" / role
        wait_until_sync(folder.is_dir, what="mailbox")
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        temporary = folder / f".{name}.tmp"
        temporary.write_bytes(data)
        os.replace(temporary, folder / name)

    def write(self, text: str) -> None:
        (self.worktree / "maths.py").write_text(text)

    # --- as far as ---

    def to_execution(self) -> None:
        self.answer("codex", "ACK: ready")
        self.answer("claude", PLAN)
        self.answer("codex", "RISK: low")
        self.until("execution")

    def to_decision(self, text: str = WRONG) -> None:
        self.write(text)
        self.answer("claude", "DONE: maths.py is there\nMETRIC: lines = 2")
        self.until("decision")

    def play(self) -> None:
        """Play the whole of it: a failing check, a revision, a passing one, an accept."""
        self.to_execution()
        self.to_decision()
        self.answer("codex", "DECISION: revise\nFINDING: major - the check fails")
        self.until("execution")
        self.to_decision(RIGHT)
        self.answer("codex", "DECISION: accept\nRESOLVED: f-1\nRATIONALE: the check passes")
        self.answer("claude", "END: double doubles")
        self.until("ended")
        wait_until_sync(lambda: self.detail["run"].get("branch"), what="branch")

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())

    def is_folder_current(self) -> bool:
        try:
            state = json.loads((self.folder / "run.json").read_bytes())
        except OSError:
            return False
        return bool(state["run"] == self.detail["run"])

    def check_files(self) -> list[dict[str, Any]]:
        """Validate every JSON of the folder; return the messages of both logs in their order."""
        wait_until_sync(self.is_folder_current, what="folder")
        parse(Plan, (self.folder / "plan.json").read_bytes())
        messages = []
        for name in ("builder-log.jsonl", "reviewer-log.jsonl"):
            for line in (self.folder / name).read_bytes().splitlines():
                message = parse(RunMessageBody, line)
                read_body(message.message_type, message.body)
                messages.append(json.loads(line))
        for path in (self.folder / "decisions").glob("decision-*.json"):
            message = parse(RunMessageBody, path.read_bytes())
            read_body(message.message_type, message.body)
        if (self.folder / "decisions" / "final.json").exists():
            parse(FinalDecision, (self.folder / "decisions" / "final.json").read_bytes())
        return messages

    def notices(self) -> list[str]:
        items = self.room.gateway.get("/history", types="system", limit=200)["items"]
        return [str(item["text"]) for item in items]

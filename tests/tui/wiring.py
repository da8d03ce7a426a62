"""What the scripted TUI tells the outside: its log, a transcript, hooks."""

import json
import os
import subprocess
import time
import uuid
from argparse import Namespace
from pathlib import Path
from typing import Any


class Wiring:
    """Writes the log of what truly happened, and speaks Claude's transcript and hooks where asked to."""

    def __init__(self, knobs: Namespace) -> None:
        self._log = Path(knobs.log) if knobs.log else None
        self._transcript = Path(knobs.transcript) if knobs.transcript else None
        self._session = knobs.session_id
        self._hooks = _hooks(knobs.settings)
        self._prompt_id = ""
        self._silent = {"UserPromptSubmit"} if knobs.no_submit_hook else set()

    def log(self, event: str, **fields: object) -> None:
        if self._log is not None:
            _append(self._log, {"event": event, "at": time.time(), **fields})

    def prompt(self, text: str) -> None:
        self.log("submitted", text=text)
        self._prompt_id = str(uuid.uuid4())
        marks = {"promptSource": "typed", "origin": {"kind": "human"}, "promptId": self._prompt_id}
        self._record("user", {"content": text}, marks)
        self.hook("UserPromptSubmit", prompt=text)

    def reply(self, text: str) -> None:
        self.log("replied", text=text)
        message: dict[str, Any] = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
        message |= {"id": f"msg_{uuid.uuid4()}", "usage": {"input_tokens": 1, "output_tokens": 1}}
        self._record("assistant", message, {})
        self.hook("Stop", last_assistant_message=text, stop_hook_active=False)
        self._line({"type": "system", "subtype": "turn_duration", "durationMs": 1})

    def interrupted(self) -> None:
        self.log("interrupted")
        content = [{"type": "text", "text": "[Request interrupted by user]"}]
        self._record("user", {"content": content}, {"promptId": self._prompt_id})

    def hook(self, event: str, **fields: object) -> None:
        payload: dict[str, Any] = {
            "session_id": self._session,
            "transcript_path": str(self._transcript or ""),
            "cwd": os.getcwd(),
            "prompt_id": self._prompt_id,
            "hook_event_name": event,
            **fields,
        }
        for command in self._hooks.get(event, ()) if event not in self._silent else ():
            subprocess.run(
                ["sh", "-c", command], input=json.dumps(payload), text=True, capture_output=True, check=False
            )

    def _record(self, role: str, message: dict[str, Any], marks: dict[str, Any]) -> None:
        self._line({"type": role, "message": {"role": role} | message} | marks)

    def _line(self, fields: dict[str, Any]) -> None:
        if self._transcript is None:
            return
        self._transcript.parent.mkdir(parents=True, exist_ok=True)
        common = {
            "uuid": str(uuid.uuid4()),
            "sessionId": self._session,
            "cwd": os.getcwd(),
            "isSidechain": False,
            "userType": "external",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        }
        _append(self._transcript, common | fields)


def _append(path: Path, value: dict[str, Any]) -> None:
    """Append one whole line by one write, so that a reader never sees half of it."""
    line = json.dumps(value, ensure_ascii=False).encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _hooks(settings: str) -> dict[str, list[str]]:
    if not settings:
        return {}
    text = settings if settings.lstrip().startswith("{") else Path(settings).read_text("utf-8")
    hooks = json.loads(text).get("hooks", {})
    return {
        event: [hook["command"] for group in groups for hook in group["hooks"] if "command" in hook]
        for event, groups in hooks.items()
    }

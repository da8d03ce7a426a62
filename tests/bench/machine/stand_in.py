"""Stand in for an agent's CLI: a composer, hooks, a transcript, an answer at once.

Run as a program with Claude Code's own options; it speaks its hooks, so its profile fits. The file in
STAND_IN_LOG gets the time of each step, to be held against what the room was told.
"""

import itertools
import json
import os
import subprocess
import sys
import termios
import time
import uuid
from typing import Any, Final

RULE: Final = "─" * 60
PASTE: Final = (b"\x1b[200~", b"\x1b[201~")


class StandIn:
    """One conversation."""

    def __init__(self, settings: str, session: str, log: str) -> None:
        with open(settings, encoding="utf-8") as file:
            self._hooks = json.load(file)["hooks"]
        self._session = session
        self._log = log
        self._transcript = f"{log}.{session}.jsonl"
        self._draft = ""
        self._last: str | None = None

    def run(self) -> None:
        """Take prompts until the terminal is gone."""
        mode = termios.tcgetattr(0)
        mode[0] = mode[1] = mode[3] = 0
        termios.tcsetattr(0, termios.TCSANOW, mode)
        os.write(1, b"\x1b[?2004hstand-in\r\n")
        self._hook("SessionStart", source="startup")
        self._draw()
        keys = b""
        while data := os.read(0, 65536):
            keys = self._take(keys + data)
            self._draw()

    def _take(self, keys: bytes) -> bytes:
        """Take whole pastes, whole keys; return what is not whole yet."""
        while keys:
            if keys.startswith(PASTE[0]):
                text, end, rest = keys[len(PASTE[0]) :].partition(PASTE[1])
                if not end:
                    return keys
                self._draft += text.decode(errors="replace").replace("\r", "\n")
                keys = rest
                self._draw()
            elif keys.startswith(b"\r"):
                keys = keys[1:]
                self._submit()
            else:
                # Replies of the terminal, or a person's keys: neither is part of the bench.
                keys = keys[1:] if not PASTE[0].startswith(keys[: len(PASTE[0])]) else b""
        return keys

    def _draw(self) -> None:
        rows = [RULE, *(("❯ " if at == 0 else "  ") + row for at, row in enumerate(self._draft.split("\n")))]
        cursor = len(rows[-1])
        text = "\r\n".join([*rows, RULE])
        os.write(1, f"\x1b[H\x1b[2J{text}\x1b[1A\r\x1b[{cursor}C".encode())

    def _submit(self) -> None:
        prompt, self._draft = self._draft, ""
        if not prompt:
            return
        self._note("entered")
        self._draw()
        number = str(uuid.uuid4())
        self._hook("UserPromptSubmit", prompt=prompt, prompt_id=number)
        self._note("proven")
        self._line("user", {"content": prompt}, promptId=number, promptSource="typed")
        answer = f"ok, {len(prompt)} characters"
        self._note("answered")
        self._line("assistant", {"content": [{"type": "text", "text": answer}], "stop_reason": "end_turn"})
        self._hook("Stop", prompt_id=number, last_assistant_message=answer)
        self._note("signalled")

    def _note(self, step: str) -> None:
        with open(self._log, "a", encoding="utf-8") as file:
            file.write(f"{step} {time.time()}\n")

    def _line(self, kind: str, message: dict[str, Any], **fields: object) -> None:
        own = str(uuid.uuid4())
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        line = {"type": kind, "uuid": own, "parentUuid": self._last, "timestamp": stamp, "message": message}
        self._last = own
        with open(self._transcript, "a", encoding="utf-8") as file:
            file.write(json.dumps(line | fields) + "\n")

    def _hook(self, event: str, **fields: object) -> None:
        said = {"hook_event_name": event, "session_id": self._session, "transcript_path": self._transcript}
        for group in self._hooks.get(event, ()):
            for hook in group["hooks"]:
                command = ["/bin/sh", "-c", hook["command"]]
                subprocess.run(command, input=json.dumps(said | fields).encode(), check=False)


def start(words: list[str], log: str) -> None:
    """Begin with the arguments that the command line had."""
    given = dict(itertools.pairwise(words))
    StandIn(given["--settings"], given["--session-id"], log).run()


def command_line() -> str:
    """Return the shell line that starts a stand-in with the arguments of its script."""
    code = (
        f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); import stand_in; "
        "stand_in.start(sys.argv[2:], sys.argv[1])"
    )
    return f'exec {sys.executable} -I -c "{code}" "$STAND_IN_LOG" "$@"'

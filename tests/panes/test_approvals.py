"""Approvals in a real room: a rule answers the command that it covers, one key of a person the other."""

import json
import shlex
from typing import Any, Final

import pytest

from tests.panes.place import Place
from tests.sidecar.stage import tui

pytestmark = pytest.mark.xdist_group("panes")

#: What each agent asks to run.
COMMANDS: Final = {"ada": "pytest -q", "bob": "pytest -q && rm -rf build"}


@pytest.fixture
def room(place: Place) -> Place:
    """A room with two agents that draw a dialog and tell of it as Claude Code does."""
    rows = []
    for name, command in COMMANDS.items():
        transcript = str(place.folder / f"{name}.jsonl")
        knobs = ("--frame", "rules", "--prompt-sign", "❯ ", "--transcript", transcript)
        asking = ("--dialog-on", "please", "--dialog-command", command)
        words = shlex.join(tui(place.folder / f"{name}.log", *knobs, *asking))
        program = place.program(name, f'#!/bin/sh\nexec {words} "$@"\n')
        rows.append(f'[[agent]]\nname = "{name}"\nprofile = "claude"\ncommand = "{program}"\n')
    (place.dir / "csp.toml").write_text("\n".join(rows))
    place.up()
    place.wait(lambda: place.online() == dict.fromkeys(COMMANDS, "idle"), "both idle", 120)
    return place


def type_in(room: Place, line: str) -> None:
    """Type a line in the human pane."""
    pane = str(room.pane("human")["id"])
    room.tmux("send-keys", "-t", pane, "-l", "--", line)
    room.tmux("send-keys", "-t", pane, "Enter")


def answered(room: Place, agent: str) -> list[tuple[str, str]]:
    """Return what the program of an agent was answered, by its own word."""
    lines = (room.folder / f"{agent}.log").read_text("utf-8").splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [(one["event"], one["command"]) for one in events if one["event"] in ("approved", "denied")]


def test_a_rule_approves_one_command_and_a_key_the_other(room: Place) -> None:
    for agent in COMMANDS:
        type_in(room, f"/allow {agent} pytest")
        room.wait(lambda: f"{agent} may run: pytest" in room.screen("human"), "the rule")  # noqa: B023
    type_in(room, "@all please")
    room.wait(lambda: answered(room, "ada"), "the answer by the rule")
    room.wait(lambda: "ada: approved by rule" in room.screen("human"), "who answered it")
    room.wait(lambda: f"bob: {COMMANDS['bob']}" in room.screen("human"), "what needs the person")
    assert answered(room, "ada") == [("approved", COMMANDS["ada"])]
    assert answered(room, "bob") == []
    assert "needs you: bob asks to run a command" in room.csp("status").out

    def presses_yes() -> bool:
        # What has only just come is not answered by a key that was meant for something else.
        room.tmux("send-keys", "-t", str(room.pane("human")["id"]), "M-y")
        return bool(answered(room, "bob"))

    room.wait(presses_yes, "the answer by the key")
    assert answered(room, "bob") == [("approved", COMMANDS["bob"])]
    room.wait(lambda: room.gateway.get("/attention")["items"] == [], "nothing that needs anybody")
    assert len(answered(room, "ada")) == 1

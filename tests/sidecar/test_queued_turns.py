"""Messages that come during a long turn of a real CLI: one prompt each, in order, no turn broken off."""

from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Rule, Text, slow
from tests.models.server import ModelServer
from tests.sidecar.stage import Seat, Stage
from tests.sidecar.texts import bodies
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.xdist_group("four agents")]

AGENTS: Final = ("claude", "codex", "gemini")
COUNT: Final = 20
TURN_S: Final = 10.0
PATIENCE_S: Final = 180.0
LONG: Final = "\n".join(f"slow line {number} of the long turn" for number in range(60))
CLEAR: Final = {"claude": "/clear", "codex": "/new", "gemini": "/clear"}


def rules() -> list[Rule]:
    long = [Rule(match="take your time", reply=[slow(LONG, TURN_S)])]
    return [*long, *(Rule(match=f"q{n:02d}-q", reply=[Text(text=f"Answer {n}.")]) for n in range(COUNT))]


def clear(seat: Seat, command: str) -> None:
    """Begin a new conversation, as a person does."""
    seat.type(command)
    wait_until_sync(lambda: command in seat.screen(), PATIENCE_S, command)
    seat.keys("Enter")


def test_twenty_messages_in_a_long_turn_then_a_cleared_conversation(tmp_path: Path) -> None:
    loopback = Loopback()
    with (
        loopback,
        ModelServer(rules(), listener=loopback.listener) as server,
        Stage(tmp_path / "stage") as stage,
    ):
        clis = {name: bring_up(name, server, loopback, tmp_path) for name in AGENTS}
        seats = {name: stage.seat(name, cli.argv, env=cli.env, cwd=cli.cwd) for name, cli in clis.items()}
        first = {name: stage.send(name, "take your time") for name in AGENTS}
        for name in AGENTS:
            stage.wait_for(first[name], name, "confirmed", timeout_s=PATIENCE_S)
        sent = {name: [stage.send(name, f"message q{n:02d}-q") for n in range(COUNT)] for name in AGENTS}
        for name in AGENTS:
            stage.reply_to(sent[name][-1], name, PATIENCE_S)
        for name, seat in seats.items():
            clear(seat, CLEAR[name])
        after = {name: stage.send(name, "once more q07-q") for name in AGENTS}
        for name in AGENTS:
            stage.reply_to(after[name], name, PATIENCE_S)

        for name in AGENTS:
            wanted = ["take your time", *(f"message q{n:02d}-q" for n in range(COUNT)), "once more q07-q"]
            assert bodies(server.prompts(name)) == wanted, name
            replies = [(r.get("ending", "done"), r["replyTo"], r["text"]) for r in stage.replies(name)]
            texts = [LONG, *(f"Answer {n}." for n in range(COUNT)), "Answer 7."]
            ids = [first[name], *sent[name], after[name]]
            assert replies == [("done", id, text) for id, text in zip(ids, texts, strict=True)]
            assert {stage.state(id, name)[0] for id in ids} == {"confirmed"}

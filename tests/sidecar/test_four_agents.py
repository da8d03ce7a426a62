"""Four real agents at once: every message arrives once, in order, exact; every reply comes back as it was.

The truth is what the model server received and sent. A person types in the panes meanwhile, and changes the
size of the windows. test_real_scenes has a shorter version of this for every day.
"""

import json
import random
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import RealCli, bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Rule
from tests.models.server import ModelServer
from tests.sidecar.stage import Seat, Stage
from tests.sidecar.texts import WORDS, as_kept, as_taken, bodies, reply_for
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(900), pytest.mark.xdist_group("four agents")]

AGENTS: Final = ("claude", "codex", "gemini", "claude-2")
COUNT: Final = 50
TYPED_DURING: Final = 30
PATIENCE_S: Final = 300.0
HELLO: Final = "are you there"


def texts_for(agent: str) -> list[str]:
    """Return COUNT messages, each with a mark of its own."""
    return [f"{WORDS[index % len(WORDS)]}" + f" m{index:02d}-{agent}-m" for index in range(COUNT)]


class Play:
    """The four agents in one room."""

    def __init__(self, folder: Path) -> None:
        self.loopback = Loopback()
        self.folder = folder
        self.sent: dict[str, list[str]] = {agent: [] for agent in AGENTS}
        self.expected: dict[str, list[str]] = {agent: [] for agent in AGENTS}

    def rules(self) -> Iterator[Rule]:
        for agent in AGENTS:
            for index in range(COUNT):
                parts, text = reply_for(agent, index)
                if agent != "codex":
                    # Between two steps of a turn Claude Code and Gemini send their model what a person has
                    # typed meanwhile, which is then what the model answers.
                    parts = parts[-1:]
                self.expected[agent].append(text)
                yield Rule(match=f"m{index:02d}-{agent}-m", reply=parts, client=agent)


def clis(server: ModelServer, loopback: Loopback, folder: Path) -> dict[str, RealCli]:
    found = {name: bring_up(name, server, loopback, folder) for name in ("claude", "codex", "gemini")}
    found["claude-2"] = bring_up(
        "claude", server, loopback, folder / "second", client="claude-2", cwd=found["claude"].cwd
    )
    return found


def type_as_a_person(seat: Seat, is_over: threading.Event, chance: random.Random) -> None:
    """Write something now and then, key by key, and take it back or send it; press Enter again if need be.

    A person presses Enter when the words stand there: a slow CLI that gets both at once takes them for a
    paste and keeps them as a draft, for which everything has to wait.
    """
    for number in range(TYPED_DURING):
        is_over.wait(chance.uniform(0.3, 1.2))
        words = f"person {number}"
        for key in words:
            seat.type(key)
        is_over.wait(chance.uniform(0.1, 0.4))
        # Codex takes an Enter in the middle of an answer for a change of the question: its own affair.
        if number % 3 or seat.name == "codex":
            # A slow CLI drops keys of a burst, and what is left is a draft, for which everything has to wait.
            for _ in range(3):
                seat.keys(*["BSpace"] * len(words))
                is_over.wait(0.5)
            continue
        wait_until_sync(partial(stands_below, seat, words), PATIENCE_S, f"{words} in {seat.name}")
        for _ in range(20):
            seat.keys("Enter")
            is_over.wait(0.5)
            if not stands_below(seat, words):
                break


def stands_below(seat: Seat, words: str) -> bool:
    """Tell whether words stand at the end of a screen, where the composer is."""
    return words in "".join(seat.screen().rstrip().splitlines()[-8:])


def test_every_message_arrives_once_and_every_reply_comes_back(tmp_path: Path) -> None:
    play = Play(tmp_path)
    with (
        play.loopback,
        ModelServer(list(play.rules()), listener=play.loopback.listener) as server,
        Stage(tmp_path / "stage") as stage,
    ):
        found = clis(server, play.loopback, tmp_path)
        seats = {name: stage.seat(name, cli.argv, env=cli.env, cwd=cli.cwd) for name, cli in found.items()}
        try:
            _perform(play, stage, seats)
            _check(play, stage, server)
            _check_nothing_happened(play, stage, server, found)
        except BaseException:
            _keep_evidence(tmp_path / "evidence", stage, server)
            raise


def _keep_evidence(folder: Path, stage: Stage, server: ModelServer) -> None:
    """Write what the models were asked, the room's history, and each agent's screen and log."""
    folder.mkdir()
    for name, seat in stage.seats.items():
        (folder / f"{name}.screen").write_text(seat.screen())
        (folder / f"{name}.log").write_text(seat.log())
        asked = "".join(
            json.dumps(
                {
                    "at": exchange.at,
                    "ended_at": exchange.ended_at,
                    "kind": exchange.ask.kind,
                    "ended": exchange.ended,
                    "is_retry": exchange.is_retry,
                    "texts": len(exchange.ask.conversation),
                    "rounds": exchange.ask.rounds,
                    "prompts": exchange.prompts,
                    "reply": exchange.reply[:200],
                    "path": exchange.path,
                }
            )
            + "\n"
            for exchange in server.exchanges(name)
        )
        (folder / f"{name}.asked").write_text(asked)
    items = stage.room.gateway.get("/history", limit=1000)["items"]
    (folder / "history").write_text("".join(json.dumps(item) + "\n" for item in items))


def _perform(play: Play, stage: Stage, seats: dict[str, Seat]) -> None:
    # Gemini joins what is typed before its servers run into one prompt: its own affair.
    for agent in AGENTS:
        stage.reply_to(stage.send(agent, HELLO), agent, PATIENCE_S)
    is_over = threading.Event()
    people = [
        threading.Thread(target=type_as_a_person, args=(seat, is_over, random.Random(name)))
        for name, seat in seats.items()
    ]
    for person in people:
        person.start()
    try:
        for index in range(COUNT):
            for agent in AGENTS:
                play.sent[agent].append(stage.send(agent, texts_for(agent)[index]))
            if index == 20:
                for seat in seats.values():
                    seat.resize(30, 90)
        for agent in AGENTS:
            stage.reply_to(play.sent[agent][-1], agent, PATIENCE_S)
    finally:
        is_over.set()
        for person in people:
            person.join()


def _check(play: Play, stage: Stage, server: ModelServer) -> None:
    for agent in AGENTS:
        wanted = [HELLO, *(as_taken(agent, text) for text in texts_for(agent))]
        assert bodies(server.prompts(agent)) == wanted, agent
        assert {stage.state(message, agent)[0] for message in play.sent[agent]} == {"confirmed"}
        replies = stage.replies(agent)[1:]
        assert [reply["replyTo"] for reply in replies] == play.sent[agent]
        told = [(reply.get("ending", "done"), reply["text"]) for reply in replies]
        assert told == [("done", as_kept(agent, text)) for text in play.expected[agent]]


def _check_nothing_happened(play: Play, stage: Stage, server: ModelServer, found: dict[str, RealCli]) -> None:
    """No file was read into a request, nothing ran, no quoted command was obeyed."""
    assert not server.saw("root:x:0:0")
    assert stage.room.gateway.get("/history", types="agent_call")["items"] == []
    for cli in found.values():
        assert [path.name for path in cli.cwd.iterdir() if not path.name.startswith(".")] == []

"""Claude Code, Codex and Gemini CLI in the modes: who is asked what, when, how often; what replies do.

test_real_scenes has a debate and an Allstop for every day.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

import pytest
from websockets.sync.client import connect

from csp.gateway.routes import ROUTES
from csp.protocol.events import (
    AgentCall,
    AgentResponse,
    LateReply,
    ModeChanged,
    NoticePosted,
    TurnMoved,
    TurnSignal,
    Voted,
)
from csp.protocol.session_parts import Change, TurnState
from tests.models.rules import REALISTIC, Endless, Part, Shell, Text, slow
from tests.sidecar.real_modes import TIMEOUT_S, TRIO, Trio, plan_of, trio, votes, when
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.xdist_group("real modes")]

#: Gemini asks a person about answers that repeat themselves.
WORDS: Final = "\n".join(f"word number {number} of a long answer" for number in range(60))
EVERY_TYPE: Final = (
    "human_message,agent_call,agent_response,activity,kept,answer,turn_signal,query,system,mode,turn,usage,vote,"
    "delivery,joined,left,state,control,late,redacted,pruned,base"
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    with trio(tmp_path_factory.mktemp("trio")) as room:
        yield room


@pytest.fixture
def room(shared: Trio) -> Trio:
    """The three at rest."""
    shared.rest()
    return shared


def notices(room: Trio, session: str) -> list[str]:
    return [event.text for event in room.events(session, NoticePosted)]


def wait_blocked(room: Trio, session: str, agent: str) -> None:
    """Wait until the room shows that an agent's turn waits for a person."""
    wait_until_sync(
        lambda: agent in [one.agent for one in room.events(session, TurnMoved) if one.state == "blocked"],
        30,
        f"{agent} blocked:\n{room.seats[agent].screen()}",
    )
    assert room.agent(agent)["state"] == "needs_approval"
    assert any(text.startswith(f"{agent} waits for a person") for text in notices(room, session))


def approve(room: Trio, agent: str) -> None:
    room.room.gateway.post(f"/agents/{agent}/approve")


# --- debate --------------------------------------------------------------------------------------

SECRETS: Final = {"claude": "marzipan", "codex": "nougat", "gemini": "praline"}


def test_debate_of_two_rounds(room: Trio) -> None:
    topic = "zebra crossings"
    before = {name: len(room.server.prompts(name)) for name in TRIO}
    for name in TRIO:
        dialog = [Shell(command="echo hi > debated.txt")] if name == "gemini" else []
        words = Text(text=f"In my view: {SECRETS[name]}.")
        room.server.add(when(topic, "Present your position", client=name, reply=[*dialog, words]))
        room.server.add(when(topic, "Respond to the others", client=name, reply=f"{name} stands by it."))
    session = room.begin("debate", topic, rounds=2)
    # While one waits for a person, the other two have spoken.
    wait_until_sync(lambda: room.mode()["waitingFor"] == ["gemini"], 60, "two positions")
    wait_blocked(room, session, "gemini")
    _check_sealed(room, session, "codex", SECRETS["claude"])
    _check_sealed(room, session, "gemini", SECRETS["claude"])
    assert room.mode()["waitingFor"] == ["gemini"] and room.mode()["roundOutputs"] == {}
    approve(room, "gemini")
    view = room.wait_end(session)

    assert view["reason"] == "done"
    for name in TRIO:
        first, second = room.asked(topic, name)
        assert len(room.server.prompts(name)) == before[name] + 2
        others = [SECRETS[other] for other in TRIO if other != name]
        assert first.startswith("[YOUR TURN #t-") and second.startswith("[YOUR TURN #t-")
        assert not any(secret in first for secret in SECRETS.values())
        assert all(f"In my view: {secret}." in second or "stands by it" in second for secret in others)
        assert all(f"In my view: {secret}." in second for secret in others)
    assert "claude said:\nclaude stands by it." in room.asked(topic, "codex")[1]
    _check_order(room, session, topic)
    found = room.as_agent("codex").get("/history", q=SECRETS["claude"], types="agent_response")["items"]
    assert [item["sender"] for item in found] == ["claude"]


def _check_order(room: Trio, session: str, topic: str) -> None:
    """All are asked at once in the first round, one after the other in the second."""
    course = room.events(session, TurnSignal, AgentResponse)
    told = [
        (type(event).__name__, event.target if event.sender == "system" else event.sender) for event in course
    ]
    assert told[:3] == [("TurnSignal", name) for name in TRIO]
    assert sorted(told[3:6]) == [("AgentResponse", name) for name in TRIO]
    assert told[6:] == [(kind, name) for name in TRIO for kind in ("TurnSignal", "AgentResponse")]
    replies = {str(event.sender): event for event in course[6:] if isinstance(event, AgentResponse)}
    for earlier, later in (("claude", "codex"), ("codex", "gemini")):
        exchanges = room.server.exchanges(later, "main")
        asked_at = next(
            one.at for one in exchanges if topic in one.ask.governing and "stands by" in one.ask.governing
        )
        assert replies[earlier].ts <= asked_at


def _check_sealed(room: Trio, session: str, spy: str, secret: str) -> None:
    """Walk every way that a spy's token opens; the room's own token finds the secret."""
    people = room.room.gateway.get("/history", q=secret)["items"]
    assert [item["text"] for item in people] == [f"In my view: {secret}."]
    found = [path for path in _paths(room, session, spy, secret) if _shows(room, spy, path, secret)]
    assert found == []
    assert secret not in _watched(room, session, spy)
    env = room.room.env | {"CSP_AUTH_TOKEN": room.token_of(spy), "CSP_GATEWAY_URL": room.room.url}
    for words in (["export", "--format", "json"], ["history", "--search", secret]):
        command = [sys.executable, "-m", "csp.cli", *words]
        shown = subprocess.run(
            command, env=env, cwd=room.room.dir, capture_output=True, text=True, check=False
        )
        assert secret not in shown.stdout and shown.returncode == 0


def _paths(room: Trio, session: str, spy: str, secret: str) -> Iterator[str]:
    queries = ["limit=1000", "after=0&limit=1000", "agent=claude", f"session={session}", f"q={secret}"]
    for query in queries:
        yield f"/history?{query}"
        yield f"/history?{query}&types={EVERY_TYPE}"
    messages = [event.id for event in room.events(session, TurnSignal, AgentResponse)]
    for route in ROUTES:
        if route.method == "GET" and "{id}" in route.path:
            for name in (*TRIO, session, *messages):
                yield route.path.replace("{id}", quote(name, safe=""))
        elif route.method == "GET":
            yield route.path


def _shows(room: Trio, spy: str, path: str, secret: str) -> bool:
    _, raw = room.as_agent(spy).exchange("GET", path, None, 20.0)
    return secret in raw.decode().replace(f"q={secret}", "")


def _watched(room: Trio, session: str, spy: str) -> str:
    """Return everything that the WebSocket gives a spy, from the first event up to now."""
    last = max(event.seq for event in room.events(session, TurnMoved))
    url = room.room.url.replace("http", "ws", 1) + "/ws?after=0"
    seen: list[str] = []
    with connect(url, additional_headers={"X-Auth-Token": room.token_of(spy)}) as socket:
        while not seen or json.loads(seen[-1]).get("seq", 0) < last:
            seen.append(str(socket.recv(timeout=20)))
    return "\n".join(seen)


# --- consensus -----------------------------------------------------------------------------------


def propose(room: Trio, topic: str) -> None:
    for name in TRIO:
        room.server.add(when(topic, "Propose one solution", client=name, reply=plan_of(name)))


def test_consensus_names_the_winner_with_counts_and_reasons(room: Trio) -> None:
    topic = "quokka food"
    propose(room, topic)
    for voter, choice in (("claude", "codex"), ("codex", "claude"), ("gemini", "codex")):
        room.server.add(*votes(topic, voter, [choice]))
    session = room.begin("consensus", topic)
    view = room.wait_end(session)

    label = {one["agent"]: label for label, one in view["proposals"].items()}
    assert view["reason"] == "done"
    assert {agent: vote["label"] for agent, vote in view["votes"].items()} == {
        "claude": label["codex"],
        "codex": label["claude"],
        "gemini": label["codex"],
    }
    (result,) = [text for text in notices(room, session) if text.startswith("Votes: ")]
    assert f"Votes: {label['codex']} (codex) 2, {label['claude']} (claude) 1." in result
    assert f"Winner: {label['codex']} (codex)." in result and "Dissent: codex." in result
    assert f"- gemini voted {label['codex']}: gemini likes number 1" in result
    assert f"- codex voted {label['claude']}: codex likes number 0" in result
    for name in TRIO:
        proposal, ballot = room.asked(topic, name)
        assert not any(plan_of(other) in proposal for other in TRIO)
        assert all(plan_of(other) in ballot for other in TRIO)


def test_tie_is_voted_on_again_without_one_who_never_answers(room: Trio) -> None:
    topic = "wombat homes"
    propose(room, topic)
    room.server.add(*votes(topic, "claude", ["codex", "codex"]))
    room.server.add(*votes(topic, "codex", ["gemini", None]))
    room.server.add(*votes(topic, "gemini", ["claude", "codex"]))
    session = room.begin("consensus", topic)
    view = room.wait_end(session)
    room.room.gateway.post("/agents/codex/interrupt")

    said = notices(room, session)
    assert [text for text in said if text.startswith("Tied: ")] == [
        "Tied: A, B, C. A second ballot among them follows."
    ]
    assert any(text.startswith("codex: timed out, no reply in 10 s") for text in said)
    (result,) = [text for text in said if text.startswith("Votes: ")]
    assert re.match(r"Votes: [ABC] \(codex\) 2\.\nWinner: [ABC] \(codex\)\.", result)
    assert view["reason"] == "done" and set(view["votes"]) == {"claude", "gemini"}
    assert [len(room.asked(topic, name)) for name in TRIO] == [3, 3, 3]


# --- long turns, dialogs -------------------------------------------------------------------------


def test_dialogs_tools_and_long_answers_keep_their_turn(room: Trio) -> None:
    topic, long_s = "giraffe necks", TIMEOUT_S + 1
    made = {name: room.clis[name].cwd / f"{name}.txt" for name in TRIO}
    for name in TRIO:
        tool = Shell(command=f"sleep {long_s:.0f}; echo hi > {made[name].name}")
        words = slow(WORDS, long_s)
        room.server.add(when(topic, client=name, reply=[Text(text="I look first."), tool, words]))
    session = room.begin("debate", topic, rounds=1)
    for name in TRIO:
        wait_blocked(room, session, name)
    assert not any(path.exists() for path in made.values())
    approve(room, "codex")
    approve(room, "gemini")
    # The clock of one who waits for a person stands still, however long that takes.
    wait_until_sync(made["codex"].exists, 60, "the tool of codex")
    assert room.mode()["turns"].keys() >= {"claude"} and room.agent("claude")["state"] == "needs_approval"
    approve(room, "claude")
    view = room.wait_end(session, 90)

    assert view["reason"] == "done"
    assert {name: said["round0"] for name, said in view["roundOutputs"].items()} == dict.fromkeys(TRIO, WORDS)
    moves = room.events(session, TurnMoved)
    for name in TRIO:
        course = [one.state for one in moves if one.agent == name and not one.warned]
        blocked = course.index(TurnState.BLOCKED)
        assert course[0] is TurnState.DELIVERED and course[-1] is TurnState.REPLIED
        assert set(course[blocked + 1 : -1]) == {TurnState.WORKING} and len(course[blocked + 1 : -1]) >= 3
        assert len(room.asked(topic, name)) == 1
        assert made[name].read_text() == "hi\n"


# --- stop ----------------------------------------------------------------------------------------


def test_allstop_interrupts_the_session_but_not_a_person(room: Trio) -> None:
    topic, own = "ocelot spots", "my own long question"
    room.server.add(when(topic, client="claude", reply=[slow(WORDS * 10, 300.0)]))
    room.server.add(when(topic, client="gemini", reply=[Shell(command="echo hi > stopped.txt")]))
    room.server.add(when(own, client="codex", reply=[slow(WORDS * 10, 300.0)]))
    codex = room.seats["codex"]
    codex.type(own)
    wait_until_sync(lambda: own in codex.screen(), 20)
    codex.keys("Enter")
    room.wait_at_work(own, "codex")
    session = room.begin("debate", topic)
    room.wait_at_work(topic, "claude")
    wait_blocked(room, session, "gemini")
    (ask,) = [one for one in room.events(session, TurnSignal) if one.target == "codex"]
    room.wait_for(ask.id, "codex", "held")
    (working,) = room.open_exchanges("claude")
    stopped_at = time.time()
    room.send("all", "ALL STOP!")

    assert (room.mode()["status"], room.mode()["reason"]) == ("ended", "stopped_by_user")
    wait_until_sync(lambda: working.ended == "aborted", 20, "the interrupt of claude")
    # A second, with some more for a machine that does much else meanwhile.
    assert working.ended_at - stopped_at < 3
    for name in ("claude", "gemini"):
        room.seats[name].wait_ready()
    wait_until_sync(
        lambda: "claude" in [one.sender for one in room.events(session, LateReply)], 20, "the reply"
    )
    assert [one.ended for one in room.open_exchanges("codex")] == ["open"]
    codex.keys("Escape")
    room.rest()
    _check_nothing_follows(room, session)
    assert room.asked(topic, "codex") == [] and room.state(ask.id, "codex")[0] == "withdrawn"
    assert not (room.clis["gemini"].cwd / "stopped.txt").exists()
    assert not room.server.saw("ALL STOP!")


def _check_nothing_follows(room: Trio, session: str) -> None:
    (end,) = [one for one in room.events(session, ModeChanged) if one.change is Change.ENDED]
    later = room.events(session, AgentCall, AgentResponse, TurnSignal, Voted)
    assert [one for one in later if one.seq > end.seq] == []


def test_allstop_while_the_asks_are_typed(room: Trio) -> None:
    topic = "numbat teeth"
    room.server.add(when(topic, reply=[Endless(delay_s=0.2)]))
    session = room.begin("debate", topic)
    asks = {one.target: one.id for one in room.events(session, TurnSignal)}
    wait_until_sync(lambda: "typed" in [room.state(ask, name)[0] for name, ask in asks.items()], 20)
    room.send("all", "allstop")
    room.rest()

    _check_nothing_follows(room, session)
    for name in TRIO:
        after = room.send(name, "Are you there?")
        assert room.reply_to(after, name)["text"] == "ok"
        assert room.server.prompts(name)[-1].split("\n")[1:-1] == ["Are you there?"]


# --- crashes -------------------------------------------------------------------------------------


def begin_long_turns(room: Trio, topic: str) -> str:
    for name in TRIO:
        room.server.add(when(topic, client=name, reply=[slow(f"{WORDS}\n{name}", 6.0)]))
    session = room.begin("debate", topic, rounds=1)
    room.wait_at_work(topic, *TRIO)
    return session


def check_long_turns(room: Trio, topic: str, session: str, view: dict[str, Any]) -> None:
    assert view["reason"] == "done"
    for name in TRIO:
        assert len(room.asked(topic, name)) == 1
        (reply,) = [one for one in room.events(session, AgentResponse) if one.sender == name]
        (ask,) = [one for one in room.events(session, TurnSignal) if one.target == name]
        assert (reply.text, reply.turn, reply.late) == (f"{WORDS}\n{name}", ask.turn, False)
        assert room.state(ask.id, name)[0] == "confirmed"


def test_session_outlives_the_gateway(room: Trio) -> None:
    topic = "kiwi wings"
    session = begin_long_turns(room, topic)
    room.room.kill9()
    room.room.start()
    view = room.wait_end(session)

    check_long_turns(room, topic, session, view)


def test_turns_outlive_the_brains_of_their_sidecars(room: Trio) -> None:
    topic = "tapir noses"
    session = begin_long_turns(room, topic)
    before = {name: (seat.brain, seat.cli) for name, seat in room.seats.items()}
    for brain, _ in before.values():
        os.kill(brain, signal.SIGKILL)
    view = room.wait_end(session)

    check_long_turns(room, topic, session, view)
    for name, (brain, cli) in before.items():
        assert room.seats[name].brain not in (0, brain) and room.seats[name].cli == cli


# --- collaborate ---------------------------------------------------------------------------------


def test_handoff_and_final_by_lines_of_text(room: Trio) -> None:
    topic = "heron nests"
    # A file with the name of a command that the prompt shows must not be read into it.
    for name in ("final", "working"):
        (room.clis["claude"].cwd / name).write_text("caramel")
    room.server.add(
        when(topic, client="claude", reply="The nest is planned.\n\n@handoff.codex weave the twigs")
    )
    room.server.add(when(topic, client="codex", reply="The twigs are woven.\n@handoff.gemini test\n@final"))
    session = room.begin("collaborate", topic)
    view = room.wait_end(session)

    assert view["reason"] == "final"
    assert [len(room.asked(topic, name)) for name in TRIO] == [1, 1, 0]
    (asked,) = room.asked(topic, "codex")
    assert "router -> codex: weave the twigs" in asked and "The nest is planned." in asked
    assert "`@handoff.NAME task`" in room.asked(topic, "claude")[0]
    replies = room.events(session, AgentResponse)
    assert [(one.sender, one.final) for one in replies] == [("claude", False), ("codex", True)]
    assert replies[0].handoff is not None and replies[0].handoff.to == "codex"
    assert not room.server.saw("caramel")


def test_only_the_reply_to_a_turn_moves_the_session(room: Trio) -> None:
    topic, side, own = "lemur tails", "a question beside it", "a prompt of a person"
    handoff = Text(text="@handoff.codex count the rings")
    room.server.add(when(topic, client="claude", reply=[slow(f"{WORDS}\n\n", 5.0), handoff]))
    room.server.add(when(topic, client="codex", reply="There are twenty.\n\n@final"))
    room.server.add(
        when(side, reply="Answered beside it.\n@final"), when(own, reply="Answered in the pane.\n@final")
    )
    gemini = room.seats["gemini"]
    gemini.type(own)
    session = room.begin("collaborate", topic)
    room.wait_at_work(topic, "claude")
    gemini.keys("Enter")
    waiting = {name: room.send(name, side) for name in ("claude", "codex")}
    answer = room.reply_to(waiting["codex"], "codex")
    wait_until_sync(lambda: room.asked(own, "gemini"), 20)
    assert room.mode()["currentTurn"] == "claude" and answer["out_of_turn"]
    view = room.wait_end(session)

    assert view["reason"] == "final" and set(view["roundOutputs"]) == {"claude", "codex"}
    assert "count the rings" in room.asked(topic, "codex")[0]
    assert [len(room.asked(topic, name)) for name in TRIO] == [1, 1, 0]
    assert room.reply_to(waiting["claude"], "claude")["text"] == "Answered beside it.\n@final"
    turns = [one for one in room.events(session, AgentResponse) if not one.out_of_turn]
    assert [(one.sender, one.turn is None) for one in turns] == [("claude", False), ("codex", False)]
    assert "Answered in the pane." not in "\n".join(room.room.journal_texts())


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.timeout(1200)
def test_an_autopilot_of_two_passes_twenty_realistic_turns(room: Trio) -> None:
    topic, turns = "axolotl gills", 20
    look: list[Part] = [Text(text="I look."), Shell(command="echo hi", escalate=False)]
    rule = when(topic, reply=[*look * 12, Text(text="I have looked twelve times.")])
    room.server.add(replace(rule, used=REALISTIC))
    session = room.begin("autopilot", topic, agents=["claude", "codex"])

    def replies() -> list[AgentResponse]:
        return room.events(session, AgentResponse)

    wait_until_sync(lambda: len(replies()) >= turns or room.mode()["status"] == "ended", 1000, "20 turns")
    view = room.mode()
    room.room.gateway.post("/stop", {})

    assert view["status"] == "running"
    used = [one.usage for one in replies()[:turns] if one.usage is not None]
    assert [one.cached for one in used] == [13 * REALISTIC.cached] * turns
    assert {one.new for one in used} == {13 * REALISTIC.new}
    reminded = [text for text in notices(room, session) if text.startswith("Autopilot running.")]
    assert len(reminded) == turns * 13 * REALISTIC.new // 250_000

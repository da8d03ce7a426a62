"""The real Claude Code, Codex and Gemini CLI in one room: what every day must hold with real CLIs.

Each is started once, for all tests of this module, by a user who has hooks and a server of their own. The
truth is what the model server received and sent. The longer tests with real CLIs, which only
`./bin/test --full` runs, are in test_four_agents, test_queued_turns, test_wired_clis, test_real_alone,
test_real_modes, test_real_tools, test_real_review, test_own_servers and test_outside_clis.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from csp.protocol.events import AgentCall, AgentResponse, ModeChanged, NoticePosted, StateChanged, TurnSignal
from csp.protocol.session_parts import Change
from tests.clis.bringup import SetUp
from tests.clis.loopback import Loopback
from tests.clis.passage import passage
from tests.models.exchange import Exchange
from tests.models.rules import REALISTIC, Fail, Part, Shell, Text, slow
from tests.models.server import ModelServer
from tests.sidecar.calling import add_own_server, is_offered, tool
from tests.sidecar.real_modes import PATIENCE_S, TRIO, Trio, when
from tests.sidecar.texts import LISTED, QUOTED, WORDS, as_kept, as_taken, bodies, reply_for
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("real scenes")]

#: A second Claude Code with the home and the directory of the first, which only `--full` has: each run of a
#: CLI has hooks, a spool and a session of its own, which test_wiring and test_spool look at every day.
TWIN: Final = "claude-2"
#: Codex has its user's hooks only where they are trusted, which test_wired_clis does.
SET_UPS: Final = {"claude": SetUp(has_user_hooks=True), "gemini": SetUp(has_user_hooks=True)}
HOOKS: Final = {
    "claude": {"SessionStart", "UserPromptSubmit", "Stop"},
    "gemini": {"SessionStart", "BeforeAgent", "AfterAgent"},
}
CLEAR: Final = {"claude": "/clear", "codex": "/new", "gemini": "/clear"}
MADE: Final = "made.txt"
#: Gemini asks a person about answers that repeat themselves.
TICKS: Final = " ".join(f"tick{number}" for number in range(60))
#: A turn that lasts until it is broken off.
FOREVER: Final = slow("\n".join(f"row {number} of a very long answer" for number in range(900)), 900.0)


class Room(Trio):
    """All of them, with the files of their users as they were before the start."""

    files: Mapping[Path, str]

    def on_all(self, send: Callable[[str], str]) -> dict[str, str]:
        """Send something to each of the three; return the messages."""
        return {name: send(name) for name in TRIO}

    def say(self, text: str, **fields: object) -> dict[str, str]:
        return self.on_all(lambda name: self.send(name, text, **fields))

    def endings(self, messages: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Wait for the replies; return the text and the ending of each."""
        replies = {name: self.reply_to(message, name, PATIENCE_S) for name, message in messages.items()}
        return {name: (reply["text"], reply.get("ending", "done")) for name, reply in replies.items()}

    def wait_state(self, state: str) -> None:
        for name in TRIO:
            self.seats[name].wait_ready(state, PATIENCE_S)

    def wait_held(self, message: str, name: str, reason: str) -> None:
        """Wait until a message to an agent is held for a reason."""
        wait_until_sync(
            lambda: self.state(message, name) == ("held", reason),
            PATIENCE_S,
            f"{message} to {name} held: {reason}",
        )

    def wait_shown(self, name: str, text: str) -> None:
        """Wait until the pane of an agent shows a text."""
        seat = self.seats[name]
        wait_until_sync(lambda: text in seat.screen(), PATIENCE_S, f"{text!r} in the pane of {name}")

    def choices(self, name: str) -> list[object]:
        """Wait for the choices of the dialog of an agent."""
        return wait_until_sync(
            lambda: list(self.agent(name)["dialog"].get("choices") or ()),
            PATIENCE_S,
            f"the choices of {name}",
        )

    def wait_aborted(self, exchange: Exchange) -> None:
        """Wait until a client has broken off the answer it was given."""
        wait_until_sync(
            lambda: exchange.ended == "aborted", PATIENCE_S, f"the interrupt of {exchange.client}"
        )

    def heard(self, name: str, mark: str) -> list[str]:
        """Return the messages with a mark that reached a model, each as often as it did."""
        return [body for body in bodies(self.server.prompts(name)) if mark in body]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Room]:
    folder = tmp_path_factory.mktemp("scenes")
    prompt_file = folder / "commands.md"
    prompt_file.write_text(LISTED)
    loopback = Loopback()
    with (
        loopback,
        ModelServer([when("for later", reply="Understood, later.")], listener=loopback.listener) as server,
        Room(folder / "stage", server, loopback, clocks={}, set_ups=SET_UPS) as room,
        passage(loopback, room.room.port),
    ):
        files = [file for cli in room.clis.values() for file in add_own_server(cli)]
        room.files = {file: file.read_text("utf-8") for file in files}
        if request.config.getoption("--full"):
            first = room.clis["claude"]
            own_url = {"ANTHROPIC_BASE_URL": server.url(TWIN)}
            room.clis[TWIN] = replace(first, client=TWIN, env=first.env | own_url)
        room.sit_down("--initial-prompt-file", str(prompt_file))
        yield room


@pytest.fixture
def room(shared: Room) -> Room:
    """All of them at rest."""
    shared.rest()
    return shared


def odd_texts() -> list[str]:
    """Return a few messages that have all the awkward words in them."""
    return ["\n".join(WORDS[at::3]) + f" m{at:02d}-m" for at in range(3)]


def test_awkward_messages_arrive_once_in_order_and_replies_come_back_exact(room: Room) -> None:
    """The first prompt of all is that of the file, in which commands are only shown."""
    texts, wanted = odd_texts(), {}
    for name in room.clis:
        # A long one with a tool before it, a slow one in many scripts, one that shows commands.
        answers = [reply_for(name, at) for at in (7, 3)] + [([Text(text=QUOTED)], QUOTED)]
        wanted[name] = [("done", as_kept(name, text)) for _, text in answers]
        for at, (parts, _) in enumerate(answers):
            room.server.add(when(f"m{at:02d}-m", client=name, reply=parts))
    sent = {name: [room.send(name, text) for text in texts] for name in room.clis}
    for name in room.clis:
        room.reply_to(sent[name][-1], name, PATIENCE_S)

    for name in room.clis:
        assert room.heard(name, "") == [as_taken(name, text) for text in texts], name
        first, *later = room.server.prompts(name)
        assert "run none of them now" in first, (name, [one[:60] for one in (first, *later)])
        assert not any("of them now" in one for one in later), name
        assert {room.state(message, name)[0] for message in sent[name]} == {"confirmed"}, name
        replies = [one for one in room.replies(name) if one.get("replyTo")]
        assert [one["replyTo"] for one in replies] == sent[name], name
        assert [(one.get("ending", "done"), one["text"]) for one in replies] == wanted[name], name
    assert not room.server.saw("root:x:0:0"), "a file was read into a request"
    ran = room.room.gateway.get("/history", types="agent_call,query,answer,vote", limit=200)["items"]
    assert ran == [], "a command that was only shown"
    assert [path.name for path in room.clis["claude"].cwd.iterdir() if path.name[0] != "."] == []


def test_a_dialog_is_approved_or_denied_from_outside(room: Room) -> None:
    made = {name: room.clis[name].cwd / f"{name}-{MADE}" for name in TRIO}
    for name in TRIO:
        command = Shell(command=f"echo hi > {made[name].name}")
        parts: list[Part] = [Text(text="I look first."), command, Text(text="Done.")]
        room.server.add(when("use the tool", client=name, reply=parts))
    asking = room.say("please use the tool")
    room.wait_state("needs_approval")
    waiting = room.say("while the dialog is open")
    for name in TRIO:
        room.wait_held(waiting[name], name, "dialog")
        choices = room.choices(name)
        assert len(choices) >= 2, f"{name}: {choices}"
        assert f"echo hi > {made[name].name}" in str(room.agent(name)["dialog"]), name
        assert not made[name].exists(), f"{name} did not wait"
        room.room.gateway.post(f"/agents/{name}/approve")

    assert room.endings(asking) == dict.fromkeys(TRIO, ("Done.", "done"))
    assert room.endings(waiting) == dict.fromkeys(TRIO, ("ok", "done"))
    activity = room.room.gateway.get("/history", types="activity", limit=200)["items"]
    looked = [item["sender"] for item in activity if item["text"] == "I look first."]
    assert sorted(looked) == sorted(TRIO)
    for name in TRIO:
        assert made[name].read_text() == "hi\n"
        made[name].unlink()

    asking = room.say("use the tool again")
    room.wait_state("needs_approval")
    for name in TRIO:
        room.room.gateway.post(f"/agents/{name}/deny")
    assert {name: how for name, (_, how) in room.endings(asking).items()} == dict.fromkeys(
        TRIO, "interrupted"
    )
    assert not any(path.exists() for path in made.values())


def test_a_persons_draft_is_left_alone(room: Room) -> None:
    draft = "half a thought"
    for name in TRIO:
        room.seats[name].type(draft)
        room.wait_shown(name, draft)
    sent = room.say("after the draft")
    for name in TRIO:
        room.wait_held(sent[name], name, "draft")
        assert room.heard(name, "after the draft") == []
        assert draft in room.seats[name].screen()
        room.seats[name].keys(*["BSpace"] * len(draft))

    assert room.endings(sent) == dict.fromkeys(TRIO, ("ok", "done"))
    for name in TRIO:
        assert room.heard(name, "after the draft") == ["after the draft"]
        assert not any(draft in prompt for prompt in room.server.prompts(name)), name


def test_turns_that_break_off_are_told_apart(room: Room) -> None:
    room.server.add(when("take forever", reply=[FOREVER]), when("break now", reply=[Fail(kind="invalid")]))
    long = room.say("take forever")
    room.wait_at_work("take forever", *TRIO)
    for name in TRIO:
        room.wait_for(long[name], name, "confirmed", timeout_s=PATIENCE_S)
        room.wait_shown(name, "row 1 of")
        room.room.gateway.post(f"/agents/{name}/interrupt")
    assert {name: how for name, (_, how) in room.endings(long).items()} == dict.fromkeys(TRIO, "interrupted")

    broken = room.say("break now")
    assert {name: how for name, (_, how) in room.endings(broken).items()} == dict.fromkeys(TRIO, "failed")

    long = room.say("take forever again")
    room.wait_at_work("take forever again", *TRIO)
    for name in TRIO:
        room.wait_for(long[name], name, "confirmed", timeout_s=PATIENCE_S)
    urgent = room.say("urgent", urgent=True)
    assert room.endings(urgent) == dict.fromkeys(TRIO, ("ok", "done"))
    assert {name: how for name, (_, how) in room.endings(long).items()} == dict.fromkeys(TRIO, "interrupted")


def test_a_turn_outlives_its_brain_and_the_gateway(room: Room) -> None:
    room.server.add(when("take your time", reply=[slow(TICKS, 6.0)]))
    before = {name: (room.seats[name].cli, room.seats[name].brain) for name in TRIO}
    long = room.say("take your time")
    waiting = [room.say(f"waiting {number}") for number in range(2)]
    room.wait_at_work("take your time", *TRIO)
    for _, brain in before.values():
        os.kill(brain, signal.SIGKILL)
    room.room.kill9()
    room.room.start()

    assert room.endings(long) == dict.fromkeys(TRIO, (TICKS, "done"))
    for messages in waiting:
        assert room.endings(messages) == dict.fromkeys(TRIO, ("ok", "done"))
    for name in TRIO:
        assert room.heard(name, "wait") == ["waiting 0", "waiting 1"], name
        assert room.heard(name, "take your time") == ["take your time"], name
        replies = [reply["replyTo"] for reply in room.replies(name)][-3:]
        assert replies == [long[name], *(messages[name] for messages in waiting)], name
        cli, brain = before[name]
        assert room.seats[name].cli == cli and room.seats[name].brain not in (0, brain), name


def test_a_cleared_conversation_goes_on_in_the_room(room: Room) -> None:
    room.server.add(when("before it", reply="This goes."))
    room.endings(room.say("before it is cleared"))
    for name in TRIO:
        clear(room, name)
    sent = room.say("after it was cleared")

    assert room.endings(sent) == dict.fromkeys(TRIO, ("ok", "done"))
    for name in TRIO:
        assert room.heard(name, "cleared") == ["before it is cleared", "after it was cleared"], name
        conversation = room.server.exchanges(name, "main")[-1].ask.conversation
        assert not any("before it is cleared" in text for text in conversation), f"{name} was not cleared"


def clear(room: Room, name: str) -> None:
    """Begin a new conversation as a person does, who presses Enter again when nothing happens."""
    seat = room.seats[name]
    seat.type(CLEAR[name])
    wait_until_sync(lambda: CLEAR[name] in seat.screen(), PATIENCE_S, name)

    def is_cleared() -> bool:
        if "This goes." in seat.screen():
            seat.keys("Enter")
            return False
        return True

    wait_until_sync(is_cleared, PATIENCE_S, f"{CLEAR[name]} of {name}")


def test_each_calls_the_tools_of_the_room_and_of_its_user(room: Room) -> None:
    for name in TRIO:
        send = tool(name, "send_message", to="human", text=f"by tool from {name}")
        echo = tool(name, "echo", "mine", text=f"hello of {name}")
        # The same words once more, as a line: they are not sent twice.
        words = Text(text=f"I told you.\n\n@send.human by tool from {name}")
        room.server.add(when("please tell me", client=name, reply=[send, Text(text="Sent."), echo, words]))
    for name in TRIO:
        wait_until_sync(partial(has_tools, room, name), PATIENCE_S, f"tools of {name}")
    sent = room.say("please tell me")

    for name, (text, ending) in room.endings(sent).items():
        assert text.startswith("I told you.") and ending == "done", name
        assert any(f"echoed hello of {name}" in one for one in room.server.results(name)), name
    events = room.room.journal()
    calls = [(event.sender, event.text) for event in events if isinstance(event, AgentCall)]
    assert sorted(calls) == [(name, f"by tool from {name}") for name in TRIO]
    dropped = [event.target for event in events if isinstance(event, NoticePosted) and event.repeats]
    assert sorted(dropped) == sorted(TRIO)
    at = next(event.seq for event in events if event.id == sent["claude"])
    states = [event.state for event in events if isinstance(event, StateChanged) and event.seq > at]
    assert "needs_approval" not in map(str, states), "our tools ask nobody"


def has_tools(room: Room, name: str) -> bool:
    """Tell whether a CLI, which waits for no server at its start, offers its model the tools by now."""
    room.reply_to(room.send(name, "are you there"), name, PATIENCE_S)
    return is_offered(room.server.exchanges(name, "main")[-1], "board_search", "echo")


def have_fired(folder: Path, events: set[str]) -> bool:
    return {path.stem for path in folder.glob("*.jsonl")} >= events


def test_what_belongs_to_the_user_works_and_stays_as_it_was(room: Room) -> None:
    for name, events in HOOKS.items():
        wait_until_sync(
            partial(have_fired, room.clis[name].user_hooks, events),
            PATIENCE_S,
            f"the user's own hooks of {name}",
        )
    for file, text in room.files.items():
        # Codex notes by itself, behind the user's lines, which of its tips it has shown.
        now = file.read_text("utf-8")
        assert now == text or (file.suffix == ".toml" and now.startswith(text.rstrip())), file
        assert "csp.cli" not in now and "spool" not in now


def test_a_debate_of_two_rounds_shows_positions_after_all_have_spoken(room: Room) -> None:
    topic = "zebra crossings"
    secrets = {"claude": "marzipan", "codex": "nougat", "gemini": "praline"}
    before = {name: len(room.server.prompts(name)) for name in TRIO}
    for name in TRIO:
        words = f"In my view: {secrets[name]}."
        room.server.add(when(topic, "Present your position", client=name, reply=words))
        room.server.add(when(topic, "Respond to the others", client=name, reply=f"{name} stands by it."))
    session = room.begin("debate", topic, rounds=2)
    view = room.wait_end(session)

    assert view["reason"] == "done"
    for name in TRIO:
        first, second = room.asked(topic, name)
        assert len(room.server.prompts(name)) == before[name] + 2
        assert first.startswith("[YOUR TURN #t-") and second.startswith("[YOUR TURN #t-")
        assert not any(secret in first for secret in secrets.values()), f"{name} knew too early"
        others = [secret for other, secret in secrets.items() if other != name]
        assert all(f"In my view: {secret}." in second for secret in others), name
    course = [
        (type(event).__name__, event.target if event.sender == "system" else event.sender)
        for event in room.events(session, TurnSignal, AgentResponse)
    ]
    assert course[:3] == [("TurnSignal", name) for name in TRIO], "all are asked at once"
    assert sorted(course[3:6]) == [("AgentResponse", name) for name in TRIO]
    assert course[6:] == [(kind, name) for name in TRIO for kind in ("TurnSignal", "AgentResponse")]


def test_allstop_interrupts_every_turn_of_a_session(room: Room) -> None:
    topic = "ocelot spots"
    room.server.add(when(topic, reply=[FOREVER]))
    session = room.begin("debate", topic)
    room.wait_at_work(topic, *TRIO)
    working = room.open_exchanges()
    room.send("all", "ALL STOP!")

    assert (room.mode()["status"], room.mode()["reason"]) == ("ended", "stopped_by_user")
    assert sorted(one.client for one in working) == sorted(TRIO)
    for one in working:
        room.wait_aborted(one)
    room.rest()
    (end,) = [one for one in room.events(session, ModeChanged) if one.change is Change.ENDED]
    later = room.events(session, AgentCall, AgentResponse, TurnSignal)
    assert [one for one in later if one.seq > end.seq] == []
    assert not room.server.saw("ALL STOP!")
    assert [len(room.asked(topic, name)) for name in TRIO] == [1, 1, 1]


def test_a_limit_stops_turns_while_they_run_by_what_is_new(room: Room) -> None:
    topic, calls = "quokka smiles", 3
    look: list[Part] = [Text(text="I look."), Shell(command="echo hi", escalate=False)]
    room.server.add(replace(when(topic, reply=[*look * calls, FOREVER]), used=REALISTIC))
    # The last of them to have made its third call passes it.
    limit = len(TRIO) * calls * REALISTIC.new - 1
    session = room.begin("debate", topic, limits={"tokens": limit})
    view = room.wait_end(session)
    for one in room.server.exchanges(kind="main"):
        if topic in one.ask.governing and one.ended == "open":
            room.wait_aborted(one)
    room.rest()

    assert view["reason"] == "emergency_tokens"
    assert room.events(session, AgentResponse) == []
    (shown,) = [one for one in room.room.gateway.get("/sessions")["items"] if one["id"] == session]
    # What was broken off may have told its tokens before.
    for row in shown["spent"]:
        assert row["cached"] in (calls * REALISTIC.cached, (calls + 1) * REALISTIC.cached)
    assert sorted(row["agent"] for row in shown["spent"]) == sorted(TRIO)
    assert limit < shown["new"] < limit + len(TRIO) * REALISTIC.new + 1000


def test_a_restarted_cli_goes_on_with_its_conversation(room: Room) -> None:
    room.endings({"claude": room.send("claude", "remember the word kumquat")})
    cli = room.seats["claude"].cli
    room.room.gateway.post("/agents/claude/restart")
    wait_until_sync(lambda: set(room.seats["claude"].clis()) - {cli}, PATIENCE_S, "another claude")
    sent = {"claude": room.send("claude", "which word was it")}

    assert room.endings(sent) == {"claude": ("ok", "done")}
    assert room.heard("claude", "which word") == ["which word was it"]
    conversation = room.server.exchanges("claude", "main")[-1].ask.conversation
    assert any("kumquat" in text for text in conversation)
